#include "frontends/cpp/state/table.h"

#include <numeric>

#include "core/visit_dtype.h"
#include "frontends/cpp/outside_control_scopes.h"
#include "frontends/cpp/state/tuple.h"

namespace leat {
namespace {

// Numbers as a table of `dtype` holds them; other values as they are.
Tensor entries_of(const Literal& literal, DType dtype, Location at) {
  Tensor value = literal.tensor(at);
  if (value.dtype() == dtype || value.dtype() == DType::string || dtype == DType::string)
    return value;
  Tensor out(dtype, value.shape());
  visit_dtype(value.dtype(), [&]<class From>(TypeTag<From>) {
    visit_dtype(dtype, [&]<class To>(TypeTag<To>) {
      constexpr bool keeps_fractions = std::is_floating_point_v<To> || std::is_integral_v<From>;
      if constexpr (std::is_arithmetic_v<From> && std::is_arithmetic_v<To> && keeps_fractions) {
        for (int64_t i = 0; i < value.elements(); ++i)
          out.data<To>()[i] = static_cast<To>(value.data<From>()[i]);
      } else {
        fail(Code::invalid_argument, "a table (", at, ") of ", dtype, " cannot hold a ",
             value.dtype());
      }
    });
  });
  return out;
}

DType dtype_in_table(const Tensor& entries) {
  return entries.dtype() == i32 ? i64 : entries.dtype();
}

bool is_scalar(const Literal& value, Location at) { return value.tensor(at).shape().rank() == 0; }

AttrMap attrs_of(const std::string& container, const std::string& shared_name) {
  return {{"container", container}, {"shared_name", shared_name}};
}

}  // namespace

// ---- What both have

AnyTable::AnyTable(Graph& graph, std::string_view op, std::string_view name, DType keys,
                   const Literal& default_value, DType values, AttrMap attrs, Location at)
    : name_(name), keys_(keys), values_(values), default_(entries_of(default_value, values, at)) {
  check(default_.dtype() == values, "table '", name, "' (", at, "): the default value is ",
        default_.dtype(), ", but values are ", values);
  attrs.emplace("key_dtype", keys);
  attrs.emplace("value_dtype", values);
  const OutsideControlScopes outside(graph);
  handle_ =
      graph.add({.op = std::string(op), .name = name_, .attrs = std::move(attrs), .location = at})
          .output();
}

std::string AnyTable::what(std::string_view operation, Location at) const {
  return concat(operation, " of the table '", name_, "' (", at, ")");
}

Node& AnyTable::add(std::string_view op, std::string_view operation, std::vector<Output> inputs,
                    AttrMap attrs, Location at) const {
  inputs.insert(inputs.begin(), handle_);
  return handle_.graph().add({.op = std::string(op),
                              .name = concat(name_, "_", operation),
                              .inputs = std::move(inputs),
                              .attrs = std::move(attrs),
                              .location = at});
}

Output AnyTable::checked_keys(const Operand& keys, std::string_view operation, Location at) const {
  check(keys.is_constant() || keys.output(), what(operation, at), ": the keys are an empty Output");
  const Output out = keys.as(handle_.graph(), keys_);
  check(out.dtype() == keys_, what(operation, at), ": the keys, '", out.name(), "', are ",
        out.dtype(), ", but those of the table are ", keys_);
  return out;
}

Output AnyTable::lookup(const Operand& keys, Location at) const {
  const Output wanted = checked_keys(keys, "lookup", at);
  const Output otherwise = constant(handle_.graph(), default_, "default", at);
  const Output found = add("LookupTableFindV2", "lookup", {wanted, otherwise}, {}, at).output();
  Shape shape = wanted.shape();
  if (shape.has_rank()) {
    for (const int64_t extent : default_.shape().dims()) shape.push_back(extent);
  }
  return with_shape(found, shape, at);
}

Output AnyTable::size(Location at) const {
  return add("LookupTableSizeV2", "size", {}, {}, at).output();
}

TableEntries AnyTable::entries(Location at) const {
  Node& node =
      add("LookupTableExportV2", "entries", {}, {{"Tkeys", keys_}, {"Tvalues", values_}}, at);
  Shape values{any};
  for (const int64_t extent : default_.shape().dims()) values.push_back(extent);
  return {with_shape(node.output(0), {any}, at), with_shape(node.output(1), values, at)};
}

// ---- Filled once

Table::Table(Graph& graph, std::string_view name, const Literal& keys, const Literal& values,
             const Literal& default_value, const TableOptions& options, Location at)
    : AnyTable(graph, "HashTableV2", name, dtype_in_table(keys.tensor(at)), default_value,
               dtype_in_table(values.tensor(at)), attrs_of(options.container, options.shared_name),
               at) {
  const Tensor k = entries_of(keys, key_dtype(), at), v = entries_of(values, value_dtype(), at);
  check(k.shape().rank() == 1 && k.shape() == v.shape(), "table '", name, "' (", at,
        "): keys and values must be vectors of one length, got ", k.shape(), " and ", v.shape());
  check(value_shape().rank() == 0, "table '", name, "' (", at, "): the default value must be a ",
        "scalar, got ", value_shape());
  set_initializer("InitializeTableV2",
                  {constant(graph, k, concat(name, "/keys"), at),
                   constant(graph, v, concat(name, "/values"), at)},
                  {}, at);
}

Table::Table(Graph& graph, std::string_view name, const Literal& default_value,
             const TableFileOptions& options, Location at)
    : AnyTable(graph, "HashTableV2", name, options.keys, default_value, options.values,
               attrs_of(options.container, options.shared_name), at) {}

Table Table::from_vocabulary(Graph& graph, std::string_view name, const Literal& keys,
                             int64_t default_value, const TableOptions& options, Location at) {
  const Tensor all = keys.tensor(at);
  check(all.shape().rank() == 1, "table '", name, "' (", at,
        "): the vocabulary must be a vector of keys, got ", all.shape());
  std::vector<int64_t> numbers(static_cast<size_t>(all.elements()));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return {graph, name, keys, Tensor::of(numbers), default_value, options, at};
}

Table Table::from_file(Graph& graph, std::string_view name, std::string_view file,
                       const Literal& default_value, const TableFileOptions& options, Location at) {
  check(!file.empty(), "table '", name, "' (", at, "): the name of the file is empty");
  for (const int64_t column : {options.key_column, options.value_column}) {
    check(column >= whole_line, "table '", name, "' (", at, "): there is no column ", column);
  }
  Table out(graph, name, default_value, options, at);
  out.set_initializer("InitializeTableFromTextFileV2",
                      {constant(graph, std::string(file), concat(name, "/file"), at)},
                      {{"key_index", options.key_column},
                       {"value_index", options.value_column},
                       {"vocab_size", options.lines},
                       {"delimiter", std::string(1, options.delimiter)}},
                      at);
  return out;
}

void Table::set_initializer(std::string_view op, std::vector<Output> inputs, AttrMap attrs,
                            Location at) {
  const OutsideControlScopes outside(handle().graph());
  initializer_ = &add(op, "initialize", std::move(inputs), std::move(attrs), at);
  handle().graph().add_to_collection("table_initializers", {initializer_, 0});
}

// ---- Changed by steps

MutableTable::MutableTable(Graph& graph, std::string_view name, DType keys, DType values,
                           const Literal& default_value, const TableOptions& options, Location at)
    : AnyTable(
          graph,
          is_scalar(default_value, at) ? "MutableHashTableV2" : "MutableHashTableOfTensorsV2", name,
          keys, default_value, values,
          [&] {
            AttrMap attrs = attrs_of(options.container, options.shared_name);
            const Shape shape = default_value.tensor(at).shape();
            check(shape.rank() <= 1, "table '", name, "' (", at, "): values must be scalars ",
                  "or vectors, but the default value is ", shape);
            if (shape.rank() > 0) attrs.emplace("value_shape", shape);
            return attrs;
          }(),
          at) {}

Node& MutableTable::insert(const Operand& keys, const Operand& values, Location at) const {
  const Output k = checked_keys(keys, "insert", at);
  check(values.is_constant() || values.output(), what("insert", at),
        ": the values are an empty Output");
  const Output v = values.as(handle().graph(), value_dtype());
  check(v.dtype() == value_dtype(), what("insert", at), ": the values, '", v.name(), "', are ",
        v.dtype(), ", but those of the table are ", value_dtype());
  return add("LookupTableInsertV2", "insert", {k, v}, {}, at);
}

Node& MutableTable::remove(const Operand& keys, Location at) const {
  return add("LookupTableRemoveV2", "remove", {checked_keys(keys, "remove", at)}, {}, at);
}

}  // namespace leat
