#include "frontends/cpp/variables.h"

#include <algorithm>

#include "frontends/cpp/outside_control_scopes.h"
#include "frontends/cpp/variable_parts.h"
#include "graph/variable_node.h"

namespace leat {
namespace {

// What begins with the name of a node of that collection and a slash.
std::string_view root_of(const Graph& graph, std::string_view collection, std::string_view name) {
  for (const Output& root : graph.collection(collection)) {
    const std::string& marker = root.node->name;
    if (name.starts_with(marker) && name.substr(marker.size()).starts_with('/'))
      return name.substr(0, marker.size() + 1);
  }
  return {};
}

// Whether a variable of a copy may be without an original: see add_copy_root().
bool may_be_own(const Graph& graph, std::string_view root, const VariableOptions& options) {
  const std::vector<Output>& roots = graph.collection("copy_roots_with_own_state");
  return !options.trainable && std::any_of(roots.begin(), roots.end(), [&](const Output& each) {
    return concat(each.node->name, "/") == root;
  });
}

// What the variable `full`, which is about to be made, is a copy of, or another name for. Null if
// its name does not begin with `root`.
Node* original_of(Graph& graph, std::string_view root, std::string_view full, const Shape& shape,
                  DType dtype, bool use_resource) {
  if (root.empty()) return nullptr;
  const std::string_view original = full.substr(root.size());
  Node* found = graph.find(original);
  check(found != nullptr && found->op->is_variable, "the variable '", full, "' must be a copy of '",
        original, "', which does not exist: make replica 0 first, and give every replica the same ",
        "variables under the same names");
  const Shape& its_shape = found->outputs[0].shape;
  const auto its_dtype = found->attr<DType>("dtype");
  check(its_dtype == dtype && its_shape == shape, "the variable '", full, "' is ", dtype, shape,
        ", but its original '", original, "' is ", its_dtype, its_shape);
  check(is_resource_variable(*found->op) == use_resource, "the variable '", full, "' is a ",
        "copy of '", original,
        "', but only one of them is a resource variable: give both the same ", "use_resource");
  return found;
}

bool is_shared_variable(const Graph& graph, const Node& node) {
  const std::vector<Output>& shared = graph.collection("shared_variables");
  return std::any_of(shared.begin(), shared.end(),
                     [&](const Output& each) { return variable_node(each) == &node; });
}

// What the parts of the variable `name` hold together, joined on the device of the current scopes;
// none if it has no parts.
Output joined_parts(Graph& graph, std::string_view name) {
  const std::vector<Output> parts = parts_of(graph, name);
  return parts.empty() ? Output() : joined(graph, name, parts);
}

// The same for another name of it, of which dtype and shape must be those.
Output joined_parts(Graph& graph, std::string_view name, std::string_view full, const Shape& shape,
                    DType dtype) {
  if (name.empty() || graph.find(name) != nullptr) return {};
  const Output whole = joined_parts(graph, name);
  check(!whole || (whole.dtype() == dtype && whole.shape() == shape), "the variable '", full,
        "' is ", dtype, shape, ", but '", name, "' is ", whole ? whole.dtype() : dtype,
        whole ? whole.shape() : shape);
  return whole;
}

// How a node tells which part it is: TensorFlow has this beside its graph, in SaveSliceInfo.
constexpr std::string_view name_of_whole = "_part_of", place_in_whole = "_part";

void note_part(const VariablePart& part, AttrMap& attrs) {
  attrs.emplace(name_of_whole, part.of);
  attrs.emplace(place_in_whole, part.text());
}

Output initial_value(Graph& graph, const Node& variable, const Initializer& initial, DType dtype,
                     const VariablePart& part) {
  Output value;
  try {
    value = initial(graph, dtype, part);
  } catch (const Error& error) {
    fail(error.code(), "the initialiser of variable '", variable.name, "' (", variable.location,
         "): ", error.message());
  }
  check(bool{value}, "the initialiser of variable '", variable.name, "' (", variable.location,
        ") returned an empty Output");
  return value;
}

constexpr std::string_view read_name = "/Read/ReadVariableOp";

// The name of what goes with a variable, in the current scope.
std::string name_beside(const Node& variable, std::string_view suffix) {
  return concat(variable.name.substr(variable.graph->scopes().name.size()), suffix);
}

// What stands for a resource variable in a program.
Output first_read(Node& handle) {
  return handle.graph
      ->add({.op = "ReadVariableOp",
             .name = name_beside(handle, read_name),
             .inputs = {handle.output()},
             .attrs = {{"dtype", handle.attr<DType>("dtype")}},
             .location = handle.location})
      .output();
}

// Runs where the variable lives, whose colocation scope is open.
Node& add_initializer(const Output& variable, Node* original, const Initializer& initial,
                      const VariablePart& part) {
  Node& node = *variable_node(variable);
  Graph& graph = *node.graph;
  const bool is_resource = is_resource_variable(*node.op);
  const std::string outer = graph.scopes().name;
  const NameScope scope(graph, name_beside(node, "/initial"));
  const LocationScope line(graph, node.location);
  Output value;
  std::vector<Node*> after;
  if (original == nullptr) {
    value = initial_value(graph, node, initial, variable.dtype(), part);
  } else {
    after = {&initializer_of(graph, original->output())};
    const ControlScope wait(graph, after);
    value = is_resource ? read_variable(original->output(), node.location) : original->output();
  }
  if (!is_resource) {
    return graph.add({.op = "Assign",
                      .name = "Assign",
                      .inputs = {variable, value},
                      .control_inputs = after,
                      .location = node.location});
  }
  const NameScope beside(graph, outer);
  return graph.add({.op = "AssignVariableOp",
                    .name = name_beside(node, "/Assign"),
                    .inputs = {node.output(), value},
                    .attrs = {{"validate_shape", true}},
                    .location = node.location});
}

// While it lives, all new variables are of that kind, or all are not: a slot is of the kind of its
// variable, whatever use_resource_variables() said later.
class SameKind {
 public:
  SameKind(Graph& graph, bool use_resource)
      : graph_(graph), outer_(graph.uses_resource_variables()) {
    graph.use_resource_variables(use_resource);
  }
  ~SameKind() { graph_.use_resource_variables(outer_); }
  SameKind(const SameKind&) = delete;

