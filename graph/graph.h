// The graph: ops applied to outputs of other ops. Plain structs; the wire's GraphDef is
// graph_def.h.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/attr.h"
#include "core/device_name.h"
#include "core/error.h"
#include "core/location.h"
#include "core/shared.h"
#include "graph/op_def.h"

namespace leat {

class Graph;
struct Node;
class Index;

// One result of a node: the value that users hold. Cheap to copy; valid as long as its graph. A
// default Output is "none".
struct Output {
  Node* node = nullptr;
  int index = 0;

  Output() = default;
  // Only from a Node*: {0, 1} is a list of numbers, not an Output.
  template <std::same_as<Node*> Pointer>
  Output(Pointer node, int index) : node(node), index(index) {}

  explicit operator bool() const { return node != nullptr; }
  // x == y adds a comparison node (graph/ops/compare.h); same(x, y) returns whether they are one
  // Output. x[0], x[{all, slice(1, 3)}]: graph/ops/index.h.
  Output operator[](const Index& index) const;
  Output operator[](std::initializer_list<Index> indices) const;
  DType dtype() const;
  bool is_ref() const;
  // Stands for state (a variable, a queue), not for a value: a ref or a resource. Its shape is that
  // of the variable.
  bool is_handle() const;
  const Shape& shape() const;  // as inferred; may be partial
  Graph& graph() const;
  std::string name() const;  // "logits/MatMul:0"
};

// Whether two Outputs are one. As a convolution option it is a kind of padding.
struct Same {
  constexpr bool operator()(const Output& a, const Output& b) const {
    return a.node == b.node && a.index == b.index;
  }
};
inline constexpr Same same;

struct OutputSpec {
  DType dtype = DType::invalid;
  bool is_ref = false;
  Shape shape = Shape::unknown();
  bool is_handle() const { return is_ref || dtype == DType::resource; }
  bool operator==(const OutputSpec&) const = default;
};

// The declared outputs of a node: reads like a vector; copies share it until one is written.
class OutputSpecs {
 public:
  OutputSpecs() = default;
  OutputSpecs(std::vector<OutputSpec> specs) : specs_(std::move(specs)) {}  // NOLINT: it is one
  OutputSpecs(std::initializer_list<OutputSpec> specs) : specs_(std::vector<OutputSpec>(specs)) {}

  const OutputSpec& operator[](size_t i) const { return (*specs_)[i]; }
  const OutputSpec& at(size_t i) const { return specs_->at(i); }
  const OutputSpec& front() const { return specs_->front(); }
  auto begin() const { return specs_->begin(); }
  auto end() const { return specs_->end(); }
  size_t size() const { return specs_->size(); }
  bool empty() const { return specs_->empty(); }
  std::vector<OutputSpec>& write() { return specs_.write(); }

  bool operator==(const OutputSpecs&) const = default;

 private:
  Shared<std::vector<OutputSpec>> specs_;
};

// One application of an op. Owned by its graph; only the graph changes inputs (consumers are
// derived, not stored). A graph may have millions of nodes, so fields that many of them, and the
// copies made by passes, have in common are Shared.
struct Node {
  Graph* graph = nullptr;
  int id = 0;  // dense: position in graph.nodes()
  std::string name;
  const OpDef* op = nullptr;
  std::vector<Output> inputs;  // list arguments flattened
  std::vector<Node*> control_inputs;
  AttrMap attrs;  // complete: defaults filled in
  OutputSpecs outputs;
  Shared<DeviceName> requested_device;
  Shared<DeviceName> assigned_device;  // set by place()
  // why there: "explicit", "colocated with w", "default of the dialled task"
  Shared<std::string> placement_reason;
  Location location;  // the user's line

