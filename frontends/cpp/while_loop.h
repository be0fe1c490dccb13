// While loops in the C++ API.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace leat {

// The variables after `body` has been applied to them as often as `condition` held:
//
//   const auto [i, sum] = … while_loop({constant(graph, 0), x},
//       [&](const auto& v) { return less(v[0], 10); },
//       [&](const auto& v) { return std::vector{v[0] + 1, v[1] * x}; });
//
// Both functions are called once, to add their nodes; what they use of the graph around them is
// taken into the loop as it is when the loop starts. `condition` gives a scalar bool, `body` a
// value for each variable, of the same dtype; shapes may change from iteration to iteration. A loop
// runs on the device of the scope it is made in, or where the state is that it changes, and has no
// gradient here (TensorFlow's client makes one from StackV2 and TensorArrays). INVALID_ARGUMENT if
// the functions do not fit the variables.
std::vector<Output> while_loop(
    const std::vector<Output>& variables,
    const std::function<Output(const std::vector<Output>&)>& condition,
    const std::function<std::vector<Output>(const std::vector<Output>&)>& body,
    std::string_view name = "while", Location at = here());

}  // namespace leat
