#include "distributed/worker/registration_check.h"

#include <unordered_map>

#include "graph/endpoint.h"
#include "graph/loops/loops.h"

namespace leat {
namespace {

std::string title(const CutEdge& edge) {
  return concat("edge ", edge.id, " '", edge.tensor_name, "'");
}

bool is_control(const CutEdge& edge) { return edge.dtype == DType::invalid; }

class RegistrationCheck {
 public:
  RegistrationCheck(const RegisterGraph& graph, const TaskName& self)
      : graph_(graph), self_(self) {}

  void run() {
    for (const CutEdge& edge : graph_.edges) add(edge);
    for (const auto& [device, partition] : graph_.partitions) {
      const DeviceName here = DeviceName::parse(device);
      for (const auto& node : partition.nodes()) {
        if (node->assigned_device != here) {
          fail(Code::invalid_argument, describe(*node), " is for device '", node->assigned_device,
               "' and came in the partition of ", device);
        }
        check_node(*node, here, /*is_in_loop=*/false);
      }
    }
    for (const auto& [id, ends] : ends_) {
      check(ends.send != nullptr || !begins_here(*ends.edge), title(*ends.edge), " begins on ",
            self_, ", but no partition has a _Send for it");
      check(ends.recv != nullptr || !ends_here(*ends.edge), title(*ends.edge), " ends on ", self_,
            ", but no partition has a _Recv for it");
    }
    for (const std::string& fetch : graph_.fetches) check_fetch(fetch);
  }

 private:
  struct Ends {
    const CutEdge* edge = nullptr;
    const Node *send = nullptr, *recv = nullptr;
  };

  bool begins_here(const CutEdge& edge) const { return TaskName::of(edge.source) == self_; }
  bool ends_here(const CutEdge& edge) const { return TaskName::of(edge.destination) == self_; }

  void add(const CutEdge& edge) {
    check(edge.source.is_complete() && edge.destination.is_complete(), title(edge), " leads from '",
          edge.source, "' to '", edge.destination, "': both must be complete device names");
    check(begins_here(edge) || ends_here(edge), title(edge), " leads from ", edge.source, " to ",
          edge.destination, " and neither is on ", self_);
    check(edge.id >= 0 && edge.id <= INT32_MAX, title(edge), ": an edge's id is from 0 to ",
          INT32_MAX);
    const auto [entry, is_new] = ends_.try_emplace(edge.id, Ends{&edge});
    check(is_new, title(edge), " has the same id as '", entry->second.edge->tensor_name, "'");
  }

  Ends& ends_of(const Node& node) {
    const auto id = node.attr<int64_t>("edge");
    const auto entry = ends_.find(id);
    check(entry != ends_.end(), describe(node), " is for edge ", id, " '",
          node.attr<std::string>("tensor_name"), "', which is not among the graph's edges");
    return entry->second;
  }

  void check_node(const Node& node, const DeviceName& here, bool is_in_loop) {
    if (node.is("_Send")) check_send(node, here, is_in_loop);
    if (node.is("_Recv")) check_recv(node, here, is_in_loop);
    if (node.is("_Loop")) check_loop(node, here);
  }

  // The parts of a loop that is spread over several devices have edges between them.
  void check_loop(const Node& loop, const DeviceName& here) {
    const LoopParts parts(loop);
    for (const Graph* part : {&parts.condition, &parts.body, &parts.last}) {
      for (const auto& node : part->nodes()) check_node(*node, here, /*is_in_loop=*/true);
    }
    const auto id = loop.attr<int64_t>("done_edge");
    if (id < 0) return;
    const auto entry = ends_.find(id);
    check(entry != ends_.end(), describe(loop), " signals on edge ", id,
          ", which is not among the graph's edges");
    Ends& ends = entry->second;
    const CutEdge& edge = *ends.edge;
    check(ends.send == nullptr && is_control(edge) && edge.repeats && edge.source == here,
          title(edge), " does not carry the signal of ", describe(loop), " on ", here);
    ends.send = &loop;
  }

