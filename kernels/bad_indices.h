// What becomes of indices that lie outside of a tensor: attribute bad_indices_policy.
#pragma once

#include <string>

#include "core/kernel.h"

namespace leat {

// Are they passed over? Else they are an error; so they are on a CPU unless the graph asks.
inline bool ignores_bad_indices(const KernelRequest& request) {
  const auto& policy = request.attr<std::string>("bad_indices_policy");
  check(policy.empty() || policy == "DEFAULT" || policy == "ERROR" || policy == "IGNORE",
        "Unknown bad indices handling attribute: ", policy);
  return policy == "IGNORE";
}

}  // namespace leat
