// Datasets of sparse tensors.
#include "kernels/dataset.h"
#include "kernels/sparse_batch.h"
#include "kernels/sparse_tensor.h"

namespace leat {
namespace {

class SparseTensorSliceDataset final : public Dataset {
 public:
  SparseTensorSliceDataset(const Tensor& indices, const Tensor& values, const Tensor& shape)
      : Dataset(types_of(indices, values, shape)), rows_(indices, values, shape) {}

  int64_t cardinality() const override { return rows_.size(); }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([this, row = int64_t{0}, group = int64_t{0}](Reading&) mutable {
      std::optional<Element> out;
      if (row == rows_.size()) return out;
      const bool has_entries = group < rows_.groups() && rows_.row_of(group) == row;
      const SparseTensor slice = has_entries ? rows_.element(group++) : rows_.empty();
      ++row;
      out = Element{slice.indices, slice.values, slice.shape};
      return out;
    });
  }

 private:
  static ElementTypes types_of(const Tensor& indices, const Tensor& values, const Tensor& shape) {
    check_sparse(indices, values, shape);
    check(shape.elements() > 0, "The shape argument requires at least one element.");
    for (int64_t i = 1; i < indices.shape()[0]; ++i) {
      if (compare_entries(indices, i, indices, i - 1, {0}) < 0) {
        fail(Code::unimplemented,
             "The SparseTensor must be ordered in the batch dimension; handling arbitrarily "
             "ordered input is not currently supported.");
      }
    }
    const int64_t rank = shape.elements() - 1;
    return {{DType::i64, values.dtype(), DType::i64}, {Shape{any, rank}, Shape{any}, Shape{rank}}};
  }

  const SparseRows rows_;
};

const Op sparse_slices_op{dataset_op(
    {.name = "SparseTensorSliceDataset",
     .doc = "The sparse tensor's slices along its first axis: indices, values, shape.",
     .inputs = {"indices: int64", "values: Tvalues", "dense_shape: int64"},
     .attrs = {"Tvalues: type"},
     .is_stateful = true},
    [](ExecuteContext& c) {
      return std::make_shared<SparseTensorSliceDataset>(c.input(0), c.input(1), c.input(2));
    })};

}  // namespace
}  // namespace leat
