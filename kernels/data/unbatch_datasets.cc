// Datasets of the rows of another's elements: one by one, or in batches of other sizes.
#include "kernels/data/dataset.h"
#include "kernels/moves/copy_elements.h"

namespace leat {
namespace {

// The number of rows of an element, which must be equal in all components.
int64_t rows_of_batch(const Element& batch) {
  for (size_t i = 0; i < batch.size(); ++i) {
    check(batch[i].shape().rank() > 0,
          "Input element must have a non-scalar value in each component.");
    check(batch[i].shape()[0] == batch[0].shape()[0],
          "Input element must have the same batch size in each component. Component 0 had size ",
          batch[0].shape()[0], " but component ", i, " had size, ", batch[i].shape()[0], ".");
  }
  return batch[0].shape()[0];
}

class UnbatchDataset final : public ElementSource {
 public:
  UnbatchDataset(ElementTypes types, Pointer input)
      : ElementSource(std::move(types), {input}), input_(std::move(input)) {}

  int64_t cardinality() const override {
    const int64_t n = input_->cardinality();
    if (n < 0) return n;
    for (const Shape& shape : input_->types().shapes) {
      if (shape.has_rank() && shape.rank() > 0 && shape[0] >= 0)
        return shape[0] > 0 ? times(n, shape[0]) : unknown;
    }
    return unknown;
  }

  std::unique_ptr<DatasetIterator> iterate() const override {
    struct State {
      std::unique_ptr<DatasetIterator> input;
      Element batch;
      int64_t row = 0, rows = 0;
    };
    return iterator([s = State{input_->make_iterator(), {}}](Reading& reading) mutable {
      std::optional<Element> out;
      while (s.row == s.rows) {
        s.row = s.rows = 0;
        s.batch.clear();
        std::optional<Element> batch = s.input->next(reading);
        if (!batch) return out;
        s.rows = rows_of_batch(*batch);
        s.batch = std::move(*batch);
      }
      out.emplace();
      for (const Tensor& component : s.batch) out->push_back(slice_of(component, s.row));
      ++s.row;
      return out;
    });
  }

 private:
  const Pointer input_;
};

// Batches of these sizes, in turn.
class RebatchDataset final : public ElementSource {
 public:
  // `rows`: the dataset of rows that the batches are made of.
  RebatchDataset(ElementTypes types, Pointer rows, const Tensor& sizes, bool drops_remainder)
      : ElementSource(std::move(types), {rows}),
        rows_(std::move(rows)),
        drops_remainder_(drops_remainder) {
    check(sizes.shape().rank() <= 1, "`batch_sizes` must be a scalar or a vector.");
    check(sizes.elements() > 0, "`batch_sizes` must not be empty.");
    for (const int64_t size : sizes.span<int64_t>()) {
      check(size >= 0, "`batch_sizes` must not be negative, got ", size);
      sizes_.push_back(size);
    }
  }

  std::unique_ptr<DatasetIterator> iterate() const override {
    struct State {
      std::unique_ptr<DatasetIterator> rows;  // null at the end
      size_t turn = 0;
    };
    return iterator([this, s = State{rows_->make_iterator()}](Reading& reading) mutable {
      std::optional<Element> out;
      if (!s.rows) return out;
      const int64_t size = sizes_[s.turn];
      std::vector<Element> batch;
      while (s.rows && static_cast<int64_t>(batch.size()) < size) {
        if (std::optional<Element> row = s.rows->next(reading)) {
          check_memory_for_element(*row);
          batch.push_back(std::move(*row));
        } else {
          s.rows.reset();
        }
      }
      s.turn = (s.turn + 1) % sizes_.size();
      if (size == 0) out = without_rows();
      const bool is_whole = static_cast<int64_t>(batch.size()) == size;
      if (!batch.empty() && (is_whole || !drops_remainder_)) out = stacked(batch);
      return out;
    });
  }

 private:
  Element without_rows() const {
    Element out;
    for (size_t i = 0; i < types().dtypes.size(); ++i) {
      std::vector<int64_t> extents = {0};
      const Shape& shape = types().shapes[i];
      for (int axis = 1; shape.has_rank() && axis < shape.rank(); ++axis)
        extents.push_back(std::max<int64_t>(0, shape[axis]));
      out.push_back(Tensor(types().dtypes[i], Shape(extents)));
    }
    return out;
  }

  const Pointer rows_;
  std::vector<int64_t> sizes_;
  const bool drops_remainder_;
};

const Op rebatch_op{dataset_op(
    {.name = "RebatchDatasetV2",
     .doc =
         "The rows of the elements in batches of batch_sizes, in turn; drop_remainder: only whole "
         "ones.",
     .inputs = {input_dataset_arg, "batch_sizes: int64", "drop_remainder: bool"},
     .attrs = dataset_attrs()},
    [](ExecuteContext& c) {
      const ElementSource::Pointer input = input_dataset(c);
      return std::make_shared<RebatchDataset>(
          ElementTypes::of(c.node()), std::make_shared<UnbatchDataset>(input->types(), input),
          c.input(1), scalar_input<bool>(c, 2, "drop_remainder"));
    })};
const Op unbatch_op{dataset_op({.name = "UnbatchDataset",
                                .doc = "The elements' slices along their first axis.",
                                .inputs = {input_dataset_arg},
                                .attrs = dataset_attrs({metadata_attr})},
                               [](ExecuteContext& c) {
                                 return std::make_shared<UnbatchDataset>(ElementTypes::of(c.node()),
                                                                         input_dataset(c));
                               })};

}  // namespace
}  // namespace leat
