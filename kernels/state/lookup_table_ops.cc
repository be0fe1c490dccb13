// Ops on lookup tables (lookup_table.h). They exist on references (TensorFlow 1) and on resources.
#include <array>
#include <charconv>
#include <limits>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/blocking.h"
#include "kernels/cpu.h"
#include "kernels/named_resource.h"
#include "kernels/state/lookup_table.h"
#include "kernels/state/vocabulary.h"

namespace leat {
namespace {

LookupTable& table(const ExecuteContext& c) {
  auto* out = dynamic_cast<LookupTable*>(c.resource(0).get());
  check(out != nullptr, "'", c.resource(0)->name(), "' is not a lookup table");
  return *out;
}

void check_attr_type(const ExecuteContext& c, const char* attr, DType dtype) {
  const DType wanted = c.node().attr<DType>(attr);
  check(wanted == dtype, attr, " is ", wanted, ", but the table '", table(c).name(), "' holds ",
        dtype);
}

// ---- Kernels

void find(ExecuteContext& c) { c.set_output(0, table(c).find(c.input(1), c.input(2))); }

void initialize(ExecuteContext& c) {
  check(c.input(1).shape().rank() == 1, "Keys must be a vector, but received ", c.input(1).shape());
  table(c).initialize(c.input(1), c.input(2));
}

void insert(ExecuteContext& c) { table(c).insert(c.input(1), c.input(2)); }

void remove(ExecuteContext& c) { table(c).remove(c.input(1)); }

void import_all(ExecuteContext& c) { table(c).import_all(c.input(1), c.input(2)); }

void export_all(ExecuteContext& c) {
  check_attr_type(c, "Tkeys", table(c).options().keys);
  check_attr_type(c, "Tvalues", table(c).options().values);
  auto [keys, values] = table(c).export_all();
  c.set_output(0, std::move(keys));
  c.set_output(1, std::move(values));
}

void size(ExecuteContext& c) { c.set_output(0, Tensor::scalar(table(c).size())); }

// ---- Text files

constexpr int64_t line_number = -1, whole_line = -2;

// A column of a text file as a vector.
class Column {
 public:
  Column(const char* what, int64_t index, DType dtype, int64_t rows)
      : index_(index), values_(dtype, {rows}) {
    check(index >= whole_line && index < std::numeric_limits<int32_t>::max(), what,
          " index must be -2 (whole line), -1 (line number) or a column, got ", index);
    check(index != line_number || dtype == DType::i64, what,
          " index for line number requires table ", what, " dtype of int64, got ", dtype);
    check(dtype == DType::string || dtype == DType::i32 || dtype == DType::i64 || dtype == f32 ||
              dtype == f64,
          "Data type ", dtype,
          " not supported: a table that is read from a file supports "
          "string, int32, int64, float and double");
  }

  int64_t index() const { return index_; }
  void set(int64_t row, int64_t number, const std::string& line,
           const std::vector<std::string>& fields) {
    const std::string& text = index_ >= 0 ? fields[index_] : line;
    switch (values_.dtype()) {
      case DType::string:
        values_.data<std::string>()[row] = text;
        break;
      case DType::i32:
        values_.data<int32_t>()[row] = parsed<int32_t>(text, row);
        break;
      case DType::i64:
        values_.data<int64_t>()[row] = index_ == line_number ? number : parsed<int64_t>(text, row);
        break;
      case DType::f32:
        values_.data<float>()[row] = parsed<float>(text, row);
        break;
      default:
        values_.data<double>()[row] = parsed<double>(text, row);
    }
  }
  const Tensor& values() const { return values_; }

