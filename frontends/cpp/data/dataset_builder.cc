#include "frontends/cpp/data/dataset_builder.h"

#include <atomic>
#include <unordered_map>

#include "graph/import/graph_def.h"

namespace leat {
namespace {

std::vector<DType> dtypes_of(const std::vector<Component>& components) {
  std::vector<DType> out;
  for (const Component& component : components) out.push_back(component.dtype);
  return out;
}

std::vector<Shape> shapes_of(const std::vector<Component>& components) {
  std::vector<Shape> out;
  for (const Component& component : components) out.push_back(component.shape);
  return out;
}

std::vector<bool> needed_by(const std::vector<Output>& roots) {
  std::vector<bool> out(roots[0].graph().size());
  std::vector<const Node*> pending;
  for (const Output& root : roots) pending.push_back(root.node);
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (out[node->id]) continue;
    out[node->id] = true;
    for (const Output& input : node->inputs) pending.push_back(input.node);
    for (const Node* control : node->control_inputs) pending.push_back(control);
  }
  return out;
}

// A name for a function that no other of this process has.
std::string new_name(std::string_view name, std::string_view attr) {
  static std::atomic<int64_t> count = 0;
  return concat(name, "_", attr, "_", count.fetch_add(1));
}

}  // namespace

Shape common(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank() || !a.has_rank()) return Shape::unknown();
  Shape out = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] != b[i]) out.set(i, any);
  }
  return out;
}

DatasetBuilder::DatasetBuilder(const Dataset& input, std::string_view name, Location at)
    : name_(name),
      at_(at),
      graph_(input.graph_),
      input_(input.variant_),
      components_(input.components_) {}

DatasetBuilder::DatasetBuilder(std::string_view name, Location at)
    : name_(name), at_(at), graph_(std::make_shared<Graph>()) {}

DatasetBuilder::DatasetBuilder(const Output& value, std::string_view name, Location at)
    : name_(name),
      at_(at),
      // The graph of a function that is being traced outlives what is made in it.
      graph_(std::shared_ptr<void>(), &value.graph()) {}

DatasetBuilder::DatasetBuilder(const datasets::Files& files, std::string_view name, Location at)
    : name_(name), at_(at) {
  const Output* const output = std::get_if<Output>(&files.files_);
  check(output == nullptr || *output, name, " (", at, "): the files are an empty Output");
  // The graph of a function that is being traced outlives what is made in it.
  graph_ = output == nullptr ? std::make_shared<Graph>()
                             : std::shared_ptr<Graph>(std::shared_ptr<void>(), &output->graph());
}

Output DatasetBuilder::value(Tensor value) const {
  return constant(*graph_, std::move(value), "Const", at_);
}

Output DatasetBuilder::numbers(const std::vector<int64_t>& values) const {
  Tensor out(i64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), out.data<int64_t>());
  return value(std::move(out));
}

Output DatasetBuilder::paths(const datasets::Files& files) const {
  if (const Output* output = std::get_if<Output>(&files.files_)) return *output;
  const auto& list = std::get<std::vector<std::string>>(files.files_);
  check(!list.empty(), name_, " (", at_, "): there are no files");
  Tensor out(DType::string, {static_cast<int64_t>(list.size())});
  std::copy(list.begin(), list.end(), out.span<std::string>().begin());
  return value(std::move(out));
}

Output DatasetBuilder::taken_over(const Dataset& other) const {
  if (other.graph_.get() == graph_.get()) return other.variant_;
  const std::vector<bool> needed = needed_by({other.variant_});
  std::unordered_map<const Node*, Node*> copies;
  for (const auto& node : other.graph_->nodes()) {
    if (!needed[node->id]) continue;
    NodeSpec spec{.op = node->op->name,
                  .name = graph_->unique_name(node->name),
                  .attrs = node->attrs,
                  .location = node->location};
    for (const Output& input : node->inputs)
      spec.inputs.push_back({copies.at(input.node), input.index});
    for (const Node* control : node->control_inputs)
      spec.control_inputs.push_back(copies.at(control));
    copies[node.get()] = &graph_->insert(std::move(spec), {});
  }
  return {copies.at(other.variant_.node), other.variant_.index};
}

Output DatasetBuilder::result(const Dataset& dataset) const {
  return graph_
      ->insert(
          {.op = "_Result", .name = "result", .inputs = {taken_over(dataset)}, .location = at_}, {})
      .output();
}