  int num_outputs() const { return static_cast<int>(outputs.size()); }
  NodeView view() const { return {name, op->name, attrs}; }
  template <class T>
  const T& attr(std::string_view key) const {
    return view().attr<T>(key);
  }
  Output output(int index = 0) { return {this, index}; }
  bool is(std::string_view op_name) const { return op->name == op_name; }
};

// What a node is made from. Attributes that follow from the inputs (T, N) and defaults may be left
// out.
struct NodeSpec {
  std::string op;
  std::string name = {};  // "" = the op's name; made unique and prefixed by the name scope
  std::vector<Output> inputs = {};
  AttrMap attrs = {};
  std::vector<Node*> control_inputs = {};
  Location location = {};
};

// Owns its nodes; every input comes before its users. Not thread-safe. Movable; nodes keep their
// addresses.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;

  // Adds a node under the current scopes. Checks it against the op's schema and infers types and
  // shapes; INVALID_ARGUMENT names the op, the node, the input shapes and the user's line.
  // NOT_FOUND if the op is unknown.
  Node& add(NodeSpec spec);

  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  size_t size() const { return nodes_.size(); }
  Node* find(std::string_view name) const;  // null if there is none
  // A node that find() does not return for its name; null if there is none. For verify(): the
  // lookups of a large graph overlap their cache misses.
  const Node* find_lost() const;
  // "node" or "node:1"; NOT_FOUND names what was asked for and near misses
  Output output(std::string_view name) const;

  // For passes. A copy has the same names, ids, devices and locations.
  Graph clone() const;
  // Copies one node of another graph, with inputs that belong to this one; keeps name, attrs,
  // devices, location and output specs; runs no scopes.
  Node& copy(const Node& node, std::vector<Output> inputs, std::vector<Node*> control_inputs);
  // A node with exactly this name and device, no scopes: for passes that insert nodes. `deferred`,
  // if given, receives an error of the shape function; it then fails only the steps that need the
  // node (infer_shapes_or_accept).
  Node& insert(NodeSpec spec, const Shared<DeviceName>& assigned_device,
               std::optional<Error>* deferred = nullptr);
  void reserve(size_t size);  // the expected number of nodes in all
  // Removes all nodes but the first `size`: undoes a failed import.
  void truncate(size_t size);
  // Keeps only the nodes that are true in `stays` (by id) and renumbers them. Neither they nor
  // collections may use a removed node.
  void keep(const std::vector<bool>& stays);
  // "name", "name_1", …: a name that is free.
  std::string unique_name(std::string_view name) const;
  std::string unique_name(std::string_view name);  // the same; the next search continues there

  // Reserves a name so that no node or scope gets it, as NameScope does.
  void reserve_name(std::string_view name);

  // Current scopes; set by the RAII classes below.
  struct Scopes {
    std::string name;  // "layer1/" or ""
    DeviceName device;
    std::vector<Node*> control_inputs;
    std::vector<std::string> colocate_with;  // "_class" entries without "loc:@"
    // A device request by op and attributes; it overrides `device` part by part and is not called
    // for colocated nodes. Strategies use it to put variables on parameter servers.
    std::function<DeviceName(const OpDef& op, const AttrMap& attrs)> device_function;
    Location location;  // if known, that of all new nodes, whatever line they come from
  };
  Scopes& scopes() { return scopes_; }

  // Variables made so far, and named groups of nodes, in order of creation: "variables",
  // "trainable_variables".
  void add_to_collection(std::string_view collection, Output output);
  const std::vector<Output>& collection(std::string_view collection) const;

  // Makes all variables from now on resource variables, those of layers, metrics and counters too
  // (VariableOptions::use_resource), as TensorFlow's enable_resource_variables().
  void use_resource_variables(bool use = true) { uses_resource_variables_ = use; }
  bool uses_resource_variables() const { return uses_resource_variables_; }

 private:
  Node& adopt(std::unique_ptr<Node> node);
  std::unique_ptr<Node> make(NodeSpec spec, std::string name,
                             std::optional<Error>* deferred = nullptr);
  bool is_used(std::string_view name) const;
  std::string numbered_name(std::string_view name, int& count) const;

