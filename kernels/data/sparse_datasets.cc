// Datasets of sparse tensors.
#include "kernels/data/dataset.h"
#include "kernels/extents.h"
#include "kernels/moves/copy_elements.h"
#include "kernels/sparse/sparse_batch.h"
#include "kernels/sparse/sparse_tensor.h"
#include "kernels/sparse/tensor_variant.h"

namespace leat {
namespace {

class SparseTensorSliceDataset final : public ElementSource {
 public:
  SparseTensorSliceDataset(const Tensor& indices, const Tensor& values, const Tensor& shape)
      : ElementSource(types_of(indices, values, shape)), rows_(indices, values, shape) {}

  int64_t cardinality() const override { return rows_.size(); }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([this, row = int64_t{0}, group = int64_t{0}](Reading&) mutable {
      std::optional<Element> out;
      if (row == rows_.size()) return out;
      const bool has_entries = group < rows_.groups() && rows_.row_of(group) == row;
      const SparseValue slice = has_entries ? rows_.element(group++) : rows_.empty();
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

// Dense elements, which may have different extents, as rows of sparse tensors that are large enough
// for all.
class DenseToSparseBatchDataset final : public ElementSource {
 public:
  DenseToSparseBatchDataset(ElementTypes types, Pointer input, int64_t size, Shape row_shape)
      : ElementSource(std::move(types), {input}),
        input_(std::move(input)),
        size_(size),
        row_shape_(std::move(row_shape)) {
    check(size > 0, "Batch size must be greater than zero.");
    const ElementTypes& elements = input_->types();
    check(elements.dtypes.size() == 1,
          "DenseToSparseBatchDataset only supports inputs with a single component, not ",
          elements.dtypes.size());
    check(fits(elements.shapes[0]), "the elements have shape ", elements.shapes[0],
          ", which does not fit the row shape ", row_shape_);
  }

  int64_t cardinality() const override { return batches(input_->cardinality(), size_); }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([this, input = input_->make_iterator()](Reading& reading) mutable {
      std::vector<Tensor> rows;
      while (std::ssize(rows) < size_) {
        std::optional<Element> element = input->next(reading);
        if (!element) break;
        check_memory_for_element(*element);
        rows.push_back(std::move((*element)[0]));
      }
      std::optional<Element> out;
      if (!rows.empty()) out = Element{sparse_variant(batch_of(rows))};
      return out;
    });
  }

 private:
  // Elements may be smaller than their row.
  bool fits(const Shape& element) const {
    if (!element.has_rank() || !row_shape_.has_rank()) return true;
    if (element.rank() != row_shape_.rank()) return false;
    for (int i = 0; i < element.rank(); ++i) {
      if (row_shape_[i] != any && element[i] > row_shape_[i]) return false;  // any is -1
    }
    return true;
  }

  std::vector<int64_t> shape_of(const std::vector<Tensor>& rows) const {
    std::vector<int64_t> out = {std::ssize(rows)};
    for (const int64_t extent : row_shape_.dims()) out.push_back(std::max<int64_t>(0, extent));
    for (const Tensor& row : rows) {
      const Shape& shape = row.shape();
      check(shape.rank() == row_shape_.rank(), "Input element had shape ", shape,
            " that is incompatible with the row shape ", row_shape_);
      for (int i = 0; i < shape.rank(); ++i) {
        if (row_shape_[i] == any) {
          out[i + 1] = std::max(out[i + 1], shape[i]);
        } else if (shape[i] > row_shape_[i]) {
          fail(Code::data_loss, "Input element had shape ", shape,
               " that is incompatible with the row shape ", row_shape_);
        }
      }
    }
    return out;
  }

  SparseValue batch_of(const std::vector<Tensor>& rows) const {
    const std::vector<int64_t> shape = shape_of(rows);
    const auto rank = std::ssize(shape);
    int64_t count = 0;
    for (const Tensor& row : rows) count = sum_of_extents(count, row.elements());
    check_memory_for(count, sizeof(int64_t) * rank + dtype_size(rows[0].dtype()));
    SparseValue out{Tensor(DType::i64, {count, rank}), Tensor(rows[0].dtype(), {count}),
                    Tensor::of<int64_t>({rank}, std::span<const int64_t>(shape))};
    auto* index = out.indices.data<int64_t>();
    int64_t at = 0;
    for (int64_t number = 0; number < std::ssize(rows); ++number) {
      const Tensor& row = rows[number];
      copy_elements(row, 0, out.values, at, row.elements());
      at += row.elements();
      for (int64_t i = 0; i < row.elements(); ++i, index += rank) {
        index[0] = number;
        for (int64_t axis = rank - 1, rest = i; axis > 0; --axis) {
          const int64_t extent = row.shape()[static_cast<int>(axis) - 1];
          index[axis] = rest % extent;
          rest /= extent;
        }
      }
    }
    return out;
  }

  const Pointer input_;
  const int64_t size_;
  const Shape row_shape_;
};

const Op dense_to_sparse_op{dataset_op(
    {.name = "DenseToSparseBatchDataset",
     .doc = "batch_size elements at a time as a sparse tensor that holds them all; rows have "
            "row_shape, with -1 for the largest extent of a batch.",
     .inputs = {input_dataset_arg, "batch_size: int64", "row_shape: int64"},
     .attrs = dataset_attrs()},
    [](ExecuteContext& c) {
      check(c.input(2).shape().rank() == 1, "row_shape must be a vector");
      const auto extents = c.input(2).span<int64_t>();
      for (const int64_t extent : extents)
        check(extent >= -1, "row_shape must hold extents or -1, got ", extent);
      return std::make_shared<DenseToSparseBatchDataset>(
          ElementTypes::of(c.node()), input_dataset(c), scalar_input<int64_t>(c, 1, "batch_size"),
          Shape(extents));
    })};

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