Dataset DatasetBuilder::add(std::string_view op, const std::vector<Output>& inputs,
                            AttrMap attrs) const {
  const OpSchema& schema = op_named(op).schema;
  for (const std::string_view types : {"output_types", "Toutput_types"}) {
    if (schema.attr(types) != nullptr) attrs.emplace(types, dtypes_of(components_));
  }
  if (schema.attr("output_shapes") != nullptr)
    attrs.emplace("output_shapes", shapes_of(components_));
  Node& node = graph_->add({.op = std::string(op),
                            .name = name_,
                            .inputs = inputs,
                            .attrs = std::move(attrs),
                            .location = at_});
  return {graph_, node.output(), components_};
}

TracedFunction DatasetBuilder::arguments_of() const {
  TracedFunction out{std::make_shared<Graph>(), static_cast<int>(components_.size()), {}};
  for (int i = 0; i < out.arguments; ++i) {
    const Component& component = components_[static_cast<size_t>(i)];
    Node& argument = out.graph->insert({.op = "_Feed",
                                        .name = concat("argument_", i),
                                        .attrs = {{"dtype", component.dtype},
                                                  {"shape", component.shape},
                                                  {"name", concat("argument:", i)}},
                                        .location = at_},
                                       {});
    out.results.push_back(argument.output());
  }
  return out;
}

TracedFunction DatasetBuilder::trace(
    const std::function<std::vector<Operand>(const std::vector<Output>&)>& f) const {
  TracedFunction out = arguments_of();
  const std::vector<Operand> results = [&] {
    try {
      return f(out.results);
    } catch (const Error& error) {
      fail(error.code(), name_, " (", at_,
           "): its function fails (it can use only its arguments and ",
           "values computed from them): ", error.message());
    }
  }();
  out.results.clear();
  check(!results.empty(), "a function of ", name_, " (", at_, ") returns no results");
  for (const Operand& result : results) {
    const Output value = result.as(*out.graph, DType::invalid);
    check(bool{value}, "a function of ", name_, " (", at_, ") returns an empty Output");
    check(&value.graph() == out.graph.get(), "a function of ", name_, " (", at_, ") returns '",
          value.name(), "', which belongs to another graph: compute with the arguments only");
    out.results.push_back(value);
  }
  return out;
}

TracedFunction DatasetBuilder::trace_dataset(
    const std::function<Dataset(const std::vector<Output>&)>& f,
    std::vector<Component>& components) const {
  TracedFunction out = arguments_of();
  const Dataset made = f(out.results);
  components = made.components_;
  DatasetBuilder within(*this);
  within.graph_ = out.graph;
  out.results = {within.result(made)};
  return out;
}

AttrMap DatasetBuilder::with_function(std::string_view attr, const TracedFunction& function,
                                      AttrMap attrs) const {
  using Names = std::vector<std::string>;
  Graph needed = function.graph->clone();
  std::vector<bool> stays = needed_by(function.results);
  for (int i = 0; i < function.arguments; ++i) stays[static_cast<size_t>(i)] = true;
  needed.keep(stays);
  Names results;
  for (const Output& result : function.results) results.push_back(result.name());
  const std::string prefix = concat("_leat_", attr);
  attrs.emplace(attr, FunctionRef{new_name(name_, attr), nullptr});
  attrs.emplace(prefix, to_graph_def(needed));
  attrs.emplace(prefix + "_arguments", static_cast<int64_t>(function.arguments));
  attrs.emplace(prefix + "_captured", int64_t{0});
  attrs.emplace(prefix + "_captured_from", int64_t{0});
  attrs.emplace(prefix + "_handles", Names{});
  attrs.emplace(prefix + "_variables", Names{});
  attrs.emplace(prefix + "_results", std::move(results));
  attrs.emplace(prefix + "_effects", Names{});
  if (attr != "dataset_factory") attrs.emplace("Targuments", std::vector<DType>{});
  return attrs;
}

Batch DatasetBuilder::next(Graph& graph) const {
  TracedFunction factory{std::make_shared<Graph>(), 0, {}};
  {
    DatasetBuilder within(*this);
    within.graph_ = factory.graph;
    Dataset dataset(graph_, input_, components_);
    factory.results = {within.result(dataset)};
  }
  const NameScope scope(graph, "dataset");
  AttrMap types = {{"output_types", dtypes_of(components_)},
                   {"output_shapes", shapes_of(components_)}};
  Node& iterator = graph.add({.op = "OneShotIterator",
                              .name = "iterator",
                              .attrs = with_function("dataset_factory", factory, types),
                              .location = at_});
  Node& next = graph.add({.op = "IteratorGetNext",
                          .name = "next",
                          .inputs = {iterator.output()},
                          .attrs = types,
                          .location = at_});
  std::vector<Output> outputs;
  std::vector<std::string> names;
  for (int i = 0; i < next.num_outputs(); ++i) {
    outputs.push_back(next.output(i));
    names.push_back(components_[static_cast<size_t>(i)].name);
  }
  return {std::move(outputs), std::move(names)};
}

}  // namespace leat
