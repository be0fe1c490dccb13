// ParseExampleV2, ParseExample and ParseSingleExample: tf.train.Example records to a tensor per
// feature. Dense features have the same shape in every record, sparse and ragged ones any number of
// values.
#include "graph/formats/example.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/row_splits.h"

namespace leat {
namespace {

using FeatureTypes = Types<float, int64_t, std::string>;

// What a call wants. Outputs: indices of all sparse features, their values, their shapes, then the
// dense ones, values of the ragged ones and their row splits.
struct Wanted {
  std::vector<std::string> sparse_keys, dense_keys, ragged_keys;
  std::vector<DType> sparse_types, dense_types, ragged_types, split_types;
  std::vector<Shape> dense_shapes;
  int defaults = 0;  // the first of the inputs with defaults of dense features
  bool is_batch = true;

  int sparse() const { return static_cast<int>(sparse_keys.size()); }
};

template <class T>
const std::vector<T>& values_of(const Feature& feature, const std::string& key) {
  const auto* values = std::get_if<std::vector<T>>(&feature);
  check(values != nullptr, "Key: ", key, ".  Data types don't match. Expected type: ", dtype_of<T>);
  return *values;
}

// The feature, unless the record has none of that name.
const Feature* find(const Features& features, const std::string& key) {
  const auto at = features.find(key);
  if (at == features.end() || std::holds_alternative<std::monostate>(at->second)) return nullptr;
  return &at->second;
}

template <class T>
void set_sparse(ExecuteContext& c, const Wanted& wanted, int i,
                const std::vector<Features>& records) {
  const std::string& key = wanted.sparse_keys[i];
  std::vector<int64_t> indices;
  std::vector<T> values;
  int64_t longest = 0;
  for (size_t row = 0; row < records.size(); ++row) {
    const Feature* feature = find(records[row], key);
    if (feature == nullptr) continue;
    const std::vector<T>& list = values_of<T>(*feature, key);
    longest = std::max(longest, static_cast<int64_t>(list.size()));
    for (size_t j = 0; j < list.size(); ++j) {
      if (wanted.is_batch) indices.push_back(static_cast<int64_t>(row));
      indices.push_back(static_cast<int64_t>(j));
    }
    values.insert(values.end(), list.begin(), list.end());
  }
  const auto count = static_cast<int64_t>(values.size());
  c.set_output(
      i, Tensor::of<int64_t>({count, wanted.is_batch ? 2 : 1}, std::span<const int64_t>(indices)));
  c.set_output(wanted.sparse() + i, Tensor::of<T>({count}, std::span<const T>(values)));
  c.set_output(2 * wanted.sparse() + i,
               wanted.is_batch
                   ? Tensor::of<int64_t>({2}, {static_cast<int64_t>(records.size()), longest})
                   : Tensor::of<int64_t>({1}, {longest}));
}

// A dense feature whose shape begins with an unknown extent has as many rows as the longest record,
// filled up with the one default.
template <class T>
void set_dense(ExecuteContext& c, const Wanted& wanted, int i,
               const std::vector<Features>& records) {
  const std::string& key = wanted.dense_keys[i];
  const Tensor& defaults = c.input(wanted.defaults + i);
  Shape shape = wanted.dense_shapes[i];
  const bool is_ragged = shape.rank() > 0 && shape[0] == any;
  check(is_ragged ? defaults.elements() == 1
                  : defaults.elements() == 0 || shape.is_compatible(defaults.shape()),
        "the default of dense feature ", key, " has shape ", defaults.shape(),
        ", which does not fit its dense shape ", shape,
        " (one element, where the first extent is unknown)");
  std::vector<const std::vector<T>*> lists;
  size_t longest = 0;
  for (size_t row = 0; row < records.size(); ++row) {
    const Feature* feature = find(records[row], key);
    lists.push_back(feature == nullptr ? nullptr : &values_of<T>(*feature, key));
    if (feature != nullptr) longest = std::max(longest, lists.back()->size());
  }
  if (is_ragged) {
    Shape rest = shape;
    rest.set(0, 1);
    const int64_t stride = std::max<int64_t>(1, rest.elements());
    shape.set(0, (static_cast<int64_t>(longest) + stride - 1) / stride);
  }
  Shape out_shape = wanted.is_batch ? Shape{static_cast<int64_t>(records.size())} : Shape{};
  for (int64_t extent : shape.dims()) out_shape.push_back(extent);
  Tensor out(dtype_of<T>, out_shape);
  const int64_t n = shape.elements();
  for (size_t row = 0; row < lists.size(); ++row) {
    T* to = out.data<T>() + static_cast<int64_t>(row) * n;
    const int64_t given = lists[row] == nullptr ? 0 : static_cast<int64_t>(lists[row]->size());
    check(lists[row] == nullptr || given == n || is_ragged, "Key: ", key, ".  Number of ",
          dtype_of<T>, " values != expected.  values size: ", given, " but output shape: ", shape);
    check(given <= n, "Key: ", key, ".  ", given, " values do not fit into output shape: ", shape);
    if (lists[row] != nullptr) copy_elements(lists[row]->data(), given, to);
    if (given == n) continue;
    check(defaults.elements() > 0, "Name: <unknown>, Feature: ", key, " (data type: ", dtype_of<T>,
          ") is required but could not be found.");
    for (int64_t j = given; j < n; ++j) to[j] = defaults.data<T>()[is_ragged ? 0 : j];
  }
  c.set_output(3 * wanted.sparse() + i, std::move(out));
}

// One record has no rows to split its values into.
template <class T>
void set_ragged(ExecuteContext& c, const Wanted& wanted, int i,
                const std::vector<Features>& records) {
  const std::string& key = wanted.ragged_keys[i];
  std::vector<T> values;
  std::vector<int64_t> splits = {0};
  for (const Features& record : records) {
    if (const Feature* feature = find(record, key)) {
      const std::vector<T>& list = values_of<T>(*feature, key);
      values.insert(values.end(), list.begin(), list.end());
    }
    splits.push_back(static_cast<int64_t>(values.size()));
  }
  if (!wanted.is_batch) splits.clear();
  const auto n = static_cast<int>(wanted.ragged_keys.size()),
             output = 3 * wanted.sparse() + static_cast<int>(wanted.dense_keys.size()) + i;
  c.set_output(output,
               Tensor::of<T>({static_cast<int64_t>(values.size())}, std::span<const T>(values)));
  c.set_output(output + n, row_splits(splits, wanted.split_types[i]));
}

void parse(ExecuteContext& c, const Wanted& wanted, const Tensor& serialized) {
  std::vector<Features> records;
  for (const std::string& text : serialized.span<std::string>())
    records.push_back(parse_example(text));
  const auto typed = [](DType dtype, auto f) {
    visit_type(FeatureTypes{}, dtype, [&](auto type) {
      f(type);
      return 0;
    });
  };
  for (int i = 0; i < wanted.sparse(); ++i) {
    typed(wanted.sparse_types[i],
          [&]<class T>(TypeTag<T>) { set_sparse<T>(c, wanted, i, records); });
  }
  for (int i = 0; i < static_cast<int>(wanted.dense_keys.size()); ++i) {
    typed(wanted.dense_types[i], [&]<class T>(TypeTag<T>) { set_dense<T>(c, wanted, i, records); });
  }
  for (int i = 0; i < static_cast<int>(wanted.ragged_keys.size()); ++i) {
    typed(wanted.ragged_types[i],
          [&]<class T>(TypeTag<T>) { set_ragged<T>(c, wanted, i, records); });
  }
}

// The attributes that all three have.
Wanted wanted_of(const NodeView& node) {
  Wanted wanted;
  wanted.sparse_types = node.attr<std::vector<DType>>("sparse_types");
  if (node.has("num_sparse")) {
    const auto count = node.attr<int64_t>("num_sparse");
    check(count == std::ssize(wanted.sparse_types),
          "len(sparse_types) != num_sparse: ", wanted.sparse_types.size(), " and ", count);
  }
  wanted.dense_types = node.attr<std::vector<DType>>("Tdense");
  wanted.dense_shapes = node.attr<std::vector<Shape>>("dense_shapes");
  check(wanted.dense_shapes.size() == wanted.dense_types.size(),
        "len(dense_shapes) != len(Tdense): ", wanted.dense_shapes.size(), " and ",
        wanted.dense_types.size());
  for (const Shape& shape : wanted.dense_shapes) {
    check(shape.has_rank(), "dense_shapes must have known ranks");
    for (int i = 1; i < shape.rank(); ++i)
      check(shape[i] != any, "only the first extent of a dense shape may be unknown, got ", shape);
  }
  return wanted;
}

std::vector<std::string> keys_of(const Tensor& keys) {
  const auto span = keys.span<std::string>();
  return {span.begin(), span.end()};
}

void check_counts(const Wanted& wanted) {
  check(wanted.sparse_keys.size() == wanted.sparse_types.size() &&
            wanted.dense_keys.size() == wanted.dense_types.size(),
        "there must be a key per feature: ", wanted.sparse_keys.size(), " sparse keys and ",
        wanted.sparse_types.size(), " types, ", wanted.dense_keys.size(), " dense keys and ",
        wanted.dense_types.size(), " types");
}

// ParseExampleV2(serialized, names, sparse_keys, dense_keys, ragged_keys, dense_defaults…)
void parse_v2(ExecuteContext& c) {
  const Tensor& serialized = c.input(0);
  check(serialized.shape().rank() <= 1,
        "Expected serialized to be a scalar or vector, got shape: ", serialized.shape());
  Wanted wanted = wanted_of(c.node());
  wanted.sparse_keys = keys_of(c.input(2));
  wanted.dense_keys = keys_of(c.input(3));
  wanted.defaults = 5;
  wanted.is_batch = serialized.shape().rank() == 1;
  wanted.ragged_keys = keys_of(c.input(4));
  wanted.ragged_types = c.node().attr<std::vector<DType>>("ragged_value_types");
  wanted.split_types = c.node().attr<std::vector<DType>>("ragged_split_types");
  check_counts(wanted);
  check(wanted.ragged_keys.size() == wanted.ragged_types.size() &&
            wanted.ragged_keys.size() == wanted.split_types.size(),
        "there must be a key per ragged feature: ", wanted.ragged_keys.size(), " keys, ",
        wanted.ragged_types.size(), " types and ", wanted.split_types.size(), " types of splits");
  parse(c, wanted, serialized);
}

// ParseExample(serialized, names, sparse_keys…, dense_keys…, dense_defaults…)
void parse_v1(ExecuteContext& c) {
  const Tensor& serialized = c.input(0);
  check(serialized.shape().rank() == 1,
        "Expected serialized to be a vector, got shape: ", serialized.shape());
  Wanted wanted = wanted_of(c.node());
  const int sparse = static_cast<int>(c.node().attr<int64_t>("Nsparse")),
            dense = static_cast<int>(c.node().attr<int64_t>("Ndense"));
  for (int i = 0; i < sparse; ++i)
    wanted.sparse_keys.push_back(c.input(2 + i).value<std::string>());
  for (int i = 0; i < dense; ++i)
    wanted.dense_keys.push_back(c.input(2 + sparse + i).value<std::string>());
  wanted.defaults = 2 + sparse + dense;
  check_counts(wanted);
  parse(c, wanted, serialized);
}

// ParseSingleExample(serialized, dense_defaults…)
void parse_single(ExecuteContext& c) {
  check(c.input(0).shape().rank() == 0,
        "Expected serialized to be a scalar, got shape: ", c.input(0).shape());
  Wanted wanted = wanted_of(c.node());
  wanted.sparse_keys = c.node().attr<std::vector<std::string>>("sparse_keys");
  wanted.dense_keys = c.node().attr<std::vector<std::string>>("dense_keys");
  wanted.defaults = 1;
  wanted.is_batch = false;
  check_counts(wanted);
  parse(c, wanted, c.input(0));
}

// `batch`: the shape of serialized.
void set_shapes(ShapeContext& c, const Shape& batch) {
  const auto& sparse = c.attr<std::vector<DType>>("sparse_types");
  const auto& dense = c.attr<std::vector<Shape>>("dense_shapes");
  const int n = static_cast<int>(sparse.size());
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
