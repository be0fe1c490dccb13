// UnbatchDataset: the rows of the elements.
#include "kernels/copy_elements.h"
#include "kernels/dataset.h"
#include "kernels/extents.h"

namespace leat {
namespace {

// Of each element, which must have as many in all components.
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

class UnbatchDataset final : public Dataset {
 public:
  UnbatchDataset(ElementTypes types, Pointer input)
      : Dataset(std::move(types), {input}), input_(std::move(input)) {}

  int64_t cardinality() const override {
    const int64_t n = input_->cardinality();
    if (n < 0) return n;
    for (const Shape& shape : input_->types().shapes) {
      if (shape.has_rank() && shape.rank() > 0 && shape[0] >= 0)
        return shape[0] > 0 ? times(n, shape[0]) : unknown;
    }
    return unknown;
  }

  std::unique_ptr<DatasetIterator> make_iterator() const override {
    struct State {
      std::unique_ptr<DatasetIterator> input;
      Element batch;
      int64_t row = 0, rows = 0;
    };
    return iterator([self = shared_from_this(), this,
                     s = State{input_->make_iterator(), {}}](Reading& reading) mutable {
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
