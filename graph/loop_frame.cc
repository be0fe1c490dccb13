#include "graph/loop_frame.h"

#include <algorithm>

#include "graph/loops.h"

namespace leat {
namespace {

// The one where a variable of the loop comes round again.
bool is_loop_merge(const Node& node) { return next_iteration(node) != nullptr; }

}  // namespace

bool is_switch(const Node& node) { return node.is("Switch") || node.is("RefSwitch"); }

const Node* state_behind(Output handle) {
  while (is_enter(*handle.node) || handle.node->is("Identity") || is_switch(*handle.node))
    handle = handle.node->inputs[0];
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
      is_conditional_(graph.size()) {
  for (const auto& node : graph.nodes()) {
    if (!is_within(*node)) continue;
    find_boundary(*node);
    is_after_[node->id] = follows_the_end(*node);
    is_conditional_[node->id] = may_be_dead(*node);
  }
  if (condition_ == nullptr) refuse("it has no LoopCond", *first_);
  for (const auto& node : graph.nodes()) {
    if (is_exit(*node) && frames_.of(*node->inputs[0].node) == frame_) check_exit(*node);
    if (!is_within(*node)) continue;
    note_writes(*node);
    if (is_after(*node)) check_after(*node);
  }
  uses_several_tasks_ = tasks_of_state().size() > 1;
}

void LoopFrame::refuse(const std::string& what, const Node& node) const {
  fail(Code::invalid_argument, with_node(concat("while loop '", name(), "': ", what), node.name));
}

// Called in the graph's order: a Merge before the Switch of its variable.
void LoopFrame::find_boundary(const Node& node) {
  if (first_ == nullptr) first_ = &node;
  if (frames_.of(node) != frame_) return;
  if (node.is("RefNextIteration") || (node.is("RefMerge") && is_loop_merge(node)))
    refuse("a reference cannot be a loop variable: pass the variable's value", node);
  Boundary& boundary = boundary_[node.id];
  if (is_enter(node)) {
    boundary.kind = Kind::enter;
  } else if (is_loop_merge(node)) {
    boundary = {Kind::merge, static_cast<int>(variables_.size())};
    const Node& enter = *node.inputs[0].node;
    if (!is_enter(enter)) refuse("its Merge does not follow an Enter", node);
    const Node& next = *next_iteration(node);
    if (frames_.of(next) != frame_)
      refuse(concat("NextIteration node '", next.name, "' has a value from outside of it"), next);
    variables_.push_back({&enter, &node, &next});
  } else if (node.is("LoopCond")) {
    if (condition_ != nullptr) refuse("it has two LoopConds", node);
    boundary.kind = Kind::condition;
    condition_ = &node;
  } else if (is_switch(node) && node.inputs[1].node->is("LoopCond")) {
    const Boundary& data = boundary_[node.inputs[0].node->id];
    if (data.kind != Kind::merge)
      refuse(concat("Switch node '", node.name, "' is not that of a loop variable"), node);
    boundary = {Kind::switch_, data.variable};
  }
}

// The values that the variables have when the loop ends, and what is computed of them, which may
// as well be done behind it.
bool LoopFrame::is_from_the_end(const Output& value) const {
  return is_after(*value.node) || (boundary(*value.node).kind == Kind::switch_ && value.index == 0);
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

void LoopFrame::check_exit(const Node& node) const {
  if (is_from_the_end(node.inputs[0])) return;
  refuse(concat("Exit node '", node.name, "' does not follow the Switch of a loop variable"), node);
}

void LoopFrame::check_after(const Node& node) const {
  for (const Output& input : node.inputs) {
    const bool is_there = !is_within(*input.node) || is_from_the_end(input) ||
                          boundary(*input.node).kind == Kind::enter;
    if (is_there) continue;
    refuse(concat(describe(node), " has '", input.name(),
                  "' of an iteration and a value of the loop's end among its inputs"),
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
      if (state != nullptr) out.insert(state->requested_device.task_name().to_string());
    }
  }
  return out;
}

}  // namespace leat
