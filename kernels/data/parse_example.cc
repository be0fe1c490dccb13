// ParseExampleV2, ParseExample and ParseSingleExample: parse tf.train.Example records to a tensor
// per feature.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/data/example_features.h"
#include "kernels/examples.h"
#include "kernels/execute.h"

namespace leat {
namespace {

// Outputs: indices of all sparse features, their values, their shapes, then the dense ones, values
// of the ragged ones and their row splits.
void parse(ExecuteContext& c, WantedFeatures wanted, int first_default, const Tensor& serialized) {
  wanted.check_counts();
  for (int i = 0; i < std::ssize(wanted.dense_keys); ++i)
    wanted.dense_defaults.push_back(c.input(first_default + i));
  const ParsedFeatures features = parse_features(wanted, serialized.span<std::string>());
  int output = 0;
  for (const SparseValue& sparse : features.sparse) c.set_output(output++, sparse.indices);
  for (const SparseValue& sparse : features.sparse) c.set_output(output++, sparse.values);
  for (const SparseValue& sparse : features.sparse) c.set_output(output++, sparse.shape);
  for (const Tensor& dense : features.dense) c.set_output(output++, dense);
  for (const RaggedFeature& ragged : features.ragged) c.set_output(output++, ragged.values);
  for (const RaggedFeature& ragged : features.ragged) c.set_output(output++, ragged.splits);
}

std::vector<std::string> strings_of(const Tensor& tensor) {
  const auto span = tensor.span<std::string>();
  return {span.begin(), span.end()};
}

// ParseExampleV2(serialized, names, sparse_keys, dense_keys, ragged_keys, dense_defaults…)
void parse_v2(ExecuteContext& c) {
  const Tensor& serialized = c.input(0);
  check(serialized.shape().rank() <= 1,
        "Expected serialized to be a scalar or vector, got shape: ", serialized.shape());
  WantedFeatures wanted = WantedFeatures::of(c.node());
  wanted.sparse_keys = strings_of(c.input(2));
  wanted.dense_keys = strings_of(c.input(3));
  wanted.is_batch = serialized.shape().rank() == 1;
  wanted.ragged_keys = strings_of(c.input(4));
  wanted.names = strings_of(c.input(1));
  parse(c, std::move(wanted), 5, serialized);
}

// ParseExample(serialized, names, sparse_keys…, dense_keys…, dense_defaults…)
void parse_v1(ExecuteContext& c) {
  const Tensor& serialized = c.input(0);
  check(serialized.shape().rank() == 1,
        "Expected serialized to be a vector, got shape: ", serialized.shape());
  WantedFeatures wanted = WantedFeatures::of(c.node());
  const int sparse = static_cast<int>(c.node().attr<int64_t>("Nsparse")),
            dense = static_cast<int>(c.node().attr<int64_t>("Ndense"));
  for (int i = 0; i < sparse; ++i)
    wanted.sparse_keys.push_back(c.input(2 + i).item<std::string>());
  for (int i = 0; i < dense; ++i)
    wanted.dense_keys.push_back(c.input(2 + sparse + i).item<std::string>());
  wanted.names = strings_of(c.input(1));
  parse(c, std::move(wanted), 2 + sparse + dense, serialized);
}

// ParseSingleExample(serialized, dense_defaults…)
void parse_single(ExecuteContext& c) {
  check(c.input(0).shape().rank() == 0,
        "Expected serialized to be a scalar, got shape: ", c.input(0).shape());
  WantedFeatures wanted = WantedFeatures::of(c.node());
  wanted.sparse_keys = c.node().attr<std::vector<std::string>>("sparse_keys");
  wanted.dense_keys = c.node().attr<std::vector<std::string>>("dense_keys");
  wanted.is_batch = false;
  parse(c, std::move(wanted), 1, c.input(0));
}

// `batch`: the shape of serialized.
void set_shapes(ShapeContext& c, const Shape& batch) {
  const auto& sparse = c.attr<std::vector<DType>>("sparse_types");
  const auto& dense = c.attr<std::vector<Shape>>("dense_shapes");
  const int n = static_cast<int>(sparse.size());
  // The number of outputs is given twice, by numbers and by lists.
  const char* const number = c.node().has("Nsparse") ? "Nsparse" : "num_sparse";
  check(c.attr<int64_t>(number) == n, "len(sparse_types) != ", number, ": ", n, " and ",
        c.attr<int64_t>(number));
  const auto& types = c.attr<std::vector<DType>>("Tdense");
  check(types.size() == dense.size(), "len(dense_shapes) != len(Tdense): ", dense.size(), " and ",
        types.size());
  const int64_t rank = batch.has_rank() ? batch.rank() + 1 : any;
  for (int i = 0; i < n; ++i) {
    c.set_output(i, {any, rank});
    c.set_output(n + i, {any});
    c.set_output(2 * n + i, {rank});
  }
  for (int i = 0; i < static_cast<int>(dense.size()); ++i) {
    Shape out = batch;
    if (!batch.has_rank() || !dense[i].has_rank()) {
      out = Shape::unknown();
    } else {
      for (int64_t extent : dense[i].dims()) out.push_back(extent);
    }
    c.set_output(3 * n + i, out);
  }
  for (int i = 3 * n + static_cast<int>(dense.size()); i < c.num_outputs(); ++i)
    c.set_output(i, {any});  // ragged values and row splits
}

// {"x": [1.5, 2], "n": [7]}
std::string example() {
  return std::string("\x0a\x1f\x0a\x11\x0a\x01x\x12\x0c\x12\x0a\x0a\x08\0\0\xc0\x3f\0\0\0\x40",
                     21) +
         "\x0a\x0a\x0a\x01n\x12\x05\x1a\x03\x0a\x01\x07";
}

const char* const types = "{float, int64, string}) >= 0";

const Op parse_v2_op{{
    .name = "ParseExampleV2",
    .doc = "The features of serialized tf.train.Example records (a vector of them, or one): for "
           "each of sparse_keys a sparse tensor, for each of dense_keys a tensor of its dense "
           "shape, dense_defaults where a record has none, for each of ragged_keys values and row "
           "splits.",
    .inputs = {"serialized: string", "names: string", "sparse_keys: string", "dense_keys: string",
               "ragged_keys: string", "dense_defaults: Tdense"},
    .outputs = {"sparse_indices: num_sparse * int64", "sparse_values: sparse_types",
                "sparse_shapes: num_sparse * int64", "dense_values: Tdense",
                "ragged_values: ragged_value_types", "ragged_row_splits: ragged_split_types"},
    .attrs = {std::string("Tdense: list(") + types, "num_sparse: int >= 0",
              std::string("sparse_types: list(") + types,
              std::string("ragged_value_types: list(") + types,
              "ragged_split_types: list({int32, int64}) >= 0", "dense_shapes: list(shape) >= 0"},
    .shape = [](ShapeContext& c) { set_shapes(c, c.input(0)); },
    .kernels = {{.execute = parse_v2}},
    .examples = {{.inputs = {Tensor::scalar(example()), Tensor(DType::string, {0}),
                             Tensor::of<std::string>({1}, {"n"}),
                             Tensor::of<std::string>({1}, {"x"}), Tensor(DType::string, {0}),
                             Tensor(DType::f32, {0})},
                  .attrs = {{"num_sparse", 1},
                            {"sparse_types", std::vector<DType>{DType::i64}},
                            {"ragged_value_types", std::vector<DType>{}},
                            {"ragged_split_types", std::vector<DType>{}},
                            {"dense_shapes", std::vector<Shape>{{2}}}},
                  .outputs = {longs({1, 1}, {0}), longs({7}), longs({1}), floats({1.5, 2})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

const Op parse_v1_op{{
    .name = "ParseExample",
    .doc = "ParseExampleV2 of a vector of records, with an input per key.",
    .inputs = {"serialized: string", "names: string", "sparse_keys: Nsparse * string",
               "dense_keys: Ndense * string", "dense_defaults: Tdense"},
    .outputs = {"sparse_indices: Nsparse * int64", "sparse_values: sparse_types",
                "sparse_shapes: Nsparse * int64", "dense_values: Tdense"},
    .attrs = {"Nsparse: int >= 0", "Ndense: int >= 0", std::string("sparse_types: list(") + types,
              std::string("Tdense: list(") + types, "dense_shapes: list(shape) >= 0"},
    .shape = [](ShapeContext& c) { set_shapes(c, c.with_rank(0, 1)); },
    .kernels = {{.execute = parse_v1}},
    .examples = {{.inputs = {Tensor::of<std::string>({1}, {example()}), Tensor(DType::string, {0}),
                             Tensor::scalar("n"), Tensor::scalar("x"), Tensor(DType::f32, {0})},
                  .attrs = {{"Nsparse", 1},
                            {"Ndense", 1},
                            {"sparse_types", std::vector<DType>{DType::i64}},
                            {"dense_shapes", std::vector<Shape>{{2}}}},
                  .outputs = {longs({1, 2}, {0, 0}), longs({7}), longs({1, 1}),
                              floats({1, 2}, {1.5, 2})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

const Op parse_single_op{{
    .name = "ParseSingleExample",
    .doc = "ParseExampleV2 of one record, with keys as attributes.",
    .inputs = {"serialized: string", "dense_defaults: Tdense"},
    .outputs = {"sparse_indices: num_sparse * int64", "sparse_values: sparse_types",
                "sparse_shapes: num_sparse * int64", "dense_values: Tdense"},
    .attrs = {"num_sparse: int >= 0", "sparse_keys: list(string) >= 0",
              "dense_keys: list(string) >= 0", std::string("sparse_types: list(") + types,
              std::string("Tdense: list(") + types, "dense_shapes: list(shape) >= 0"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          set_shapes(c, {});
        },
    .kernels = {{.execute = parse_single}},
    .examples = {{.inputs = {Tensor::scalar(example()), Tensor(DType::f32, {0})},
                  .attrs = {{"num_sparse", 1},
                            {"sparse_keys", std::vector<std::string>{"n"}},
                            {"dense_keys", std::vector<std::string>{"x"}},
                            {"sparse_types", std::vector<DType>{DType::i64}},
                            {"dense_shapes", std::vector<Shape>{{2}}}},
                  .outputs = {longs({1, 1}, {0}), longs({7}), longs({1}), floats({1.5, 2})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
