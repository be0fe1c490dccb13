// ScanDataset and ReduceDataset: functions that pass a state from element to element.
#include "kernels/blocking.h"
#include "kernels/data/dataset_function.h"

namespace leat {
namespace {

// The initial state follows the dataset.
Element initial_state(const ExecuteContext& c) {
  Element out;
  const size_t count = c.node().attr<std::vector<DType>>("Tstate").size();
  for (size_t i = 0; i < count; ++i) out.push_back(c.input(static_cast<int>(1 + i)));
  return out;
}

class ScanDataset final : public ElementSource {
 public:
  ScanDataset(ElementTypes types, Pointer input, Element initial, DatasetFunction f,
              bool preserves_count)
      : ElementSource(std::move(types), {input}),
        input_(std::move(input)),
        initial_(std::move(initial)),
        f_(std::move(f)),
        preserves_count_(preserves_count) {}

  int64_t cardinality() const override {
    return preserves_count_ ? input_->cardinality() : unknown;
  }

  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator(
        [this, input = input_->make_iterator(), state = initial_](Reading& reading) mutable {
          std::optional<Element> out = input->next(reading);
          if (out) out = f_.call_or_end(joined(state, *out), preserves_count_, reading);
          if (!out) return out;
          check_results(*out);
          const auto behind_state = out->begin() + static_cast<int64_t>(state.size());
          state.assign(out->begin(), behind_state);
          out->erase(out->begin(), behind_state);
          return out;
        });
  }

 private:
  void check_results(const Element& results) const {
    const size_t states = initial_.size();
    check(results.size() == states + types().dtypes.size(), "scan_func returned ", results.size(),
          " values, but must return ", states, " of the state and ", types().dtypes.size(),
          " of the element");
    for (size_t i = 0; i < results.size(); ++i) {
      const DType expected = i < states ? initial_[i].dtype() : types().dtypes[i - states];
      check(results[i].dtype() == expected, "Got wrong type for scan_func return value ", i,
            " (expected ", expected, ", got ", results[i].dtype(), ").");
      if (i < states) continue;
      const Shape& shape = types().shapes[i - states];
      check(shape.is_compatible(results[i].shape()), "Got wrong shape for scan_func return value ",
            i, " (expected ", shape, ", got ", results[i].shape(), ").");
    }
  }

  const Pointer input_;
  const Element initial_;
  const DatasetFunction f_;
  const bool preserves_count_;
};

const std::vector<std::string> scan_inputs = {input_dataset_arg, "initial_state: Tstate",
                                              captured_arg};
const Op scan_op{dataset_op(
    {.name = "ScanDataset",
     .doc = "(state, y) = f(state, each element): the ys; OUT_OF_RANGE in f ends the dataset.",
     .inputs = scan_inputs,
     .attrs =
         function_attrs({"f: func", "Tstate: list(type) >= 1", "preserve_cardinality: bool = false",
                         "use_default_device: bool = true"})},
    [](ExecuteContext& c) {
      return std::make_shared<ScanDataset>(ElementTypes::of(c.node()), input_dataset(c),
                                           initial_state(c), DatasetFunction(c, "f"),
                                           c.node().attr<bool>("preserve_cardinality"));
    })};

void reduce(ExecuteContext& c) {
  Element state = initial_state(c);
  const DatasetFunction f(c, "f");
  Reading reading(c.cancellation());
  const auto elements = input_dataset(c)->make_iterator();
  for (;;) {
    const std::optional<Element> element = elements->next(reading);
    if (!element) break;
    Element results = f.call(joined(state, *element), reading);
    check(results.size() == state.size(),
          "The number of components of the initial state and the reduce function output does not "
          "match. (initial_state=",
          state.size(), ", output=", results.size(), ").");
    state = std::move(results);
  }
  const ElementTypes types = ElementTypes::of(c.node());
  check_same_types(types, ElementTypes::of(state));
  set_element(c, types, std::move(state));
}

const Op reduce_op{{.name = "ReduceDataset",
                    .doc = "components = the last state, where state = f(state, each element).",
                    .inputs = scan_inputs,
                    .outputs = {"components: output_types"},
                    .attrs = function_attrs({"f: func", "Tstate: list(type) >= 1",
                                             "use_inter_op_parallelism: bool = true"}),
                    .shape = element_shapes,
                    .kernels = {{.execute_async = waiting(reduce)}},
                    .is_stateful = true,
                    .is_not_differentiable = true}};

}  // namespace
}  // namespace leat
