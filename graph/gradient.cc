// Reverse mode: nodes are visited against the order of the graph, so that all gradients of a value
// have arrived, and are summed, before its producer is asked for the gradients of its inputs.
#include "graph/gradient.h"

#include <algorithm>
#include <map>

#include "graph/loops.h"
#include "graph/ops.h"
#include "graph/signature.h"

namespace leat {
namespace {

// Nodes made meanwhile get the scope, device, colocation and line of a node that is there already.
class Beside {
 public:
  Beside(Graph& graph, const Node& node, std::string_view scope)
      : graph_(graph),
        node_(node),
        name_(graph, scope),
        outer_(graph.scopes()),
        first_(graph.size()) {
    Graph::Scopes& scopes = graph.scopes();
    scopes.device = node.requested_device;
    scopes.device_function = nullptr;
    scopes.colocate_with.clear();
    if (node.view().has("_class")) {
      for (const std::string& entry : node.attr<std::vector<std::string>>("_class")) {
        if (entry.starts_with("loc:@")) scopes.colocate_with.push_back(entry.substr(5));
      }
    }
  }
  ~Beside() {
    graph_.scopes() = outer_;
    for (size_t i = first_; i < graph_.size(); ++i) graph_.nodes()[i]->location = node_.location;
  }
  Beside(const Beside&) = delete;

 private:
  Graph& graph_;
  const Node& node_;
  NameScope name_;
  Graph::Scopes outer_;
  size_t first_;
};

Tensor ones(DType dtype, const Shape& shape) {
  Tensor out(dtype, shape);
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, std::string>) {
      std::fill(out.span<T>().begin(), out.span<T>().end(), static_cast<T>(1.0f));
    }
  });
  return out;
}

using Position = std::pair<int, int>;  // node id, output
Position position(const Output& output) { return {output.node->id, output.index}; }

class Backward {
 public:
  Backward(const std::vector<Output>& ys, const std::vector<Output>& xs)
      : graph_(ys.front().graph()),
        ys_(ys),
        order_(topological_order(graph_)),
        affected_(graph_.size()) {
    for (const Output& x : xs) gradients_of_xs_.emplace(position(x), Output{});
    // Once, and again as long as something comes round a while loop.
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      for (const Node* node : order_) {
        if (affected_[node->id] || node->op->is_not_differentiable) continue;
        const std::vector<Output> inputs = inputs_of(*node);
        if (std::none_of(inputs.begin(), inputs.end(),
                         [&](const Output& input) { return is_affected(input); }))
          continue;
        affected_[node->id] = has_changed = true;
      }
    }
  }

  void start(const Output& y, Output dy) { arrive(y, dy); }

  void run() {
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) visit(**node);
  }

  Output gradient_of(const Output& x) const { return gradients_of_xs_.at(position(x)); }

 private:
  // Whether a gradient may flow back through this value to one of the xs.
  // (What is read from a resource has gradients, and so, by its handle, has the variable.)
  bool is_affected(const Output& output) const {
    return (has_gradients(output.dtype()) || output.dtype() == DType::resource) &&
           (affected_[output.node->id] || gradients_of_xs_.contains(position(output)));
  }

  // With what the last iteration of a while loop gave; while its body is being built there is none.
  std::vector<Output> inputs_of(const Node& node) const {
    std::vector<Output> out = node.inputs;
    if (!node.view().has(back_edge_attr)) return out;
    const auto name = parse_output_name(node.attr<std::string>(back_edge_attr));
    const Node* next = name ? graph_.find(name->node) : nullptr;
    if (next != nullptr) out.push_back(next->inputs[0]);
    return out;
  }

  void arrive(const Output& value, Output dy) { arrived_[position(value)].push_back(dy); }

  void visit(Node& node) {
    std::vector<Output> dy(node.outputs.size());
    bool has_any = false;
    for (int i = 0; i < node.num_outputs(); ++i) {
      const auto found = arrived_.find({node.id, i});
      if (found == arrived_.end()) continue;
      dy[i] = sum(node, found->second);
      has_any = true;
      const auto x = gradients_of_xs_.find({node.id, i});
      if (x != gradients_of_xs_.end()) x->second = dy[i];
      arrived_.erase(found);
    }
    if (has_any && affected_[node.id]) propagate(node, std::move(dy));
  }

  // Where the first of the gradients is, so that one sum crosses to a parameter server, not every
  // summand.
  Output sum(const Node& node, const std::vector<Output>& dys) {
    if (dys.size() == 1) return dys.front();
    const Beside beside(graph_, *dys.front().node, node.name);
    return op("AddN", dys);
  }

  void propagate(Node& node, std::vector<Output> dy) {
    if (!node.op->gradient) fail_without_gradient(node);
    const Beside beside(graph_, node, node.name);
    const bool conjugates = !node.op->has_complex_gradient;
    if (conjugates) conjugate(dy);
    Gradient gradient(node, std::move(dy));
    try {
      node.op->gradient(gradient);
    } catch (const Error& error) {
      fail(error.code(), "gradient of ", describe(node), ": ", error.message());
    }
    for (int i = 0; i < gradient.num_inputs(); ++i) {
      Output dx = gradient.dx(i);
      if (!dx || !is_affected(node.inputs[i])) continue;
      if (conjugates) dx = conj(dx);
      check_gradient(node, i, dx);
      if (dx.is_ref()) dx = op("Identity", {dx});
      arrive(node.inputs[i], dx);
    }
  }

  static void conjugate(std::vector<Output>& values) {
    for (Output& value : values) {
      if (value) value = conj(value);
    }
  }

  void check_gradient(const Node& node, int i, const Output& dx) const {
    const Output& input = node.inputs[i];
    const bool is_resource = input.dtype() == DType::resource;
    check_internal((is_resource ? has_gradients(dx.dtype()) : dx.dtype() == input.dtype()) &&
                       dx.shape().is_compatible(input.shape()),
                   "gradient of ", describe(node), ": input ", input_name(*node.op, node.attrs, i),
                   " is ", input.dtype(), input.shape(), ", but its gradient '", dx.name(), "' is ",
                   dx.dtype(), dx.shape());
    // What is known of the value is known of its gradient; the caller's own nodes stay as they are.
    if (dx.node->id < static_cast<int>(affected_.size())) return;
    const Shape known = dx.shape().merged(input.shape());
    if (!(known == dx.shape())) dx.node->outputs.write()[dx.index].shape = known;
  }

  [[noreturn]] void fail_without_gradient(const Node& node) const {
    // Back to an x, and forward from the node: which y it is on the way to.
    Output x;
    std::vector<bool> seen(affected_.size());
    std::vector<const Node*> path = {&node};
    while (!x && !path.empty()) {
      const Node* const at = path.back();
      path.pop_back();
      for (const Output& input : inputs_of(*at)) {
        if (!is_affected(input)) continue;
        if (gradients_of_xs_.contains(position(input))) x = input;
        if (!seen[input.node->id]) path.push_back(input.node);
        seen[input.node->id] = true;
      }
    }
    std::vector<bool> reached(affected_.size());
    reached[node.id] = true;
    for (const Node* later : order_) {
      for (const Output& input : later->inputs) {
        if (reached[input.node->id]) reached[later->id] = true;
      }
    }
    const auto y =
        std::find_if(ys_.begin(), ys_.end(), [&](const Output& y) { return reached[y.node->id]; });
    const bool is_loop = node.is("Exit") || node.is("RefExit");
    fail(Code::invalid_argument, describe(node), is_loop ? ", the end of a while loop," : "",
         " has no gradient, but lies on the path from '", x.name(), "' to '", y->name(),
         "'; end the path with stop_gradient() if none should flow there");
  }

  Graph& graph_;
  const std::vector<Output>& ys_;
  std::vector<Node*> order_;
  std::vector<bool> affected_;  // by node id: a gradient of its outputs reaches an x
  std::map<Position, std::vector<Output>> arrived_;
  std::map<Position, Output> gradients_of_xs_;
};

