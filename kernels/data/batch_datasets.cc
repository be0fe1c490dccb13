// Datasets of batches.
#include <cstring>

#include "kernels/data/dataset.h"
#include "kernels/extents.h"
#include "kernels/moves/copy_elements.h"
#include "kernels/moves/padding.h"

namespace leat {
namespace {

Tensor stacked(const std::vector<Element>& elements, size_t component) {
  const Tensor& first = elements[0][component];
  for (size_t i = 1; i < elements.size(); ++i) {
    const Tensor& other = elements[i][component];
    check(other.dtype() == first.dtype(), "component ", component, " is ", first.dtype(),
          " in the first element of a batch and ", other.dtype(), " in element ", i);
    check(other.shape() == first.shape(),
          "Cannot batch tensors with different shapes in component ", component,
          ". First element had shape ", first.shape(), " and element ", i, " had shape ",
          other.shape(), ".");
  }
  check(first.dtype() != DType::resource, "component ", component,
        " of a batch is a resource, which cannot be batched");
  const int64_t size = first.shape().elements();
  Tensor out(first.dtype(), rows_of(static_cast<int64_t>(elements.size()), first.shape(), 0));
  for (size_t i = 0; i < elements.size(); ++i)
    copy_elements(elements[i][component], 0, out, static_cast<int64_t>(i) * size, size);
  return out;
}

// ---- Padding ----

// The extents of one component of a batch.
Shape padded_shape(const std::vector<Element>& elements, size_t component, const Shape& wanted) {
  std::vector<int64_t> room(wanted.dims().begin(), wanted.dims().end());
  for (const Element& element : elements) {
    const Shape& shape = element[component].shape();
    check(shape.rank() == wanted.rank(),
          "All elements in a batch must have the same rank as the padded shape for component",
          component, ": expected rank ", wanted.rank(), " but got element with rank ",
          shape.rank());
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (wanted[axis] < 0) {
        room[axis] = std::max(room[axis], shape[axis]);
      } else if (shape[axis] > wanted[axis]) {
        fail(Code::data_loss, "Attempted to pad to a smaller size than the input element.");
      }
    }
  }
  return Shape(room);
}

void fill(const Tensor& value, Tensor& out) {
  for (int64_t i = 0; i < out.shape().elements(); ++i) copy_elements(value, 0, out, i, 1);
}

Tensor padded(const std::vector<Element>& elements, size_t component, const BatchPadding& padding) {
  const Shape room = padded_shape(elements, component, padding.shapes[component]);
  const Tensor& value = padding.values[component];
  check(elements[0][component].dtype() == value.dtype(), "component ", component, " is ",
        elements[0][component].dtype(), ", but its padding is ", value.dtype());
  int64_t total = static_cast<int64_t>(elements.size());
  for (const int64_t extent : room.dims()) total = product_of_extents(total, extent);
  check_memory_for(total, dtype_size(value.dtype()));
  Tensor out(value.dtype(), rows_of(static_cast<int64_t>(elements.size()), room, 0));
  fill(value, out);
  for (size_t i = 0; i < elements.size(); ++i) {
    copy_into_corner(elements[i][component], out, static_cast<int64_t>(i) * room.elements(), room);
  }
  return out;
}

// ---- Datasets ----

class BatchDataset final : public ElementSource {
 public:
  BatchDataset(Pointer input, int64_t size, bool drops_remainder, ElementTypes types,
               std::optional<BatchPadding> padding)
      : ElementSource(std::move(types), {input}),
        input_(std::move(input)),
        size_(size),
        drops_remainder_(drops_remainder),
        padding_(std::move(padding)) {
    check(size > 0, "Batch size must be greater than zero.");
  }

  int64_t cardinality() const override {
    const int64_t n = input_->cardinality();
    return n >= 0 && drops_remainder_ ? n / size_ : batches(n, size_);
  }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([this, input = input_->make_iterator()](Reading& reading) mutable {
      const std::vector<Element> elements = read_batch(*input, reading);
      std::optional<Element> out;
      const bool is_whole = static_cast<int64_t>(elements.size()) == size_;
      if (!elements.empty() && (is_whole || !drops_remainder_)) out = batch_of(elements);
      return out;
    });
  }

 private:
  std::vector<Element> read_batch(DatasetIterator& input, Reading& reading) const {
    std::vector<Element> elements;
    Status failure;
    for (int64_t i = 0; i < size_; ++i) {
      try {
        std::optional<Element> element = input.next(reading);
        if (!element) break;
        check_memory_for_element(*element);
        elements.push_back(std::move(*element));
      } catch (...) {
        if (!input_->fails_by_batch()) throw;
        if (failure.is_ok()) failure = status_of_current_exception();
      }
    }
    throw_if_error(failure);
    return elements;
  }

  Element batch_of(const std::vector<Element>& elements) const {
    if (!padding_) return stacked(elements);
    Element out;
    for (size_t i = 0; i < elements[0].size(); ++i) out.push_back(padded(elements, i, *padding_));
    return out;
  }

