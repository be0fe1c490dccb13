// Reverse mode: nodes are visited against the order of the graph, so that all gradients of a value
// have arrived, and are summed, before its producer is asked for the gradients of its inputs.
#include "graph/gradient.h"

#include <algorithm>
#include <map>

#include "core/visit_dtype.h"
#include "graph/beside.h"
#include "graph/custom_gradient.h"
#include "graph/endpoint.h"
#include "graph/loops/conditions.h"
#include "graph/loops/frames.h"
#include "graph/loops/loop_gradient.h"
#include "graph/loops/loops.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/signature.h"

namespace leat {
namespace {

Tensor ones(DType dtype, const Shape& shape) {
  Tensor out(dtype, shape);
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, std::string>) {
      std::fill(out.span<T>().begin(), out.span<T>().end(), static_cast<T>(1.0f));
    }
  });
  return out;
}

// What the rows add up to, as a whole value.
Output dense(const IndexedSlices& slices, const Output& value) {
  if (!slices.indices) return slices.values;
  const auto at = [&](int32_t i) { return constant(value.graph(), Tensor::of<int32_t>({1}, {i})); };
  const Output shape =
      value.dtype() == DType::resource ? op("VariableShape", {value}) : shape_of(value);
  const Output rows = strided_slice(shape, at(0), at(1), at(1), {{"shrink_axis_mask", 1}});
  return segment_sum(slices.values, slices.indices, rows);
}

// Of one of the rows, whose indices have a rank.
Output row_shape(const IndexedSlices& slices) {
  const Shape& shape = slices.values.shape();
  const auto ints = [&](const std::vector<int32_t>& values) {
    Tensor out(i32, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), out.data<int32_t>());
    return constant(slices.values.graph(), out);
  };
  const int begin = slices.indices.shape().rank();
  std::vector<int32_t> sizes;
  for (int i = begin; shape.has_rank() && i < shape.rank(); ++i)
    sizes.push_back(static_cast<int32_t>(shape[i]));
  if (shape.has_rank() && std::count(sizes.begin(), sizes.end(), any) == 0) return ints(sizes);
  return strided_slice(shape_of(slices.values), ints({begin}), ints({0}), ints({1}),
                       {{"end_mask", 1}});
}

// With indices [n], of a dtype that updates of rows take.
IndexedSlices flat(const IndexedSlices& slices) {
  const Output& indices = slices.indices;
  const DType dtype = indices.dtype() == DType::i64 ? DType::i64 : DType::i32;
  IndexedSlices out = {slices.values, indices.dtype() == dtype ? indices : cast(indices, dtype)};
  if (indices.shape().has_rank() && indices.shape().rank() == 1) return out;
  check(indices.shape().has_rank(), "the gradient of rows needs the rank of their indices '",
        indices.name(), "', which is not known");
  Graph& graph = indices.graph();
  const Output all = constant(graph, Tensor::of<int32_t>({1}, {-1}));
  return {reshape(slices.values, concatenate({all, row_shape(slices)}, 0)),
          reshape(out.indices, all)};
}

using Position = std::pair<int, int>;  // node id, output
Position position(const Output& output) { return {output.node->id, output.index}; }

class Backward {
 public:
  Backward(const std::vector<Output>& ys, const std::vector<Output>& xs,
           const LoopBody* within = nullptr, bool keeps_rows = false)
      : graph_(ys.front().graph()),
        ys_(ys),
        order_(topological_order(graph_)),
        affected_(graph_.size()),
        within_(within),
        keeps_rows_(keeps_rows) {
    for (const Output& x : xs) gradients_of_xs_.emplace(position(x), IndexedSlices{});
    for (Node* control : graph_.scopes().control_inputs) {
      if (is_pivot(*control)) open_pivots_.push_back(control);
    }
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
    if (has_frames(graph_)) find_loops(xs);
  }

  void start(const Output& y, Output dy) { arrive(y, {{dy, {}}, {}}); }

