// What every iteration of a loop computes anew from values that no iteration changes runs once,
// before the loop: the product of two weights, say. Only what cannot fail, since the loop may have
// no iteration, and only what has many elements: to hand a scalar to each iteration costs as much
// as to add it. A matrix that each iteration multiplies by, transposed, is transposed before the
// loop where such products are faster.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "graph/endpoint.h"
#include "graph/import/graph_def.h"
#include "graph/loops/loops.h"
#include "graph/passes/simplify/simplify.h"
#include "graph/passes/simplify/uniform_value.h"
#include "graph/rebuild.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

constexpr int64_t many_elements = 64;

// ---- What cannot fail ----

bool has_complete_inputs(const Node& node) {
  return std::ranges::all_of(node.inputs,
                             [](const Output& input) { return input.shape().is_complete(); });
}

// Whatever the elements are, floats give a result; the shapes fit already in the graph.
bool cannot_fail(const Node& node) {
  static const std::unordered_set<std::string_view> unary = {
      "Abs",      "Cast",     "Ceil",  "Conj",   "Cos",  "Elu",      "Erf",        "Exp",
      "Expm1",    "Floor",    "Log",   "Log1p",  "Neg",  "OnesLike", "Reciprocal", "Relu",
      "Relu6",    "Rint",     "Round", "Rsqrt",  "Selu", "Sigmoid",  "Sign",       "Sin",
      "Softplus", "Softsign", "Sqrt",  "Square", "Tan",  "Tanh",     "ZerosLike"};
  static const std::unordered_set<std::string_view> binary = {
      "Add", "AddV2",    "Div", "DivNoNan", "Maximum",           "Minimum",
      "Mul", "MulNoNan", "Pow", "RealDiv",  "SquaredDifference", "Sub"};
  static const std::unordered_set<std::string_view> of_complete_shapes = {
      "AddN",       "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3",
      "BiasAdd",    "ConcatV2",    "Conv2D",        "DepthwiseConv2dNative",
      "LogSoftmax", "Mean",        "Pack",          "Reshape",
      "Softmax",    "Sum",         "Transpose"};
  const std::string_view op = node.op->name;
  const DType dtype = node.inputs[0].dtype();
  if (!is_floating(dtype) && !is_complex(dtype)) return false;
  if (unary.contains(op)) return true;
  if (binary.contains(op)) {
    const Shape &x = node.inputs[0].shape(), &y = node.inputs[1].shape();
    return has_complete_inputs(node) || keeps_shape(x, y) || keeps_shape(y, x);
  }
  if (node.is("MatMul")) {
    const Shape &a = node.inputs[0].shape(), &b = node.inputs[1].shape();
    return a.rank() == 2 && b.rank() == 2 && a[node.attr<bool>("transpose_a") ? 0 : 1] != any &&
           b[node.attr<bool>("transpose_b") ? 1 : 0] != any;
  }
  return of_complete_shapes.contains(op) && has_complete_inputs(node) &&
         node.outputs[0].shape.is_complete();
}

bool has_many_elements(const Shape& shape) {
  return !shape.is_complete() || shape.elements() >= many_elements;
}

// A product of few rows with a transposed matrix takes 1.1 to 1.5 times as long as with the same
// matrix as it lies (f32, 32 to 128 rows, n from 128 to 512, k from 512 to 2048, one core of a
// Xeon).
bool is_faster_with_plain_b(const Node& node) {
  constexpr int64_t fewest = 24, most = 256, least_extent = 64;
  if (!node.is("MatMul") || !node.attr<bool>("transpose_b") || node.outputs[0].dtype != DType::f32)
    return false;
  const Shape &a = node.inputs[0].shape(), &b = node.inputs[1].shape();
  if (a.rank() != 2 || b.rank() != 2) return false;
  const int64_t rows = a[node.attr<bool>("transpose_a") ? 1 : 0];
  return rows >= fewest && rows <= most && b[0] >= least_extent && b[1] >= 2 * least_extent;
}

// Clients let what uses no loop variable wait for one, so that it is in the loop.
bool is_there_at_the_start(const Node* awaited) { return awaited->is("_Feed"); }

// ---- One part of a loop ----

class PartInvariants {
 public:
  // `graph` is the loop's condition or its body.
  PartInvariants(Graph& graph, const Node& loop) : graph_(graph), loop_(loop) {
    find();
    if (turned_.empty()) return;
    turn_before();
    find();
  }

  bool empty() const { return results_.empty(); }
  // Those that others read, in order: what the part gets from outside instead.
  const std::vector<Node*>& results() const { return results_; }
  // The results and all that they are computed from, in order.
  std::vector<const Node*> needed_outside() const {
    std::vector<bool> is_needed(graph_.size());
    for (const Node* result : results_) is_needed[result->id] = true;
    for (auto at = graph_.nodes().rbegin(); at != graph_.nodes().rend(); ++at) {
      if (!is_needed[(*at)->id]) continue;
      for (const Output& input : (*at)->inputs) is_needed[input.node->id] = true;
    }
    std::vector<const Node*> out;
    for (const auto& node : graph_.nodes())
      if (is_needed[node->id]) out.push_back(node.get());
    return out;
  }

