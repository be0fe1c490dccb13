// spread_loops: a loop that changes state on several devices. Each of them, and the loop's own
// device, its home, gets one `_Loop`. Home has the loop variables, and all nodes not bound to state
// or requested on another device; each iteration begins and ends there:
//
//   home:   condition → _Send predicate to all; body, and a _Recv of each other's done_edge
//   others: _Recv predicate; body; a signal on done_edge
//
// Both parts of the loop are placed and partitioned like a step, so values cross within an
// iteration by edges of their own. No task begins an iteration before all have ended the previous
// one: an edge carries one value at a time, and each iteration reads what the previous one wrote.
#include <algorithm>
#include <map>

#include "graph/import/graph_def.h"
#include "graph/loops/loop_frame.h"
#include "graph/loops/loops.h"
#include "graph/passes/pipeline.h"
#include "graph/rebuild.h"

namespace leat {
namespace {

// Where the loop has state by its handles, its own device first.
std::vector<DeviceName> devices_of(const Node& loop) {
  std::vector<DeviceName> out = {loop.assigned_device};
  for (const Output& input : loop.inputs) {
    const Node* state = input.is_handle() ? state_behind(input) : nullptr;
    if (state == nullptr) continue;
    if (std::find(out.begin(), out.end(), state->assigned_device) == out.end())
      out.push_back(state->assigned_device);
  }
  return out;
}

// A feed or a constant is on every device that uses it.
bool is_everywhere(const Node& node) { return node.is("_Feed") || node.is("Const"); }

bool is_variable_feed(const Node& node) {
  return node.is("_Feed") && LoopFeed::parse(node.attr<std::string>("name")).is_variable;
}

class LoopSpread {
 public:
  LoopSpread(const Node& loop, std::vector<DeviceName> devices, std::vector<CutEdge>& edges)
      : loop_(loop), devices_(std::move(devices)), home_(devices_[0]), edges_(edges) {
    placement_.default_device = home_;
    for (const DeviceName& device : devices_) {
      placement_.devices.push_back({device, device_type_from_name(*device.type)});
      replicas_.emplace_back();
    }
    for (const Output& input : loop.inputs) {
      const Node* state = input.is_handle() ? state_behind(input) : nullptr;
      if (state != nullptr) homes_of_state_.emplace(state->name, state->assigned_device);
    }
  }

  void add_to(Rebuild& rebuild) && {
    LoopParts parts(loop_);
    check(parts.last.size() == 0, describe(loop_),
          " changes state on several devices and has a control edge from a Switch itself: put the "
          "state on one device, or take the edge from an output of the Switch");
    cut_condition(std::move(parts.condition), parts.predicate);
    cut_body(std::move(parts.body), std::move(parts.next));
    Node& start = add_start(rebuild);
    std::vector<Node*> made;
    for (size_t d = 0; d < devices_.size(); ++d) made.push_back(&add_replica(d, start, rebuild));
    const std::vector<Node*> others(made.begin() + 1, made.end());
    std::vector<Output> results;
    for (int i = 0; i < loop_.num_outputs(); ++i) {
      const Output value = made[0]->output(i);
      results.push_back(
          identity(value, home_, concat(loop_.name, "/result_", i), others, rebuild.graph()));
    }
    rebuild.replace(loop_, std::move(results), std::move(made));
  }

 private:
  // The loop on one device.
  struct Replica {
    Graph condition, body;
    std::string predicate;
    std::vector<int> captured;  // which of the loop's captured values
    int64_t done_edge = -1;
  };

  // ---- The parts, placed and cut ----

  void cut_condition(Graph part, const std::string& predicate) {
    part = placed(std::move(part));
    const Output at_home = keep_home(part.output(predicate), part);
    std::vector<std::string> endpoints;
    for (size_t d = 0; d < devices_.size(); ++d) {
      const std::string name = concat(loop_.name, "/predicate_", d);
      const Output value = d == 0 ? at_home : identity(at_home, devices_[d], name, {}, part);
      endpoints.push_back(replicas_[d].predicate = value.name());
    }
    cut(std::move(part), std::move(endpoints), &Replica::condition);
  }

  void cut_body(Graph part, std::vector<std::string> next) {
    part = placed(std::move(part));
    for (std::string& name : next) {
      const Output value = part.output(name);
      if (value.node->assigned_device == home_) continue;
      name = identity(value, home_, concat(loop_.name, "/next"), {}, part).name();
    }
    next_ = next;
    cut(std::move(part), std::move(next), &Replica::body);
    for (size_t d = 1; d < devices_.size(); ++d) add_done_edge(d);
  }