  void run() {
    if (!units_) {
      for (auto node = order_.rbegin(); node != order_.rend(); ++node) visit(**node);
      return;
    }
    const std::vector<int>& units = units_->units();
    for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
      const int loop = units_->loop(*unit);
      if (loop == Frames::none) {
        visit(*graph_.nodes()[*unit]);
      } else {
        leave_loop(loop);
      }
    }
  }

  const IndexedSlices& gradient_of(const Output& x) const {
    return gradients_of_xs_.at(position(x));
  }

 private:
  // A gradient that comes out of branches of conditions, the innermost last. Rows come out of none.
  struct Arrival {
    IndexedSlices dy;
    std::vector<Node*> pivots;
  };

  // The loops that the ys are in are not left: their nodes are visited like others.
  void find_loops(const std::vector<Output>& xs) {
    frames_.emplace(graph_);
    int open = within_ == nullptr ? Frames::none : within_->frame;
    for (const Output& y : ys_) {
      const int frame = frames_->of(*y.node);
      if (frames_->is_within(frame, open)) open = frame;
    }
    units_.emplace(graph_, *frames_, open);
    for (const Output& x : xs) {
      const int loop = frames_->outermost(frames_->of(*x.node), open);
      check(loop == Frames::none, "gradients(): '", x.name(), "' (", describe(*x.node),
            ") lies in the while loop '", loop == Frames::none ? "" : frames_->name(loop),
            "': it has a value in each iteration; ask for the gradient of what enters the loop");
    }
  }

  // Whether a gradient may flow back through this value to one of the xs.
  // (What is read from a resource has gradients, and so, by its handle, has the variable. A variant
  // may be a list of values.)
  bool is_affected(const Output& output) const {
    const DType dtype = output.dtype();
    return (has_gradients(dtype) || dtype == DType::resource || dtype == DType::variant) &&
           (is_affected(*output.node) || gradients_of_xs_.contains(position(output)));
  }
  bool is_affected(const Node& node) const {
    return node.id < static_cast<int>(affected_.size()) && affected_[node.id];
  }

  // With what the last iteration of a while loop gave; while its body is being built there is none.
  std::vector<Output> inputs_of(const Node& node) const {
    std::vector<Output> out = node.inputs;
    if (!node.view().has(back_edge_attr)) return out;
    const auto name = Endpoint::parse(node.attr<std::string>(back_edge_attr));
    const Node* next = name ? graph_.find(name->node) : nullptr;
    if (next != nullptr) out.push_back(next->inputs[0]);
    return out;
  }

  void arrive(const Output& value, Arrival arrival) {
    arrived_[position(value)].push_back(std::move(arrival));
  }
  // The branches that a gradient leaves on its way from a node to what the node uses.
  std::vector<Node*> left_branches(const Node& from, const Node& to) const {
    return pivots_beyond(pivots_beyond(pivots_of(from), pivots_of(to)), open_pivots_);
  }

  void visit(Node& node) {
    std::vector<Output> dy(node.outputs.size());
    bool has_any = false, has_x = false;
    for (int i = 0; i < node.num_outputs(); ++i) {
      const auto found = arrived_.find({node.id, i});
      if (found == arrived_.end()) continue;
      const auto x = gradients_of_xs_.find({node.id, i});
      has_x = has_x || x != gradients_of_xs_.end();
      if (takes_rows(node.output(i)) && are_rows(found->second)) {
        const IndexedSlices rows = sum_of_rows(node, found->second);
        if (x != gradients_of_xs_.end()) {
          x->second = rows;
        } else {
          arrive(node.inputs[0], {rows, {}});
        }
        return;
      }
      dy[i] = sum(node.output(i), std::move(found->second));
      has_any = true;
      if (x != gradients_of_xs_.end()) x->second.values = dy[i];
      arrived_.erase(found);
    }
    if (!has_any || !affected_[node.id]) return;
    // What a body has from outside may depend on something else that it has from outside: the
    // gradient takes that path once, outside.
    if (within_ != nullptr && has_x) return;
    if (is_exit(node)) {
      exits_[frames_->of(*node.inputs[0].node)].push_back({&node, dy[0]});
    } else if (is_enter(node)) {
      arrive(node.inputs[0], {{dy[0], {}}, {}});
    } else if (is_boundary(node)) {
      if (within_ == nullptr) fail_round_a_loop(node);
    } else if (joins_branches(node)) {
      enter_branches(node, dy[0]);
    } else {
      propagate(node, std::move(dy));
    }
  }

  // An x behind which nothing needs the gradient, or what reads one.
  bool takes_rows(const Output& value) const {
    if (!keeps_rows_ || within_ != nullptr) return false;
    const Node& node = *value.node;
    const bool is_x = gradients_of_xs_.contains(position(value));
    if (is_x || !(node.is("Identity") || node.is("ReadVariableOp")))
      return is_x && !is_affected(node);
    return left_branches(node, *node.inputs[0].node).empty() && takes_rows(node.inputs[0]);
  }
  static bool are_rows(const std::vector<Arrival>& arrivals) {
    return std::all_of(arrivals.begin(), arrivals.end(), [](const Arrival& arrival) {
      return arrival.dy.indices && arrival.pivots.empty();
    });
  }
  // One after the other: what has the same index is not summed.
  IndexedSlices sum_of_rows(const Node& node, const std::vector<Arrival>& arrivals) {
    if (arrivals.size() == 1) return arrivals.front().dy;
    const Beside beside(graph_, *arrivals.front().dy.values.node, node.name, {});
    const bool are_wide = std::any_of(arrivals.begin(), arrivals.end(), [](const Arrival& arrival) {
      return arrival.dy.indices.dtype() == DType::i64;
    });
    std::vector<Output> values, indices;
    for (const Arrival& arrival : arrivals) {
      const IndexedSlices rows = flat(arrival.dy);
      values.push_back(rows.values);
      const DType dtype = are_wide ? DType::i64 : DType::i32;
      indices.push_back(rows.indices.dtype() == dtype ? rows.indices : cast(rows.indices, dtype));
    }
    return {concatenate(values, 0), concatenate(indices, 0)};
  }

  // Of a value of that output.
  Output sum(const Output& value, std::vector<Arrival> arrivals) {
    while (true) {
      const auto deepest = std::max_element(
          arrivals.begin(), arrivals.end(),
          [](const Arrival& a, const Arrival& b) { return a.pivots.size() < b.pivots.size(); });
      if (deepest->pivots.empty()) break;
      arrivals.push_back(leave_branch(value, deepest->pivots, arrivals));
    }
    return sum_of(value, arrivals, {});
  }

  // What has come out of one branch, or of the other of the same condition: what comes out of the
  // condition. Takes it from the arrivals.
  Arrival leave_branch(const Output& value, std::vector<Node*> pivots,
                       std::vector<Arrival>& arrivals) {
    const std::vector<Node*> outer(pivots.begin(), pivots.end() - 1);
    std::vector<Node*> others = outer;
    others.push_back(&other_pivot(*pivots.back()));
    const Output here = sum_of(value, take(arrivals, pivots), pivots);
    const std::vector<Arrival> there = take(arrivals, others);
    Output elsewhere;
    if (there.empty()) {
      const Beside beside(graph_, *value.node, value.node->name, others);
      elsewhere = zeros_for(value, here.dtype());
    } else {
      elsewhere = sum_of(value, there, others);
    }
    const Beside beside(graph_, *value.node, value.node->name, outer);
    return {{merge({here, elsewhere})[0], {}}, outer};
  }

  static std::vector<Arrival> take(std::vector<Arrival>& arrivals,
                                   const std::vector<Node*>& pivots) {
    const auto rest =
        std::stable_partition(arrivals.begin(), arrivals.end(),
                              [&](const Arrival& arrival) { return arrival.pivots != pivots; });
    std::vector<Arrival> out(rest, arrivals.end());
    arrivals.erase(rest, arrivals.end());
    return out;
  }

  // Rows have come out of no branch: they are where they were read.
  Output whole(const IndexedSlices& dy, const Output& value) {
    if (!dy.indices) return dy.values;
    const Beside beside(graph_, *dy.values.node, value.node->name, {});
    return dense(dy, value);
  }

  // Where the first of the gradients is, so that one sum crosses to a parameter server, not every
  // summand.
  Output sum_of(const Output& value, const std::vector<Arrival>& arrivals,
                const std::vector<Node*>& pivots) {
    std::vector<Output> dys;
    for (const Arrival& arrival : arrivals) dys.push_back(whole(arrival.dy, value));
    if (dys.size() == 1) return dys.front();
    const Beside beside(graph_, *dys.front().node, value.node->name, pivots);
    return op("AddN", dys);
  }

  // ---- Loops and conditions ----

  // A variable of a loop that the ys are in, as the iteration finds it.
  static bool is_boundary(const Node& node) {
    return node.view().has(back_edge_attr) ||
           (node.is("Switch") && node.inputs[1].node->is("LoopCond"));
  }
  [[noreturn]] void fail_round_a_loop(const Node& node) const {
    fail(Code::invalid_argument, "gradients(): the path from '", ys_.front().name(),
         "' to an x runs round the while loop that contains both, through ", describe(node),
         "; ask for the gradient of the loop's result");
  }

  static bool joins_branches(const Node& node) {
    const std::vector<Node*> around = pivots_of(node);
    return node.is("Merge") &&
           std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Output& input) {
             return !pivots_beyond(pivots_of(*input.node), around).empty();
           });
  }
  // Each branch gets the gradient where it was taken, else a dead value.
  void enter_branches(const Node& node, Output dy) {
    if (!dy) return;
    for (const Output& input : node.inputs) {
      if (!is_affected(input)) continue;
      const Beside beside(graph_, node, node.name, pivots_of(*input.node));
      arrive(input, {{op("Identity", {dy}), {}}, {}});
    }
  }

  void leave_loop(int loop) {
    const auto exits = exits_.find(loop);
    if (exits == exits_.end()) return;
    const auto results = loop_gradient({.graph = graph_,
                                        .frame = loop,
                                        .exits = std::move(exits->second),
                                        .is_affected = [&](Output x) { return is_affected(x); }});
    if (within_ != nullptr) {
      within_->loop_nodes.insert(within_->loop_nodes.end(), results.loop_nodes.begin(),
                                 results.loop_nodes.end());
    }
    for (const auto& [value, gradient] : results.gradients)
      arrive(value, {{gradient, {}}, left_branches(*results.loop, *value.node)});
  }

  // ---- Other nodes ----

  void propagate(Node& node, std::vector<Output> dy) {
    if (!node.op->gradient) fail_without_gradient(node);
    const Beside beside(graph_, node, node.name, pivots_of(node));
    const bool conjugates = !node.op->has_complex_gradient;
    if (conjugates) conjugate(dy);
    Gradient gradient(node, std::move(dy));
    try {
      if (has_custom_gradient(node)) {
        const std::vector<Output> dx = custom_gradient_of(node, gradient_arrived(gradient));
        for (int i = 0; i < gradient.num_inputs(); ++i) gradient.dx(i) = dx[i];
      } else {
        node.op->gradient(gradient);
      }
    } catch (const Error& error) {
      fail_again(error, error.code(), "gradient of ", describe(node), ": ", error.message());
    }
    for (int i = 0; i < gradient.num_inputs(); ++i) {
      Output dx = gradient.dx(i);
      if (!dx || !is_affected(node.inputs[i])) continue;
      if (conjugates) dx = conj(dx);
      if (dx.is_ref()) dx = op("Identity", {dx});
      IndexedSlices rows = {dx, gradient.indices(i)};
      std::vector<Node*> branches = left_branches(node, *node.inputs[i].node);
      if (!rows.indices || !branches.empty() || !takes_rows(node.inputs[i])) {
        rows = {dense(rows, node.inputs[i]), {}};
        check_gradient(node, i, rows.values);
      }
      arrive(node.inputs[i], {std::move(rows), std::move(branches)});
    }
  }

  static std::vector<Output> gradient_arrived(const Gradient& gradient) {
    std::vector<Output> out;
    for (int i = 0; i < gradient.node().num_outputs(); ++i) out.push_back(gradient.dy(i));
    return out;
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
    fail(Code::invalid_argument, describe(node), " has no gradient, but lies on the path from '",
         x.name(), "' to '", y->name(),
         "'; end the path with stop_gradient() if none should flow there");
  }

  Graph& graph_;
  const std::vector<Output>& ys_;
  std::vector<Node*> order_;
  std::vector<bool> affected_;  // by node id: a gradient of its outputs reaches an x
  std::map<Position, std::vector<Arrival>> arrived_;
  std::map<Position, IndexedSlices> gradients_of_xs_;
  std::optional<Frames> frames_;     // if the graph has loops
  std::optional<FrameOrder> units_;  // and then the order of what is visited
  std::map<int, std::vector<std::pair<Node*, Output>>> exits_;  // by loop: what has arrived
  std::vector<Node*> open_pivots_;  // of the branch that this is part of
  const LoopBody* const within_;
  const bool keeps_rows_;  // where a gradient has only some: sparse_gradients()
};

