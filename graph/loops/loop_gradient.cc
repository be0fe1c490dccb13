#include "graph/loops/loop_gradient.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/beside.h"
#include "graph/gradient.h"
#include "graph/loops/conditions.h"
#include "graph/loops/loop_builder.h"
#include "graph/loops/loop_frame.h"
#include "graph/loops/loops.h"
#include "graph/loops/tensor_list.h"
#include "graph/ops.h"

namespace leat {
namespace {

using Position = std::pair<int, int>;  // node id, output
Position position(const Output& output) { return {output.node->id, output.index}; }

// The gradient of a loop's body as it was made beside the body, where it uses the values of the
// body's nodes. It was taken out of the graph, to be put into a loop of its own.
class BodyGradient {
 public:
  // Either a node of the graph or, from `first` on, one of these.
  struct Value {
    int node;
    int index;
  };
  struct Piece {
    Node node;
    std::vector<Value> inputs;
    std::vector<int> controls;
    bool is_needed = false;
    bool is_of_the_loop = false;  // of that which is there, not of the gradient
  };

  BodyGradient(Graph& graph, size_t first) : first_(static_cast<int>(first)) {
    for (size_t i = first; i < graph.size(); ++i) {
      const Node& node = *graph.nodes()[i];
      Piece& piece = pieces_.emplace_back(Piece{node, {}, {}});
      for (const Output& input : node.inputs) piece.inputs.push_back(value(input));
      for (const Node* control : node.control_inputs) piece.controls.push_back(control->id);
      if (const Node* next = next_iteration(node)) back_edges_[node.id] = next->id;
    }
    graph.truncate(first);
  }

  static Value value(const Output& output) { return {output.node->id, output.index}; }
  bool has(int node) const { return node >= first_; }
  Piece& operator[](int node) { return pieces_[node - first_]; }
  int begin() const { return first_; }
  int end() const { return first_ + static_cast<int>(pieces_.size()); }

  // The node, and what it needs of the others.
  void need(int root) {
    std::vector<int> pending = {root};
    while (!pending.empty()) {
      const int node = pending.back();
      pending.pop_back();
      if (!has(node) || (*this)[node].is_needed) continue;
      Piece& piece = (*this)[node];
      piece.is_needed = true;
      for (const Value& input : piece.inputs) pending.push_back(input.node);
      for (const int control : piece.controls) pending.push_back(control);
      if (const auto back = back_edges_.find(node); back != back_edges_.end())
        pending.push_back(back->second);
    }
  }

 private:
  const int first_;
  std::vector<Piece> pieces_;
  std::map<int, int> back_edges_;
};

using Value = BodyGradient::Value;
using Piece = BodyGradient::Piece;

class Differentiation {
 public:
  explicit Differentiation(const LoopGradientRequest& request)
      : request_(request),
        graph_(request.graph),
        frames_(graph_),
        frame_(graph_, frames_, request.frame),
        condition_(*graph_.nodes()[frame_.condition().id]),
        pivots_(pivots_of(condition_)) {
    find_variables();
    find_active();
    check_conditions();
  }

  LoopGradient run() && {
    const size_t first = graph_.size();
    std::vector<Output> roots = differentiate_body();
    std::vector<Value> root_values;
    for (const Output& root : roots)
      root_values.push_back(root ? BodyGradient::value(root) : Value{none, 0});
    const std::vector<DType> root_dtypes = dtypes_of(roots);
    BodyGradient body(graph_, first);
    body_ = &body;
    for (const Value& root : root_values) body.need(root.node);
    for (const int node : nodes_of_inner_loops_) body.need(node);
    find_what_belongs_to_the_loop();

    const NameScope scope(graph_, condition_.name);
    const Beside beside(graph_, condition_, "loop", pivots_);
    extend_the_loop(root_values);
    build(root_values, root_dtypes);
    return std::move(out_);
  }

 private:
  static constexpr int none = -1;

  struct Variable {
    Node* enter;
    Node* next;
    Node* sides = nullptr;  // its Switch
    Node* exit = nullptr;
    Output dy;
    bool is_active = false;  // a gradient flows through it
  };

  // ---- What the loop is ----

  Node& own(const Node& node) const { return *graph_.nodes()[node.id]; }
  bool is_within(const Node& node) const { return frame_.is_within(node); }

