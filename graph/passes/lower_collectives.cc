// lower_collectives: collectives whose members are all on GPUs that a library connects become a
// `_CollectiveRun` on each of them; for the others the plain ops and transfers stay, and of the
// marks (graph/ops/collective_result.h) nothing is left.
//
// Members that are other programs have their marks in other graphs. Their GPUs are taken to be
// those of their tasks that have this member's number, for they build the same model.
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

// The marks of one collective, by rank; null where the member is another program.
using Members = std::vector<const Node*>;

// The one that the graph holds first.
const Node& first_of(const Members& members) {
  const Node* out = nullptr;
  for (const Node* each : members) {
    if (each != nullptr && (out == nullptr || each->id < out->id)) out = each;
  }
  return *out;
}

// The name of an exchange between programs; empty if the graph has all members.
const std::string& programs_of(const Node& node) { return node.attr<std::string>("programs"); }

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
  // Clients may write marks by hand.
  bool is_consistent(const Node& mark) const;
  // If the step has all members, or this program's, each on a GPU of its own with the kernel.
  bool can_be_lowered(const Members& members, const DeadTogether& dead) const;
  bool can_run(const Node& mark, const DeviceName& device) const;
  // By rank.
  static std::vector<DeviceName> devices_of(const Members& members);
  // False if two collectives wait for each other.
  bool find_depths();
  void order();
  // A step that fails before it has the first value takes no part.
  // `first`: the first node of the graph that needs it.
  void join(Group& group, const Node& first, Rebuild& rebuild) const;
  void replace_mark(const Node& mark, Rebuild& rebuild);
  void replace_ticket(const Node& ticket, Rebuild& rebuild);
  void replace_signal(const Node& signal, Rebuild& rebuild) const;
  Node& run_node(const Node& mark, const Lowered& lowered, Node& join, Rebuild& rebuild) const;

  const Graph& graph_;
  const KeptNames& kept_;
  std::map<std::string, const DeviceSpec*> devices_;
  std::vector<Lowered> lowered_;
  std::map<const Node*, Lowered*> of_mark_;
  std::map<std::string, Group> groups_;  // by the names of the devices
  std::map<std::string, Group*> groups_of_programs_;
  std::map<const Lowered*, Group*> group_of_;
};

bool is_mark(const Node& node) { return node.is("CollectiveResult"); }

std::vector<DeviceName> Lowering::devices_of(const Members& members) {
  std::vector<DeviceName> out;
  for (size_t k = 0; k < members.size(); ++k) {
    if (members[k] != nullptr) {
      out.push_back(*members[k]->assigned_device);
      continue;
    }
    const Node& own = first_of(members);
    out.push_back(DeviceName::parse(own.attr<std::vector<std::string>>("tasks")[k])
                      .with_defaults(*own.assigned_device));
  }
  return out;
}

bool Lowering::can_run(const Node& mark, const DeviceName& device) const {
  const auto known = devices_.find(device.to_string());
  if (known == devices_.end() || known->second->type != DeviceType::gpu) return false;
  Node run;
  run.op = &op_named("_CollectiveRun");
  run.attrs.insert_or_assign("T", mark.outputs[0].dtype);
  return has_kernel(*known->second, run);
}

bool Lowering::can_be_lowered(const Members& members, const DeadTogether& dead) const {
  const Node& first = first_of(members);
  const bool has_programs = !programs_of(first).empty();
  for (const Node* mark : members) {
    if (mark == nullptr && has_programs) continue;
    if (mark == nullptr || !dead.is_in_no_branch(*mark)) return false;
    const Node& own = *mark->inputs[1].node;
    const bool is_here = own.assigned_device->to_string() == mark->assigned_device->to_string();
    if (!is_here || !mark->inputs[1].shape().is_complete()) return false;
  }
  std::set<std::string> places;
  for (const DeviceName& device : devices_of(members)) {
    if (!can_run(first, device) || !places.insert(device.to_string()).second) return false;
  }
  return true;
}

bool Lowering::is_consistent(const Node& mark) const {
  const auto rank = mark.attr<int64_t>("rank"), members = mark.attr<int64_t>("members");
  if (rank >= members) return false;
  if (programs_of(mark).empty()) return members <= static_cast<int64_t>(graph_.size());
  const bool has_ticket = mark.inputs.size() > 2;
  return members == std::ssize(mark.attr<std::vector<std::string>>("tasks")) &&
         has_ticket == (rank != 0);
}