  // Takes the results as captured values, by name, and leaves out what nobody reads any more.
  void take(const std::map<std::string, int>& numbers, std::unordered_set<std::string> endpoints) {
    for (Node* result : results_) {
      const OutputSpec spec = result->outputs[0];
      result->op = &op_named("_Feed");
      result->inputs.clear();
      result->control_inputs.clear();
      result->attrs = {{"dtype", spec.dtype},
                       {"shape", spec.shape},
                       {"name", LoopFeed{false, numbers.at(result->name)}.name()}};
      endpoints.insert(result->name);
    }
    std::vector<bool> stays(graph_.size());
    for (auto at = graph_.nodes().rbegin(); at != graph_.nodes().rend(); ++at) {
      const Node& node = **at;
      const bool may_go = invariants_[node.id] || node.is("Const") || node.is("_Feed");
      if (!may_go || endpoints.contains(node.name)) stays[node.id] = true;
      if (!stays[node.id]) continue;
      for (const Output& input : node.inputs) stays[input.node->id] = true;
      for (const Node* control : node.control_inputs) stays[control->id] = true;
    }
    graph_.keep(stays);
  }

 private:
  void find() {
    invariants_.assign(graph_.size(), false);
    results_.clear();
    turned_.clear();
    std::vector<bool> is_constant(graph_.size()), is_work(graph_.size());
    for (const auto& owned : graph_.nodes()) {
      Node& node = *owned;
      if (node.is("_Feed")) {
        is_constant[node.id] = learn_shape(node);
        continue;
      }
      const bool fits = !infer_shapes_or_defer(node).has_value();
      const bool waits = !std::ranges::all_of(node.control_inputs, is_there_at_the_start);
      if (fits && is_faster_with_plain_b(node) && is_constant[node.inputs[1].node->id] &&
          (waits || !is_constant[node.inputs[0].node->id]))  // else the whole product leaves
        turned_.insert(&node);
      if (node.is("Const")) is_constant[node.id] = !waits;
      if (!fits || waits || !is_pure(node) || node.inputs.empty() || node.num_outputs() != 1)
        continue;
      const bool is_known = std::ranges::all_of(
          node.inputs, [&](const Output& input) { return is_constant[input.node->id]; });
      if (!is_known || !cannot_fail(node)) continue;
      is_constant[node.id] = invariants_[node.id] = true;
      is_work[node.id] = has_many_elements(node.outputs[0].shape) ||
                         std::ranges::any_of(node.inputs, [&](const Output& input) {
                           return is_work[input.node->id] || has_many_elements(input.shape());
                         });
    }
    const Consumers consumers(graph_);
    for (const auto& node : graph_.nodes()) {
      if (!invariants_[node->id] || !is_work[node->id]) continue;
      const auto uses = consumers.of(*node);
      const bool is_result = uses.empty() || std::ranges::any_of(uses, [&](const auto& use) {
                               return !invariants_[use.node->id] || use.input < 0;
                             });
      if (is_result) results_.push_back(node.get());
    }
  }

  // Gives the products in turned_ a transposition of their matrices, which is an invariant.
  void turn_before() {
    Rebuild rebuild(graph_);
    const auto insert = [&](const Node& beside, const char* op, std::string_view suffix,
                            std::vector<Output> inputs, AttrMap attrs) {
      std::string name = concat(beside.name, suffix);
      for (int i = 1; graph_.find(name) != nullptr; ++i) name = concat(beside.name, suffix, "_", i);
      return rebuild.graph()
          .insert({.op = op,
                   .name = std::move(name),
                   .inputs = std::move(inputs),
                   .attrs = std::move(attrs),
                   .location = beside.location},
                  beside.assigned_device)
          .output();
    };
    for (const auto& node : graph_.nodes()) {
      if (!turned_.contains(node.get())) {
        rebuild.copy(*node);
        continue;
      }
      const Output order = insert(*node, "Const", "/turned/perm", {},
                                  {{"dtype", i32}, {"value", Tensor::of<int32_t>({2}, {1, 0})}});
      const Output b = rebuild.map(node->inputs[1]);
      const Output turned =
          insert(*node, "Transpose", "/turned", {b, order}, {{"T", f32}, {"Tperm", i32}});
      Node& product = rebuild.graph().copy(*node, {rebuild.map(node->inputs[0]), turned},
                                           rebuild.control_inputs_of(*node));
      product.attrs.insert_or_assign("transpose_b", false);
      rebuild.replace(*node, {product.output()}, {&product});
    }
    graph_ = std::move(rebuild).finish();
  }

