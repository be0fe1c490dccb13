// lower_collectives: collectives whose members are all on GPUs that a library connects become a
// `_CollectiveRun` on each of them; for the others the plain ops and transfers stay, and of the
// marks (graph/ops/collective_result.h) nothing is left.
//
// The collectives of the same members share a communicator. All members must enqueue them in one
// order, so each has a position: first those that wait for no other, and so on.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/ops/collective_result.h"
#include "graph/passes/dead_together.h"
#include "graph/passes/device_kernels.h"
#include "graph/passes/simplify/simplify.h"
#include "graph/rebuild.h"

namespace leat {
namespace {

// The marks of one collective, by rank.
using Members = std::vector<const Node*>;

// A collective that a library can run.
struct Lowered {
  Members members;
  int depth = 0;  // the collectives on the longest way to it
  int64_t position = 0;
};

// Collectives of the same devices, in order of rank.
struct Group {
  std::vector<DeviceName> devices;
  std::vector<Lowered*> collectives;
  std::vector<Node*> joins;  // by rank: in the new graph
};

class Lowering {
 public:
  Lowering(const Graph& graph, const KeptNames& kept, const std::vector<DeviceSpec>& devices)
      : graph_(graph), kept_(kept) {
    for (const DeviceSpec& device : devices) devices_.emplace(device.name.to_string(), &device);
  }

  Graph run();

 private:
  void leave_plain(const Node& mark, Rebuild& rebuild) const;
  void find();
  // By rank, if the step has all members, each on a GPU of its own with the kernel.
  bool can_be_lowered(const Members& members, const DeadTogether& dead) const;
  bool can_run(const Node& mark) const;  // on its device
  // False if two collectives wait for each other.
  bool find_depths();
  void order();
  // A step that fails before it has the first value takes no part.
  // `first`: the first mark of the group that the graph holds.
  void join(Group& group, const Node& first, Rebuild& rebuild) const;
  Node& run_node(const Node& mark, const Lowered& lowered, Node& join, Rebuild& rebuild) const;