  void find_variables() {
    for (const LoopFrame::Variable& variable : frame_.variables())
      variables_.push_back({&own(*variable.enter), &own(*variable.next)});
    for (const auto& node : graph_.nodes()) {
      if (is_within(*node) && frame_.boundary(*node).kind == LoopFrame::Kind::switch_) {
        variables_[frame_.boundary(*node).variable].sides = node.get();
      } else if (is_exit(*node) && frames_.of(*node->inputs[0].node) == request_.frame) {
        const Node& source = *node->inputs[0].node;
        if (frame_.boundary(source).kind != LoopFrame::Kind::switch_)
          frame_.refuse("its gradient cannot be made: an Exit does not follow a Switch", *node);
        variables_[frame_.boundary(source).variable].exit = node.get();
      }
    }
    for (const auto& [exit, dy] : request_.exits) {
      for (Variable& variable : variables_) {
        if (variable.exit == exit) variable.dy = dy;
      }
    }
  }

  // Through which variables do gradients flow, and to what outside of the loop?
  void find_active() {
    std::vector<int> pending;
    const auto activate = [&](int number) {
      Variable& variable = variables_[number];
      if (variable.is_active || variable.sides == nullptr ||
          !request_.is_affected(variable.sides->output(1)))
        return;
      variable.is_active = true;
      pending.push_back(number);
    };
    for (size_t i = 0; i < variables_.size(); ++i) {
      if (variables_[i].dy) activate(static_cast<int>(i));
    }
    std::set<Position> seen;
    const auto follow = [&](Output start) {
      std::vector<Output> values = {start};
      while (!values.empty()) {
        const Output value = values.back();
        values.pop_back();
        if (!request_.is_affected(value) || !seen.insert(position(value)).second) continue;
        const LoopFrame::Boundary boundary = frame_.boundary(*value.node);
        if (!is_within(*value.node)) {
          captured_.push_back(value);
        } else if (boundary.kind == LoopFrame::Kind::switch_) {
          activate(boundary.variable);
        } else {
          for (const Output& input : value.node->inputs) values.push_back(input);
          if (const Node* next = next_iteration(*value.node)) values.push_back(next->inputs[0]);
        }
      }
    };
    while (!pending.empty()) {
      const Variable& variable = variables_[pending.back()];
      pending.pop_back();
      follow(variable.next->inputs[0]);
    }
  }

  // What a Switch of a read graph lets through may be dead where the gradient's lists want it.
  void check_conditions() const {
    if (!frame_.references().empty())
      frame_.refuse(
          "its gradient cannot be made: it carries a reference from iteration to iteration",
          condition_);
    for (const auto& node : graph_.nodes()) {
      if (!is_within(*node) || !node->is("Switch") || node->inputs[1].node->is("LoopCond"))
        continue;
      if (same(node->inputs[0], node->inputs[1])) continue;  // that of pivots
      frame_.refuse(
          concat(
              "its gradient cannot be made: ", describe(*node),
              " in its body takes a value into a branch; use cond(), which needs no such Switch"),
          *node);
    }
  }

  // ---- The gradient of the body ----

  std::vector<Output> differentiate_body() {
    std::vector<Output> ys, xs, dys;
    const Beside beside(graph_, condition_, concat(condition_.name, "/body"), pivots_);
    for (Variable& variable : variables_) {
      if (!variable.is_active) continue;
      const Output next = variable.next->inputs[0];
      // Stands for what comes from the iteration behind; in the loop, so that what uses it is.
      const ControlScope within(graph_, std::vector<Node*>{variable.sides});
      dys.push_back(op("PlaceholderWithDefault", {next}, {{"shape", next.shape()}}));
      incoming_[dys.back().node->id] = static_cast<int>(dys.size()) - 1;
      ys.push_back(next);
      xs.push_back(variable.sides->output(1));
    }
    xs.insert(xs.end(), captured_.begin(), captured_.end());
    std::vector<Node*> nodes;
    if (ys.empty()) return {};
    std::vector<Output> out = gradients_in_body(ys, xs, dys, {request_.frame, nodes});
    for (const Node* node : nodes) nodes_of_inner_loops_.push_back(node->id);
    return out;
  }

  static std::vector<DType> dtypes_of(const std::vector<Output>& values) {
    std::vector<DType> out;
    for (const Output& value : values) out.push_back(value ? value.dtype() : DType::invalid);
    return out;
  }

  bool is_of_the_loop(int node) const {
    return body_->has(node) ? (*body_)[node].is_of_the_loop : is_within(*graph_.nodes()[node]);
  }

