// Making nodes. signature.cc and shape_inference.cc check that a node is valid.
#include "graph/graph.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "graph/endpoint.h"
#include "graph/near_misses.h"
#include "graph/node_name.h"
#include "graph/op_schema.h"
#include "graph/shape_inference.h"
#include "graph/signature.h"
#include "graph/variable_node.h"

namespace leat {
namespace {

std::string location_suffix(const Location& location, std::string_view open = " (",
                            std::string_view close = ")") {
  return location.is_known() ? concat(open, location, close) : "";
}

void check_name(std::string_view name, bool allow_internal = false) {
  check(is_node_name(name, allow_internal), "'", name, "' is not a node name: ", node_name_rule);
}

[[noreturn]] void fail_for(const Node& node, Code code, std::string_view what) {
  std::string message = concat(describe(node), ": ", what);
  if (!node.inputs.empty()) {
    message += what.ends_with('?') ? " Inputs: " : "; inputs: ";
    message += describe_inputs(node);
  }
  fail(code, message);
}

void append_unique(std::vector<Node*>& nodes, const std::vector<Node*>& more) {
  for (Node* node : more) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
}

}  // namespace

// ---- Output and Node

DType Output::dtype() const {
  check(node != nullptr, "an empty Output has no dtype");
  return node->outputs[index].dtype;
}
bool Output::is_ref() const { return node != nullptr && node->outputs[index].is_ref; }
bool Output::is_handle() const { return node != nullptr && node->outputs[index].is_handle(); }
const Shape& Output::shape() const {
  check(node != nullptr, "an empty Output has no shape");
  return node->outputs[index].shape;
}
Graph& Output::graph() const {
  check(node != nullptr, "an empty Output belongs to no graph");
  return *node->graph;
}
std::string Output::name() const {
  return node == nullptr ? "<none>" : Endpoint::of(*this).full_name();
}

std::string describe(const Node& node) {
  return concat(node.op->name, " node '", node.name, "'", location_suffix(node.location));
}

std::string describe_inputs(const Node& node) {
  std::string out;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (i > 0) out += ", ";
    out += input_name(*node.op, node.attrs, static_cast<int>(i)) + ": ";
    const Output& input = node.inputs[i];
    if (!input) {
      out += "<none>";
      continue;
    }
    const std::string_view dtype = dtype_name(input.dtype());
    out +=
        input.is_ref() ? concat("Ref(", dtype, ")", input.shape()) : concat(dtype, input.shape());
  }
  return out;
}

// ---- Graph

namespace {

// What resolve_signature made of a node. The next of the op is often given the same, and then has
// the same attributes and outputs, in memory too.
class Signature {
 public:
  Signature() = default;
  Signature(AttrMap given, const Node& resolved)
      : given_(std::move(given)), attrs_(resolved.attrs), outputs_(resolved.outputs) {
    for (const Output& input : resolved.inputs) inputs_.emplace_back(input.dtype(), input.is_ref());
  }

  // False if `node` was given something else.
  bool resolve(Node& node) const {
    const auto fits = [](const std::pair<DType, bool>& one, const Output& input) {
      return one == std::pair(input.dtype(), input.is_ref());
    };
    if (outputs_.empty() || !(node.attrs == given_) ||
        !std::equal(inputs_.begin(), inputs_.end(), node.inputs.begin(), node.inputs.end(), fits)) {
      return false;
    }
    node.attrs = attrs_;
    node.outputs = outputs_;
    return true;
  }

 private:
  AttrMap given_, attrs_;
  std::vector<std::pair<DType, bool>> inputs_;  // dtype, is_ref
  OutputSpecs outputs_;                         // of unknown shapes
};

bool holds_tensor(const AttrMap& attrs) {
  return std::any_of(attrs.begin(), attrs.end(), [](const auto& attr) {
    return attr.second.template is<Tensor>() || attr.second.template is<std::vector<Tensor>>();
  });
}

}  // namespace

// A pointer a node: names are compared where the nodes are.
struct Graph::Index {
  static std::string_view name_of(const Node* node) { return node->name; }
  static std::string_view name_of(std::string_view name) { return name; }

  struct Hash {
    using is_transparent = void;
    size_t operator()(const auto& key) const {
      return absl::Hash<std::string_view>()(name_of(key));
    }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const { return name_of(a) == name_of(b); }
  };