 private:
  template <class T>
  static T parsed(const std::string& text, int64_t row) {
    T value{};
    const char *begin = text.data(), *end = begin + text.size();
    while (begin != end && std::isspace(static_cast<unsigned char>(*begin))) ++begin;
    while (begin != end && std::isspace(static_cast<unsigned char>(end[-1]))) --end;
    if (end - begin > 1 && *begin == '+' && begin[1] != '-') ++begin;  // from_chars rejects it
    const auto [stop, error] = std::from_chars(begin, end, value);
    check(begin != end && stop == end && error == std::errc{}, "Field ", text, " in line ", row,
          " is not a valid ", dtype_of<T>, ".");
    return value;
  }

  const int64_t index_;
  Tensor values_;
};

void initialize_from_file(ExecuteContext& c) {
  const auto& delimiter = c.node().attr<std::string>("delimiter");
  const auto vocabulary = c.node().attr<int64_t>("vocab_size"),
             offset = c.node().attr<int64_t>("offset");
  const std::string& path = c.input(1).item<std::string>();
  check(!path.empty(), "filename cannot be empty.");
  check(delimiter.size() == 1, "delimiter should be only 1 char");
  const std::vector<std::string> lines =
      lines_of(path, vocabulary < 0 ? std::numeric_limits<int64_t>::max() : vocabulary,
               files_of(c.device()));
  const auto n = static_cast<int64_t>(lines.size());
  check(vocabulary < 0 || n == vocabulary, "Invalid vocab_size in ", path, ": expected ",
        vocabulary, " but got ", n);
  const LookupTable::Options& options = table(c).options();
  Column keys("key", c.node().attr<int64_t>("key_index"), options.keys, n),
      values("value", c.node().attr<int64_t>("value_index"), options.values, n);
  const int64_t columns = std::max(keys.index(), values.index()) + 1;
  std::vector<std::string> fields;
  for (int64_t i = 0; i < n; ++i) {
    fields.clear();
    for (size_t begin = 0, end = 0; columns > 0 && end != std::string::npos; begin = end + 1) {
      end = lines[i].find(delimiter[0], begin);
      fields.push_back(lines[i].substr(begin, end - begin));
    }
    check(static_cast<int64_t>(fields.size()) >= columns, "Invalid number of columns in ", path,
          " line ", i, " (", lines[i], ") : expected at least ", columns, " got ", fields.size());
    keys.set(i, i + offset, lines[i], fields);
    values.set(i, i + offset, lines[i], fields);
  }
  table(c).initialize(keys.values(), values.values());
}

// ---- Ops

// Each op on a reference and on a resource.
std::array<Op, 2> both(OpDef op, Kernel kernel) {
  op.kernels = {std::move(kernel)};
  op.is_stateful = true;
  op.is_not_differentiable = true;
  OpDef on_resource = op;
  on_resource.name += "V2";
  if (op.make_resource) {
    op.outputs = {"table_handle: Ref(string)"};
    on_resource.outputs = {"table_handle: resource"};
  } else {
    op.inputs.insert(op.inputs.begin(), "table_handle: Ref(string)");
    on_resource.inputs.insert(on_resource.inputs.begin(), "table_handle: resource");
  }
  return {Op(std::move(op)), Op(std::move(on_resource))};
}

std::array<Op, 2> table_op(std::string name, std::string doc, std::vector<std::string> inputs,
                           std::vector<std::string> attrs) {
  attrs.insert(attrs.begin(),
               {"container: string = ''", "shared_name: string = ''",
                "use_node_name_sharing: bool = false", "key_dtype: type", "value_dtype: type"});
  return both({.name = std::move(name),
               .doc = std::move(doc),
               .inputs = std::move(inputs),
               .attrs = std::move(attrs),
               .make_resource = make_lookup_table,
               .is_private_resource = true},
              cpu_kernel([](const KernelRequest&) { return BoundKernel{}; }));
}

const char* const value_shape = "value_shape: shape = []";

const auto hash_table_ops =
    table_op("HashTable",
             "handle = the table called shared_name (or, with use_node_name_sharing, like the "
             "node) in `container`, or the session's own, which is filled once.",
             {}, {});
const auto mutable_table_ops =
    table_op("MutableHashTable",
             "handle = the table called shared_name (or, with use_node_name_sharing, like the "
             "node) in `container`, or the session's own, which may change.",
             {}, {});
const auto table_of_tensors_ops = table_op(
    "MutableHashTableOfTensors",
    "As MutableHashTable; every value is a vector of shape value_shape.", {}, {value_shape});
const auto dense_table_ops = table_op(
    "MutableDenseHashTable",
    "As MutableHashTableOfTensors; keys have the shape of empty_key. That and deleted_key, "
    "constants, mark buckets without entries and are no keys. An export lists all buckets.",
    {"empty_key: key_dtype", "deleted_key: key_dtype"},
    {value_shape, "initial_num_buckets: int = 131072", "max_load_factor: float = 0.8"});

const auto initialize_ops =
    both({.name = "InitializeTable",
          .doc = "Fills a table of the kind HashTable: keys[i] -> values[i].",
          .inputs = {"keys: Tkey", "values: Tval"},
          .attrs = {"Tkey: type", "Tval: type"},
          .shape = [](ShapeContext& c) { c.with_rank(1, 1).merged(c.input(2)); }},
         {.execute = initialize});
const auto initialize_from_file_ops = both(
    {.name = "InitializeTableFromTextFile",
     .doc = "Fills a table of the kind HashTable with an entry per line of a text file. Key "
            "and value are columns, as numbered from 0, -1 the number of the line plus offset, "
            "-2 the whole line. With vocab_size, of that many lines.",
     .inputs = {"filename: string"},
     .attrs = {"key_index: int >= -2", "value_index: int >= -2", "vocab_size: int >= -1 = -1",
               "delimiter: string = '\t'", "offset: int = 0"},
     .shape = [](ShapeContext& c) { c.with_rank(1, 0); }},
    {.execute_async = blocking(initialize_from_file)});
const auto find_ops =
    both({.name = "LookupTableFind",
          .doc = "values[i…] = the value of keys[i…], or default_value if the table lacks the key.",
          .inputs = {"keys: Tin", "default_value: Tout"},
          .outputs = {"values: Tout"},
          .attrs = {"Tin: type", "Tout: type"}},
         {.execute = find});
const auto insert_ops = both({.name = "LookupTableInsert",
                              .doc = "Sets keys[i…] -> values[i…] in a mutable table.",
                              .inputs = {"keys: Tin", "values: Tout"},
                              .attrs = {"Tin: type", "Tout: type"}},
                             {.execute = insert});
// TensorFlow has this op on resources only.
const Op remove_op{{.name = "LookupTableRemoveV2",
                    .doc = "Removes the keys from a mutable table; missing keys are no error.",
                    .inputs = {"table_handle: resource", "keys: Tin"},
                    .attrs = {"Tin: type"},
                    .kernels = {{.execute = remove}},
                    .is_stateful = true,
                    .is_not_differentiable = true}};
const auto export_ops = both({.name = "LookupTableExport",
                              .doc = "All entries of the table, in any order.",
                              .outputs = {"keys: Tkeys", "values: Tvalues"},
                              .attrs = {"Tkeys: type", "Tvalues: type"},
                              .shape =
                                  [](ShapeContext& c) {
                                    for (int i : {0, 1}) c.set_output(i, Shape::unknown());
                                  }},
                             {.execute = export_all});
const auto import_ops = both({.name = "LookupTableImport",
                              .doc = "Replaces all entries of the table by keys[i] -> values[i].",
                              .inputs = {"keys: Tin", "values: Tout"},
                              .attrs = {"Tin: type", "Tout: type"},
                              .shape = [](ShapeContext& c) { c.with_rank(1, 1); }},
                             {.execute = import_all});
const auto size_ops = both({.name = "LookupTableSize",
                            .doc = "size = the number of entries.",
                            .outputs = {"size: int64"},
                            .shape = shapes::scalar()},
                           {.execute = size});

}  // namespace
}  // namespace leat
