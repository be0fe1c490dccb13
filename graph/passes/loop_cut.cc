#include "graph/passes/loop_cut.h"

#include <algorithm>
#include <map>

#include "graph/loops/loops.h"
#include "graph/passes/variable_accesses.h"
#include "graph/rebuild.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

// A larger constant from outside is captured, not copied into a loop's parts.
constexpr size_t copied_constant_bytes = 1 << 20;

bool is_copied_constant(const Node& node) {
  return node.is("Const") && node.attr<Tensor>("value").bytes() <= copied_constant_bytes;
}

// The variable whose memory a value is. Null if it is none.
const Node* variable_behind(Output value) {
  const Output ref = reference_behind(value);
  return ref ? state_behind(ref) : nullptr;
}

// What both parts use of the graph around them.
class Surroundings {
 public:
  // The captured value's number.
  int capture(const Captured& value) {
    const auto at = std::find(captured.begin(), captured.end(), value);
    const auto number = static_cast<int>(at - captured.begin());
    if (at == captured.end()) captured.push_back(value);
    return number;
  }
  // Of a read of a whole variable. Its first read stands for all.
  int capture_read(const Node& variable, const Node& read) {
    return capture(
        {state_output(variable), whole_reads_.try_emplace(variable.id, &read).first->second});
  }
  void refer_to(const Node& variable) { references.insert(variable.id); }

  std::vector<Captured> captured;
  std::set<int> references;

 private:
  std::map<int, const Node*> whole_reads_;  // by the variable's id
};

// One part: what its roots need of the loop.
class PartCut {
 public:
  PartCut(const LoopFrame& frame, Surroundings& surroundings, Simplify extent)
      : frame_(frame),
        extent_(extent),
        graph_(frame.graph()),
        surroundings_(surroundings),
        is_needed_(graph_.size()),
        rebuild_(graph_) {}

  LoopPart cut(const std::vector<Output>& roots, const std::vector<Node*>& targets) && {
    find_needed(roots, targets);
    enter_all();
    for (const auto& node : graph_.nodes()) {
      if (!is_needed_[node->id]) continue;
      if (frame_.is_brought_read(*node)) {
        add_brought_read(*node);
      } else {
        infer_shapes_or_defer(rebuild_.copy(*node));
      }
    }
    LoopPart part;
    StepSignature signature;
    for (const Output& root : roots) part.endpoints.push_back(rebuild_.map(root).name());
    signature.fetches = part.endpoints;
    for (const Node* target : targets) {
      if (is_needed_[target->id]) signature.targets.push_back(target->name);
    }
    part.graph = std::move(rebuild_).finish();
    structure_loops(part.graph, signature, extent_);
    read_late(part.graph, nullptr);
    simplify(part.graph, signature, extent_);
    return part;
  }

 private:
  // ---- What the part needs ----

  bool comes_from_outside(const Node& node) const {
    return frame_.is_cut(node) || frame_.is_early_read(node);
  }

  void need(const Node& node) {
    if (comes_from_outside(node) || is_needed_[node.id]) return;
    is_needed_[node.id] = true;
    to_visit_.push_back(&node);
  }

  void need(const Output& value) {
    if (comes_from_outside(*value.node)) {
      entering_.push_back(value);
    } else {
      need(*value.node);
    }
  }

  void find_needed(const std::vector<Output>& roots, const std::vector<Node*>& targets) {
    for (const Output& root : roots) need(root);
    for (const Node* target : targets) need(*target);
    while (!to_visit_.empty()) {
      const Node& node = *to_visit_.back();
      to_visit_.pop_back();
      const bool is_brought = frame_.is_brought_read(node);
      if (is_brought) need_way_of(node.inputs[0]);
      for (size_t i = is_brought ? 1 : 0; i < node.inputs.size(); ++i) need(node.inputs[i]);
      for (const Node* control : node.control_inputs) need(*control);
      if (const Node* next = next_iteration(node)) need(*next);
    }
  }

  void need_way_of(const Output& handle) {
    for (const Output& passed : way_of(handle)) {
      if (is_switch(*passed.node)) need(passed.node->inputs[1]);
      for (const Node* control : passed.node->control_inputs) need(*control);
    }
  }

  // The Switches of conditions, and Identities, that a handle comes through within the loop.
  std::vector<Output> way_of(Output handle) const {
    std::vector<Output> out;
    while (!frame_.is_cut(*handle.node) &&
           (is_switch(*handle.node) || handle.node->is("Identity"))) {
      out.push_back(handle);
      handle = handle.node->inputs[0];
    }
    std::reverse(out.begin(), out.end());
    return out;
  }

  // ---- What stands for the rest ----

  void enter_all() {
    std::map<int, std::vector<Output>> outputs;  // by node id
    for (const Output& value : entering_) {
      std::vector<Output>& all = outputs[value.node->id];
      all.resize(value.node->outputs.size());
      if (!all[value.index]) all[value.index] = enter(value);
    }
    for (auto& [id, all] : outputs) rebuild_.replace(*graph_.nodes()[id], all, {});
  }

  // What stands for a value of the graph around the loop, or for a loop variable.
  Output enter(const Output& value) {
    if (frame_.is_early_read(*value.node)) return feed_captured({value, value.node}, value);
    if (!frame_.is_within(*value.node)) return enter_from_outside(value, value);
    using Kind = LoopFrame::Kind;
    const auto [kind, variable] = frame_.boundary(*value.node);
    const bool is_variable =
        (kind == Kind::merge && value.index == 0) || (kind == Kind::switch_ && value.index == 1);
    if (is_variable) return feed({true, variable}, value.dtype(), value.node->location);
    if (kind == Kind::reference && value.index == int{is_switch(*value.node)})
      return enter_from_outside(frame_.references()[variable].enter->inputs[0], value);
    if (kind != Kind::enter)
      frame_.refuse(concat("'", value.name(), "' is used within the loop"), *value.node);
    return enter_from_outside(value.node->inputs[0], value);
  }