  absl::flat_hash_set<Node*, Hash, Equal> nodes;
  absl::flat_hash_map<const OpDef*, Signature> last_signatures;
};

Graph::Graph() : index_(std::make_unique<Index>()) {}
Graph::~Graph() = default;

Graph::Graph(Graph&& other) noexcept : Graph() { *this = std::move(other); }

Graph& Graph::operator=(Graph&& other) noexcept {
  if (this == &other) return *this;
  nodes_ = std::move(other.nodes_);
  std::swap(index_, other.index_);
  name_counts_ = std::move(other.name_counts_);
  collections_ = std::move(other.collections_);
  scopes_ = std::move(other.scopes_);
  uses_resource_variables_ = std::exchange(other.uses_resource_variables_, false);
  other.nodes_.clear();
  other.index_->nodes.clear();
  other.name_counts_.clear();
  other.collections_.clear();
  other.scopes_ = {};
  for (const auto& node : nodes_) node->graph = this;
  return *this;
}

// A complete node, not yet part of the graph.
std::unique_ptr<Node> Graph::make(NodeSpec spec, std::string name, std::optional<Error>* deferred) {
  auto node = std::make_unique<Node>();
  node->graph = this;
  node->location = spec.location;
  node->op = find_op(spec.op);
  if (node->op == nullptr) {
    std::vector<std::string_view> ops;
    for (const OpDef* op : all_ops()) ops.push_back(op->name);
    fail(Code::not_found, "Op type not registered '", spec.op, "' (node '", name, "'",
         location_suffix(spec.location, ", ", ""), ")", did_you_mean(spec.op, ops));
  }
  node->name = std::move(name);
  node->inputs = std::move(spec.inputs);
  node->control_inputs = std::move(spec.control_inputs);
  node->attrs = std::move(spec.attrs);
  try {
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const Output& input = node->inputs[i];
      check(static_cast<bool>(input), "input ", i, " is an empty Output");
      if (input.node->graph != this) {
        fail(Code::invalid_argument, "input ", i, ", '", input.name(),
             "', belongs to another graph");
      }
      check(input.index >= 0 && input.index < input.node->num_outputs(), "input ", i, " is output ",
            input.index, " of '", input.node->name, "', which has ", input.node->outputs.size());
    }
    for (const Node* control : node->control_inputs) {
      check(control != nullptr, "a control input is a null pointer");
      check(control->graph == this, "control input '", control->name, "' belongs to another graph");
    }
  } catch (const Error& error) {
    fail(error.code(), describe(*node), ": ", error.message());
  }
  Signature& last = index_->last_signatures[node->op];
  if (!last.resolve(*node)) {
    AttrMap given = node->attrs;
    try {
      resolve_signature(*node);
    } catch (const Error& error) {
      fail_for(*node, error.code(), error.message());
    }
    if (!holds_tensor(given)) last = Signature(std::move(given), *node);
  }
  if (deferred != nullptr) {
    *deferred = infer_shapes_or_accept(*node);
  } else {
    infer_shapes(*node);
  }
  if (!node->inputs.empty() && node->inputs[0].node->outputs == node->outputs)
    node->outputs = node->inputs[0].node->outputs;  // a chain of these is one in memory
  return node;
}

Node& Graph::add(NodeSpec spec) {
  if (scopes_.location.is_known()) spec.location = scopes_.location;
  const std::string_view base = spec.name.empty() ? spec.op : spec.name;
  try {
    check_name(scopes_.name + std::string(base));
  } catch (const Error& error) {
    fail(error.code(), spec.op, " node", location_suffix(spec.location), ": ", error.message());
  }
  std::string name = unique_name(scopes_.name + std::string(base));
  append_unique(spec.control_inputs, scopes_.control_inputs);
  if (!scopes_.colocate_with.empty()) {
    std::vector<std::string> with;
    if (const auto found = spec.attrs.find("_class"); found != spec.attrs.end()) {
      with = found->second.get<std::vector<std::string>>();
    }
    for (const std::string& other : scopes_.colocate_with) with.push_back("loc:@" + other);
    std::sort(with.begin(), with.end());
    with.erase(std::unique(with.begin(), with.end()), with.end());
    spec.attrs.insert_or_assign("_class", std::move(with));
  }
  std::unique_ptr<Node> node = make(std::move(spec), std::move(name));
  node->requested_device = scopes_.device;
  if (scopes_.device_function && scopes_.colocate_with.empty()) {
    node->requested_device =
        scopes_.device_function(*node->op, node->attrs).with_defaults(scopes_.device);
  }
  return adopt(std::move(node));
}

