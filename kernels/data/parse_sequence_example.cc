// ParseSequenceExampleV2, ParseSequenceExample and ParseSingleSequenceExample:
// tf.train.SequenceExample records, which have their own features (the context) and lists with a
// feature for each step.
#include <algorithm>
#include <set>

#include "core/visit_dtype.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/data/sequence_features.h"
#include "kernels/examples.h"

namespace leat {
namespace {

using Group = SequenceGroup;
using Wanted = SequenceWanted;

// ---- The features that the three ops parse

Keys keys_of(const Tensor& keys) {
  const auto span = keys.span<std::string>();
  return {span.begin(), span.end()};
}

// One key for each input from `first` on; advances `first`.
Keys keys_of(ExecuteContext& c, int& first, size_t count) {
  Keys out;
  for (size_t i = 0; i < count; ++i) {
    const Tensor& key = c.input(first++);
    check(key.shape().rank() == 0, "Expected a key to be a scalar, got shape: ", key.shape());
    out.push_back(key.item<std::string>());
  }
  return out;
}

void check_keys(const Group& group, const char* what) {
  const auto fits = [&](const char* kind, const Keys& keys, size_t types) {
    check(keys.size() == types, "Expected len(", what, "_", kind,
          "_keys) to match its types: ", keys.size(), " keys and ", types, " types");
  };
  fits("sparse", group.sparse, group.sparse_types.size());
  fits("dense", group.dense, group.dense_types.size());
  fits("ragged", group.ragged, group.ragged_types.size());
  check(group.split_types.size() == group.ragged.size(), "there are ", group.ragged.size(), ' ',
        what, "_ragged_keys and ", group.split_types.size(), " types of their row splits");
  check(group.dense_shapes.size() == group.dense.size(), "len(", what, "_dense_shapes) is ",
        group.dense_shapes.size(), " for ", group.dense.size(), " keys");
  for (const Shape& shape : group.dense_shapes)
    check(shape.is_complete(), what, "_dense_shapes must be fully defined, got ", shape);
}

// The parsers of batches accept a feature in one form only.
void check_forms(const Group& group, const char* what) {
  std::set<std::string> sparse(group.sparse.begin(), group.sparse.end());
  std::set<std::string> ragged(group.ragged.begin(), group.ragged.end());
  for (const std::string& key : group.ragged)
    check(!sparse.contains(key), what, key, " cannot be both ragged and sparse");
  for (const std::string& key : group.dense) {
    check(!sparse.contains(key) && !ragged.contains(key), what, key,
          " cannot be both dense and sparse");
  }
}

using DTypes = std::vector<DType>;

// The number of outputs is given twice, by numbers and by lists.
void check_counts(const NodeView& node) {
  const auto agree = [&]<class List>(const char* number, const char* list, TypeTag<List>) {
    const int64_t n = node.attr<int64_t>(number);
    const auto size = std::ssize(node.attr<List>(list));
    check(n == size, number, " is ", n, ", but ", list, " has ", size, " entries");
  };
  const auto agree_lists = [&]<class List>(const char* types, const char* list, TypeTag<List>) {
    const auto n = std::ssize(node.attr<DTypes>(types)), size = std::ssize(node.attr<List>(list));
    check(n == size, types, " has ", n, " entries, but ", list, " has ", size);
  };
  const TypeTag<DTypes> of_types;
  agree("Ncontext_sparse", "context_sparse_types", of_types);
  agree("Nfeature_list_sparse", "feature_list_sparse_types", of_types);
  agree("Nfeature_list_dense", "feature_list_dense_types", of_types);
  const TypeTag<std::vector<Shape>> of_shapes;
  agree_lists("Tcontext_dense", "context_dense_shapes", of_shapes);
  agree_lists("feature_list_dense_types", "feature_list_dense_shapes", of_shapes);
  if (!node.has("context_ragged_value_types")) return;
  agree_lists("context_ragged_value_types", "context_ragged_split_types", of_types);
  agree_lists("feature_list_ragged_value_types", "feature_list_ragged_split_types", of_types);
}

void read_types(const NodeView& node, Wanted& wanted) {
  check_counts(node);
  wanted.context.sparse_types = node.attr<DTypes>("context_sparse_types");
  wanted.context.dense_types = node.attr<DTypes>("Tcontext_dense");
  wanted.context.dense_shapes = node.attr<std::vector<Shape>>("context_dense_shapes");
  wanted.lists.sparse_types = node.attr<DTypes>("feature_list_sparse_types");
  wanted.lists.dense_types = node.attr<DTypes>("feature_list_dense_types");
  wanted.lists.dense_shapes = node.attr<std::vector<Shape>>("feature_list_dense_shapes");
  wanted.has_ragged = node.has("context_ragged_value_types");
  if (!wanted.has_ragged) return;
  wanted.context.ragged_types = node.attr<DTypes>("context_ragged_value_types");
  wanted.context.split_types = node.attr<DTypes>("context_ragged_split_types");
  wanted.lists.ragged_types = node.attr<DTypes>("feature_list_ragged_value_types");
  wanted.lists.split_types = node.attr<DTypes>("feature_list_ragged_split_types");
}

void parse_batch(ExecuteContext& c, Wanted& wanted) {
  const Tensor &serialized = c.input(0), &names = c.input(1);
  check(serialized.shape().rank() <= 1,
        "Expected serialized to be a scalar or vector, got shape: ", serialized.shape());
  check(names.elements() == 0 || names.elements() == serialized.elements(),
        "debug_name must be empty or have one name per record: got ", names.elements(),
        " names and ", serialized.elements(), " records");
  wanted.names = keys_of(names);
  wanted.is_batch = serialized.shape().rank() == 1;
  check_keys(wanted.context, "context");
  check_keys(wanted.lists, "feature_list");
  check_forms(wanted.context, "Context feature ");
  check_forms(wanted.lists, "Sequence feature ");
  parse_sequences(c, wanted, serialized);
}

// (serialized, debug_name, six vectors of keys, dense_missing_assumed_empty, context defaults…)
void parse_v2(ExecuteContext& c) {
  Wanted wanted{.defaults = 9};
  read_types(c.node(), wanted);
  int input = 2;
  for (Group* group : {&wanted.context, &wanted.lists}) {
    for (Keys* keys : {&group->sparse, &group->dense, &group->ragged})
      *keys = keys_of(c.input(input++));
  }
  const auto missing = c.input(8).span<bool>();
  check(missing.size() == wanted.lists.dense.size(),
        "Expected len(feature_list_dense_missing_assumed_empty) to match Nfeature_list_dense: got ",
        missing.size(), " and ", wanted.lists.dense.size());
  wanted.may_miss.assign(missing.begin(), missing.end());
  parse_batch(c, wanted);
}

std::vector<bool> found_in(const Keys& keys, const Keys& list) {
  std::vector<bool> out;
  for (const std::string& key : keys)
    out.push_back(std::find(list.begin(), list.end(), key) != list.end());
  return out;
}

// (serialized, debug_name, context defaults…); keys are attributes.
void parse_v1(ExecuteContext& c) {
  const NodeView& node = c.node();
  Wanted wanted{.defaults = 2};
  read_types(node, wanted);
  wanted.context.sparse = node.attr<Keys>("context_sparse_keys");
  wanted.context.dense = node.attr<Keys>("context_dense_keys");
  wanted.lists.sparse = node.attr<Keys>("feature_list_sparse_keys");
  wanted.lists.dense = node.attr<Keys>("feature_list_dense_keys");
  wanted.may_miss =
      found_in(wanted.lists.dense, node.attr<Keys>("feature_list_dense_missing_assumed_empty"));
  parse_batch(c, wanted);
}

// (serialized, dense_missing_assumed_empty, four lists of keys, context defaults…, debug_name)
void parse_single(ExecuteContext& c) {
  const Tensor &serialized = c.input(0), &missing = c.input(1), &name = c.input(c.num_inputs() - 1);
  check(serialized.shape().rank() == 0,
        "Expected serialized to be a scalar, got shape: ", serialized.shape());
  check(missing.shape().rank() == 1,
        "Expected feature_list_dense_missing_assumed_empty to be a vector, got shape: ",
        missing.shape());
  check(name.elements() == 0 || name.shape().rank() == 0,
        "Expected debug_name to be a scalar, got shape: ", name.shape());
  Wanted wanted{.names = keys_of(name), .is_batch = false, .is_strict = true, .has_lengths = false};
  read_types(c.node(), wanted);
  int input = 2;
  for (Group* group : {&wanted.context, &wanted.lists}) {
    group->sparse = keys_of(c, input, group->sparse_types.size());
    group->dense = keys_of(c, input, group->dense_types.size());
  }
  wanted.defaults = input;
  wanted.may_miss = found_in(wanted.lists.dense, keys_of(missing));
  check_keys(wanted.context, "context");
  check_keys(wanted.lists, "feature_list");
  parse_sequences(c, wanted, serialized);
}

// ---- Shapes

Shape joined(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return Shape::unknown();
  Shape out = a;
  for (const int64_t extent : b.dims()) out.push_back(extent);
  return out;
}

// `batch`: the shape of serialized.
void set_shapes(ShapeContext& c, const Shape& batch, bool has_lengths) {
  check_counts(c.node());
  check(!batch.has_rank() || batch.rank() <= 1,
        "Expected serialized to be a scalar or vector, got shape: ", batch);
  const bool has_ragged = c.node().has("context_ragged_value_types");
  const auto count = [&](const char* attr) { return c.attr<std::vector<DType>>(attr).size(); };
  const int64_t splits =
      batch.has_rank() && batch.rank() == 1 && batch[0] != any ? batch[0] + 1 : any;
  const Shape by_record = !batch.has_rank()   ? Shape::unknown()
                          : batch.rank() == 0 ? Shape{}
                                              : Shape{splits};
  int output = 0;
  const auto set = [&](size_t n, const Shape& shape) {
    for (size_t i = 0; i < n; ++i) c.set_output(output++, shape);
  };
  const auto set_sparse = [&](size_t n, int64_t more) {
    const int64_t rank = batch.has_rank() ? batch.rank() + more : any;
    set(n, {any, rank});
    set(n, {any});
    set(n, {rank});
  };
  set_sparse(count("context_sparse_types"), 1);
  for (const Shape& shape : c.attr<std::vector<Shape>>("context_dense_shapes"))
    set(1, joined(batch, shape));
  if (has_ragged) {
    set(count("context_ragged_value_types"), {any});
    set(count("context_ragged_value_types"), by_record);
  }
  set_sparse(count("feature_list_sparse_types"), 2);
  for (const Shape& shape : c.attr<std::vector<Shape>>("feature_list_dense_shapes"))
    set(1, joined(joined(batch, {any}), shape));
  if (has_lengths) set(count("feature_list_dense_types"), batch);
  if (has_ragged) {
    const size_t n = count("feature_list_ragged_value_types");
    set(n, {any});
    set(n, by_record);
    set(n, {any});
  }
}

// ---- Ops

// Context {"n": [7]}, lists {"x": [[1.5], [2]]}.
const std::string example(
    "\x0a\x0c\x0a\x0a\x0a\x01n\x12\x05\x1a\x03\x0a\x01\x07"
    "\x12\x1b\x0a\x19\x0a\x01x\x12\x14"
    "\x0a\x08\x12\x06\x0a\x04\0\0\xc0\x3f"
    "\x0a\x08\x12\x06\x0a\x04\0\0\0\x40",
    43);

const std::string types = ": list({float, int64, string}) >= 0 = []";
const std::string split_types = ": list({int32, int64}) >= 0 = []";
const std::string shapes = ": list(shape) >= 0 = []";
const std::string number = ": int >= 0 = 0";

using Strings = std::vector<std::string>;

Strings join(Strings a, const Strings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Strings common_attrs = {"Ncontext_sparse" + number,
                              "Nfeature_list_sparse" + number,
                              "Nfeature_list_dense" + number,
                              "context_sparse_types" + types,
                              "Tcontext_dense" + types,
                              "feature_list_dense_types" + types,
                              "context_dense_shapes" + shapes,
                              "feature_list_sparse_types" + types,
                              "feature_list_dense_shapes" + shapes};

const Strings context_sparse = {"context_sparse_indices: Ncontext_sparse * int64",
                                "context_sparse_values: context_sparse_types",
                                "context_sparse_shapes: Ncontext_sparse * int64",
                                "context_dense_values: Tcontext_dense"};
const Strings list_outputs = {"feature_list_sparse_indices: Nfeature_list_sparse * int64",
                              "feature_list_sparse_values: feature_list_sparse_types",
                              "feature_list_sparse_shapes: Nfeature_list_sparse * int64",
                              "feature_list_dense_values: feature_list_dense_types"};
const char* const lengths_output = "feature_list_dense_lengths: Nfeature_list_dense * int64";

// Of the examples: "n" sparse, "x" dense.
AttrMap example_attrs() {
  return {{"Ncontext_sparse", 1},
          {"Nfeature_list_dense", 1},
          {"context_sparse_types", std::vector<DType>{DType::i64}},
          {"feature_list_dense_types", std::vector<DType>{DType::f32}},
          {"feature_list_dense_shapes", std::vector<Shape>{{1}}}};
}
AttrMap with(AttrMap attrs, const AttrMap& more) {
  for (const auto& [name, value] : more) attrs.emplace(name, value);
  return attrs;
}
const Tensor no_strings(DType::string, {0});

const Op parse_v2_op{{
    .name = "ParseSequenceExampleV2",
    .doc = "The features of serialized tf.train.SequenceExample records (a vector of them, or "
           "one): sparse, dense or ragged tensors for the keys of the context and for those of the "
           "lists, which have one more axis. Dense lists end with zeros, their lengths are given.",
    .inputs = {"serialized: string", "debug_name: string", "context_sparse_keys: string",
               "context_dense_keys: string", "context_ragged_keys: string",
               "feature_list_sparse_keys: string", "feature_list_dense_keys: string",
               "feature_list_ragged_keys: string", "feature_list_dense_missing_assumed_empty: bool",
               "context_dense_defaults: Tcontext_dense"},
    .outputs =
        join(join(join(context_sparse, {"context_ragged_values: context_ragged_value_types",
                                        "context_ragged_row_splits: context_ragged_split_types"}),
                  join(list_outputs, {lengths_output})),
             {"feature_list_ragged_values: feature_list_ragged_value_types",
              "feature_list_ragged_outer_splits: feature_list_ragged_split_types",
              "feature_list_ragged_inner_splits: feature_list_ragged_split_types"}),
    .attrs = join(common_attrs,
                  {"context_ragged_value_types" + types, "context_ragged_split_types" + split_types,
                   "feature_list_ragged_value_types" + types,
                   "feature_list_ragged_split_types" + split_types}),
    .shape = [](ShapeContext& c) { set_shapes(c, c.input(0), true); },
    .kernels = {{.execute = parse_v2}},
    .examples = {{.inputs = {Tensor::scalar(example), no_strings, texts({"n"}), no_strings,
                             no_strings, no_strings, texts({"x"}), no_strings, bools({false})},
                  .attrs = example_attrs(),
                  .outputs = {longs({1, 1}, {0}), longs({7}), longs({1}), floats({2, 1}, {1.5, 2}),
                              Tensor::scalar<int64_t>(2)}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

const Op parse_v1_op{{
    .name = "ParseSequenceExample",
    .doc = "ParseSequenceExampleV2 with keys as attributes, without ragged features.",
    .inputs = {"serialized: string", "debug_name: string",
               "context_dense_defaults: Tcontext_dense"},
    .outputs = join(join(context_sparse, list_outputs), {lengths_output}),
    .attrs =
        join({"feature_list_dense_missing_assumed_empty: list(string) >= 0",
              "context_sparse_keys: list(string) >= 0", "context_dense_keys: list(string) >= 0",
              "feature_list_sparse_keys: list(string) >= 0",
              "feature_list_dense_keys: list(string) >= 0", "Ncontext_dense" + number},
             common_attrs),
    .shape = [](ShapeContext& c) { set_shapes(c, c.with_rank(0, 1), true); },
    .kernels = {{.execute = parse_v1}},
    .examples = {{.inputs = {texts({example}), no_strings},
                  .attrs = with(example_attrs(),
                                {{"feature_list_dense_missing_assumed_empty", Strings{}},
                                 {"context_sparse_keys", Strings{"n"}},
                                 {"context_dense_keys", Strings{}},
                                 {"feature_list_sparse_keys", Strings{}},
                                 {"feature_list_dense_keys", Strings{"x"}}}),
                  .outputs = {longs({1, 2}, {0, 0}), longs({7}), longs({1, 1}),
                              floats({1, 2, 1}, {1.5, 2}), longs({2})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

const Op parse_single_op{{
    .name = "ParseSingleSequenceExample",
    .doc = "ParseSequenceExampleV2 of one record, with an input per key, without lengths and "
           "ragged features.",
    .inputs = {"serialized: string", "feature_list_dense_missing_assumed_empty: string",
               "context_sparse_keys: Ncontext_sparse * string",
               "context_dense_keys: Ncontext_dense * string",
               "feature_list_sparse_keys: Nfeature_list_sparse * string",
               "feature_list_dense_keys: Nfeature_list_dense * string",
               "context_dense_defaults: Tcontext_dense", "debug_name: string"},
    .outputs = join(context_sparse, list_outputs),
    .attrs = join({"Ncontext_dense" + number}, common_attrs),
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          set_shapes(c, {}, false);
        },
    .kernels = {{.execute = parse_single}},
    .examples =
        {{.inputs = {Tensor::scalar(example), no_strings, Tensor::scalar("n"), Tensor::scalar("x"),
                     Tensor::scalar("record 1")},
          .attrs = with(example_attrs(), {{"Ncontext_dense", 0}, {"Nfeature_list_sparse", 0}}),
          .outputs = {longs({1, 1}, {0}), longs({7}), longs({1}), floats({2, 1}, {1.5, 2})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