  std::vector<std::unique_ptr<Node>> nodes_;
  struct Index;  // nodes by name
  std::unique_ptr<Index> index_;
  // reserved names, each with the next number to try
  std::unordered_map<std::string, int> name_counts_;
  std::unordered_map<std::string, std::vector<Output>> collections_;
  bool uses_resource_variables_ = false;
  Scopes scopes_;
};

// While one of these lives, every new node gets its prefix, device, control inputs or colocation.
//   NameScope layer{graph, "layer1"};         // names: layer1/w, in a second one layer1_1/w
//   DeviceScope on{graph, "/job:ps/task:0"};  // merged with outer ones, part by part
//   ControlScope after{graph, {init}};        // nodes wait for these nodes
//   ColocationScope with{graph, {w}};         // nodes are placed where w is, whatever the outer
//                                             // device scopes say
// Of a value read from a resource variable, where that is: a step may run without the read.
// A NameScope "" leads back to the root, "layer1/" into the scope that exists already.
class NameScope {
 public:
  NameScope(Graph& graph, std::string_view name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  const std::string& name() const { return graph_.scopes().name; }  // "layer1/"

 private:
  Graph& graph_;
  std::string outer_;
};
class DeviceScope {
 public:
  DeviceScope(Graph& graph, std::string_view device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;

 private:
  Graph& graph_;
  DeviceName outer_;
};
// New nodes get this line, that of a layer's user, and not those of the layer itself. If scopes are
// nested, the outermost line is the user's. An unknown location ends this: nodes have their own
// lines again, as in a function that the user gave to the layer.
class LocationScope {
 public:
  LocationScope(Graph& graph, Location location);
  ~LocationScope() { graph_.scopes().location = outer_; }
  LocationScope(const LocationScope&) = delete;

 private:
  Graph& graph_;
  Location outer_;
};
// A node, or any output of it.
struct Awaited {
  Node* node;
  Awaited(Output output) : node(output.node) {}  // NOLINT: converts
  Awaited(Node& node) : node(&node) {}           // NOLINT
  Awaited(Node* node) : node(node) {}            // NOLINT
};
class ControlScope {
 public:
  ControlScope(Graph& graph, const std::vector<Output>& after);
  ControlScope(Graph& graph, const std::vector<Node*>& after);
  ControlScope(Graph& graph, std::initializer_list<Awaited> after);
  ~ControlScope();
  ControlScope(const ControlScope&) = delete;

 private:
  Graph& graph_;
  std::vector<Node*> outer_;
};
class ColocationScope {
 public:
  ColocationScope(Graph& graph, const std::vector<Output>& with);
  ~ColocationScope();
  ColocationScope(const ColocationScope&) = delete;

 private:
  Graph& graph_;
  std::vector<std::string> outer_;
  DeviceName outer_device_;
};

// "MatMul node 'logits/MatMul' (model.cc:41)": how every error about a graph names a node.
std::string describe(const Node& node);
// "a: float[32,784], b: Ref(float)[128,10]": the inputs by the names of the op's arguments.
std::string describe_inputs(const Node& node);

// Nodes ordered so that inputs (data and control) come before users. INVALID_ARGUMENT names a
// cycle.
std::vector<Node*> topological_order(const Graph& graph);

// For every node (by id) the nodes that use it: data and control.
struct Consumers {
  struct Use {
    Node* node;
    int input;   // position, or -1 for a control edge
    int output;  // which output is used; -1 for a control edge
  };
  explicit Consumers(const Graph& graph);
  std::span<const Use> of(const Node& node) const {
    return {uses_.data() + first_[node.id], uses_.data() + first_[node.id + 1]};
  }

 private:
  std::vector<size_t> first_;  // by id: where the uses of a node begin; one more for the end
  std::vector<Use> uses_;
};

}  // namespace leat
