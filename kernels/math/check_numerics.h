// What CheckNumerics says of a tensor, on CPUs and GPUs.
#pragma once

#include <string>

#include "core/error.h"

namespace leat {

// OK if the tensor holds neither.
inline Status status_of_numbers(const std::string& message, bool has_nan, bool has_infinity) {
  if (!has_nan && !has_infinity) return {};
  return {Code::invalid_argument, concat(message, " : Tensor had ",
                                         has_nan && has_infinity ? "Inf and NaN"
                                         : has_nan               ? "NaN"
                                                                 : "Inf",
                                         " values")};
}

}  // namespace leat