 private:
  Graph& graph_;
  const bool outer_;
};

const VariablePlacement* placement_of(const Graph::Scopes& scopes) {
  const auto* found = scopes.device_function.target<VariablePlacement>();
  return scopes.colocate_with.empty() ? found : nullptr;
}

// The devices of the parts into which the scopes, or the variable that it is a copy of, cut a
// variable; none if it is whole.
std::vector<DeviceName> places_of_parts(Graph& graph, std::string_view root, std::string_view full,
                                        const Shape& shape, DType dtype,
                                        const VariableOptions& options) {
  if (options.part || !options.trainable || shape.rank() == 0) return {};
  if (!root.empty()) return {parts_of(graph, full.substr(root.size())).size(), DeviceName()};
  const VariablePlacement* placement = placement_of(graph.scopes());
  return placement == nullptr ? std::vector<DeviceName>() : placement->of_parts(shape, dtype);
}

// Where the scopes place a variable of that name.
Node& add_placed(Graph& graph, std::string_view full, const Shape& shape, DType dtype,
                 NodeSpec spec) {
  const VariablePlacement* placement = placement_of(graph.scopes());
  if (placement == nullptr) return graph.add(std::move(spec));
  const DeviceAlone there(graph, placement->of_variable(full, shape, dtype));
  return graph.add(std::move(spec));
}

}  // namespace

Output variable(Graph& graph, std::string_view name, const Shape& shape, const Initializer& initial,
                DType dtype, const VariableOptions& options, Location at) {
  check(shape.is_complete(), "variable '", name, "' (", at, ") needs a complete shape, got ",
        shape);
  check(initial != nullptr, "variable '", name, "' (", at, ") has an empty initialiser");
  const VariablePart part = options.part ? *options.part : VariablePart(shape);
  check(part.shape() == shape, "variable '", name, "' (", at, ") is the part ",
        part.slice.to_string(), " of '", part.of, "' ", part.whole, ", but its shape is ", shape);
  // The variable, and what runs before any step, do not wait for a step: also in a loop's body.
  const OutsideControlScopes outside(graph);
  const std::string full = graph.unique_name(concat(graph.scopes().name, name));
  const bool use_resource = options.use_resource || graph.uses_resource_variables();
  const std::string_view shared_root = shared_root_of(graph, full);
  if (const Output whole = joined_parts(
          graph, shared_root.empty() ? "" : std::string_view(full).substr(shared_root.size()), full,
          shape, dtype)) {
    no_op(graph, name);
    return whole;
  }
  if (const Node* shared = original_of(graph, shared_root, full, shape, dtype, use_resource)) {
    no_op(graph, name);  // the name is taken: the next layer of this replica gets another one
    return variable_named(graph, shared->name);
  }
  const std::string_view root = copy_root_of(graph, full);
  if (const auto devices = places_of_parts(graph, root, full, shape, dtype, options);
      !devices.empty()) {
    const NameScope scope(graph, name);
    const auto count = static_cast<int64_t>(devices.size());
    return joined(graph, full,
                  make_parts(scope, graph, shape, 0, count, initial, dtype, options, devices, at),
                  at);
  }
  const bool is_own = graph.find(full.substr(root.size())) == nullptr && !root.empty() &&
                      may_be_own(graph, root, options);
  Node* original = is_own ? nullptr : original_of(graph, root, full, shape, dtype, use_resource);
  if (original != nullptr && is_shared_variable(graph, *original)) {
    no_op(graph, name);  // takes the name, as above
    return variable_named(graph, original->name);
  }
  AttrMap attrs{{"shape", shape}, {"dtype", dtype}, {"container", options.container}};
  // TensorFlow looks for a resource by this name alone, also if it is empty.
  attrs.emplace("shared_name",
                use_resource && options.shared_name.empty() ? full : options.shared_name);
  if (options.part) note_part(*options.part, attrs);
  Node& node = add_placed(graph, full, shape, dtype,
                          {.op = use_resource ? "VarHandleOp" : "VariableV2",
                           .name = std::string(name),
                           .inputs = {},
                           .attrs = std::move(attrs),
                           .control_inputs = {},
                           .location = at});
  const ColocationScope with(graph, {node.output()});
  const Output made = use_resource ? first_read(node) : node.output();
  Node& assign = add_initializer(made, original, initial, part);
  graph.add_to_collection("initializers", {&assign, 0});
  if (original != nullptr) {
    graph.add_to_collection("copy_initializers", {&assign, 0});
    return made;
  }
  if (is_own) {
    graph.add_to_collection("own_initializers", {&assign, 0});
    return made;
  }
  graph.add_to_collection("variables", made);
  if (options.trainable) graph.add_to_collection("trainable_variables", made);
  return made;
}

Output variable(Graph& graph, std::string_view name, const Shape& shape,
                const VariableOptions& options, Location at) {
  const Initializer initial = options.initializer ? options.initializer : initializers::zeros();
  return variable(graph, name, shape, initial, options.dtype, options, at);
}

Output variable(Graph& graph, std::string_view name, const Shape& shape, DType dtype,
                const VariableOptions& options, Location at) {
  const Initializer initial = options.initializer ? options.initializer : initializers::zeros();
  return variable(graph, name, shape, initial, dtype, options, at);
}

Output variable_of(Graph& graph, std::string_view name, const TensorLike& initial,
                   const VariableOptions& options, Location at) {
  const Output value = [&] {
    // Before any step, as an initialiser's.
    const OutsideControlScopes outside(graph);
    return initial.in(graph);
  }();
  check(bool{value}, "the variable '", name, "' (", at, "): its first value is an empty Output");
  check(value.shape().is_complete(), "the variable '", name, "' (", at, "): its first value '",
        value.name(), "' has an incomplete shape: ", value.shape());
  const auto same_value = [value](Graph& into, DType, const VariablePart& part) {
    if (part.shape() == part.whole) return value;
    Tensor begin(i64, {part.whole.rank()}), size(i64, {part.whole.rank()});
    for (int i = 0; i < part.whole.rank(); ++i) {
      begin.data<int64_t>()[i] = part.slice.extents[static_cast<size_t>(i)].start;
      size.data<int64_t>()[i] = part.shape()[i];
    }
    return op("Slice", {value, constant(into, begin), constant(into, size)});
  };
  return variable(graph, name, value.shape(), Initializer(same_value), value.dtype(), options, at);
}

Output global_step(Graph& graph, Location at) {
  const std::vector<Output>& made = graph.collection("global_step");
  if (!made.empty()) return made.front();
  const NameScope absolute(graph, "");
  const Output step = variable(graph, "global_step", {}, i64, {.trainable = false}, at);
  graph.add_to_collection("global_step", step);
  return step;
}

std::vector<Output> trainable_variables(const Graph& graph, std::string_view scope) {
  std::vector<Output> out = graph.collection("trainable_variables");
  if (scope.empty()) return out;
  const std::string beginning = scope.ends_with('/') ? std::string(scope) : concat(scope, "/");
  std::erase_if(
      out, [&](const Output& variable) { return !variable_name(variable).starts_with(beginning); });
  return out;
}

Output slot(Output of, std::string_view name, const Initializer& initial, Location at) {
  Graph& graph = of.graph();
  const ColocationScope with(graph, {of});
  const std::string root(root_of(graph, "shared_roots_with_slots", graph.scopes().name));
  if (const std::string full = concat(variable_name(of), "/", name); !root.empty()) {
    const NameScope absolute(graph, root);
    const SameKind kind(graph, is_resource_variable(of));
    return variable(graph, full, of.shape(), initial, of.dtype(), {.trainable = false}, at);
  }
  const NameScope absolute(graph, "");
  const std::string full = graph.unique_name(concat(variable_name(of), "/", name));
  VariableOptions options{
      .trainable = false, .use_resource = is_resource_variable(of), .part = part_of(of)};
  if (options.part) options.part->of += full.substr(variable_name(of).size());
  const SameKind kind(graph, options.use_resource);
  return variable(graph, full, of.shape(), initial, of.dtype(), options, at);
}

const std::string& variable_name(const Output& variable) {
  check(bool{variable}, "a variable is an empty Output");
  const Node* node = variable_node(variable);
  return (node == nullptr ? variable.node : node)->name;
}

Output variable_named(Graph& graph, std::string_view name) {
  Node* node = graph.find(name);
  if (node == nullptr) return joined_parts(graph, name);
  if (!node->op->is_variable) return {};
  if (!is_resource_variable(*node->op)) return node->output();
  Node* read = graph.find(concat(name, read_name));
  const bool is_its_own = read != nullptr && variable_node(read->output()) == node;
  return is_its_own ? read->output() : read_variable(node->output());
}

bool is_resource_variable(const Output& variable) {
  const Node* node = variable_node(variable);
  return node != nullptr && is_resource_variable(*node->op);
}

std::optional<VariablePart> part_of(const Output& variable) {
  check(bool{variable}, "a variable is an empty Output");
  const Node* node = variable_node(variable);
  const AttrMap& attrs = (node == nullptr ? variable.node : node)->attrs;
  const auto name = attrs.find(name_of_whole), place = attrs.find(place_in_whole);
  if (name == attrs.end() || place == attrs.end()) return {};
  const auto parsed = ShapeAndSlice::parse(place->second.get<std::string>());
  return VariablePart(name->second.get<std::string>(), parsed.full, parsed.slice);
}

std::string checkpoint_name(const Output& variable) {
  const auto part = part_of(variable);
  return part ? part->of : variable_name(variable);
}

void add_copy_root(Graph& graph, Node& root, bool own_state) {
  graph.add_to_collection("copy_roots", root.output());
  if (own_state) graph.add_to_collection("copy_roots_with_own_state", root.output());
}

void add_shared_variable(Graph& graph, const Output& variable) {
  graph.add_to_collection("shared_variables", variable);
}

Node& update_copies(Graph& graph, Location at) {
  std::vector<Output> updates;
  for (const Output& initializer : graph.collection("copy_initializers")) {
    const Output copy = initializer.node->inputs[0];
    const ColocationScope beside(graph, {copy});
    // Not what a resource variable's copy began with, which was read after an initialiser.
    updates.push_back(
        assign(copy, read_variable(variable_handle(initializer.node->inputs[1]), at), at));
  }
  return group(graph, updates, "update_copies", at);
}

Node& initialize_own_variables(Graph& graph, Location at) {
  return group(graph, graph.collection("own_initializers"), "initialize_own_variables", at);
}

std::string_view copy_root_of(const Graph& graph, std::string_view name) {
  return root_of(graph, "copy_roots", name);
}

void add_shared_root(Graph& graph, Node& root, bool with_slots) {
  graph.add_to_collection("shared_roots", root.output());
  if (with_slots) graph.add_to_collection("shared_roots_with_slots", root.output());
}

std::string_view shared_root_of(const Graph& graph, std::string_view name) {
  return root_of(graph, "shared_roots", name);
}

Node& initializer_of(const Graph& graph, const Output& variable) {
  check(bool{variable}, "a variable is an empty Output");
  const Node* node = variable_node(variable);
  for (const Output& assign : graph.collection("initializers")) {
    if (variable_node(assign.node->inputs[0]) == node) return *assign.node;
  }
  fail(Code::invalid_argument, "the variable '", variable_name(variable),
       "' has no initialiser: make it with variable()");
}

Node& initialize_variables(Graph& graph, Location at) {
  std::vector<Output> all = graph.collection("initializers");
  const std::vector<Output>& tables = graph.collection("table_initializers");
  all.insert(all.end(), tables.begin(), tables.end());
  return group(graph, all, "initialize_variables", at);
}

Node& initialize_tables(Graph& graph, Location at) {
  return group(graph, graph.collection("table_initializers"), "initialize_tables", at);
}

Node& group(Graph& graph, std::initializer_list<Awaited> after, std::string_view name,
            Location at) {
  const ControlScope wait(graph, after);
  return no_op(graph, name, at);
}
Node& group(std::initializer_list<Awaited> after, std::string_view name, Location at) {
  const Node* first = after.size() == 0 ? nullptr : after.begin()->node;
  check(first != nullptr, "group (", at, ") without a graph needs a node or an Output of one");
  return group(*first->graph, after, name, at);
}
Node& group(Graph& graph, const std::vector<Node*>& after, std::string_view name, Location at) {
  check(std::find(after.begin(), after.end(), nullptr) == after.end(), "group (", at,
        ") is given an empty Output or no node");
  return graph.add({.op = "NoOp",
                    .name = std::string(name),
                    .inputs = {},
                    .attrs = {},
                    .control_inputs = after,
                    .location = at});
}
Node& group(Graph& graph, const std::vector<Output>& after, std::string_view name, Location at) {
  std::vector<Node*> nodes;
  for (const Output& output : after) nodes.push_back(output.node);
  return group(graph, nodes, name, at);
}

}  // namespace leat