  Graph placed(Graph part) {
    for (const auto& node : part.nodes()) {
      node->attrs.erase("_class");  // what ties nodes of state is its handle
      node->requested_device = asked_for(node->requested_device);
      const auto state = homes_of_state_.find(node->name);
      if (state != homes_of_state_.end()) node->assigned_device = state->second;
      if (node->is("_Feed")) node->assigned_device = home_;
    }
    place(part, placement_);
    spread_loops(part, edges_);
    return with_variables_at_home(part);
  }

  DeviceName asked_for(const DeviceName& request) const {
    for (const DeviceName& device : devices_) {
      if (request.matches(device)) return device;
    }
    const DeviceName task = request.task_name();
    for (const DeviceName& device : devices_) {
      if (task.matches(device)) return device;
    }
    return home_;
  }

  // A feed of a loop variable is at home only: other devices get it by an edge.
  Graph with_variables_at_home(const Graph& part) const {
    Rebuild rebuild(part);
    std::map<int, Output> sent;  // by the feed's id
    for (const auto& node : part.nodes()) {
      const bool is_away = node->assigned_device != home_;
      std::vector<Output> inputs;
      for (const Output& input : node->inputs) {
        inputs.push_back(rebuild.map(input));
        if (!is_away || !is_variable_feed(*input.node)) continue;
        Output& value = sent[input.node->id];
        if (!value)
          value = identity(inputs.back(), home_, input.node->name + "/sent", {}, rebuild.graph());
        inputs.back() = value;
      }
      Node& copy = rebuild.copy(*node);
      copy.inputs = std::move(inputs);
      // An iteration begins with its predicate, which nobody can run before.
      if (is_away)
        std::erase_if(copy.control_inputs, [](const Node* n) { return is_variable_feed(*n); });
    }
    return std::move(rebuild).finish();
  }

  // The value itself, unless other devices would have it without asking.
  Output keep_home(const Output& value, Graph& part) const {
    const bool is_there = value.node->assigned_device == home_ && !is_everywhere(*value.node);
    return is_there ? value : identity(value, home_, loop_.name + "/predicate", {}, part);
  }

  void cut(Graph part, std::vector<std::string> endpoints, Graph Replica::*member) {
    verify(part, "spread_loops");
    PartitionedGraph parts = partition(part, {.fetches = std::move(endpoints)},
                                       {.first_edge = static_cast<int64_t>(edges_.size())});
    for (CutEdge& edge : parts.edges) {
      edge.repeats = true;
      edges_.push_back(std::move(edge));
    }
    for (size_t d = 0; d < devices_.size(); ++d) {
      const auto found = parts.partitions.find(devices_[d].to_string());
      if (found != parts.partitions.end()) replicas_[d].*member = std::move(found->second);
      for (const auto& node : (replicas_[d].*member).nodes()) {
        if (node->is("_Feed")) renumber(*node, replicas_[d]);
      }
    }
  }

  // Each device captures only what it uses.
  static void renumber(Node& feed, Replica& replica) {
    LoopFeed name = LoopFeed::parse(feed.attr<std::string>("name"));
    if (name.is_variable) return;
    const auto at = std::find(replica.captured.begin(), replica.captured.end(), name.number);
    name.number = static_cast<int>(at - replica.captured.begin());
    if (at == replica.captured.end())
      replica.captured.push_back(LoopFeed::parse(feed.attr<std::string>("name")).number);
    feed.attrs.insert_or_assign("name", name.name());
  }

  void add_done_edge(size_t d) {
    const auto id = static_cast<int64_t>(edges_.size());
    CutEdge edge{.id = id,
                 .tensor_name = concat("edge_", id, "_", loop_.name, "/done"),
                 .source = devices_[d],
                 .destination = home_,
                 .producer = loop_.name,
                 .wave = static_cast<int>(replicas_[0].body.size() + id),  // nothing waits with it
                 .repeats = true};
    replicas_[d].done_edge = id;
    Graph& body = replicas_[0].body;
    body.insert({.op = "_Recv",
                 .name = body.unique_name(concat(loop_.name, "/_recv_", id)),
                 .attrs = {{"edge", id},
                           {"tensor_name", edge.tensor_name},
                           {"send_device", edge.source.to_string()},
                           {"recv_device", edge.destination.to_string()},
                           {"wave", static_cast<int64_t>(edge.wave)},
                           {"tensor_type", std::vector<DType>{}}},
                 .location = loop_.location},
                home_);
    edges_.push_back(std::move(edge));
  }

  // ---- The loops in the graph around them ----