void check_request(const std::vector<Output>& ys, const std::vector<Output>& xs,
                   const std::vector<Output>& grad_ys) {
  check(!ys.empty(), "gradients() needs at least one y");
  check(grad_ys.empty() || grad_ys.size() == ys.size(), "gradients() got ", grad_ys.size(),
        " grad_ys for ", ys.size(), " ys");
  const Graph* graph = ys.front() ? ys.front().node->graph : nullptr;
  const auto check_output = [&](std::string_view what, size_t i, const Output& output) {
    check(static_cast<bool>(output), "gradients(): ", what, "[", i, "] is an empty Output");
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
  const Beside beside(graph, *y.node, "grad_ys", pivots_of(*y.node));
  if (y.shape().is_complete() && y.shape().elements() <= largest_constant) {
    return constant(graph, ones(y.dtype(), y.shape()), "ones");
  }
  return op("OnesLike", {y});
}

}  // namespace

std::vector<Output> gradients_in_body(const std::vector<Output>& ys, const std::vector<Output>& xs,
                                      const std::vector<Output>& dys, const LoopBody& body) {
  Backward backward(ys, xs, &body);
  for (size_t i = 0; i < ys.size(); ++i) backward.start(ys[i], dys[i]);
  backward.run();
  std::vector<Output> out;
  for (const Output& x : xs) out.push_back(backward.gradient_of(x).values);
  return out;
}

