#include "graph/ops/sparse.h"

#include "graph/ops/graph_of.h"

namespace leat {
namespace {

Graph& graph_of(const SparseTensor& x, Location at) {
  leat::graph_of(x.indices, at);
  leat::graph_of(x.shape, at);
  return leat::graph_of(x.values, at);
}

}  // namespace

Output sparse_to_dense(const SparseTensor& x, const Operand& fill, Location at) {
  graph_of(x, at);
  return op("SparseToDense", {x.indices, x.shape, x.values, fill.as(Operand(x.values, at))}, {},
            at);
}
SparseTensor sparse_reorder(const SparseTensor& x, Location at) {
  graph_of(x, at);
  const std::vector<Output> out =
      op_outputs("SparseReorder", {x.indices, x.values, x.shape}, {}, at);
  return {out[0], out[1], x.shape};
}
SparseTensor sparse_reshape(const SparseTensor& x, const Dims& dims, Location at) {
  Output wanted = dims.in(graph_of(x, at), at);
  if (wanted.dtype() != i64) wanted = op("Cast", {wanted}, {{"DstT", i64}}, at);
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
Output sparse_matmul(const SparseTensor& a, Output b, Location at) {
  graph_of(a, at);
  return op("SparseTensorDenseMatMul", {a.indices, a.values, a.shape, b}, {}, at);
}

}  // namespace leat