void Lowering::find() {
  std::map<std::string, Members> found;
  std::set<std::string> broken;   // marks that contradict each other
  std::set<std::string> refused;  // programs: the library runs all their marks or none
  for (const auto& node : graph_.nodes()) {
    if (!is_mark(*node)) continue;
    const auto& name = node->attr<std::string>("group");
    if (!is_consistent(*node)) {
      broken.insert(name);
      refused.insert(programs_of(*node));
      continue;
    }
    Members& members = found[name];
    const auto rank = static_cast<size_t>(node->attr<int64_t>("rank"));
    const auto count = static_cast<size_t>(node->attr<int64_t>("members"));
    if (members.empty()) members.resize(count);
    if (members.size() != count || members[rank] != nullptr) {
      broken.insert(name);
    } else {
      members[rank] = node.get();
    }
  }
  if (found.empty()) return;
  const DeadTogether dead(graph_);
  for (const auto& [name, members] : found) {
    if (!broken.contains(name) && can_be_lowered(members, dead)) {
      lowered_.push_back({members});
    } else {
      refused.insert(programs_of(first_of(members)));
    }
  }
  refused.erase("");
  std::erase_if(lowered_, [&](const Lowered& each) {
    return refused.contains(programs_of(first_of(each.members)));
  });
  for (Lowered& each : lowered_) {
    for (const Node* mark : each.members) {
      if (mark != nullptr) of_mark_.emplace(mark, &each);
    }
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
    const std::string& programs = programs_of(first_of(each.members));
    const std::vector<DeviceName> devices = devices_of(each.members);
    std::string key = programs;
    for (const DeviceName& device : devices) key += concat(" ", device.to_string());
    Group& group = groups_[key];
    group.devices = devices;
    group.collectives.push_back(&each);
    group_of_[&each] = &group;
    if (!programs.empty()) groups_of_programs_[programs] = &group;
  }
  for (auto& [key, group] : groups_) {
    std::stable_sort(group.collectives.begin(), group.collectives.end(),
                     [](const Lowered* a, const Lowered* b) {
                       return std::pair(a->depth, first_of(a->members).id) <
                              std::pair(b->depth, first_of(b->members).id);
                     });
    for (size_t i = 0; i < group.collectives.size(); ++i)
      group.collectives[i]->position = static_cast<int64_t>(i);
  }
}

void Lowering::join(Group& group, const Node& first, Rebuild& rebuild) const {
  std::string names;
  for (const DeviceName& device : group.devices)
    names += concat(names.empty() ? "" : ", ", device.to_string());
  const Lowered& lowered = is_mark(first) ? *of_mark_.at(&first) : *group.collectives.front();
  const std::string key = concat(names, programs_of(first));
  // Equal in all steps of a session, which then share the communicator.
  const std::string scope = concat("collectives_of_", std::hash<std::string>{}(key), "/member_");
  Output ticket;
  for (size_t rank = 0; rank < group.devices.size(); ++rank) {
    group.joins.push_back(nullptr);
    if (lowered.members[rank] == nullptr) continue;
    const Node& mark = *lowered.members[rank];
    const Output& own = mark.inputs[1];
    if (mark.inputs.size() > 2) ticket = rebuild.map(mark.inputs[2]);
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
    group.joins.back() = &node;
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

void Lowering::replace_mark(const Node& mark, Rebuild& rebuild) {
  const auto found = of_mark_.find(&mark);
  if (found == of_mark_.end()) return leave_plain(mark, rebuild);
  Group& group = *group_of_.at(found->second);
  if (group.joins.empty()) join(group, mark, rebuild);
  Node& own_join = *group.joins[static_cast<size_t>(mark.attr<int64_t>("rank"))];
  Node& made = run_node(mark, *found->second, own_join, rebuild);
  rebuild.replace(mark, {made.output()}, {&made});
}

void Lowering::replace_ticket(const Node& ticket, Rebuild& rebuild) {
  const auto found = groups_of_programs_.find(programs_of(ticket));
  if (found == groups_of_programs_.end()) {
    rebuild.copy(ticket);
    return;
  }
  Group& group = *found->second;
  check(group.collectives.front()->members[0] != nullptr, "'", ticket.name,
        "' gives out a ticket, which is for the first member of '", found->first, "'");
  if (group.joins.empty()) join(group, ticket, rebuild);
  rebuild.replace(ticket, {{group.joins[0], 1}}, {group.joins[0]});
}

void Lowering::replace_signal(const Node& signal, Rebuild& rebuild) const {
  const bool is_by_library = groups_of_programs_.contains(programs_of(signal));
  const bool is_taken = is_by_library == signal.attr<bool>("by_library");
  Node& node = rebuild.graph().insert(
      {.op = "NoOp",
       .name = signal.name,
       .control_inputs = is_taken ? rebuild.control_inputs_of(signal) : std::vector<Node*>{},
       .location = signal.location},
      {});
  node.assigned_device = signal.assigned_device;
  rebuild.replace(signal, {{&node, 0}}, {&node});
}

Graph Lowering::run() {
  find();
  if (!find_depths()) of_mark_.clear();
  if (!of_mark_.empty()) order();
  Rebuild rebuild(graph_);
  for (const auto& node : graph_.nodes()) {
    if (is_mark(*node)) {
      replace_mark(*node, rebuild);
    } else if (node->is("CollectiveTicket")) {
      replace_ticket(*node, rebuild);
    } else if (node->is("CollectiveSignal")) {
      replace_signal(*node, rebuild);
    } else {
      rebuild.copy(*node);
    }
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