  // Whole numbers that depend on the loop's values alone, such as their shapes: they are small,
  // their arguments need not be.
  void find_what_belongs_to_the_loop() {
    for (const int node : nodes_of_inner_loops_) {
      if (is_constant(node)) {
        shared_constants_.insert(node);
      } else {
        (*body_)[node].is_of_the_loop = true;
      }
    }
    for (int i = body_->begin(); i < body_->end(); ++i) {
      Piece& piece = (*body_)[i];
      const Node& node = piece.node;
      if (!piece.is_needed || node.op->is_stateful || is_loop_node(node) || node.is("Merge") ||
          node.is("Switch") || incoming_.contains(i))
        continue;
      const bool gives_integers =
          std::all_of(node.outputs.begin(), node.outputs.end(),
                      [](const OutputSpec& output) { return is_integer(output.dtype); });
      const auto is_there = [&](int source) {
        return is_of_the_loop(source) || !body_->has(source);
      };
      const auto depends = [&](const auto& input) { return is_of_the_loop(input.node); };
      if (gives_integers && !node.outputs.empty() &&
          std::any_of(piece.inputs.begin(), piece.inputs.end(), depends) &&
          std::all_of(piece.inputs.begin(), piece.inputs.end(),
                      [&](const Value& input) {
                        return is_there(input.node) || is_constant(input.node);
                      }) &&
          std::all_of(piece.controls.begin(), piece.controls.end(), is_there))
        make_of_the_loop(i);
    }
  }
  bool is_constant(int node) const {
    return body_->has(node) && (*body_)[node].node.is("Const") && (*body_)[node].controls.empty();
  }
  void make_of_the_loop(int node) {
    Piece& piece = (*body_)[node];
    piece.is_of_the_loop = true;
    for (const Value& input : piece.inputs) {
      if (is_constant(input.node)) shared_constants_.insert(input.node);
    }
  }

  // ---- The loop as it is, with lists ----

  // A node of the frame around the loop, if there is one: what is made there waits for it.
  std::vector<Node*> anchor() const {
    Node* found = nullptr;
    int around = Frames::none;
    const auto consider = [&](Node* source) {
      const int frame = frames_.of(*source);
      if (frame == around || !frames_.is_within(frame, around)) return;
      found = source;
      around = frame;
    };
    for (const Variable& variable : variables_) {
      for (const Output& input : variable.enter->inputs) consider(input.node);
      for (Node* control : variable.enter->control_inputs) consider(control);
    }
    std::vector<Node*> out = pivots_;
    if (found != nullptr) out.push_back(found);
    return out;
  }

  template <class Make>
  void note_loop_nodes(const Make& make) {
    const size_t first = graph_.size();
    make();
    for (size_t i = first; i < graph_.size(); ++i)
      out_.loop_nodes.push_back(graph_.nodes()[i].get());
  }

  // Puts the pieces that belong to the loop into it, then the lists of what the gradient needs.
  void extend_the_loop(const std::vector<Value>& roots) {
    anchor_ = anchor();
    note_loop_nodes([&] {
      for (int i = body_->begin(); i < body_->end(); ++i) {
        const Piece& piece = (*body_)[i];
        if (!piece.is_needed || !(piece.is_of_the_loop || shared_constants_.contains(i))) continue;
        std::vector<Output> inputs;
        std::vector<Node*> controls;
        for (const Value& input : piece.inputs) inputs.push_back(in_the_loop(input));
        for (const int control : piece.controls) controls.push_back(in_the_loop({control, 0}).node);
        placed_[i] = &graph_.copy(piece.node, std::move(inputs), std::move(controls));
      }
    });
    find_saved(roots);
    const std::string frame = variables_[0].enter->attr<std::string>("frame_name");
    LoopBuilder loop(condition_, frame, anchor_);
    note_loop_nodes([&] {
      const int counter = loop.add_variable(constant(graph_, 0, "zero"));
      loop.set_next(counter, loop.in_body(counter) + 1);
      counter_ = loop.result(counter);
      for (const auto& [node, index] : saved_)
        lists_.push_back(save(loop, in_the_loop({node, index})));
    });
  }

  Output in_the_loop(const Value& value) const {
    Node* const node =
        body_->has(value.node) ? placed_.at(value.node) : graph_.nodes()[value.node].get();
    return {node, value.index};
  }

  // The list of the values that this one has in the iterations, as the loop leaves it.
  Output save(LoopBuilder& loop, Output value) {
    value = live(value);
    shapes_.push_back(value.shape());
    dtypes_.push_back(value.dtype());
    const int list = loop.add_variable(tensor_list::empty(graph_, value.dtype(), value.shape()));
    loop.set_next(list, tensor_list::push(loop.in_body(list), value));
    return loop.result(list);
  }