bool has_gradients(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

Output Gradient::dy_or_zeros(int i) const { return dy_[i] ? dy_[i] : op("ZerosLike", {y(i)}); }

namespace {

Backward run_backward(const std::vector<Output>& ys, const std::vector<Output>& xs,
                      const std::vector<Output>& grad_ys, bool keeps_rows) {
  Backward backward(ys, xs, nullptr, keeps_rows);
  for (size_t i = 0; i < ys.size(); ++i) {
    Output dy = grad_ys.empty() ? Output{} : grad_ys[i];
    if (dy && dy.is_ref()) dy = op("Identity", {dy}, {}, dy.node->location);
    backward.start(ys[i], dy ? dy : initial_gradient(ys[i]));
  }
  backward.run();
  return backward;
}

}  // namespace

std::vector<Output> gradients(const std::vector<Output>& ys, const std::vector<Output>& xs,
                              const std::vector<Output>& grad_ys) {
  check_request(ys, xs, grad_ys);
  const NameScope scope(ys.front().graph(), "gradients");
  const Backward backward = run_backward(ys, xs, grad_ys, false);
  std::vector<Output> out;
  for (const Output& x : xs) out.push_back(backward.gradient_of(x).values);
  return out;
}

std::vector<IndexedSlices> sparse_gradients(const std::vector<Output>& ys,
                                            const std::vector<Output>& xs,
                                            const std::vector<Output>& grad_ys) {
  check_request(ys, xs, grad_ys);
  const NameScope scope(ys.front().graph(), "gradients");
  const Backward backward = run_backward(ys, xs, grad_ys, true);
  std::vector<IndexedSlices> out;
  for (const Output& x : xs) {
    IndexedSlices gradient = backward.gradient_of(x);
    if (gradient.indices) {
      Node& rows = *gradient.values.node;
      const Beside beside(x.graph(), rows, x.node->name, pivots_of(rows));
      gradient = flat(gradient);
    }
    out.push_back(gradient);
  }
  return out;
}

}  // namespace leat