Node& Graph::insert(NodeSpec spec, const Shared<DeviceName>& assigned_device,
                    std::optional<Error>* deferred) {
  check_name(spec.name, /*allow_internal=*/true);
  std::string name = std::move(spec.name);
  std::unique_ptr<Node> node = make(std::move(spec), std::move(name), deferred);
  if (!assigned_device->is_empty()) node->assigned_device = assigned_device;
  return adopt(std::move(node));
}

Node& Graph::copy(const Node& node, std::vector<Output> inputs, std::vector<Node*> control_inputs) {
  auto out = std::make_unique<Node>(node);
  out->graph = this;
  out->inputs = std::move(inputs);
  out->control_inputs = std::move(control_inputs);
  for (const Output& input : out->inputs) {
    if (input && input.node->graph == this) continue;
    fail(Code::internal, "copy of ", describe(node), ": input '", input.name(),
         "' does not belong to the new graph");
  }
  for (const Node* control : out->control_inputs) {
    if (control != nullptr && control->graph == this) continue;
    fail(Code::internal, "copy of ", describe(node),
         ": a control input does not belong to the new graph");
  }
  return adopt(std::move(out));
}

Node& Graph::adopt(std::unique_ptr<Node> node) {
  node->id = static_cast<int>(nodes_.size());
  nodes_.push_back(std::move(node));
  Node& out = *nodes_.back();
  if (!index_->nodes.insert(&out).second) {
    const std::string who = describe(out);
    nodes_.pop_back();
    fail(Code::invalid_argument, who, ": the graph already has a node of that name");
  }
  return out;
}

void Graph::reserve(size_t size) {
  nodes_.reserve(size);
  index_->nodes.reserve(size);
}

void Graph::truncate(size_t size) {
  for (auto& [name, outputs] : collections_) {
    std::erase_if(outputs, [&](const Output& output) {
      return static_cast<size_t>(output.node->id) >= size;
    });
  }
  while (nodes_.size() > size) {
    name_counts_.erase(nodes_.back()->name);
    index_->nodes.erase(nodes_.back().get());
    nodes_.pop_back();
  }
}

void Graph::keep(const std::vector<bool>& stays) {
  if (std::find(stays.begin(), stays.end(), false) == stays.end()) return;
  const auto check_use = [&](const Node& user, const Node& used) {
    check_internal(stays[used.id], "'", used.name, "' was left out of the graph, but '", user.name,
                   "' uses it");
  };
  for (const auto& node : nodes_) {
    if (!stays[node->id]) continue;
    for (const Output& input : node->inputs) check_use(*node, *input.node);
    for (const Node* control : node->control_inputs) check_use(*node, *control);
  }
  size_t kept = 0;
  for (std::unique_ptr<Node>& node : nodes_) {
    if (!stays[node->id]) {
      index_->nodes.erase(node.get());
      node.reset();
      continue;
    }
    node->id = static_cast<int>(kept);
    if (&nodes_[kept] != &node) nodes_[kept] = std::move(node);
    ++kept;
  }
  nodes_.resize(kept);
}

Graph Graph::clone() const {
  Graph out;
  out.reserve(nodes_.size());
  for (const auto& node : nodes_) {
    std::vector<Output> inputs;
    inputs.reserve(node->inputs.size());
    for (const Output& input : node->inputs)
      inputs.push_back({out.nodes_[input.node->id].get(), input.index});
    std::vector<Node*> control_inputs;
    for (const Node* control : node->control_inputs)
      control_inputs.push_back(out.nodes_[control->id].get());
    out.copy(*node, std::move(inputs), std::move(control_inputs));
  }
  for (const auto& [name, outputs] : collections_) {
    for (const Output& output : outputs) {
      out.collections_[name].push_back({out.nodes_[output.node->id].get(), output.index});
    }
  }
  out.name_counts_ = name_counts_;
  out.uses_resource_variables_ = uses_resource_variables_;
  return out;
}

Node* Graph::find(std::string_view name) const {
  const auto found = index_->nodes.find(name);
  return found == index_->nodes.end() ? nullptr : *found;
}

