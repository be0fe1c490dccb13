// The handling of indices outside a tensor: attribute bad_indices_policy.
#pragma once

#include <string>

#include "core/kernel.h"

namespace leat {

// True if bad indices are skipped. Otherwise they are an error, which is the default on a CPU.
inline bool ignores_bad_indices(const KernelRequest& request) {
  const auto& policy = request.attr<std::string>("bad_indices_policy");
  check(policy.empty() || policy == "DEFAULT" || policy == "ERROR" || policy == "IGNORE",
        "Unknown bad indices handling attribute: ", policy);
  return policy == "IGNORE";
}

}  // namespace leat
