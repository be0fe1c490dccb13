// Datasets that choose the source of each element, or filter the elements.
#include <unordered_set>

#include "kernels/data/dataset.h"

namespace leat {
namespace {

class DirectedInterleaveDataset final : public ElementSource {
 public:
  DirectedInterleaveDataset(ElementTypes types, Pointer selector, std::vector<Pointer> inputs,
                            bool stops_on_empty)
      : ElementSource(std::move(types), all_of(selector, inputs)),
        selector_(std::move(selector)),
        inputs_(std::move(inputs)),
        stops_on_empty_(stops_on_empty) {
    const ElementTypes& chosen = selector_->types();
    check(
        chosen.dtypes == std::vector<DType>{DType::i64} && chosen.shapes[0].is_compatible(Shape{}),
        "The selector input must be a dataset of scalar int64 elements.");
    for (size_t i = 0; i < inputs_.size(); ++i) {
      check(inputs_[i]->types().dtypes == inputs_[0]->types().dtypes,
            "All inputs must have the same output_dtypes. First input has ",
            inputs_[0]->types().dtypes.size(), " types, and input ", i, " has ",
            inputs_[i]->types().dtypes.size(), ", or they differ");
    }
  }

  int64_t cardinality() const override;
  std::unique_ptr<DatasetIterator> iterate() const override {
    struct State {
      std::unique_ptr<DatasetIterator> selector;  // null at the end
      std::vector<std::unique_ptr<DatasetIterator>> inputs;
      size_t open;
    };
    State state{selector_->make_iterator(), {}, inputs_.size()};
    for (const Pointer& input : inputs_) state.inputs.push_back(input->make_iterator());
    return iterator([this, s = std::move(state)](Reading& reading) mutable {
      std::optional<Element> out;
      while (s.selector) {
        const std::optional<Element> chosen = s.selector->next(reading);
        if (!chosen) break;
        const auto number = chosen->at(0).item<int64_t>();
        check(number >= 0 && number < static_cast<int64_t>(s.inputs.size()),
              "Selector index out of range: ", number, " >= ", s.inputs.size());
        auto& input = s.inputs[number];
        if (!input) continue;
        if ((out = input->next(reading))) return out;
        if (stops_on_empty_) break;
        input.reset();
        if (--s.open == 0) break;
      }
      s.selector.reset();
      s.inputs.clear();
      return out;
    });
  }

 private:
  static std::vector<Pointer> all_of(const Pointer& selector, std::vector<Pointer> inputs) {
    inputs.push_back(selector);
    return inputs;
  }
  const Pointer selector_;
  const std::vector<Pointer> inputs_;
  const bool stops_on_empty_;
};

int64_t DirectedInterleaveDataset::cardinality() const {
  for (const Pointer& input : inputs_) {
    if (input->cardinality() == infinite) return infinite;
  }
  return unknown;
}

// A tensor's identity: its shape and its elements.
std::string key_of(const Tensor& tensor) {
  std::string out = concat(tensor.shape(), ":");
  if (tensor.dtype() == DType::string) {
    for (const std::string& text : tensor.span<std::string>())
      out += concat(text.size(), ":", text);
  } else if (tensor.bytes() > 0) {
    out.append(static_cast<const char*>(tensor.raw()), tensor.bytes());
  }
  return out;
}

class UniqueDataset final : public ElementSource {
 public:
  explicit UniqueDataset(Pointer input)
      : ElementSource(input->types(), {input}), input_(std::move(input)) {
    check(types().dtypes.size() == 1,
          "UniqueDataset only supports inputs with a single component.");
    const DType dtype = types().dtypes[0];
    check(dtype == DType::i32 || dtype == DType::i64 || dtype == DType::string,
          "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or `tf.string` "
          "component.");
  }

  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([input = input_->make_iterator(),
                     seen = std::unordered_set<std::string>()](Reading& reading) mutable {
      for (;;) {
        std::optional<Element> out = input->next(reading);
        if (!out) return out;
        check_memory_for_element(*out);
        if (seen.insert(key_of(out->at(0))).second) return out;
      }
    });
  }

 private:
  const Pointer input_;
};

class IgnoreErrorsDataset final : public ElementSource {
 public:
  explicit IgnoreErrorsDataset(Pointer input)
      : ElementSource(input->types(), {input}), input_(std::move(input)) {}

  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([input = input_->make_iterator()](Reading& reading) mutable {
      for (;;) {
        try {
          return input->next(reading);
        } catch (const Error&) {
          reading.check_goes_on();  // the end of the step is not an error of the input
        }
      }
    });
  }

 private:
  const Pointer input_;
};

const Op directed_interleave_op{dataset_op(
    {.name = "DirectedInterleaveDataset",
     .doc = "For each number of the selector, the next element of the dataset with that number.",
     .inputs = {"selector_input_dataset: variant", "data_input_datasets: N * variant"},
     .attrs = dataset_attrs({"N: int >= 1", "stop_on_empty_dataset: bool = false"})},
    [](ExecuteContext& c) {
      std::vector<ElementSource::Pointer> inputs;
      for (int i = 1; i < c.num_inputs(); ++i) inputs.push_back(dataset_of(c.input(i)));
      return std::make_shared<DirectedInterleaveDataset>(
          ElementTypes::of(c.node()), input_dataset(c), std::move(inputs),
          c.node().attr<bool>("stop_on_empty_dataset"));
    })};
const Op unique_op{dataset_op(
    {.name = "UniqueDataset",
     .doc = "The elements, each only once.",
     .inputs = {input_dataset_arg},
     .attrs = dataset_attrs({metadata_attr})},
    [](ExecuteContext& c) { return std::make_shared<UniqueDataset>(input_dataset(c)); })};
const Op ignore_errors_op{dataset_op(
    {.name = "IgnoreErrorsDataset",
     .doc = "The elements, except those that fail.",
     .inputs = {input_dataset_arg},
     .attrs = dataset_attrs({"log_warning: bool = false"})},
    [](ExecuteContext& c) { return std::make_shared<IgnoreErrorsDataset>(input_dataset(c)); })};

}  // namespace
}  // namespace leat
