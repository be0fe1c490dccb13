// The roles of the nodes in one while loop, as a client wrote it: which bring values in, which
// carry variables from iteration to iteration, which may be read before the loop and which only
// after it. loop_cut.h cuts the loop's parts by these roles.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/loops/frames.h"

namespace leat {

bool is_switch(const Node& node);  // of references, too

// The state that a handle stands for: a variable, a queue. Null if the handle is a value that the
// step makes, such as a TensorArray's. A loop variable that is a reference always stands for the
// same variable.
const Node* state_behind(Output handle);
// The output of a state node that is its handle.
Output state_output(const Node& state);

// INVALID_ARGUMENT, with the loop and the node, if the frame is not a while loop of the usual form:
// one LoopCond, a Merge and a Switch for each variable, Exits behind those Switches.
class LoopFrame {
 public:
  struct Variable {
    const Node* enter;
    const Node* merge;
    const Node* next;
  };
  // What a boundary node of the loop stands for; all other nodes within are `inner`. `reference`:
  // the RefMerge or RefSwitch of a graph variable that the loop carries by reference.
  struct Boundary {
    enum class Kind : uint8_t { inner, merge, switch_, enter, reference, condition };
    Kind kind = Kind::inner;
    int variable = -1;  // of a merge, a switch or a reference
  };
  using Kind = Boundary::Kind;

  LoopFrame(const Graph& graph, const Frames& frames, int frame);

  const Graph& graph() const { return graph_; }
  const std::string& name() const { return frames_.name(frame_); }
  const Node& condition() const { return *condition_; }
  const std::vector<Variable>& variables() const { return variables_; }
  const std::vector<Variable>& references() const { return references_; }

  // In the loop's frame, or in that of a nested loop.
  bool is_within(const Node& node) const { return frames_.is_within(frames_.of(node), frame_); }
  Boundary boundary(const Node& node) const { return boundary_[node.id]; }
  // It is computed once, from the values that the variables have when the loop ends.
  bool is_after(const Node& node) const { return is_after_[node.id]; }
  // It is in neither of the loop's parts.
  bool is_cut(const Node& node) const {
    return !is_within(node) || boundary(node).kind != Kind::inner || is_after(node);
  }

  // Nodes that change state and use no value of a Switch (control edges from one are allowed): in
  // TensorFlow they also run when the condition ends the loop.
  std::vector<Node*> run_at_the_end() const;

  // May an iteration change this variable, or other state?
  bool writes(const Node& state) const { return written_.contains(state.id); }
  // A read in every iteration that can run once before the loop instead, since no iteration writes
  // its variable.
  bool is_early_read(const Node& node) const;
  // A read that would bind the loop to its variable's task, while other state binds it to another
  // task. The whole variable, or its shape, is read before the loop.
  bool is_brought_read(const Node& node) const;

  [[noreturn]] void refuse(const std::string& what, const Node& node) const;

 private:
  void find_boundary(const Node& node);
  bool is_from_the_end(const Output& value) const;
  bool follows_the_end(const Node& node) const;
  bool may_be_dead(const Node& node) const;
  bool needs_an_iteration(const Node& node) const;
  void check_references() const;
  void check_exit(const Node& node) const;
  void check_after(const Node& node) const;
  void note_writes(const Node& node);
  bool reads_unwritten(const Node& node) const;
  std::set<std::string> tasks_of_state() const;

  const Graph& graph_;
  const Frames& frames_;
  const int frame_;
  const Node* first_ = nullptr;
  const Node* condition_ = nullptr;
  std::vector<Boundary> boundary_;     // by node id
  std::vector<bool> is_after_;         // by node id
  std::vector<bool> is_conditional_;   // by node id: an iteration may skip it
  std::vector<bool> needs_iteration_;  // by node id: it does not run when the loop ends
  std::vector<Variable> variables_, references_;
  std::set<int> written_;            // by node id
  bool uses_several_tasks_ = false;  // by handles on state
};

}  // namespace leat
