// Sparse tensors as three inputs: indices [n, rank], values [n] and a dense shape [rank].
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/execution/step_end.h"
#include "core/tensor.h"
#include "graph/shape_inference.h"

namespace leat {

inline void check_sparse(const Tensor& indices, const Tensor& values, const Tensor& shape) {
  check(indices.shape().rank() == 2, "Input indices should be a matrix but received shape ",
        indices.shape());
  check(values.shape().rank() == 1, "Input values should be a vector but received shape ",
        values.shape());
  check(shape.shape().rank() == 1, "Input shape should be a vector but received shape ",
        shape.shape());
  check(values.shape()[0] == indices.shape()[0],
        "Number of values must match first dimension of "
        "indices. Got ",
        values.shape()[0], " values, indices shape: ", indices.shape());
  check(shape.shape()[0] == indices.shape()[1],
        "Number of dimensions must match second dimension "
        "of indices. Got ",
        shape.shape()[0], " dimensions, indices shape: ", indices.shape());
}

// Inputs first, first + 1, first + 2 are indices, values and shape. Returns the number of entries
// and the rank, as far as they are known.
inline Shape infer_sparse(ShapeContext& c, int first = 0) {
  const Shape indices = c.with_rank(first, 2), values = c.with_rank(first + 1, 1),
              shape = c.with_rank(first + 2, 1);
  check(Shape({indices[0]}).is_compatible(values), "indices ", indices, " and values ", values,
        " must have the same number of entries");
  check(Shape({indices[1]}).is_compatible(shape), "indices ", indices,
        " must have one column per element of the shape ", shape);
  return {indices[0] == any ? values[0] : indices[0], indices[1] == any ? shape[0] : indices[1]};
}

// Checks only the ranks, for ops that accept parts that do not match.
inline void infer_sparse_ranks(ShapeContext& c) {
  c.with_rank(0, 2);
  c.with_rank(1, 1);
  c.with_rank(2, 1);
}

inline std::vector<int> all_columns(const Tensor& indices) {
  std::vector<int> columns(indices.shape()[1]);
  std::iota(columns.begin(), columns.end(), 0);
  return columns;
}

// Compares row i of a with row j of b by these columns: -1, 0 or 1.
inline int compare_entries(const Tensor& a, int64_t i, const Tensor& b, int64_t j,
                           const std::vector<int>& columns) {
  const int64_t *x = a.data<int64_t>() + i * a.shape()[1],
                *y = b.data<int64_t>() + j * b.shape()[1];
  for (const int column : columns) {
    if (x[column] != y[column]) return x[column] < y[column] ? -1 : 1;
  }
  return 0;
}

// The order of the entries by these columns of their indices; stable.
inline std::vector<int64_t> sorted_entries(const Tensor& indices, const std::vector<int>& columns) {
  std::vector<int64_t> order(indices.shape()[0]);
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto comes_first = [&](int64_t i, int64_t j) {
    return compare_entries(indices, i, indices, j, columns) < 0;
  };
  std::stable_sort(order.begin(), order.end(), StepEnd::pacing(comes_first));
  return order;
}

}  // namespace leat