void check_request(const std::vector<Output>& ys, const std::vector<Output>& xs,
                   const std::vector<Output>& grad_ys) {
  check(!ys.empty(), "gradients() needs at least one y");
  check(grad_ys.empty() || grad_ys.size() == ys.size(), "gradients() got ", grad_ys.size(),
        " grad_ys for ", ys.size(), " ys");
  const Graph* graph = ys.front() ? ys.front().node->graph : nullptr;
  const auto check_output = [&](std::string_view what, size_t i, const Output& output) {
    check(static_cast<bool>(output), "gradients(): ", what, "[", i, "] is none");
    check(output.node->graph == graph, "gradients(): ", what, "[", i, "], '", output.name(),
          "', belongs to another graph than ys[0]");
  };
  for (size_t i = 0; i < ys.size(); ++i) {
    check_output("ys", i, ys[i]);
    check(has_gradients(ys[i].dtype()), "gradients(): '", ys[i].name(), "' (",
          describe(*ys[i].node), ") is ", ys[i].dtype(),
          "; only floating-point and complex values have gradients");
    check(!is_complex(ys[i].dtype()) || (!grad_ys.empty() && grad_ys[i]), "gradients(): '",
          ys[i].name(), "' is ", ys[i].dtype(), ": gradients of complex values need grad_ys");
    if (grad_ys.empty() || !grad_ys[i]) continue;
    check_output("grad_ys", i, grad_ys[i]);
    check(grad_ys[i].dtype() == ys[i].dtype() && grad_ys[i].shape().is_compatible(ys[i].shape()),
          "gradients(): '", ys[i].name(), "' is ", ys[i].dtype(), ys[i].shape(), ", but grad_ys[",
          i, "] is ", grad_ys[i].dtype(), grad_ys[i].shape());
  }
  for (size_t i = 0; i < xs.size(); ++i) check_output("xs", i, xs[i]);
}

constexpr int64_t largest_constant = 1024;  // elements of a Const of ones; above, OnesLike

Output initial_gradient(const Output& y) {
  Graph& graph = y.graph();
  const Beside beside(graph, *y.node, "grad_ys");
  if (y.shape().is_complete() && y.shape().elements() <= largest_constant) {
    return constant(graph, ones(y.dtype(), y.shape()), "ones");
  }
  return op("OnesLike", {y});
}

}  // namespace

bool has_gradients(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

Output Gradient::dy_or_zeros(int i) const { return dy_[i] ? dy_[i] : op("ZerosLike", {y(i)}); }

std::vector<Output> gradients(const std::vector<Output>& ys, const std::vector<Output>& xs,
                              const std::vector<Output>& grad_ys) {
  check_request(ys, xs, grad_ys);
  const NameScope scope(ys.front().graph(), "gradients");
  Backward backward(ys, xs);
  for (size_t i = 0; i < ys.size(); ++i) {
    Output dy = grad_ys.empty() ? Output{} : grad_ys[i];
    if (dy && dy.is_ref()) dy = op("Identity", {dy}, {}, dy.node->location);
    backward.start(ys[i], dy ? dy : initial_gradient(ys[i]));
  }
  backward.run();
  std::vector<Output> out;
  for (const Output& x : xs) out.push_back(backward.gradient_of(x));
  return out;
}

}  // namespace leat
