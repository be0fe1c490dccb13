// Lookup tables in sessions: what they find, what fills them, what they reject.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "graph/ops.h"
#include "kernels/examples.h"
#include "runtime/local_session.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

const LocalDevices one_cpu{.cpus = 1, .gpus = false};

// A table of strings to int64 and the usual operations on it, with fed keys and values.
struct TableGraph {
  explicit TableGraph(const std::string& kind, AttrMap attrs = {}) {
    attrs.emplace("key_dtype", DType::string);
    attrs.emplace("value_dtype", i64);
    const Output table = graph.add({.op = kind, .name = "table", .attrs = attrs}).output();
    const Output keys = placeholder(graph, "keys", DType::string);
    const Output values = placeholder(graph, "values", i64),
                 other = placeholder(graph, "other", i64);
    const std::string version = kind.ends_with("V2") ? "V2" : "";
    const auto operation = [&](std::string op, const char* name, std::vector<Output> inputs,
                               AttrMap a = {}) {
      graph.add(
          {.op = op + version, .name = name, .inputs = std::move(inputs), .attrs = std::move(a)});
    };
    operation("InitializeTable", "fill", {table, keys, values});
    operation("LookupTableFind", "find", {table, keys, other});
    operation("LookupTableInsert", "insert", {table, keys, values});
    operation("LookupTableImport", "import", {table, keys, values});
    operation("LookupTableExport", "export", {table}, {{"Tkeys", DType::string}, {"Tvalues", i64}});
    operation("LookupTableSize", "size", {table});
    if (!version.empty()) operation("LookupTableRemove", "remove", {table, keys});
    session.extend(graph);
  }

  void change(const char* how, Tensor keys, Tensor values = longs({})) {
    session.run({{"keys", std::move(keys)}, {"values", std::move(values)}}, {}, {how});
  }
  std::vector<double> find(Tensor keys, Tensor other = Tensor::scalar<int64_t>(-1)) {
    const Tensor found =
        session.run({{"keys", std::move(keys)}, {"other", std::move(other)}}, {"find:0"}, {})[0];
    return std::vector<double>(found.span<int64_t>().begin(), found.span<int64_t>().end());
  }
  int64_t size() { return session.run({}, {"size:0"}, {})[0].item<int64_t>(); }

  Graph graph;
  LocalSession session{{.timeout = std::chrono::seconds(20)}, one_cpu};
};

using Numbers = std::vector<double>;

TEST(LookupTables, AreFilledOnceAndThenFixed) {
  for (const char* kind : {"HashTable", "HashTableV2"}) {
    TableGraph table(kind);
    expect_error_with(Code::failed_precondition, "Table not initialized.",
                      [&] { table.find(texts({"a"})); });
    table.change("fill", texts({"a", "b", "a"}), longs({1, 2, 1}));
    EXPECT_EQ(table.size(), 2);
    EXPECT_EQ(table.find(texts({"b", "?", "a"})), (Numbers{2, -1, 1}));
    EXPECT_EQ(table.find(texts({}), Tensor::scalar<int64_t>(7)), Numbers{});
    table.change("fill", texts({"a", "b"}), longs({1, 2}));  // as two workers may do
    expect_error_with(Code::failed_precondition, "already initialized with different data", [&] {
      table.change("fill", texts({"a", "b", "c"}), longs({1, 2, 3}));
    });
    expect_error_with(Code::unimplemented, "Insert not supported",
                      [&] { table.change("insert", texts({"c"}), longs({3})); });
  }
}

TEST(LookupTables, RejectAKeyWithTwoValuesWithoutAChange) {
  TableGraph table("HashTableV2");
  expect_error_with(Code::failed_precondition, "has different value for same key", [&] {
    table.change("fill", texts({"a", "a"}), longs({1, 2}));
  });
  expect_error_with(Code::failed_precondition, "Table not initialized.",
                    [&] { table.find(texts({"a"})); });
  EXPECT_EQ(table.size(), 0);
}

TEST(LookupTables, MutableTablesChange) {
  TableGraph table("MutableHashTableV2");
  EXPECT_EQ(table.find(texts({"a"})), (Numbers{-1}));
  table.change("insert", texts({"a", "b", "c", "a"}), longs({1, 2, 3, 4}));
  EXPECT_EQ(table.find(texts({"a", "b", "?", "c"}), longs({-1, -2, -3, -4})),
            (Numbers{4, 2, -3, 3}));
  table.change("remove", texts({"a", "?"}));
  table.change("remove", texts({"c"}));
  EXPECT_EQ(table.find(texts({"a", "b", "c"})), (Numbers{-1, 2, -1}));
  table.change("insert", texts({"d"}), longs({5}));
  EXPECT_EQ(table.find(texts({"b", "d"})), (Numbers{2, 5}));
  const std::vector<Tensor> all = table.session.run({}, {"export:0", "export:1"}, {});
  EXPECT_EQ(all[0].shape(), Shape{2});
  table.change("import", texts({"x"}), longs({9}));
  EXPECT_EQ(table.size(), 1);
  expect_error_with(Code::invalid_argument, "not initializable",
                    [&] { table.change("fill", texts({"a"}), longs({1})); });
  expect_error_with(Code::invalid_argument, "Expected shape [2] for value, got [1]", [&] {
    table.change("insert", texts({"a", "b"}), longs({1}));
  });
}