  const Pointer input_;
  const int64_t size_;
  const bool drops_remainder_;
  const std::optional<BatchPadding> padding_;
};

BatchPadding padding_of(const ExecuteContext& c) {
  const auto count = c.node().attr<int64_t>("N");
  const size_t components = input_dataset(c)->types().dtypes.size();
  check(count == static_cast<int64_t>(components), "Number of padded shapes (", count,
        ") must match the number of components in the input dataset's elements (", components, ")");
  check(c.node().attr<std::vector<DType>>("Toutput_types").size() == components,
        "Number of padding values must match the number of components in the input dataset's "
        "elements (",
        components, ")");
  BatchPadding out;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor& shape = c.input(static_cast<int>(2 + i));
    check(shape.shape().rank() == 1, "All padded shapes must be vectors");
    check_memory_for(shape.shape()[0], sizeof(int64_t));
    const auto extents = shape.span<int64_t>();
    for (const int64_t extent : extents)
      check(extent >= -1, "padded_shapes must hold extents or -1, got ", extent);
    out.shapes.push_back(Shape(extents));
    const Tensor& value = c.input(static_cast<int>(2 + count + i));
    check(value.shape().rank() == 0, "All padding values must be scalars");
    out.values.push_back(value);
  }
  return out;
}

const Op batch_op{
    dataset_op({.name = "BatchDataset",
                .doc = "batch_size elements at a time, stacked; the last batch has what is left.",
                .inputs = {input_dataset_arg, "batch_size: int64"},
                .attrs = dataset_attrs({metadata_attr})},
               [](ExecuteContext& c) {
                 return batches_of(input_dataset(c), scalar_input<int64_t>(c, 1, "batch_size"),
                                   false, ElementTypes::of(c.node()));
               })};
const Op batch_v2_op{dataset_op(
    {.name = "BatchDatasetV2",
     .doc = "BatchDataset; drop_remainder: only whole batches.",
     .inputs = {input_dataset_arg, "batch_size: int64", "drop_remainder: bool"},
     .attrs = dataset_attrs({"parallel_copy: bool = false", metadata_attr})},
    [](ExecuteContext& c) {
      return batches_of(input_dataset(c), scalar_input<int64_t>(c, 1, "batch_size"),
                        scalar_input<bool>(c, 2, "drop_remainder"), ElementTypes::of(c.node()));
    })};
const Op parallel_batch_op{dataset_op(
    {.name = "ParallelBatchDataset",
     .doc = "BatchDatasetV2: one batch at a time.",
     .inputs = {input_dataset_arg, "batch_size: int64", "num_parallel_calls: int64",
                "drop_remainder: bool"},
     .attrs = dataset_attrs(
         {"parallel_copy: bool = false", "deterministic: string = 'default'", metadata_attr})},
    [](ExecuteContext& c) {
      return batches_of(input_dataset(c), scalar_input<int64_t>(c, 1, "batch_size"),
                        scalar_input<bool>(c, 3, "drop_remainder"), ElementTypes::of(c.node()));
    })};
const Op padded_batch_op{dataset_op(
    {.name = "PaddedBatchDataset",
     .doc = "BatchDataset of elements that are filled up to padded_shapes (-1: to the largest of "
            "the batch) with padding_values.",
     .inputs = {input_dataset_arg, "batch_size: int64", "padded_shapes: N * int64",
                "padding_values: Toutput_types"},
     .attrs = {"Toutput_types: list(type) >= 1", "output_shapes: list(shape) >= 1", "N: int >= 1",
               metadata_attr}},
    [](ExecuteContext& c) {
      return batches_of(input_dataset(c), scalar_input<int64_t>(c, 1, "batch_size"), false,
                        ElementTypes::of(c.node()), padding_of(c));
    })};
const Op padded_batch_v2_op{
    dataset_op({.name = "PaddedBatchDatasetV2",
                .doc = "PaddedBatchDataset; drop_remainder: only whole batches.",
                .inputs = {input_dataset_arg, "batch_size: int64", "padded_shapes: N * int64",
                           "padding_values: Toutput_types", "drop_remainder: bool"},
                .attrs = {"parallel_copy: bool = false", "Toutput_types: list(type) >= 1",
                          "output_shapes: list(shape) >= 1", "N: int >= 1", metadata_attr}},
               [](ExecuteContext& c) {
                 return batches_of(input_dataset(c), scalar_input<int64_t>(c, 1, "batch_size"),
                                   scalar_input<bool>(c, c.num_inputs() - 1, "drop_remainder"),
                                   ElementTypes::of(c.node()), padding_of(c));
               })};

}  // namespace

Element stacked(const std::vector<Element>& elements) {
  Element out;
  for (size_t i = 0; i < elements.at(0).size(); ++i) out.push_back(stacked(elements, i));
  return out;
}

ElementSource::Pointer batches_of(ElementSource::Pointer input, int64_t size, bool drops_remainder,
                                  ElementTypes types, std::optional<BatchPadding> padding) {
  return std::make_shared<BatchDataset>(std::move(input), size, drops_remainder, std::move(types),
                                        std::move(padding));
}

}  // namespace leat
