// Lists of tensors as values of the graph (variants). Operations return a new list; the elements
// are moved, not copied, if nothing else uses the old one.
#pragma once

#include <utility>

#include "graph/graph.h"

namespace leat::tensor_list {

// For elements of that dtype and shape, which may be partial: none, or `size` zeros (int32).
Output empty(Graph& graph, DType dtype, const Shape& shape, Location at = here());
Output reserve(Graph& graph, DType dtype, const Shape& shape, Output size, Location at = here());
// The rows of x.
Output from_tensor(Output x, Location at = here());
// The list with `element` appended.
Output push(Output list, Output element, Location at = here());
// {the list without its last element, that element}
std::pair<Output, Output> pop(Output list, DType dtype, const Shape& shape, Location at = here());
// Element i (int32), and the list with another one there.
Output get(Output list, Output i, DType dtype, const Shape& shape, Location at = here());
Output set(Output list, Output i, Output element, Location at = here());
// The elements in one tensor, along a new first axis; `count` of them, if that is known.
Output stack(Output list, DType dtype, const Shape& shape, int64_t count = any,
             Location at = here());

}  // namespace leat::tensor_list
