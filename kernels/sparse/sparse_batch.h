// Batches of sparse tensors: one sparse tensor whose first axis numbers its elements, and the
// separate elements, as queues hold them.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace leat {

struct SparseValue {
  Tensor indices, values, shape;  // int64[n, rank], [n], int64[rank]
};

// The elements along the first axis. INVALID_ARGUMENT if the rank is below 2, an entry is outside
// the shape, or the entries are not in row-major order.
class SparseRows {
 public:
  SparseRows(const Tensor& indices, const Tensor& values, const Tensor& shape);

  int64_t size() const { return size_; }
  // Rows that have entries: row_of(0) < row_of(1) < …
  int64_t groups() const { return static_cast<int64_t>(begins_.size()) - 1; }
  int64_t row_of(int64_t group) const;
  SparseValue element(int64_t group) const;
  SparseValue empty() const;  // for every other row

 private:
  SparseValue part(int64_t begin, int64_t end) const;

  const Tensor indices_, values_;
  Tensor element_shape_;
  int64_t size_ = 0;
  std::vector<int64_t> begins_;  // the start of each group's entries, and the end of the last
};

// Stacks the elements along new leading axes with the extents `batch`, whose product is the number
// of elements, at least one. Each further extent is the maximum over the elements. INVALID_ARGUMENT
// if their ranks or dtypes differ.
SparseValue batch_of(const std::vector<SparseValue>& elements, DType dtype,
                      const std::vector<int64_t>& batch);

// INVALID_ARGUMENT unless a tensor could have this dense shape.
void check_dense_shape(const Tensor& shape);

}  // namespace leat