  // What _Send and _Recv have in common.
  static void check_end(const Node& node, const CutEdge& edge, const DeviceName& device,
                        const DeviceName& here, bool is_in_loop) {
    check(here == device, title(edge), ": ", describe(node), " is on ", here,
          ", but the edge leads from ", edge.source, " to ", edge.destination);
    check(edge.repeats == is_in_loop, title(edge), is_in_loop ? " does not repeat" : " repeats",
          ", but ", describe(node), is_in_loop ? " is in a loop" : " is in none");
    check(node.attr<std::string>("tensor_name") == edge.tensor_name &&
              node.attr<std::string>("send_device") == edge.source.to_string() &&
              node.attr<std::string>("recv_device") == edge.destination.to_string() &&
              node.attr<int64_t>("wave") == edge.wave,
          title(edge), ": ", describe(node),
          " differs from the edge in tensor_name, send_device, recv_device or wave");
  }

  static void check_count(const Node& node, const CutEdge& edge, size_t values) {
    check(values == (is_control(edge) ? 0 : 1), title(edge), ": ", describe(node), " has ", values,
          values == 1 ? " value, but the edge carries " : " values, but the edge carries ",
          is_control(edge) ? "none" : "one");
  }

  void check_send(const Node& node, const DeviceName& here, bool is_in_loop) {
    Ends& ends = ends_of(node);
    const CutEdge& edge = *ends.edge;
    check(ends.send == nullptr, title(edge), " has two _Send nodes");
    ends.send = &node;
    check_end(node, edge, edge.source, here, is_in_loop);
    check_count(node, edge, node.inputs.size());
    if (is_control(edge)) return;
    const Output& value = node.inputs[0];
    check(value.dtype() == edge.dtype, title(edge), " carries ", edge.dtype,
          ", but its _Send gets ", value.dtype(), " from '", value.name(), "'");
    check(value.shape().is_compatible(edge.shape), title(edge), " carries shape ", edge.shape,
          ", but its _Send gets ", value.shape(), " from '", value.name(), "'");
  }

  void check_recv(const Node& node, const DeviceName& here, bool is_in_loop) {
    Ends& ends = ends_of(node);
    const CutEdge& edge = *ends.edge;
    check(ends.recv == nullptr, title(edge), " has two _Recv nodes");
    ends.recv = &node;
    check_end(node, edge, edge.destination, here, is_in_loop);
    check_count(node, edge, node.outputs.size());
    if (is_control(edge)) return;
    check(node.outputs[0].dtype == edge.dtype, title(edge), " carries ", edge.dtype,
          ", but its _Recv expects ", node.outputs[0].dtype);
    check(node.attr<Shape>("shape") == edge.shape, title(edge), " carries shape ", edge.shape,
          ", but its _Recv expects ", node.attr<Shape>("shape"));
  }

  void check_fetch(const std::string& fetch) const {
    const std::optional<Endpoint> name = Endpoint::parse(fetch);
    check(name.has_value(), "the fetch '", fetch, "' is not of the form node:1");
    for (const auto& [device, partition] : graph_.partitions) {
      const Node* node = partition.find(name->node);
      if (node == nullptr) continue;
      check(name->index >= 0 && name->index < node->num_outputs(), "the fetch '", fetch,
            "': ", describe(*node), " has ", node->num_outputs(), " outputs");
      return;
    }
    fail(Code::invalid_argument, "the fetch '", fetch, "' is in no partition of the graph");
  }

  const RegisterGraph& graph_;
  const TaskName& self_;
  std::unordered_map<int64_t, Ends> ends_;  // by edge
};

}  // namespace

void check_registration(const RegisterGraph& graph, const TaskName& self) {
  RegistrationCheck(graph, self).run();
}

}  // namespace leat