  // A captured value has the shape of the loop's input. False if the feed is a loop variable.
  bool learn_shape(Node& feed) const {
    const LoopFeed from = LoopFeed::parse(feed.attr<std::string>("name"));
    if (from.is_variable) return false;
    const Output& input = loop_.inputs[loop_.num_outputs() + from.number];
    if (input.is_handle() || input.dtype() == DType::variant) return false;
    feed.outputs.write()[0].shape = input.shape();
    return true;
  }

  Graph& graph_;
  const Node& loop_;
  std::vector<bool> invariants_;  // by id
  std::vector<Node*> results_;
  std::unordered_set<const Node*> turned_;  // products that are to get a transposed matrix
};

// ---- One loop ----

class LoopInvariants {
 public:
  explicit LoopInvariants(const Node& loop)
      : loop_(loop), parts_(loop), condition_(parts_.condition, loop), body_(parts_.body, loop) {}

  bool empty() const { return condition_.empty() && body_.empty(); }

  void add_to(Rebuild& rebuild) {
    std::map<std::string, Output> results;  // by name: both parts may have the same
    bring_out(condition_, results, rebuild);
    bring_out(body_, results, rebuild);
    std::vector<DType> types = loop_.attr<std::vector<DType>>("Tcaptured");
    std::vector<Output> inputs = rebuild.inputs_of(loop_);
    std::map<std::string, int> numbers;
    for (const auto& [name, value] : results) {
      numbers.emplace(name, static_cast<int>(types.size()));
      inputs.insert(inputs.begin() + loop_.num_outputs() + std::ssize(types), value);
      types.push_back(value.dtype());
    }
    condition_.take(numbers, {std::string(node_of(parts_.predicate))});
    std::unordered_set<std::string> next;
    for (const std::string& endpoint : parts_.next) next.emplace(node_of(endpoint));
    body_.take(numbers, std::move(next));
    add_loop(rebuild, std::move(inputs), std::move(types));
  }

 private:
  // The results of a part, and what they are computed from, each once.
  void bring_out(const PartInvariants& part, std::map<std::string, Output>& results,
                 Rebuild& rebuild) const {
    std::unordered_map<const Node*, Output> outside;
    for (const Node* node : part.needed_outside()) {
      Output& value = outside[node];
      if (node->is("_Feed")) {
        const LoopFeed from = LoopFeed::parse(node->attr<std::string>("name"));
        value = rebuild.map(loop_.inputs[loop_.num_outputs() + from.number]);
        continue;
      }
      std::vector<Output> inputs;
      for (const Output& input : node->inputs) inputs.push_back(outside.at(input.node));
      value = insert_beside_loop(*node, std::move(inputs), rebuild);
    }
    for (const Node* result : part.results()) results.emplace(result->name, outside.at(result));
  }

  // Where the loop will be, as the node was.
  Output insert_beside_loop(const Node& node, std::vector<Output> inputs, Rebuild& rebuild) const {
    AttrMap attrs = node.attrs;
    attrs.insert_or_assign("_class", std::vector<std::string>{"loc:@" + loop_.name});
    std::string name = node.name;
    for (int i = 1; loop_.graph->find(name) != nullptr || rebuild.graph().find(name) != nullptr;
         ++i)
      name = concat(node.name, "_", i);
    Node& made = rebuild.graph().insert({.op = node.op->name,
                                         .name = std::move(name),
                                         .inputs = std::move(inputs),
                                         .attrs = std::move(attrs),
                                         .location = node.location},
                                        loop_.assigned_device);
    made.requested_device = loop_.requested_device;
    return made.output();
  }

  void add_loop(Rebuild& rebuild, std::vector<Output> inputs, std::vector<DType> types) const {
    Node& loop = rebuild.graph().copy(loop_, std::move(inputs), rebuild.control_inputs_of(loop_));
    loop.attrs.insert_or_assign("Tcaptured", std::move(types));
    loop.attrs.insert_or_assign("condition", to_graph_def(parts_.condition));
    loop.attrs.insert_or_assign("body", to_graph_def(parts_.body));
    std::vector<Output> outputs;
    for (int i = 0; i < loop.num_outputs(); ++i) outputs.push_back(loop.output(i));
    rebuild.replace(loop_, std::move(outputs), {&loop});
  }

  const Node& loop_;
  LoopParts parts_;
  PartInvariants condition_, body_;
};

}  // namespace

bool hoist_loop_invariants(Graph& graph) {
  std::unordered_map<int, LoopInvariants> loops;  // by id
  for (const auto& node : graph.nodes()) {
    if (!node->is("_Loop")) continue;
    const auto [made, is_new] = loops.try_emplace(node->id, *node);
    if (made->second.empty()) loops.erase(made);
  }
  if (loops.empty()) return false;
  Rebuild rebuild(graph);
  for (const auto& node : graph.nodes()) {
    if (const auto loop = loops.find(node->id); loop != loops.end()) {
      loop->second.add_to(rebuild);
    } else {
      rebuild.copy(*node);
    }
  }
  graph = std::move(rebuild).finish();
  return true;
}

}  // namespace leat
