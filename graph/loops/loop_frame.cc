#include "graph/loops/loop_frame.h"

#include <algorithm>

#include "graph/loops/loops.h"

namespace leat {
namespace {

// The one where a variable of the loop comes round again.
bool is_loop_merge(const Node& node) { return next_iteration(node) != nullptr; }

// By node id: the variable that the node's reference stands for, by whatever updates of it. Null if
// it has none, or one variable's or another's.
std::vector<const Node*> variables_of_references(const Graph& graph) {
  std::vector<const Node*> out(graph.size());
  for (const auto& node : graph.nodes()) {
    if (node->outputs.empty() || !node->outputs[0].is_ref) continue;
    const auto variable_of = [&](const Output& input) {
      return input.is_ref() ? out[input.node->id] : nullptr;
    };
    const Node* const variable = node->inputs.empty() ? node.get() : variable_of(node->inputs[0]);
    const bool is_one = !node->is("RefMerge") ||
                        std::all_of(node->inputs.begin(), node->inputs.end(),
                                    [&](const Output& x) { return variable_of(x) == variable; });
    out[node->id] = is_one ? variable : nullptr;
  }
  return out;
}

}  // namespace

bool is_switch(const Node& node) { return node.is("Switch") || node.is("RefSwitch"); }

const Node* state_behind(Output handle) {
  const auto hands_on = [](const Node& node) {
    return is_enter(node) || node.is("Identity") || is_switch(node) ||
           (node.is("RefMerge") && is_loop_merge(node));
  };
  while (hands_on(*handle.node)) handle = handle.node->inputs[0];
  const bool is_state =
      handle.is_handle() && handle.node->inputs.empty() && !handle.node->is("_Feed");
  return is_state ? handle.node : nullptr;
}

Output state_output(const Node& state) { return {const_cast<Node*>(&state), 0}; }

LoopFrame::LoopFrame(const Graph& graph, const Frames& frames, int frame)
    : graph_(graph),
      frames_(frames),
      frame_(frame),
      boundary_(graph.size()),
      is_after_(graph.size()),
      is_conditional_(graph.size()),
      needs_iteration_(graph.size()) {
  for (const auto& node : graph.nodes()) {
    if (!is_within(*node)) continue;
    find_boundary(*node);
    is_after_[node->id] = follows_the_end(*node);
    is_conditional_[node->id] = may_be_dead(*node);
    needs_iteration_[node->id] = needs_an_iteration(*node);
  }
  if (condition_ == nullptr) refuse("it has no LoopCond", *first_);
  if (!references_.empty()) check_references();
  for (const auto& node : graph.nodes()) {
    if (is_exit(*node) && frames_.of(*node->inputs[0].node) == frame_) check_exit(*node);
    if (!is_within(*node)) continue;
    note_writes(*node);
    if (is_after(*node)) check_after(*node);
  }
  uses_several_tasks_ = tasks_of_state().size() > 1;
}

void LoopFrame::refuse(const std::string& what, const Node& node) const {
  fail_at(node.name, Code::invalid_argument, "while loop '", name(), "': ", what);
}

// Called in the graph's order: a Merge before the Switch of its variable.
void LoopFrame::find_boundary(const Node& node) {
  if (first_ == nullptr) first_ = &node;
  if (frames_.of(node) != frame_) return;
  Boundary& boundary = boundary_[node.id];
  if (is_enter(node)) {
    boundary.kind = Kind::enter;
  } else if (is_loop_merge(node)) {
    const bool is_reference = node.is("RefMerge");
    std::vector<Variable>& all = is_reference ? references_ : variables_;
    boundary = {is_reference ? Kind::reference : Kind::merge, static_cast<int>(all.size())};
    const Node& enter = *node.inputs[0].node;
    if (!is_enter(enter)) refuse("its Merge does not follow an Enter", node);
    const Node& next = *next_iteration(node);
    if (frames_.of(next) != frame_)
      refuse(concat("NextIteration node '", next.name, "' takes a value from outside the loop"),
             next);
    all.push_back({&enter, &node, &next});
  } else if (node.is("LoopCond")) {
    if (condition_ != nullptr) refuse("it has two LoopConds", node);
    boundary.kind = Kind::condition;
    condition_ = &node;
  } else if (is_switch(node) && node.inputs[1].node->is("LoopCond")) {
    const Boundary& data = boundary_[node.inputs[0].node->id];
    if (data.kind != Kind::merge && data.kind != Kind::reference)
      refuse(concat("Switch node '", node.name, "' does not belong to a loop variable"), node);
    boundary = {data.kind == Kind::merge ? Kind::switch_ : Kind::reference, data.variable};
  }
}

// The values that the variables have when the loop ends, and what is computed of them, which may
// as well be done behind it.
bool LoopFrame::is_from_the_end(const Output& value) const {
  const Kind kind = boundary(*value.node).kind;
  const bool is_end = kind == Kind::switch_ || (kind == Kind::reference && is_switch(*value.node));
  return is_after(*value.node) || (is_end && value.index == 0);
}

bool LoopFrame::follows_the_end(const Node& node) const {
  return boundary(node).kind == Kind::inner &&
         std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const Output& input) { return is_from_the_end(input); });
}