  // The value, or another one where it is dead, in a branch that is not taken.
  Output live(Output value) {
    std::vector<Node*> pivots = pivots_beyond(pivots_of(*value.node), pivots_);
    while (!pivots.empty()) {
      Node* const pivot = pivots.back();
      pivots.pop_back();
      const Output other = [&] {
        std::vector<Node*> elsewhere = pivots;
        elsewhere.push_back(&other_pivot(*pivot));
        const ControlScope there(graph_, elsewhere);
        return stand_in(value);
      }();
      const ControlScope around(graph_, pivots);
      value = merge({value, other})[0];
    }
    return value;
  }
  Output stand_in(Output value) {
    if (value.dtype() == DType::variant) return tensor_list::empty(graph_, f32, Shape::unknown());
    Tensor nothing(value.dtype(), {});
    if (nothing.dtype() != DType::string) std::memset(nothing.raw(), 0, nothing.bytes());
    const Output scalar = constant(graph_, std::move(nothing));
    if (value.shape().rank() == 0 || !value.shape().is_complete()) return scalar;
    return op("Fill", {Dims(value.shape()).in(graph_), scalar});
  }

  // ---- What the gradient needs of the loop's values ----

  void find_saved(const std::vector<Value>& roots) {
    const auto save = [&](const Value& value) {
      if (value.node == none || !is_of_the_loop(value.node) || is_recomputed(value)) return;
      const Position at{value.node, value.index};
      if (std::find(saved_.begin(), saved_.end(), at) == saved_.end()) saved_.push_back(at);
    };
    for (const Value& root : roots) save(root);
    for (int i = body_->begin(); i < body_->end(); ++i) {
      const Piece& piece = (*body_)[i];
      if (!piece.is_needed || piece.is_of_the_loop || incoming_.contains(i)) continue;
      for (const Value& input : piece.inputs) save(input);
      for (const int control : piece.controls) {
        for (const Node* pivot : pivots_to(control))
          save(BodyGradient::value(predicate_of(*pivot)));
      }
    }
  }

  // A constant of the body, or what enters in every iteration.
  bool is_recomputed(const Value& value) const {
    if (body_->has(value.node)) return false;
    const Node& node = *graph_.nodes()[value.node];
    return node.is("Const") || frame_.boundary(node).kind == LoopFrame::Kind::enter;
  }

  // If that is a pivot of the body: the branches that it lies in, and itself.
  std::vector<Node*> pivots_to(int control) const {
    if (body_->has(control)) return {};
    Node* const node = graph_.nodes()[control].get();
    if (!is_pivot(*node) || !is_within(*node)) return {};
    std::vector<Node*> out = pivots_beyond(pivots_of(*node), pivots_);
    out.push_back(node);
    return out;
  }

  // ---- The loop of the gradient ----

  void build(const std::vector<Value>& roots, const std::vector<DType>& root_dtypes) {
    LoopBuilder loop(graph_, graph_.scopes().name + "frame", anchor_, condition_.location);
    loop_ = &loop;
    const int left = loop.add_variable(counter_);
    for (const Variable& variable : variables_) {
      if (!variable.is_active) continue;
      out_.gradients.emplace_back(variable.enter->inputs[0], Output{});
      carried_.push_back(loop.add_variable(
          variable.dy ? variable.dy
                      : zeros_for(result_of(variable), variable.enter->inputs[0].dtype())));
    }
    for (size_t i = 0; i < captured_.size(); ++i) {
      const size_t root = carried_.size() + i;
      if (roots[root].node == none) {
        sums_.push_back(none);
        continue;
      }
      sums_.push_back(loop.add_variable(zeros_for(captured_[i], root_dtypes[root])));
    }
    std::vector<int> lists;
    for (const Output& list : lists_) lists.push_back(loop.add_variable(list));

    const Output go_on = [&] {
      const ControlScope within(graph_, std::vector<Output>{loop.merged(left)});
      return greater(loop.merged(left), 0);
    }();
    loop.start_body(go_on);
    body_pivot_ = loop.in_body(left).node;
    loop.set_next(left, loop.in_body(left) - 1);
    for (size_t i = 0; i < lists.size(); ++i) {
      const auto [rest, last] = tensor_list::pop(loop.in_body(lists[i]), dtypes_[i], shapes_[i]);
      loop.set_next(lists[i], rest);
      restored_[saved_[i]] = last;
    }
    place_pieces();
    for (size_t i = 0; i < carried_.size(); ++i) {
      const Output before = loop.in_body(carried_[i]);
      const Output next = roots[i].node == none ? zeros_like(before) : map(roots[i]);
      loop.set_next(carried_[i], within_the_body(next));
      out_.gradients[i].second = loop.result(carried_[i]);
    }
    for (size_t i = 0; i < captured_.size(); ++i) {
      if (sums_[i] == none) continue;
      const Output sum = add_n({loop.in_body(sums_[i]), map(roots[carried_.size() + i])});
      loop.set_next(sums_[i], sum);
      out_.gradients.emplace_back(captured_[i], loop.result(sums_[i]));
    }
    out_.loop = &condition_;
  }

