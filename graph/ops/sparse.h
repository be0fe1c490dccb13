// Sparse tensors: some elements, and where they are; the others are 0. Most functions expect the
// positions in row-major order: sparse_reorder() sorts them.
#pragma once

#include "graph/ops/reduce.h"

namespace leat {

struct SparseTensor {
  Output indices;  // int64 [n, rank]
  Output values;   // [n]
  Output shape;    // int64 [rank]: that of the whole

  // SparseTensor(indices, values, {3, 4}); the shape may be computed.
  SparseTensor(Output indices, Output values, const Dims& shape, Location at = here());
};

// The whole tensor; `fill` where no element is given.
Output sparse_to_dense(const SparseTensor& x, const Operand& fill = 0, Location at = here());
// The elements that are not zero.
SparseTensor sparse_from_dense(Output x, Location at = here());
SparseTensor sparse_reorder(const SparseTensor& x, Location at = here());
SparseTensor sparse_reshape(const SparseTensor& x, const Dims& dims, Location at = here());
// Rows without an element get one, `fill`, in column 0.
struct FilledRows {
  SparseTensor filled;
  Output was_empty;  // bool [rows]
  Output places;     // int64 [n]: where each element of x went
};
FilledRows sparse_fill_empty_rows(const SparseTensor& x, const Operand& fill, Location at = here());
// x + dense, a dense tensor.
Output sparse_add(const SparseTensor& x, Output dense, Location at = here());
// The sum of the given elements over all axes, or over some: a dense tensor, 0 where no element is
// given. TensorFlow's sparse.reduce_sum; gradients go to x.values.
Output sum(const SparseTensor& x, const Axes& axes = {}, ReduceOptions options = {},
           Location at = here());
inline Output sum(const SparseTensor& x, ReduceAllOptions options, Location at = here()) {
  return sum(x, Axes(), {options.keep_dims}, at);
}
// The product of a sparse matrix and a dense one.
Output sparse_matmul(const SparseTensor& a, Output b, Location at = here());

}  // namespace leat
