// Records of TensorFlow's programs.
#include "frontends/cpp/data/dataset.h"

namespace leat {

Batch parse_example(Output serialized, const std::vector<Component>& features, Location at) {
  check(bool{serialized} && serialized.dtype() == DType::string &&
            Shape{}.is_compatible(serialized.shape()),
        "parse_example (", at, "): it needs a serialized Example, a scalar string, got ",
        serialized ? concat(serialized.name(), " ", serialized.dtype(), serialized.shape())
                   : "an empty Output");
  check(!features.empty(), "parse_example (", at, "): there are no features");
  std::vector<Output> inputs = {serialized};
  std::vector<std::string> keys;
  std::vector<DType> dtypes;
  std::vector<Shape> shapes;
  for (const Component& feature : features) {
    check(!feature.name.empty(), "parse_example (", at, "): a feature needs a name");
    check(feature.dtype == f32 || feature.dtype == i64 || feature.dtype == DType::string,
          "parse_example (", at, "): '", feature.name, "' must be float, int64 or string, not ",
          feature.dtype);
    keys.push_back(feature.name);
    dtypes.push_back(feature.dtype);
    shapes.push_back(feature.shape);
    // No default; of a feature of any length, what batches of records would be padded with.
    const bool has_any_length = feature.shape.rank() > 0 && feature.shape[0] == any;
    const Tensor none = Tensor::zeros({has_any_length ? 1 : 0}, feature.dtype);
    inputs.push_back(constant(serialized.graph(), none, "default", at));
  }
  return {op_outputs("ParseSingleExample", inputs,
                     {{"num_sparse", int64_t{0}},
                      {"sparse_keys", std::vector<std::string>()},
                      {"dense_keys", keys},
                      {"sparse_types", std::vector<DType>()},
                      {"Tdense", dtypes},
                      {"dense_shapes", shapes}},
                     at),
          keys};
}

}  // namespace leat