  // Runs when all is there that the loop needs, and is dead where the loop is.
  Node& add_start(Rebuild& rebuild) const {
    std::vector<Node*> after = rebuild.control_inputs_of(loop_);
    for (const Output& input : loop_.inputs) {
      if (input.is_handle() && state_behind(input) != nullptr) continue;
      Output value = rebuild.map(input);
      if (is_switch(*value.node)) {  // a control edge from it does not tell which branch it took
        value = identity(value, value.node->assigned_device, loop_.name + "/input", {},
                         rebuild.graph());
      }
      if (std::find(after.begin(), after.end(), value.node) == after.end())
        after.push_back(value.node);
    }
    return rebuild.graph().insert({.op = "NoOp",
                                   .name = unused(loop_.name + "/start", rebuild.graph()),
                                   .control_inputs = std::move(after),
                                   .location = loop_.location},
                                  home_);
  }

  Node& add_replica(size_t d, Node& start, Rebuild& rebuild) {
    Replica& replica = replicas_[d];
    const auto types = loop_.attr<std::vector<DType>>("T");
    const size_t variables = types.size();
    const size_t first_reference = variables + loop_.attr<std::vector<DType>>("Tcaptured").size();
    std::vector<Output> inputs, references;
    std::vector<DType> captured_types, reference_types;
    const auto capture = [&](const Output& value) {
      inputs.push_back(rebuild.map(value));
      captured_types.push_back(inputs.back().dtype());
    };
    if (d == 0) {
      for (size_t i = 0; i < variables; ++i) inputs.push_back(rebuild.map(loop_.inputs[i]));
    }
    for (const int captured : replica.captured) capture(loop_.inputs.at(variables + captured));
    for (size_t i = variables; i < loop_.inputs.size(); ++i) {
      const Output& input = loop_.inputs[i];
      const Node* state = input.is_handle() ? state_behind(input) : nullptr;
      if (state == nullptr || state->assigned_device != devices_[d]) continue;
      if (i < first_reference) {
        capture(input);
      } else {
        references.push_back(rebuild.map(input));
        reference_types.push_back(input.dtype());
      }
    }
    inputs.insert(inputs.end(), references.begin(), references.end());
    Node& made = rebuild.graph().insert(
        {.op = "_Loop",
         .name = d == 0 ? loop_.name : unused(concat(loop_.name, "/part_", d), rebuild.graph()),
         .inputs = std::move(inputs),
         .attrs = {{"T", d == 0 ? types : std::vector<DType>{}},
                   {"Tcaptured", std::move(captured_types)},
                   {"Treferences", std::move(reference_types)},
                   {"frame_name", loop_.attr<std::string>("frame_name")},
                   {"condition", to_graph_def(replica.condition)},
                   {"predicate", replica.predicate},
                   {"body", to_graph_def(replica.body)},
                   {"next", d == 0 ? next_ : std::vector<std::string>{}},
                   {"done_edge", replica.done_edge}},
         .control_inputs = {&start},
         .location = loop_.location},
        devices_[d]);
    made.requested_device = loop_.requested_device;
    made.placement_reason = loop_.placement_reason;
    if (d > 0) made.placement_reason = std::string("where the loop has state");
    return made;
  }

  // Free in the graph, and in the one that the loop comes from.
  std::string unused(const std::string& name, const Graph& graph) const {
    std::string out = loop_.graph->unique_name(name);
    for (int i = 1; graph.find(out) != nullptr; ++i)
      out = loop_.graph->unique_name(concat(name, "_", i));
    return out;
  }

  Output identity(const Output& value, const DeviceName& device, const std::string& name,
                  std::vector<Node*> after, Graph& graph) const {
    return graph
        .insert({.op = "Identity",
                 .name = unused(name, graph),
                 .inputs = {value},
                 .control_inputs = std::move(after),
                 .location = loop_.location},
                device)
        .output();
  }

  const Node& loop_;
  const std::vector<DeviceName> devices_;
  const DeviceName home_;
  std::vector<CutEdge>& edges_;
  PlacementOptions placement_;
  std::map<std::string, DeviceName> homes_of_state_;  // by its node's name
  std::vector<Replica> replicas_;                     // by device
  std::vector<std::string> next_;
};

}  // namespace

bool spread_loops(Graph& graph, std::vector<CutEdge>& edges) {
  const auto is_spread = [](const auto& node) {
    return node->is("_Loop") && devices_of(*node).size() > 1;
  };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_spread)) return false;
  Rebuild rebuild(graph);
  for (const auto& node : graph.nodes()) {
    if (is_spread(node)) {
      LoopSpread(*node, devices_of(*node), edges).add_to(rebuild);
    } else {
      rebuild.copy(*node);
    }
  }
  graph = std::move(rebuild).finish();
  return true;
}

}  // namespace leat
