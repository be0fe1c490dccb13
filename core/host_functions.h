// C++ functions of this process that a graph calls by a number: where a dataset gets the elements
// that a program makes itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/tensor.h"

namespace leat {

// None: there is no more.
using HostFunction = std::function<std::optional<std::vector<Tensor>>()>;

// The function's number. It is known for as long as the process runs: graphs are copied.
int64_t register_host_function(HostFunction function);
// NOT_FOUND if this process has none of that number.
std::shared_ptr<const HostFunction> host_function(int64_t number);

}  // namespace leat
