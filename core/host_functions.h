// C++ functions of this process that a graph calls by number: a dataset gets elements that the
// program itself makes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/tensor.h"

namespace leat {

// Returns nullopt at the end.
using HostFunction = std::function<std::optional<std::vector<Tensor>>()>;

// Returns the function's number, which stays valid as long as the process runs, because graphs are
// copied.
int64_t register_host_function(HostFunction function);
// NOT_FOUND if this process has no function of that number.
std::shared_ptr<const HostFunction> host_function(int64_t number);

}  // namespace leat