// In a branch of a condition within the loop, or behind one.
bool LoopFrame::may_be_dead(const Node& node) const {
  if (is_switch(node) && !node.inputs[1].node->is("LoopCond")) return true;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const Output& input) { return is_conditional_[input.node->id]; }) ||
         std::any_of(node.control_inputs.begin(), node.control_inputs.end(),
                     [&](const Node* control) { return is_conditional_[control->id]; });
}

// Does it use, directly or not, what a Switch has for the body only? A Switch itself runs in any
// case, so a control edge from it is no such use.
bool LoopFrame::needs_an_iteration(const Node& node) const {
  if (boundary(node).kind != Kind::inner) return false;
  const auto is_in_need = [&](const Output& input) {
    const Kind kind = boundary(*input.node).kind;
    const bool is_switched =
        kind == Kind::switch_ || (kind == Kind::reference && is_switch(*input.node));
    return needs_iteration_[input.node->id] || (is_switched && input.index == 1);
  };
  const bool is_merge = node.is("Merge") || node.is("RefMerge");
  const bool has_values = is_merge
                              ? !std::all_of(node.inputs.begin(), node.inputs.end(), is_in_need)
                              : std::none_of(node.inputs.begin(), node.inputs.end(), is_in_need);
  return !has_values ||
         std::any_of(node.control_inputs.begin(), node.control_inputs.end(),
                     [&](const Node* control) { return needs_iteration_[control->id]; });
}

std::vector<Node*> LoopFrame::run_at_the_end() const {
  std::vector<bool> is_tested(graph_.size());  // it runs with the condition anyway
  std::vector<const Node*> pending{condition_};
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    const auto visit = [&](const Node* source) {
      if (is_tested[source->id] || is_cut(*source)) return;
      is_tested[source->id] = true;
      pending.push_back(source);
    };
    for (const Output& input : node->inputs) visit(input.node);
    for (const Node* control : node->control_inputs) visit(control);
  }
  const auto changes_state = [](const Node& node) {
    const bool has_reference = std::any_of(node.inputs.begin(), node.inputs.end(),
                                           [](const Output& input) { return input.is_ref(); });
    const bool makes_state =
        node.inputs.empty() && !node.outputs.empty() && node.outputs[0].is_handle();
    return (node.op->is_stateful || has_reference) && !node.op->only_reads_state &&
           !node.is("Identity") && !makes_state;
  };
  std::vector<Node*> out;
  for (const auto& node : graph_.nodes()) {
    if (frames_.of(*node) == frame_ && !is_cut(*node) && !is_tested[node->id] &&
        !needs_iteration_[node->id] && changes_state(*node))
      out.push_back(node.get());
  }
  return out;
}

void LoopFrame::check_references() const {
  const std::vector<const Node*> variables = variables_of_references(graph_);
  for (const auto& [enter, merge, next] : references_) {
    const Node* const variable = state_behind(enter->inputs[0]);
    if (variable == nullptr) refuse("its reference does not lead to one variable", *enter);
    if (variables[next->inputs[0].node->id] != variable)
      refuse(concat("the reference to '", variable->name,
                    "' may refer to another variable in the next iteration"),
             *next);
  }
}

void LoopFrame::check_exit(const Node& node) const {
  if (is_from_the_end(node.inputs[0])) return;
  refuse(concat("Exit node '", node.name, "' does not follow the Switch of a loop variable"), node);
}

void LoopFrame::check_after(const Node& node) const {
  for (const Output& input : node.inputs) {
    const bool is_there = !is_within(*input.node) || is_from_the_end(input) ||
                          boundary(*input.node).kind == Kind::enter;
    if (is_there) continue;
    refuse(concat(describe(node), " mixes '", input.name(),
                  "', a value of one iteration, with a value from the end of the loop"),
           node);
  }
}

void LoopFrame::note_writes(const Node& node) {
  if (is_enter(node) || node.is("Identity") || is_switch(node)) return;
  if (node.op->only_reads_state) return;
  for (const Output& input : node.inputs) {
    const Node* state = input.is_handle() ? state_behind(input) : nullptr;
    if (state != nullptr) written_.insert(state->id);
  }
}

bool LoopFrame::reads_unwritten(const Node& node) const {
  const Node* variable = state_behind(node.inputs[0]);
  return variable != nullptr && !writes(*variable);
}

bool LoopFrame::is_early_read(const Node& node) const {
  return (node.is("ReadVariableOp") || node.is("VariableShape")) && !is_conditional_[node.id] &&
         reads_unwritten(node);
}

bool LoopFrame::is_brought_read(const Node& node) const {
  const bool is_read =
      node.is("ReadVariableOp") || node.is("ResourceGather") || node.is("VariableShape");
  return uses_several_tasks_ && is_read && is_within(node) && !is_early_read(node) &&
         reads_unwritten(node);
}

// The tasks that must have state that the loop has by its handle.
std::set<std::string> LoopFrame::tasks_of_state() const {
  std::set<std::string> out;
  for (const auto& node : graph_.nodes()) {
    if (!is_within(*node) || is_enter(*node) || is_early_read(*node)) continue;
    for (const Output& input : node->inputs) {
      const Node* state = input.is_handle() ? state_behind(input) : nullptr;
      if (state != nullptr) out.insert(state->requested_device->task_name().to_string());
    }
  }
  return out;
}

}  // namespace leat
