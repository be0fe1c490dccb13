#include "kernels/sparse/sparse_batch.h"

#include <algorithm>

#include "core/memory/host_memory.h"
#include "kernels/extents.h"
#include "kernels/moves/copy_elements.h"
#include "kernels/sparse/sparse_tensor.h"

namespace leat {
namespace {

std::string tuple_text(const int64_t* values, int64_t rank) {
  std::string out = "[";
  for (int64_t i = 0; i < rank; ++i) out += (i > 0 ? "," : "") + std::to_string(values[i]);
  return out + "]";
}

// Checks that the entries are within the shape, in row-major order, and distinct.
void check_entries(const Tensor& indices, const Tensor& shape) {
  const int64_t count = indices.shape()[0], rank = indices.shape()[1];
  const auto *at = indices.data<int64_t>(), *extents = shape.data<int64_t>();
  for (int64_t i = 0; i < count; ++i, at += rank) {
    const auto wrong = [&](bool is_wrong, const char* why) {
      check(!is_wrong, "indices[", i, "] = ", tuple_text(at, rank), why);
    };
    for (int64_t d = 0; d < rank; ++d) {
      check(at[d] >= 0 && at[d] < extents[d], "indices[", i, "] = ", tuple_text(at, rank),
            " is out of bounds: need 0 <= index < ", tuple_text(extents, rank));
    }
    if (i == 0) continue;
    wrong(std::lexicographical_compare(at, at + rank, at - rank, at),
          " is out of order. Many sparse ops require sorted indices: use tf.sparse.reorder");
    wrong(std::equal(at, at + rank, at - rank), " is repeated");
  }
}

}  // namespace

void check_dense_shape(const Tensor& shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape.span<int64_t>()) {
    check(extent >= 0, "the dense shape ", shape, " has a negative extent");
    elements = product_of_extents(elements, extent);
  }
}

SparseRows::SparseRows(const Tensor& indices, const Tensor& values, const Tensor& shape)
    : indices_(indices), values_(values) {
  check_sparse(indices, values, shape);
  const int64_t rank = shape.elements();
  check(rank > 1, "Rank of input SparseTensor should be > 1, but saw rank: ", rank);
  check_dense_shape(shape);
  check_entries(indices, shape);
  size_ = shape.data<int64_t>()[0];
  element_shape_ = Tensor(DType::i64, {rank - 1});
  copy_elements(shape, 1, element_shape_, 0, rank - 1);
  const int64_t count = indices.shape()[0];
  const auto* at = indices.data<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || at[i * rank] != at[(i - 1) * rank]) begins_.push_back(i);
  }
  begins_.push_back(count);
}

int64_t SparseRows::row_of(int64_t group) const {
  return indices_.data<int64_t>()[begins_[group] * indices_.shape()[1]];
}

SparseValue SparseRows::element(int64_t group) const {
  return part(begins_[group], begins_[group + 1]);
}

SparseValue SparseRows::empty() const { return part(0, 0); }

SparseValue SparseRows::part(int64_t begin, int64_t end) const {
  const int64_t rank = indices_.shape()[1], count = end - begin;
  SparseValue out{Tensor(DType::i64, {count, rank - 1}), Tensor(values_.dtype(), {count}),
                  element_shape_};
  for (int64_t i = 0; i < count; ++i)
    copy_elements(indices_, (begin + i) * rank + 1, out.indices, i * (rank - 1), rank - 1);
  copy_elements(values_, begin, out.values, 0, count);
  return out;
}

SparseValue batch_of(const std::vector<SparseValue>& elements, DType dtype,
                     const std::vector<int64_t>& batch) {
  const int64_t rank = elements.front().shape.elements(),
                leading = static_cast<int64_t>(batch.size());
  std::vector<int64_t> shape = batch;
  shape.resize(leading + rank);
  int64_t count = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const SparseValue& element = elements[i];
    check(element.values.dtype() == dtype, "Requested SparseTensor of type ", dtype,
          " but SparseTensor[", i, "].values.dtype() == ", element.values.dtype());
    check(element.shape.elements() == rank,
          "Inconsistent rank across SparseTensors: rank prior to SparseTensor[", i, "] was: ", rank,
          " but rank of SparseTensor[", i, "] is: ", element.shape.elements());
    for (int64_t d = 0; d < rank; ++d)
      shape[leading + d] = std::max(shape[leading + d], element.shape.data<int64_t>()[d]);
    count += element.values.elements();
  }
  SparseValue out{Tensor(DType::i64, {count, leading + rank}), Tensor(dtype, {count}),
                  Tensor::of<int64_t>({leading + rank}, std::span<const int64_t>(shape))};
  check_dense_shape(out.shape);
  int64_t at = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const SparseValue& element = elements[i];
    const int64_t entries = element.values.elements();
    copy_elements(element.values, 0, out.values, at, entries);
    for (int64_t entry = 0; entry < entries; ++entry, ++at) {
      int64_t* to = out.indices.data<int64_t>() + at * (leading + rank);
      auto rest = static_cast<int64_t>(i);
      for (int64_t axis = leading - 1; axis >= 0; --axis) {
        to[axis] = rest % batch[axis];
        rest /= batch[axis];
      }
      std::copy_n(element.indices.data<int64_t>() + entry * rank, rank, to + leading);
    }
  }
  return out;
}

}  // namespace leat