  Output result_of(const Variable& variable) {
    if (variable.exit != nullptr) return variable.exit->output();
    Output out;
    note_loop_nodes([&] { out = op("Exit", {variable.sides->output(0)}); });
    return out;
  }

  Output within_the_body(Output value) {
    const ControlScope within(graph_, std::vector<Node*>{body_pivot_});
    return op("Identity", {value});
  }

  void place_pieces() {
    for (int i = body_->begin(); i < body_->end(); ++i) {
      const Piece& piece = (*body_)[i];
      if (!piece.is_needed || placed_.contains(i) || incoming_.contains(i)) continue;
      std::vector<Output> inputs;
      for (const Value& input : piece.inputs) inputs.push_back(map(input));
      std::vector<Node*> controls;
      for (const int control : piece.controls) {
        Node* const mapped = map_control(control);
        if (std::find(controls.begin(), controls.end(), mapped) == controls.end())
          controls.push_back(mapped);
      }
      placed_[i] = &graph_.copy(piece.node, std::move(inputs), std::move(controls));
    }
  }

  Output map(const Value& value) {
    if (const auto found = incoming_.find(value.node); found != incoming_.end())
      return loop_->in_body(carried_[found->second]);
    if (const auto found = restored_.find({value.node, value.index}); found != restored_.end())
      return found->second;
    if (body_->has(value.node)) return {placed_.at(value.node), value.index};
    Node& node = *graph_.nodes()[value.node];
    if (!is_within(node)) return {&node, value.index};
    if (!node.is("Const")) return node.inputs[0];  // an Enter
    Output& copy = constants_[value.node];
    if (!copy) copy = constant(graph_, node.attr<Tensor>("value"));
    return copy;
  }

  // A branch of the body is one here, too. What waits for another of the loop's nodes is to run in
  // each iteration.
  Node* map_control(int control) {
    if (body_->has(control)) {
      const auto placed = placed_.find(control);
      return placed == placed_.end() || is_of_the_loop(control) ? body_pivot_ : placed->second;
    }
    Node& node = *graph_.nodes()[control];
    if (!is_within(node)) return &node;
    return is_pivot(node) ? branch_like(node) : body_pivot_;
  }

  Node* branch_like(Node& pivot) {
    const auto found = branches_.find(pivot.id);
    if (found != branches_.end()) return found->second;
    std::vector<Node*> around;
    for (Node* outer : pivots_beyond(pivots_of(pivot), pivots_))
      around.push_back(branch_like(*outer));
    const ControlScope within(graph_, around);
    const Pivots made = add_pivots(map(BodyGradient::value(predicate_of(pivot))));
    const bool is_true = is_of_true_side(pivot);
    branches_[pivot.id] = is_true ? made.if_true : made.if_false;
    branches_[other_pivot(pivot).id] = is_true ? made.if_false : made.if_true;
    return branches_[pivot.id];
  }

  const LoopGradientRequest& request_;
  Graph& graph_;
  const Frames frames_;
  const LoopFrame frame_;
  Node& condition_;
  const std::vector<Node*> pivots_;  // of the branches that the loop is in
  std::vector<Variable> variables_;
  std::vector<Output> captured_;  // from outside, in the body

  BodyGradient* body_ = nullptr;
  std::map<int, int> incoming_;  // stands for the gradient of the active variable of that number
  std::vector<int> nodes_of_inner_loops_;
  std::set<int> shared_constants_;  // pieces that both loops use
  std::map<int, Node*> placed_;     // what became of the pieces

  std::vector<Node*> anchor_;
  Output counter_;
  std::vector<Position> saved_;  // and of each its list, dtype and shape
  std::vector<Output> lists_;
  std::vector<DType> dtypes_;
  std::vector<Shape> shapes_;

  LoopBuilder* loop_ = nullptr;
  std::vector<int> carried_, sums_;  // variables of the gradient's loop
  Node* body_pivot_ = nullptr;
  std::map<Position, Output> restored_;
  std::map<int, Output> constants_;
  std::map<int, Node*> branches_;
  LoopGradient out_;
};

}  // namespace

LoopGradient loop_gradient(const LoopGradientRequest& request) {
  return Differentiation(request).run();
}

}  // namespace leat