  // `value` is what the loop has of the source: the source itself, or an Enter's output.
  Output enter_from_outside(const Output& source, const Output& value) {
    if (source.is_handle() && (value.is_ref() || value.dtype() == DType::resource)) {
      if (const Node* state = state_behind(source)) {
        if (value.is_ref()) {
          surroundings_.refer_to(*state);
        } else {
          surroundings_.capture({state_output(*state)});
        }
        return brought(*state);
      }
    }
    if (const Node* variable = variable_behind(source);
        variable != nullptr && frame_.writes(*variable)) {
      surroundings_.refer_to(*variable);
      return brought(*variable);
    }
    if (is_copied_constant(*source.node)) return brought(*source.node);
    return feed_captured({source}, value);
  }

  // The part's own copy of a node without inputs.
  Output brought(const Node& node) {
    Node* const known = rebuild_.graph().find(node.name);
    return (known != nullptr ? *known : rebuild_.copy(node)).output();
  }

  Output feed_captured(const Captured& captured, const Output& value) {
    return feed({false, surroundings_.capture(captured)}, value.dtype(), value.node->location);
  }

  Output feed(const LoopFeed& name, DType dtype, const Location& at) {
    Output& made = feeds_[name.name()];
    if (!made) {
      const std::string_view what = name.is_variable ? "/variable_" : "/captured_";
      made = add({.op = "_Feed",
                  .name = graph_.unique_name(concat(frame_.condition().name, what, name.number)),
                  .attrs = {{"dtype", dtype}, {"name", name.name()}},
                  .location = at})
                 .output();
    }
    return made;
  }

  // ---- Reads of variables of other tasks ----

  void add_brought_read(const Node& node) {
    const Node& variable = *state_behind(node.inputs[0]);
    const int number = node.is("VariableShape")
                           ? surroundings_.capture({state_output(variable), &node})
                           : surroundings_.capture_read(variable, node);
    const Output fed = feed({false, number}, node.outputs[0].dtype, node.location);
    const Output whole = brought_along(fed, node.inputs[0]);
    NodeSpec spec{.op = "Identity",
                  .name = node.name,
                  .inputs = {whole},
                  .control_inputs = rebuild_.control_inputs_of(node),
                  .location = node.location};
    if (node.is("ResourceGather")) {
      const auto batch_dims = node.attr<int64_t>("batch_dims");
      Node& axis = add({.op = "Const",
                        .name = graph_.unique_name(node.name + "/axis"),
                        .attrs = {{"dtype", DType::i32},
                                  {"value", Tensor::scalar(static_cast<int32_t>(batch_dims))}},
                        .location = node.location});
      spec.op = "GatherV2";
      spec.inputs = {whole, rebuild_.map(node.inputs[1]), axis.output()};
      spec.attrs = {{"batch_dims", batch_dims}};
    }
    Node& made = add(std::move(spec));
    infer_shapes_or_defer(made);
    rebuild_.replace(node, {made.output()}, {&made});
  }

  // What a handle stands for goes the way that the handle went: it is dead where that was.
  Output brought_along(Output whole, const Output& handle) {
    for (const Output& passed : way_of(handle)) {
      std::vector<Output> inputs = {whole};
      if (is_switch(*passed.node)) inputs.push_back(rebuild_.map(passed.node->inputs[1]));
      Node& made = add(
          {.op = is_switch(*passed.node) ? "Switch" : "Identity",
           .name = rebuild_.graph().unique_name(graph_.unique_name(passed.node->name + "/value")),
           .inputs = std::move(inputs),
           .control_inputs = rebuild_.control_inputs_of(*passed.node),
           .location = passed.node->location});
      infer_shapes_or_defer(made);
      whole = made.output(passed.index);
    }
    return whole;
  }

  Node& add(NodeSpec spec) { return rebuild_.graph().insert(std::move(spec), DeviceName()); }

  const LoopFrame& frame_;
  const Simplify extent_;
  const Graph& graph_;
  Surroundings& surroundings_;
  std::vector<bool> is_needed_;  // by node id
  std::vector<const Node*> to_visit_;
  std::vector<Output> entering_;
  Rebuild rebuild_;
  std::map<std::string, Output> feeds_;  // by their names
};

}  // namespace

LoopCut cut_loop(const LoopFrame& frame, Simplify extent) {
  Surroundings surroundings;
  std::vector<Output> next;
  std::vector<Node*> after;
  for (const LoopFrame::Variable& variable : frame.variables()) {
    next.push_back(variable.next->inputs[0]);
    after.insert(after.end(), variable.next->control_inputs.begin(),
                 variable.next->control_inputs.end());
  }
  for (const LoopFrame::Variable& reference : frame.references()) {
    after.push_back(reference.next->inputs[0].node);
    after.insert(after.end(), reference.next->control_inputs.begin(),
                 reference.next->control_inputs.end());
  }
  LoopCut cut;
  cut.condition = PartCut(frame, surroundings, extent)
                      .cut({frame.condition().inputs[0]}, frame.condition().control_inputs);
  cut.body = PartCut(frame, surroundings, extent).cut(next, after);
  if (const std::vector<Node*> last = frame.run_at_the_end(); !last.empty())
    cut.last = PartCut(frame, surroundings, extent).cut({}, last);
  cut.captured = std::move(surroundings.captured);
  cut.references = std::move(surroundings.references);
  return cut;
}

}  // namespace leat