  const Graph& graph_;
  const KeptNames& kept_;
  std::map<std::string, const DeviceSpec*> devices_;
  std::vector<Lowered> lowered_;
  std::map<const Node*, Lowered*> of_mark_;
  std::map<std::string, Group> groups_;  // by the names of the devices
  std::map<const Lowered*, Group*> group_of_;
};

bool is_mark(const Node& node) { return node.is("CollectiveResult"); }

bool Lowering::can_run(const Node& mark) const {
  const auto known = devices_.find(mark.assigned_device->to_string());
  if (known == devices_.end() || known->second->type != DeviceType::gpu) return false;
  Node run;
  run.op = &op_named("_CollectiveRun");
  run.attrs.insert_or_assign("T", mark.outputs[0].dtype);
  return has_kernel(*known->second, run);
}

bool Lowering::can_be_lowered(const Members& members, const DeadTogether& dead) const {
  std::set<std::string> places;
  for (size_t k = 0; k < members.size(); ++k) {
    const Node* const mark = members[k];
    if (mark == nullptr || !can_run(*mark) || !dead.is_in_no_branch(*mark)) return false;
    const Node& own = *mark->inputs[1].node;
    const bool is_here = own.assigned_device->to_string() == mark->assigned_device->to_string();
    if (!is_here || !mark->inputs[1].shape().is_complete()) return false;
    if (!places.insert(mark->assigned_device->to_string()).second) return false;
  }
  return true;
}

void Lowering::find() {
  std::map<std::string, Members> found;
  std::set<std::string> broken;  // two marks of one rank
  for (const auto& node : graph_.nodes()) {
    if (!is_mark(*node)) continue;
    const auto& name = node->attr<std::string>("group");
    const auto rank = static_cast<size_t>(node->attr<int64_t>("rank"));
    Members& members = found[name];
    members.resize(static_cast<size_t>(node->attr<int64_t>("members")));
    if (rank >= members.size() || members[rank] != nullptr) {
      broken.insert(name);
    } else {
      members[rank] = node.get();
    }
  }
  if (found.empty()) return;
  const DeadTogether dead(graph_);
  for (const auto& [name, members] : found) {
    if (!broken.contains(name) && can_be_lowered(members, dead)) lowered_.push_back({members});
  }
  for (Lowered& each : lowered_) {
    for (const Node* mark : each.members) of_mark_.emplace(mark, &each);
  }
}

bool Lowering::find_depths() {
  std::vector<int> depths(graph_.size());
  for (size_t round = 0; round <= lowered_.size() + 1; ++round) {
    bool has_changed = false;
    for (const auto& node : graph_.nodes()) {
      int depth = 0;
      const auto see = [&](const Node& before) {
        depth = std::max(depth, depths[static_cast<size_t>(before.id)]);
      };
      const auto lowered = of_mark_.find(node.get());
      if (lowered == of_mark_.end()) {
        for (const Output& input : node->inputs) see(*input.node);
      } else {
        see(*node->inputs[1].node);
      }
      for (const Node* before : node->control_inputs) see(*before);
      if (lowered != of_mark_.end()) {  // its result waits for all members
        Lowered& collective = *lowered->second;
        has_changed = has_changed || depth > collective.depth;
        collective.depth = std::max(collective.depth, depth);
        depth = collective.depth + 1;
      }
      depths[static_cast<size_t>(node->id)] = depth;
    }
    if (!has_changed) return true;
  }
  return false;
}

void Lowering::order() {
  for (Lowered& each : lowered_) {
    std::string key;
    std::vector<DeviceName> devices;
    for (const Node* mark : each.members) {
      devices.push_back(*mark->assigned_device);
      key += concat(devices.back().to_string(), " ");
    }
    Group& group = groups_[key];
    group.devices = devices;
    group.collectives.push_back(&each);
    group_of_[&each] = &group;
  }
  for (auto& [key, group] : groups_) {
    std::stable_sort(
        group.collectives.begin(), group.collectives.end(), [](const Lowered* a, const Lowered* b) {
          return std::pair(a->depth, a->members[0]->id) < std::pair(b->depth, b->members[0]->id);
        });
    for (size_t i = 0; i < group.collectives.size(); ++i)
      group.collectives[i]->position = static_cast<int64_t>(i);
  }
}

void Lowering::join(Group& group, const Node& first, Rebuild& rebuild) const {
  std::string names;
  for (const DeviceName& device : group.devices)
    names += concat(names.empty() ? "" : ", ", device.to_string());
  // Equal in all steps of a session, which then share the communicator.
  const std::string scope = concat("collectives_of_", std::hash<std::string>{}(names), "/member_");
  Output ticket;
  for (size_t rank = 0; rank < group.devices.size(); ++rank) {
    const Node& mark = *of_mark_.at(&first)->members[rank];
    const Output& own = mark.inputs[1];
    Node& node = rebuild.graph().insert(
        {.op = "_CollectiveJoin",
         .name = rebuild.graph().unique_name(concat(scope, rank)),
         .inputs = ticket ? std::vector<Output>{ticket} : std::vector<Output>{},
         .attrs = {{"N", ticket ? 1 : 0},
                   {"rank", static_cast<int64_t>(rank)},
                   {"members", std::ssize(group.devices)},
                   {"collectives", std::ssize(group.collectives)},
                   {"devices", names}},
         .control_inputs =
             own.node->id < first.id ? std::vector{rebuild.map(own).node} : std::vector<Node*>{},
         .location = mark.location},
        {});
    node.assigned_device = mark.assigned_device;
    if (!ticket) ticket = {&node, 1};
    group.joins.push_back(&node);
  }
}

Node& Lowering::run_node(const Node& mark, const Lowered& lowered, Node& join,
                         Rebuild& rebuild) const {
  Node& node = rebuild.graph().insert({.op = "_CollectiveRun",
                                       .name = mark.name,
                                       .inputs = {rebuild.map(mark.inputs[1]), {&join, 0}},
                                       .attrs = {{"T", mark.outputs[0].dtype},
                                                 {"kind", mark.attr<std::string>("kind")},
                                                 {"is_mean", mark.attr<bool>("is_mean")},
                                                 {"members", mark.attr<int64_t>("members")},
                                                 {"position", lowered.position}},
                                       .control_inputs = rebuild.control_inputs_of(mark),
                                       .location = mark.location},
                                      {});
  node.assigned_device = mark.assigned_device;
  return node;
}

// The value that plain ops compute, under the mark's name if the client knows it.
void Lowering::leave_plain(const Node& mark, Rebuild& rebuild) const {
  const Output result = rebuild.map(mark.inputs[0]);
  std::vector<Node*> signals = rebuild.control_inputs_of(mark);
  if (!kept_.contains(mark)) {
    signals.push_back(result.node);
    return rebuild.replace(mark, {result}, signals);
  }
  Node& node = rebuild.graph().insert({.op = "Identity",
                                       .name = mark.name,
                                       .inputs = {result},
                                       .control_inputs = signals,
                                       .location = mark.location},
                                      {});
  node.assigned_device = mark.assigned_device;
  rebuild.replace(mark, {{&node, 0}}, {&node});
}

Graph Lowering::run() {
  find();
  if (!find_depths()) of_mark_.clear();
  if (!of_mark_.empty()) order();
  Rebuild rebuild(graph_);
  for (const auto& node : graph_.nodes()) {
    if (!is_mark(*node)) {
      rebuild.copy(*node);
      continue;
    }
    const auto found = of_mark_.find(node.get());
    if (found == of_mark_.end()) {
      leave_plain(*node, rebuild);
      continue;
    }
    Group& group = *group_of_.at(found->second);
    if (group.joins.empty()) join(group, *node, rebuild);
    Node& own_join = *group.joins[static_cast<size_t>(node->attr<int64_t>("rank"))];
    Node& made = run_node(*node, *found->second, own_join, rebuild);
    rebuild.replace(*node, {made.output()}, {&made});
  }
  return std::move(rebuild).finish();
}

}  // namespace

bool lower_collectives(Graph& graph, const StepSignature& signature,
                       const std::vector<DeviceSpec>& devices) {
  const auto& nodes = graph.nodes();
  const bool has_marks =
      std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return is_mark(*node); });
  if (!has_marks) return false;
  const KeptNames kept(graph, signature);
  graph = Lowering(graph, kept, devices).run();
  remove_unused(graph, kept);
  return true;
}

}  // namespace leat