const Node* Graph::find_lost() const {
  constexpr size_t ahead = 16;  // lookups under way
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (i + ahead < nodes_.size()) index_->nodes.prefetch(nodes_[i + ahead]->name);
    if (find(nodes_[i]->name) != nodes_[i].get()) return nodes_[i].get();
  }
  return nullptr;
}

Output Graph::output(std::string_view name) const {
  const std::optional<Endpoint> wanted = Endpoint::parse(name);
  check(wanted.has_value(), "'", name, "' does not name an output: expected 'node' or 'node:1'");
  Node* node = find(wanted->node);
  if (node == nullptr) {
    std::vector<std::string_view> names;
    for (const auto& known : nodes_) names.push_back(known->name);
    fail(Code::not_found, "the graph has no node '", wanted->node, "'",
         did_you_mean(wanted->node, names));
  }
  check(wanted->index < node->num_outputs(), "'", name, "': ", describe(*node), " has ",
        node->outputs.size(), node->outputs.size() == 1 ? " output" : " outputs");
  return node->output(wanted->index);
}

bool Graph::is_used(std::string_view name) const {
  return index_->nodes.contains(name) || name_counts_.contains(std::string(name));
}

// The first `name`_N that is not used, N > `count`, which becomes N - 1: the name is free until
// somebody takes it.
std::string Graph::numbered_name(std::string_view name, int& count) const {
  std::string out;
  do {
    out = concat(name, "_", ++count);
  } while (is_used(out));
  --count;
  return out;
}

std::string Graph::unique_name(std::string_view name) const {
  if (!is_used(name)) return std::string(name);
  const auto known = name_counts_.find(std::string(name));
  int count = known == name_counts_.end() ? 0 : known->second;
  return numbered_name(name, count);
}

std::string Graph::unique_name(std::string_view name) {
  if (!is_used(name)) return std::string(name);
  return numbered_name(name, name_counts_[std::string(name)]);
}

void Graph::reserve_name(std::string_view name) { name_counts_.emplace(name, 0); }

void Graph::add_to_collection(std::string_view collection, Output output) {
  check(output && output.node->graph == this, "collection '", collection, "': '", output.name(),
        "' does not belong to this graph");
  collections_[std::string(collection)].push_back(output);
}

const std::vector<Output>& Graph::collection(std::string_view collection) const {
  static const std::vector<Output> nothing;
  const auto found = collections_.find(std::string(collection));
  return found == collections_.end() ? nothing : found->second;
}

// ---- Scopes

NameScope::NameScope(Graph& graph, std::string_view name)
    : graph_(graph), outer_(graph.scopes().name) {
  std::string& current = graph.scopes().name;
  if (name.empty() || name.back() == '/') {
    if (!name.empty()) check_name(name);
    current = name;
    return;
  }
  check_name(outer_ + std::string(name));
  const std::string scope = graph.unique_name(outer_ + std::string(name));
  graph.reserve_name(scope);
  current = scope + "/";
}
NameScope::~NameScope() { graph_.scopes().name = outer_; }

LocationScope::LocationScope(Graph& graph, Location location)
    : graph_(graph), outer_(graph.scopes().location) {
  if (!location.is_known() || !outer_.is_known()) graph.scopes().location = location;
}

DeviceScope::DeviceScope(Graph& graph, std::string_view device)
    : graph_(graph), outer_(graph.scopes().device) {
  graph.scopes().device = DeviceName::parse(device).with_defaults(outer_);
}
DeviceScope::~DeviceScope() { graph_.scopes().device = outer_; }

ControlScope::ControlScope(Graph& graph, const std::vector<Node*>& after)
    : graph_(graph), outer_(graph.scopes().control_inputs) {
  for (const Node* node : after) {
    check(node != nullptr && node->graph == &graph,
          "a control scope needs nodes of its own graph, got '",
          node == nullptr ? "<none>" : node->name, "'");
  }
  append_unique(graph.scopes().control_inputs, after);
}
ControlScope::ControlScope(Graph& graph, const std::vector<Output>& after)
    : ControlScope(graph, [&] {
        std::vector<Node*> nodes;
        for (const Output& output : after) nodes.push_back(output.node);
        return nodes;
      }()) {}
