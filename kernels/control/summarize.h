// Tensors as Print and Assert show them.
#pragma once

#include <string>

#include "core/kernel.h"

namespace leat {

// "1", "1 2 3...", "[1 2][3 4]": the elements in row-major order, at most `limit` of them unless it
// is negative.
std::string summarize(const TensorSpec& spec, const void* data, int64_t limit);

}  // namespace leat
