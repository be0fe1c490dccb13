#include "graph/loops/tensor_list.h"

#include "graph/ops.h"

namespace leat::tensor_list {
namespace {

AttrMap of(DType dtype) { return {{"element_dtype", dtype}}; }

// A shape as these ops take it: extents, -1 where nothing is known.
Output shape_input(Graph& graph, const Shape& shape, Location at) {
  if (!shape.has_rank()) return constant(graph, -1, "element_shape", at);
  Tensor extents(i32, {shape.rank()});
  for (int i = 0; i < shape.rank(); ++i)
    extents.data<int32_t>()[i] = static_cast<int32_t>(shape[i]);
  return constant(graph, std::move(extents), "element_shape", at);
}

}  // namespace

Output empty(Graph& graph, DType dtype, const Shape& shape, Location at) {
  const Output no_limit = constant(graph, -1, "max_num_elements", at);
  return op_node(graph, "EmptyTensorList", {shape_input(graph, shape, at), no_limit}, of(dtype), at)
      .output();
}

Output reserve(Graph& graph, DType dtype, const Shape& shape, Output size, Location at) {
  return op("TensorListReserve", {shape_input(graph, shape, at), size}, of(dtype), at);
}

Output from_tensor(Output x, Location at) {
  const Shape& shape = x.shape();
  const Shape row = shape.rank() > 0 ? Shape(shape.dims().subspan(1)) : Shape::unknown();
  return op("TensorListFromTensor", {x, shape_input(x.graph(), row, at)}, of(x.dtype()), at);
}

Output push(Output list, Output element, Location at) {
  return op("TensorListPushBack", {list, element}, of(element.dtype()), at);
}

std::pair<Output, Output> pop(Output list, DType dtype, const Shape& shape, Location at) {
  Node& node = op_node(list.graph(), "TensorListPopBack",
                       {list, shape_input(list.graph(), shape, at)}, of(dtype), at);
  return {node.output(0), node.output(1)};
}

Output get(Output list, Output i, DType dtype, const Shape& shape, Location at) {
  return op("TensorListGetItem", {list, i, shape_input(list.graph(), shape, at)}, of(dtype), at);
}

Output set(Output list, Output i, Output element, Location at) {
  return op("TensorListSetItem", {list, i, element}, of(element.dtype()), at);
}

Output stack(Output list, DType dtype, const Shape& shape, int64_t count, Location at) {
  AttrMap attrs = of(dtype);
  attrs.emplace("num_elements", count);
  return op("TensorListStack", {list, shape_input(list.graph(), shape, at)}, std::move(attrs), at);
}

}  // namespace leat::tensor_list
