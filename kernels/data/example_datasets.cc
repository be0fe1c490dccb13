// Datasets of the features of tf.train.Example records.
#include <algorithm>

#include "kernels/data/dataset.h"
#include "kernels/data/example_features.h"
#include "kernels/sparse/ragged_variant.h"
#include "kernels/sparse/tensor_variant.h"

namespace leat {
namespace {

// A component per key, in the order of the keys.
class ParseExampleDataset final : public ElementSource {
 public:
  ParseExampleDataset(ElementTypes types, Pointer input, WantedFeatures wanted)
      : ElementSource(std::move(types), {input}),
        input_(std::move(input)),
        wanted_(std::move(wanted)) {
    wanted_.check_counts();
    for (const auto* keys : {&wanted_.sparse_keys, &wanted_.dense_keys, &wanted_.ragged_keys})
      keys_.insert(keys_.end(), keys->begin(), keys->end());
    std::sort(keys_.begin(), keys_.end());
    check(std::adjacent_find(keys_.begin(), keys_.end()) == keys_.end(),
          "two features of a ParseExampleDataset have the same key");
    check(this->types().dtypes.size() == keys_.size(),
          "output_types must have one type per key: ", this->types().dtypes.size(), " types and ",
          keys_.size(), " keys");
    for (const DType dtype : input_->types().dtypes) {
      check(dtype == DType::string,
            "Dataset of serialized tf.train.Example records must be of strings, not ", dtype);
    }
  }

  int64_t cardinality() const override { return input_->cardinality(); }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([this, input = input_->make_iterator()](Reading& reading) mutable {
      std::optional<Element> element = input->next(reading);
      if (element) element = parsed(*element);
      return element;
    });
  }

 private:
  Element parsed(const Element& element) const {
    std::vector<std::string> records;
    for (const Tensor& component : element) {
      const auto texts = component.span<std::string>();
      records.insert(records.end(), texts.begin(), texts.end());
    }
    const ParsedFeatures features = parse_features(wanted_, records);
    Element out(keys_.size());
    const auto at = [&](const std::string& key) -> Tensor& {
      return out[std::lower_bound(keys_.begin(), keys_.end(), key) - keys_.begin()];
    };
    for (size_t i = 0; i < features.sparse.size(); ++i)
      at(wanted_.sparse_keys[i]) = sparse_variant(features.sparse[i]);
    for (size_t i = 0; i < features.dense.size(); ++i)
      at(wanted_.dense_keys[i]) = features.dense[i];
    for (size_t i = 0; i < features.ragged.size(); ++i) {
      const auto& [values, splits] = features.ragged[i];
      at(wanted_.ragged_keys[i]) =
          variant_tensor(std::make_unique<RaggedVariant>(std::vector<Tensor>{splits}, values));
    }
    return out;
  }

  const Pointer input_;
  const WantedFeatures wanted_;
  std::vector<std::string> keys_;
};

ElementSource::Pointer parse_example_dataset(const ExecuteContext& c) {
  WantedFeatures wanted = WantedFeatures::of(c.node());
  wanted.sparse_keys = c.node().attr<std::vector<std::string>>("sparse_keys");
  wanted.dense_keys = c.node().attr<std::vector<std::string>>("dense_keys");
  wanted.ragged_keys = c.node().attr<std::vector<std::string>>("ragged_keys");
  const auto calls = scalar_input<int64_t>(c, 1, "num_parallel_calls");
  check(calls > 0 || calls == -1, "num_parallel_calls must be greater than zero.");
  for (int i = 2; i < c.num_inputs(); ++i) wanted.dense_defaults.push_back(c.input(i));
  return std::make_shared<ParseExampleDataset>(ElementTypes::of(c.node()), input_dataset(c),
                                               std::move(wanted));
}

OpDef parse_example_op(std::string name, std::string doc, std::string order) {
  const std::string types = "list({float, int64, string}) >= 0";
  return dataset_op(
      {.name = std::move(name),
       .doc = std::move(doc),
       .inputs = {input_dataset_arg, "num_parallel_calls: int64", "dense_defaults: Tdense"},
       .attrs = dataset_attrs({"sparse_keys: list(string) >= 0", "dense_keys: list(string) >= 0",
                               "sparse_types: " + types, "Tdense: " + types,
                               "dense_shapes: list(shape) >= 0", std::move(order),
                               "ragged_keys: list(string) >= 0 = []",
                               "ragged_value_types: " + types + " = []",
                               "ragged_split_types: list({int32, int64}) >= 0 = []"})},
      parse_example_dataset);
}

const Op parse_example_v1_op{
    parse_example_op("ParseExampleDataset", "ParseExampleDatasetV2.", "sloppy: bool = false")};
const Op parse_example_v2_op{parse_example_op(
    "ParseExampleDatasetV2",
    "ParseExampleV2 of each element, vectors of records: a component per key, in the order of the "
    "keys. Sparse and ragged ones are variants. One element at a time.",
    "deterministic: string = 'default'")};

}  // namespace
}  // namespace leat
