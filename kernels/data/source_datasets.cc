// Datasets whose elements are tensors of the graph, or numbers.
#include "kernels/data/dataset.h"
#include "kernels/data/window_datasets.h"
#include "kernels/moves/copy_elements.h"

namespace leat {
namespace {

std::vector<Tensor> inputs_of(const ExecuteContext& c) {
  std::vector<Tensor> out;
  for (int i = 0; i < c.num_inputs(); ++i) out.push_back(c.input(i));
  return out;
}

class TensorDataset final : public ElementSource {
 public:
  TensorDataset(ElementTypes types, Element element)
      : ElementSource(std::move(types)), element_(std::move(element)) {}

  int64_t cardinality() const override { return 1; }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([this, is_done = false](Reading&) mutable {
      std::optional<Element> out;
      if (!std::exchange(is_done, true)) out = element_;
      return out;
    });
  }

 private:
  const Element element_;
};

class TensorSliceDataset final : public ElementSource {
 public:
  TensorSliceDataset(ElementTypes types, std::vector<Tensor> components)
      : ElementSource(std::move(types)), components_(std::move(components)) {
    for (const Tensor& component : components_) {
      check(component.shape().rank() > 0,
            "All components must be at least 1-dimensional, not scalars");
      check(component.shape()[0] == rows(),
            "All components must have the same size in the 0th "
            "dimension: ",
            components_[0].shape(), " and ", component.shape());
    }
  }

  int64_t cardinality() const override { return rows(); }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([this, row = int64_t{0}](Reading&) mutable {
      std::optional<Element> out;
      if (row == rows()) return out;
      out.emplace();
      for (const Tensor& component : components_) out->push_back(slice_of(component, row));
      ++row;
      return out;
    });
  }

 private:
  int64_t rows() const { return components_[0].shape()[0]; }
  const std::vector<Tensor> components_;
};

class RangeDataset final : public ElementSource {
 public:
  RangeDataset(ElementTypes types, int64_t start, int64_t stop, int64_t step)
      : ElementSource(std::move(types)), start_(start), stop_(stop), step_(step) {
    check(step != 0, "step must be a non-zero integer.");
    check(this->types().dtypes.size() == 1, "a range must have one component");
    converted(0);
  }

  int64_t cardinality() const override {
    // Unsigned: the distance of the bounds may not fit into a signed 64-bit integer.
    const bool is_upward = step_ > 0;
    if (is_upward ? start_ >= stop_ : start_ <= stop_) return 0;
    const auto a = static_cast<uint64_t>(start_), b = static_cast<uint64_t>(stop_),
               step = static_cast<uint64_t>(step_);
    return static_cast<int64_t>(((is_upward ? b - a : a - b) - 1) / (is_upward ? step : -step)) + 1;
  }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([this, next = start_, is_over = false](Reading&) mutable {
      std::optional<Element> out;
      if (is_over || (step_ > 0 ? next >= stop_ : next <= stop_)) return out;
      out.emplace(1, converted(next));
      is_over = __builtin_add_overflow(next, step_, &next);
      return out;
    });
  }

 private:
  Tensor converted(int64_t value) const {
    switch (types().dtypes[0]) {
      case DType::i32:
        return Tensor::scalar(static_cast<int32_t>(value));
      case DType::i64:
        return Tensor::scalar(value);
      case DType::f32:
        return Tensor::scalar(static_cast<float>(value));
      case DType::f64:
        return Tensor::scalar(static_cast<double>(value));
      default:
        fail(Code::invalid_argument, "Unsupported data type: ", types().dtypes[0],
             "; a range supports int32, int64, float and double");
    }
  }
  const int64_t start_, stop_, step_;
};

const Op tensor_op{dataset_op(
    {.name = "TensorDataset",
     .doc = "One element: the components.",
     .inputs = {"components: Toutput_types"},
     .attrs = {"Toutput_types: list(type) >= 1", "output_shapes: list(shape) >= 1", metadata_attr},
     .is_stateful = true},
    [](ExecuteContext& c) {
      return std::make_shared<TensorDataset>(ElementTypes::of(c.node()), inputs_of(c));
    })};
const Op tensor_slice_op{dataset_op(
    {.name = "TensorSliceDataset",
     .doc = "The components' slices along their first axis.",
     .inputs = {"components: Toutput_types"},
     .attrs = {"Toutput_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
               "is_files: bool = false", metadata_attr, "replicate_on_split: bool = false"},
     .is_stateful = true},
    [](ExecuteContext& c) {
      return std::make_shared<TensorSliceDataset>(ElementTypes::of(c.node()), inputs_of(c));
    })};
const Op list_op{dataset_op(
    {.name = "ListDataset",
     .doc = "Elements of as many tensors as there are output_types, taken from the list in order.",
     .inputs = {"tensors: Tinput_types"},
     .attrs = dataset_attrs({"Tinput_types: list(type) >= 1", metadata_attr}),
     .is_stateful = true},
    [](ExecuteContext& c) {
      ElementTypes types = ElementTypes::of(c.node());
      const int components = static_cast<int>(types.dtypes.size());
      check(components > 0 && c.num_inputs() % components == 0, c.num_inputs(),
            " tensors cannot be split into elements with ", components, " components");
      std::vector<Element> elements(c.num_inputs() / components);
      for (int i = 0; i < c.num_inputs(); ++i) elements[i / components].push_back(c.input(i));
      return window_of(std::move(elements), std::move(types));
    })};
const Op range_op{
    dataset_op({.name = "RangeDataset",
                .doc = "start, start + step, … before stop.",
                .inputs = {"start: int64", "stop: int64", "step: int64"},
                .attrs = dataset_attrs({metadata_attr, "replicate_on_split: bool = false"}),
                .is_stateful = true},
               [](ExecuteContext& c) {
                 return std::make_shared<RangeDataset>(
                     ElementTypes::of(c.node()), scalar_input<int64_t>(c, 0, "start"),
                     scalar_input<int64_t>(c, 1, "stop"), scalar_input<int64_t>(c, 2, "step"));
               })};

}  // namespace
}  // namespace leat