ControlScope::ControlScope(Graph& graph, std::initializer_list<Awaited> after)
    : ControlScope(graph, [&] {
        std::vector<Node*> nodes;
        for (const Awaited& each : after) nodes.push_back(each.node);
        return nodes;
      }()) {}
ControlScope::~ControlScope() { graph_.scopes().control_inputs = outer_; }

ColocationScope::ColocationScope(Graph& graph, const std::vector<Output>& with)
    : graph_(graph), outer_(graph.scopes().colocate_with), outer_device_(graph.scopes().device) {
  std::vector<std::string> names;
  for (const Output& output : with) {
    check(output && output.node->graph == &graph,
          "a colocation scope needs nodes of its own graph, got '", output.name(), "'");
    names.push_back(variable_handle(output).node->name);
  }
  graph.scopes().colocate_with = std::move(names);
  if (!with.empty()) graph.scopes().device = variable_handle(with.front()).node->requested_device;
}
ColocationScope::~ColocationScope() {
  graph_.scopes().colocate_with = outer_;
  graph_.scopes().device = outer_device_;
}

// ---- Order and consumers

// Counted, then written one after the other: where one's uses begin, the uses before it end.
Consumers::Consumers(const Graph& graph) : first_(graph.size() + 2) {
  for (const auto& node : graph.nodes()) {
    for (const Output& input : node->inputs) ++first_[input.node->id + 2];
    for (const Node* control : node->control_inputs) ++first_[control->id + 2];
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  uses_.resize(first_.back());
  for (const auto& node : graph.nodes()) {
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const Output& input = node->inputs[i];
      uses_[first_[input.node->id + 1]++] = {node.get(), static_cast<int>(i), input.index};
    }
    for (const Node* control : node->control_inputs)
      uses_[first_[control->id + 1]++] = {node.get(), -1, -1};
  }
}

namespace {

// Among nodes that wait for each other for ever, follow waited-for nodes until one comes again.
[[noreturn]] void fail_with_cycle(const std::vector<std::unique_ptr<Node>>& nodes,
                                  const std::vector<int>& waits) {
  const Node* node = nullptr;
  for (const auto& candidate : nodes) {
    if (waits[candidate->id] > 0) {
      node = candidate.get();
      break;
    }
  }
  std::vector<const Node*> path;
  while (std::find(path.begin(), path.end(), node) == path.end()) {
    path.push_back(node);
    const Node* next = nullptr;
    for (const Output& input : node->inputs) {
      if (waits[input.node->id] > 0) next = input.node;
    }
    for (const Node* control : node->control_inputs) {
      if (waits[control->id] > 0) next = control;
    }
    node = next;
  }
  std::string text = node->name;
  for (auto at = path.rbegin(); at != path.rend(); ++at) {
    text += " -> " + (*at)->name;
    if (*at == node) break;
  }
  fail(Code::invalid_argument, "the graph has a cycle: ", text);
}

// As every graph is that was made or imported here: passes keep it.
bool is_in_order(const Graph& graph) {
  return std::ranges::all_of(graph.nodes(), [](const auto& node) {
    const auto is_before = [&](const Node* source) { return source->id < node->id; };
    return std::ranges::all_of(node->inputs, is_before, &Output::node) &&
           std::ranges::all_of(node->control_inputs, is_before);
  });
}

}  // namespace

std::vector<Node*> topological_order(const Graph& graph) {
  std::vector<Node*> out;
  out.reserve(graph.size());
  if (is_in_order(graph)) {
    for (const auto& node : graph.nodes()) out.push_back(node.get());
    return out;
  }
  const Consumers consumers(graph);
  std::vector<int> waits(graph.size());
  const auto later = [](const Node* a, const Node* b) { return a->id > b->id; };
  std::priority_queue<Node*, std::vector<Node*>, decltype(later)> ready(later);
  for (const auto& node : graph.nodes()) {
    waits[node->id] = static_cast<int>(node->inputs.size() + node->control_inputs.size());
    if (waits[node->id] == 0) ready.push(node.get());
  }
  while (!ready.empty()) {
    Node* node = ready.top();
    ready.pop();
    out.push_back(node);
    for (const Consumers::Use& use : consumers.of(*node)) {
      if (--waits[use.node->id] == 0) ready.push(use.node);
    }
  }
  if (out.size() != graph.size()) fail_with_cycle(graph.nodes(), waits);
  return out;
}

}  // namespace leat
