#include "graph/ops/sparse.h"

#include <numeric>

#include "graph/ops/arrays.h"
#include "graph/ops/graph_of.h"

namespace leat {
namespace {

Graph& graph_of(const SparseTensor& x, Location at) {
  leat::graph_of(x.indices, at);
  leat::graph_of(x.shape, at);
  return leat::graph_of(x.values, at);
}

// As the ops want a shape.
Output as_int64(Output x, Location at) {
  return x.dtype() == i64 ? x : op("Cast", {x}, {{"DstT", i64}}, at);
}

}  // namespace

SparseTensor::SparseTensor(Output indices, Output values, const Dims& shape, Location at)
    : indices(indices),
      values(values),
      shape(as_int64(shape.in(leat::graph_of(values, at), at), at)) {}

Output sparse_to_dense(const SparseTensor& x, const Operand& fill, Location at) {
  graph_of(x, at);
  return op("SparseToDense", {x.indices, x.shape, x.values, fill.as(Operand(x.values, at))}, {},
            at);
}
SparseTensor sparse_from_dense(Output x, Location at) {
  const Output indices = argwhere(x, at);
  return {indices, gather_nd(x, indices, at), shape_of(x, i64, at)};
}
SparseTensor sparse_reorder(const SparseTensor& x, Location at) {
  graph_of(x, at);
  const std::vector<Output> out =
      op_outputs("SparseReorder", {x.indices, x.values, x.shape}, {}, at);
  return {out[0], out[1], x.shape};
}
SparseTensor sparse_reshape(const SparseTensor& x, const Dims& dims, Location at) {
  const Output wanted = as_int64(dims.in(graph_of(x, at), at), at);
  const std::vector<Output> out = op_outputs("SparseReshape", {x.indices, x.shape, wanted}, {}, at);
  return {out[0], x.values, out[1]};
}
FilledRows sparse_fill_empty_rows(const SparseTensor& x, const Operand& fill, Location at) {
  graph_of(x, at);
  const std::vector<Output> out =
      op_outputs("SparseFillEmptyRows",
                 {x.indices, x.values, x.shape, fill.as(Operand(x.values, at))}, {}, at);
  return {{out[0], out[1], x.shape}, out[2], out[3]};
}
Output sparse_add(const SparseTensor& x, Output dense, Location at) {
  graph_of(x, at);
  return op("SparseTensorDenseAdd", {x.indices, x.values, x.shape, dense}, {}, at);
}
Output sum(const SparseTensor& x, const Axes& axes, ReduceOptions options, Location at) {
  graph_of(x, at);
  // The rank is the length of the shape.
  const Shape& of_shape = x.shape.shape();
  Output over;
  if (!axes.is_all()) {
    over = axes.of(x.shape, at);
  } else if (of_shape.is_complete()) {
    std::vector<int> all(static_cast<size_t>(of_shape.elements()));
    std::iota(all.begin(), all.end(), 0);
    over = Axes(std::move(all)).of(x.shape, at);
  } else {
    Graph& graph = x.shape.graph();
    over = op("Range",
              {constant(graph, 0, "start", at), op("Size", {x.shape}, {}, at),
               constant(graph, 1, "delta", at)},
              {}, at);
  }
  return op("SparseReduceSum", {x.indices, x.values, x.shape, over},
            {{"keep_dims", bool{options.keep_dims}}}, at);
}
Output sparse_matmul(const SparseTensor& a, Output b, Location at) {
  graph_of(a, at);
  return op("SparseTensorDenseMatMul", {a.indices, a.values, a.shape, b}, {}, at);
}

}  // namespace leat
