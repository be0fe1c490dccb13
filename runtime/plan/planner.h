// How plan_program() works: each node, in topological order, becomes part of a segment, an item of
// its own, or nothing (constants, variables, feeds), and its inputs are brought to it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/set_pool.h"
#include "runtime/plan/program_plan.h"

namespace leat {

// Where a value lies. On a CPU everything is `host`; values are copied only on other devices.
enum class Place : uint8_t { host, device };

class Planner {
 public:
  Planner(Graph graph, const std::vector<std::string>& fetches, Device& device, Device& host,
          Containers& containers, NodeStates& node_states, const PartPlaces* part);

  ProgramPlan take() { return std::move(plan_); }

 private:
  struct State : NodeRole {
    int waits = 0, dead = 0;  // sets
    int group = -1;           // what others wait for: of boundary nodes and some ControlTriggers
    int flag = -1;            // of a boundary node: first dead flag
    int item = -1;
    std::vector<const Node*> upstream;  // of a node without an item: the nodes it stands for
    int segment_node = -1;
    int variable = -1, resource = -1;  // handle outputs resolve to one of them
    int constant = -1;                 // its number; for a feed, the feed's number
    // A handle on state of the step, such as a TensorArray: known at run time, like other values.
    bool is_value_handle = false;
    bool is_wanted = false;
    // Known when a tape is compiled, from shapes and constants of the same segment.
    bool is_foldable = false;
  };

  State& state(const Node& node) { return states_[node.id]; }

  // ---- planner.cc: sets, segments, items ----

  bool has_many_groups();
  void add(Node& node);
  // On a GPU, counts that are in host memory are computed there.
  void stay_on_host(const Node& node, State& s);
  void join_sets(const Node& node, State& s);
  int waits_for(const State& from);
  void add_boundary(Node& node, State& s);
  // Sets the group and the dead flags of a boundary node's item.
  void enter_group(const Node& node, State& s, Item& item);
  void add_to_segment(Node& node, State& s);
  // Their numbers in the item's segment.
  int segment_variable(int item, int variable, bool is_written);
  int segment_constant(int item, int constant);
  // A value that must be known before the tape is compiled, or lie in other memory, must come from
  // another segment.
  void wait_for_values(const Node& node, State& s);
  int segment_item(const State& s);
  bool has_foldable_inputs(const Node& node, const State& s);
  // `before` is another item, which runs first, or an earlier node of the same segment.
  void run_after(const Node& before, const State& s);
  void add_fetches();
  // Results that leave before their segment has ended. `segment`: the item of the one that makes
  // the value.
  void find_early_uses();
  bool is_sent_early(int item, int segment) const;
  bool is_marked_input(int item, int input, int segment);
  void connect();
  void find_received_for_device();

  // ---- planner_handles.cc: variables, resources and what leads to them ----

  void resolve_handle(const Node& node, State& s);
  // True for a handle that a kernel makes, a feed provides, or a node passes on.
  bool find_value_handle(const Node& node, State& s);
  // True for a handle that leads to the same state in every step.
  bool is_fixed_handle(const Output& output);
  // A resource does not show its variable's dtype: the node's attributes claim one.
  void check_dtype(const Node& node, const Output& handle);
  // A resource is made from its node's attributes, and from its inputs if they are constants.
  AttrMap with_constant_inputs(const Node& node);
  int add_resource(const Node& node);
  std::shared_ptr<Resource> private_resource(const NodeView& node, const OpDef& op);
  void add_variable(const Node& node, State& s);

  // ---- planner_values.cc: values that cross ----

  Place place_of(const Output& value);
  Place wanted_place(const Node& node, const State& s, int input, const Output& value);
  // The item that copies a value to another place; created on the first request.
  int copy_item(const Output& value, Place place);
  int copy_group(int copy, int waits);  // the group of the copied value
  ItemSource source_of(const Output& value, Place place);
  void upload_constant(int number);
  int slot_of(const Output& value, Place place);
  // The items that must complete before the value is available.
  std::vector<int> suppliers_of(const Output& value, Place place);
  int segment_input(int item, const Output& value, Place place, bool is_by_value);
  static int dead_flag_of(const State& boundary, int output);
  std::vector<int> dead_flags_of(const Output& value);
  int new_group(int waits);
  int new_flags(int count);
  int value_group(const Output& value);
  // The node itself; for a node that does nothing (constants, variables), the nodes before it.
  std::vector<const Node*> real_nodes(const Node& node);
  std::vector<int> items_of(const Node& node);
  std::vector<const Node*> upstream_of(const Node& node);

  Containers& containers_;
  NodeStates& node_states_;
  const bool is_host_;
  const PartPlaces* const part_;  // null: a whole step
  ProgramPlan plan_;
  std::vector<State> states_;
  SetPool sets_, wait_sets_;
  int groups_ = 0;
  bool has_many_groups_ = false;
  std::map<std::tuple<std::string, int64_t, int>, int> receive_groups_;
  std::map<std::tuple<int, int, int, int>, std::pair<int, int>> switch_groups_;
  std::map<std::pair<int, int>, int> execute_groups_;  // (waits, dead)
  std::map<std::pair<int, int>, int> value_groups_;
  std::map<std::pair<int, int>, int> slots_, copies_;  // by (node, output)
  std::map<int, int> copy_groups_;
  std::map<std::pair<int, int>, int> segment_inputs_;  // (item, slot) → input of the segment
  // (item, variable or constant) → its place in SegmentPlan::variables or constants
  std::map<std::pair<int, int>, size_t> segment_variables_, segment_constants_;
  std::unordered_map<const Variable*, int> variables_;
  std::vector<std::set<int>> dependencies_;           // of an item
  std::map<std::pair<int, int>, int> segment_items_;  // (waits, dead) → item + 1
  std::vector<FetchedOutput> fetches_;
};

}  // namespace leat