TEST(LookupTables, ValuesMayBeVectors) {
  TableGraph table("MutableHashTableOfTensorsV2", {{"value_shape", Shape{2}}});
  table.change("insert", texts({"a", "b"}), longs({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(table.find(texts({"b", "?"}), longs({-1, -2})), (Numbers{3, 4, -1, -2}));
  expect_error_with(Code::invalid_argument, "Expected shape [2] or [1,2] for default value",
                    [&] { table.find(texts({"b"})); });
}

TEST(LookupTables, LoadFromAFile) {
  const ScratchDirectory directory;
  const std::string path = directory / "words.txt";
  std::ofstream(path) << "a\t5\r\nb\t6\n";
  const auto found = [&](AttrMap attrs, const std::string& key) {
    Graph graph;
    const Output table = graph
                             .add({.op = "HashTableV2",
                                   .name = "table",
                                   .attrs = {{"key_dtype", DType::string}, {"value_dtype", i64}}})
                             .output();
    const Output name = constant(graph, Tensor::scalar(path.c_str()));
    graph.add({.op = "InitializeTableFromTextFileV2",
               .name = "fill",
               .inputs = {table, name},
               .attrs = std::move(attrs)});
    const Output keys = constant(graph, Tensor::scalar(key.c_str()));
    const Output other = constant(graph, Tensor::scalar<int64_t>(-1));
    graph.add({.op = "LookupTableFindV2", .name = "find", .inputs = {table, keys, other}});
    LocalSession session({.timeout = std::chrono::seconds(20)}, one_cpu);
    session.extend(graph);
    session.run({}, {}, {"fill"});
    return session.run({}, {"find:0"}, {})[0].item<int64_t>();
  };
  EXPECT_EQ(found({{"key_index", 0}, {"value_index", 1}}, "b"), 6);
  EXPECT_EQ(found({{"key_index", -2}, {"value_index", -1}, {"offset", 10}}, "b\t6"), 11);
  EXPECT_EQ(found({{"key_index", 0}, {"value_index", 1}, {"vocab_size", 1}}, "b"), -1);
  expect_error_with(Code::invalid_argument, "expected 3 but got 2", [&] {
    found({{"key_index", 0}, {"value_index", 1}, {"vocab_size", 3}}, "b");
  });
  expect_error_with(Code::invalid_argument, "expected at least 3 got 2", [&] {
    found({{"key_index", 2}, {"value_index", 1}}, "b");
  });
  std::ofstream(path) << "a\tx\n";
  expect_error_with(Code::invalid_argument, "Field x in line 0 is not a valid int64", [&] {
    found({{"key_index", 0}, {"value_index", 1}}, "b");
  });
}

// A dense table; its keys have the dtype and shape of `empty` and `deleted`, -1 and -2 in most
// tests.
Output dense_table(Graph& graph, const Output& empty, const Output& deleted, AttrMap attrs = {}) {
  attrs.emplace("value_dtype", i64);
  return graph
      .add({.op = "MutableDenseHashTableV2",
            .name = "table",
            .inputs = {empty, deleted},
            .attrs = std::move(attrs)})
      .output();
}

// Runs one insertion into a new table of int64.
void insert_into_dense(const Tensor& keys, AttrMap attrs, const Shape& key_shape = {}) {
  Graph graph;
  const auto reserved = [&](int64_t key) {
    Tensor out(i64, key_shape);
    for (int64_t& element : out.span<int64_t>()) element = key;
    return constant(graph, out);
  };
  const Output table = dense_table(graph, reserved(-1), reserved(-2), std::move(attrs));
  const Output values = constant(graph, Tensor(i64, {keys.shape()[0]}));
  graph.add({.op = "LookupTableInsertV2",
             .name = "insert",
             .inputs = {table, constant(graph, keys), values}});
  LocalSession session{{.timeout = std::chrono::seconds(20)}, one_cpu};
  session.extend(graph);
  session.run({}, {}, {"insert"});
}

TEST(LookupTables, DenseTablesReserveTwoKeys) {
  insert_into_dense(longs({3, 4}), {});
  insert_into_dense(longs({2, 2}, {-1, -2, -2, -1}), {}, {2});
  for (const int64_t reserved : {-1, -2}) {
    expect_error_with(Code::invalid_argument, "as a table key is not allowed", [&] {
      insert_into_dense(longs({3, reserved}), {});
    });
    expect_error_with(Code::invalid_argument, "as a table key is not allowed", [&] {
      insert_into_dense(longs({1, 2}, {reserved, reserved}), {}, {2});
    });
  }
}

TEST(LookupTables, DenseTablesGrowOnlyWithinMemory) {
  const AttrMap least_load = {{"max_load_factor", 1e-38F}};
  EXPECT_THROW(insert_into_dense(longs({3}), least_load), Error);
  for (const int exponent : {45, 61, 62})
    EXPECT_THROW(insert_into_dense(longs({3}), {{"initial_num_buckets", int64_t{1} << exponent}}),
                 Error);
}

TEST(LookupTables, DenseTablesNeedConstantReservedKeys) {
  Graph graph;
  const Output table = dense_table(graph, placeholder(graph, "empty", i64, {}),
                                   constant(graph, Tensor::scalar<int64_t>(-2)));
  graph.add({.op = "LookupTableSizeV2", .name = "size", .inputs = {table}});
  LocalSession session{{.timeout = std::chrono::seconds(20)}, one_cpu};
  session.extend(graph);
  expect_error_with(Code::unimplemented, "must be constants", [&] {
    session.run({{"empty", Tensor::scalar<int64_t>(-1)}}, {"size:0"}, {});
  });
}

}  // namespace
}  // namespace leat
