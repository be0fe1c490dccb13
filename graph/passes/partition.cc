// partition: one graph per device, with a _Send and a _Recv for every value that crosses.
//
// It first finds and numbers all crossings, then builds the parts. One edge serves all consumers on
// the destination. What one peer sends in one wave is used when all of it is there: values with
// equally many borders before them, and with the same nodes that wait for others (a dequeue, a
// take from a mailbox), which may need another value of this step first. Where a variable itself (a
// ref edge) crosses, the _Send is the read, and a read happens "when the consumer runs": if one of
// the consumer's other inputs can depend on a write to that variable, the _Send waits for it.
//
// A fetched variable crosses to the client's task without an edge; the code that gives it to the
// client (node_roles.h) reads it, after the writes. Where TensorFlow's cluster sends it before
// them, an Identity reads it here.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/set_pool.h"
#include "graph/endpoint.h"
#include "graph/passes/pipeline.h"
#include "graph/passes/variable_accesses.h"
#include "graph/signature.h"

namespace leat {
namespace {

constexpr size_t copied_constant_bytes = 1 << 20;  // larger constants are sent

constexpr int control = -1;  // "output" of a control edge

using Ids = std::vector<int>;

// Who writes to a variable, and which nodes can run after a write. Few variables are read across
// devices.
class Writes {
 public:
  explicit Writes(const Graph& graph) : graph_(graph), accesses_(graph) {}

  // None for a reference that another op hands on.
  const std::vector<Node*>& to(const Output& ref) const {
    static const std::vector<Node*> none;
    const int variable = accesses_.variable_of(*ref.node);
    return variable == ref.node->id ? accesses_.writers(variable) : none;
  }

  // Can `node` run after a write to the variable that `ref` stands for, in this step?
  bool may_follow_write(const Node& node, const Output& ref) {
    const int variable = accesses_.variable_of(*ref.node);
    // Ids are in order: what comes before all writers follows none.
    const std::vector<Node*>& writers = accesses_.writers(variable);
    if (writers.empty() || node.id < writers.front()->id) return false;
    auto [found, is_new] = after_.try_emplace(variable);
    if (is_new) found->second = followers(graph_, accesses_.writers(variable));
    return found->second[node.id];
  }

 private:
  const Graph& graph_;
  const VariableAccesses accesses_;
  std::unordered_map<int, std::vector<bool>> after_;  // by variable; by node id
};

// One crossing: a value (or, for `control`, a signal) of `source` for a device. `after`: what the
// _Send of a variable waits for besides its source.
struct Crossing {
  int source = 0;
  int output = 0;
  int destination = 0;  // device
  Ids after;
  auto key() const { return std::tie(source, output, destination, after); }
  bool operator<(const Crossing& other) const { return key() < other.key(); }
};

struct Cut {
  Crossing crossing;
  int depth = 0;  // how many borders lie before it
  int waits = 0;  // the nodes before it that wait for others: a set of sets_
  int64_t id = 0;
  Node* recv = nullptr;
};

class Partitioner {
 public:
  Partitioner(const Graph& graph, const PartitionOptions& options)
      : graph_(graph),
        options_(options),
        writes_(graph),
        devices_(graph.size()),
        depths_(graph.size()),
        may_be_dead_(graph.size()),
        waits_(graph.size()),
        has_any_shape_(graph.size()),
        instances_(graph.size()) {}

  PartitionedGraph run(const StepSignature& signature) {
    find_devices();
    constexpr int many = 2000;
    has_many_waits_ = std::count_if(graph_.nodes().begin(), graph_.nodes().end(),
                                    [](const auto& it) { return waits_for_others(*it); }) > many;
    for (const auto& node : graph_.nodes()) visit(*node);
    find_early_fetches(signature);
    number_cuts();
    for (const auto& node : graph_.nodes()) {
      if (!is_everywhere(*node)) instance(*node, devices_[node->id]);
    }
    keep_named(signature);
    return finish(signature);
  }

 private:
  // ---- What is where ----

  void find_devices() {
    std::map<std::string, int> ids;  // sorted, so that numbers follow names
    const Node* before = nullptr;    // neighbours are in one place mostly
    for (const auto& node : graph_.nodes()) {
      if (before != nullptr && before->assigned_device == node->assigned_device) continue;
      if (!node->assigned_device->is_complete()) {
        fail(Code::internal, "partition: ", describe(*node), " has no device");
      }
      ids.emplace(node->assigned_device->to_string(), 0);
      before = node.get();
    }
    for (auto& [name, id] : ids) {
      id = static_cast<int>(parts_.size());
      parts_.push_back({name, DeviceName::parse(name), Graph()});
    }
    before = nullptr;
    for (const auto& node : graph_.nodes()) {
      const bool is_same = before != nullptr && before->assigned_device == node->assigned_device;
      devices_[node->id] =
          is_same ? devices_[before->id] : ids.at(node->assigned_device->to_string());
      before = node.get();
    }
  }

  // A feed is given to every device that uses it, and a small constant costs less than sending it
  // in every step.
  bool is_everywhere(const Node& node) const {
    if (node.is("_Feed")) return true;
    return node.is("Const") && node.control_inputs.empty() &&
           node.attr<Tensor>("value").bytes() <= copied_constant_bytes;
  }
  bool can_be_on(const Node& node, int device) const {
    if (!is_everywhere(node)) return devices_[node.id] == device;
    if (node.is("_Feed") || devices_[node.id] == device) return true;
    const DeviceType type = device_type_from_name(*parts_[device].name->type);
    return find_kernel(*node.op, node.attrs, type) != nullptr;
  }

  // ---- First round: crossings, depths, deadness ----

  // How many borders lie before the node; the edge it needs is noted.
  int reach(const Node& source, int output, int device, Ids after = {}) {
    if (can_be_on(source, device)) return depths_[source.id];
    Crossing crossing{source.id, output, device, std::move(after)};
    const auto known = cuts_.find(crossing);
    if (known != cuts_.end()) return known->second.depth + 1;
    int depth = depths_[source.id], waits = waits_[source.id];
    const int home = devices_[source.id];
    for (const int id : crossing.after) {
      depth = std::max(depth, reach(*graph_.nodes()[id], control, home));
      waits = sets_.unite(waits, waits_[static_cast<size_t>(id)]);
    }
    Cut& cut = cuts_[crossing];
    cut.crossing = std::move(crossing);
    cut.depth = depth;
    cut.waits = waits;
    return depth + 1;
  }

  int wave_of(const Cut& cut) {
    if (cut.waits == sets_.empty()) return cut.depth;
    const int next = static_cast<int>(graph_.size() + waves_.size());
    return waves_.try_emplace({cut.depth, cut.waits}, next).first->second;
  }

  // For what comes from outside of this step: another program or step, or the client between two
  // feeds of a partial run. It may need a value of this step first.
  static bool waits_for_others(const Node& node) {
    return node.is("_AwaitFeed") ||
           std::any_of(node.op->kernels.begin(), node.op->kernels.end(),
                       [](const Kernel& kernel) { return kernel.execute_async != nullptr; });
  }
  // Of very many behind each other the last ones are held: they imply the others.
  int with(int waits, int node) {
    if (!has_many_waits_) return sets_.with(waits, node);
    sets_.imply(node, waits);
    return sets_.one(node);
  }

  // What the read of a variable, input `i` of the node, has to come after.
  Ids read_after(const Node& node, size_t i) {
    const Output& ref = node.inputs[i];
    Ids after;
    const auto consider = [&](const Node& other) {
      if (&other != ref.node && writes_.may_follow_write(other, ref)) after.push_back(other.id);
    };
    for (const Output& input : node.inputs) {
      if (!input.is_ref()) consider(*input.node);
    }
    for (const Node* source : node.control_inputs) consider(*source);
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    return after;
  }

  bool is_remote_read(const Node& node, size_t i) const {
    return node.inputs[i].is_ref() && devices_[node.inputs[i].node->id] != devices_[node.id];
  }

  void check_refs(const Node& node) const {
    for (const ArgRange& range : arg_ranges(node.op->schema.inputs, node.attrs)) {
      for (int i = range.begin; i < range.end && range.arg->is_ref; ++i) {
        if (!is_remote_read(node, i)) continue;
        fail(Code::internal, "partition: ", describe(node), " on ", node.assigned_device,
             " updates ", node.inputs[i].name(), " on ", node.inputs[i].node->assigned_device);
      }
    }
  }

  void visit(const Node& node) {
    check_refs(node);
    if (is_everywhere(node)) return;
    const int device = devices_[node.id];
    int depth = 0;
    bool may_be_dead = node.is("Switch") || node.is("RefSwitch");
    int waits = sets_.empty();
    bool has_any_shape = node.view().has(any_shape_attr);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Output& input = node.inputs[i];
      Ids after = is_remote_read(node, i) ? read_after(node, i) : Ids{};
      depth = std::max(depth, reach(*input.node, input.index, device, std::move(after)));
      may_be_dead = may_be_dead || may_be_dead_[input.node->id];
      waits = sets_.unite(waits, waits_[input.node->id]);
      has_any_shape = has_any_shape || has_any_shape_[input.node->id];
    }
    for (const Node* source : node.control_inputs) {
      depth = std::max(depth, reach(*source, control, device));
      may_be_dead = may_be_dead || may_be_dead_[source->id];
      waits = sets_.unite(waits, waits_[source->id]);
    }
    depths_[node.id] = depth;
    may_be_dead_[node.id] = may_be_dead;
    waits_[node.id] = waits_for_others(node) ? with(waits, node.id) : waits;
    has_any_shape_[node.id] = has_any_shape;
  }

  // ---- Fetches of variables ----

  // A reference goes to the client's task when its turn comes: before a write that waits for an
  // answer from elsewhere, as gradients are. Beside one that does not, it is a matter of chance
  // what TensorFlow sends; here it is what is there after the write, as in one process.
  void find_early_fetches(const StepSignature& signature) {
    if (options_.client.is_empty()) return;
    for (const std::string& fetch : signature.fetches) {
      const Output value = graph_.output(fetch), ref = reference_behind(value);
      if (!ref || devices_[ref.node->id] != devices_[value.node->id]) continue;
      if (options_.client.task_name().matches(value.node->assigned_device)) continue;
      const std::vector<Node*>& writers = writes_.to(ref);
      const auto waits_for_an_answer = [&](const Node* writer) { return depths_[writer->id] >= 2; };
      if (writers.empty() || !std::all_of(writers.begin(), writers.end(), waits_for_an_answer))
        continue;
      early_reads_[ref.node->id].fetches.push_back(fetch);
      for (const Node* writer : writers) read_before_[writer->id].insert(ref.node->id);
    }
  }

  Node& early_read(const Node& variable) {
    EarlyRead& read = early_reads_.at(variable.id);
    if (read.made == nullptr) {
      const int home = devices_[variable.id];
      read.made =
          &parts_[home].graph.insert({.op = "Identity",
                                      .name = graph_.unique_name(variable.name + "/_fetched"),
                                      .inputs = {instance(variable, home).output()},
                                      .attrs = {{std::string(early_fetches_attr), read.fetches}},
                                      .location = variable.location},
                                     variable.assigned_device);
    }
    return *read.made;
  }

  // By (from, to), then by wave: what one peer sends together has neighbouring numbers.
  void number_cuts() {
    std::vector<Cut*> order;
    for (auto& [crossing, cut] : cuts_) order.push_back(&cut);
    const auto rank = [&](const Cut* cut) {
      return std::make_tuple(devices_[cut->crossing.source], cut->crossing.destination, cut->depth,
                             cut->waits);
    };
    // Stable: within a wave in the order of the graph.
    std::stable_sort(order.begin(), order.end(),
                     [&](const Cut* a, const Cut* b) { return rank(a) < rank(b); });
    for (Cut* cut : order) {
      cut->id = options_.first_edge + static_cast<int64_t>(edges_.size());
      const Crossing& crossing = cut->crossing;
      const Node& source = *graph_.nodes()[crossing.source];
      CutEdge& edge = edges_.emplace_back();
      edge.id = cut->id;
      edge.tensor_name = concat("edge_", cut->id, "_", source.name);
      edge.source = source.assigned_device;
      edge.destination = parts_[crossing.destination].name;
      if (crossing.output != control) {
        edge.dtype = source.outputs[crossing.output].dtype;
        if (!has_any_shape_[crossing.source]) edge.shape = source.outputs[crossing.output].shape;
        const bool leaves_task = edge.source.task_name() != edge.destination.task_name();
        if (options_.bfloat16_edges && leaves_task && edge.dtype == f32) edge.dtype = bf16;
      }
      edge.producer = source.name;
      edge.wave = wave_of(*cut);
      edge.may_be_dead = may_be_dead_[crossing.source];
    }
  }

  // ---- Second round: the parts ----

  // The node's copy on a device where it may be.
  Node& instance(const Node& node, int device) {
    Node*& made = instances_[node.id][device];
    if (made != nullptr) return *made;
    std::vector<Output> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Output& input = node.inputs[i];
      if (can_be_on(*input.node, device)) {
        inputs.push_back(instance(*input.node, device).output(input.index));
      } else {
        Ids after = is_remote_read(node, i) ? read_after(node, i) : Ids{};
        inputs.push_back(receive({input.node->id, input.index, device, std::move(after)}).output());
      }
    }
    std::vector<Node*> control_inputs;  // there may be very many
    std::unordered_set<const Node*> seen;
    const auto wait_for = [&](Node& source) {
      if (seen.insert(&source).second) control_inputs.push_back(&source);
    };
    for (const Node* source : node.control_inputs) wait_for(signal(*source, device));
    if (const auto found = read_before_.find(node.id); found != read_before_.end()) {
      for (const int variable : found->second) wait_for(early_read(*graph_.nodes()[variable]));
    }
    Node& copy = parts_[device].graph.copy(node, std::move(inputs), std::move(control_inputs));
    copy.assigned_device = parts_[device].name;
    return *(made = &copy);
  }

  static void add_unique(std::vector<Node*>& nodes, Node& node) {
    if (std::find(nodes.begin(), nodes.end(), &node) == nodes.end()) nodes.push_back(&node);
  }

  // What stands for "the source has run" on a device.
  Node& signal(const Node& source, int device) {
    return can_be_on(source, device) ? instance(source, device)
                                     : receive({source.id, control, device, {}});
  }

  // The _Recv of a crossing; made, with its _Send, when it is first asked for.
  Node& receive(const Crossing& crossing) {
    Cut& cut = cuts_.at(crossing);
    if (cut.recv != nullptr) return *cut.recv;
    const CutEdge& edge = edges_[cut.id - options_.first_edge];
    const Node& source = *graph_.nodes()[crossing.source];
    send(cut, source);
    std::vector<DType> types;
    if (crossing.output != control) types.push_back(edge.dtype);
    AttrMap attrs = edge_attrs(edge);
    attrs.emplace("tensor_type", std::move(types));
    attrs.emplace("shape", edge.shape);
    attrs.emplace("may_be_dead", edge.may_be_dead);
    cut.recv = &parts_[crossing.destination].graph.insert(
        {.op = "_Recv",
         .name = graph_.unique_name(concat(source.name, "/_recv_", edge.id)),
         .attrs = std::move(attrs),
         .location = source.location},
        edge.destination);
    if (is_narrowed(crossing, edge)) {
      cut.recv =
          &cast(cut.recv->output(), f32, concat("/_float_", edge.id), source, edge.destination);
    }
    return *cut.recv;
  }

  bool is_narrowed(const Crossing& crossing, const CutEdge& edge) const {
    return crossing.output != control &&
           graph_.nodes()[crossing.source]->outputs[crossing.output].dtype != edge.dtype;
  }

  Node& cast(Output value, DType to, const std::string& suffix, const Node& source,
             const DeviceName& device) {
    return value.graph().insert({.op = "Cast",
                                 .name = graph_.unique_name(source.name + suffix),
                                 .inputs = {value},
                                 .attrs = {{"DstT", to}},
                                 .location = source.location},
                                device);
  }

  void send(const Cut& cut, const Node& source) {
    const Crossing& crossing = cut.crossing;
    const CutEdge& edge = edges_[cut.id - options_.first_edge];
    const int home = devices_[source.id];
    Node& producer = instance(source, home);
    NodeSpec spec{.op = "_Send",
                  .name = graph_.unique_name(concat(source.name, "/_send_", edge.id)),
                  .attrs = edge_attrs(edge),
                  .location = source.location};
    std::vector<Node*> after;
    for (const int id : crossing.after) add_unique(after, signal(*graph_.nodes()[id], home));
    if (crossing.output == control) {
      spec.control_inputs = {&producer};
    } else if (is_narrowed(crossing, edge)) {
      Node& narrow = cast(producer.output(crossing.output), bf16, concat("/_bfloat16_", edge.id),
                          source, edge.source);
      narrow.control_inputs = std::move(after);  // it is the one that reads, if this is a variable
      spec.inputs = {narrow.output()};
    } else {
      spec.inputs = {producer.output(crossing.output)};
      spec.control_inputs = std::move(after);
    }
    parts_[home].graph.insert(std::move(spec), edge.source);
  }

  static AttrMap edge_attrs(const CutEdge& edge) {
    return {{"edge", edge.id},
            {"tensor_name", edge.tensor_name},
            {"send_device", edge.source.to_string()},
            {"recv_device", edge.destination.to_string()},
            {"wave", edge.wave}};
  }

  // A constant or feed that nobody consumes but the caller.
  void keep_named(const StepSignature& signature) {
    for (const std::string& target : signature.targets) keep(target);
    for (const std::string& fetch : signature.fetches) keep(node_of(fetch));
  }
  void keep(std::string_view name) {
    const Node* node = graph_.find(name);
    if (node != nullptr) instance(*node, devices_[node->id]);
  }

  PartitionedGraph finish(const StepSignature& signature) {
    PartitionedGraph out;
    for (const std::string& feed : signature.feeds) out.feed_devices[feed];
    for (const std::string& fetch : signature.fetches) {
      const Node* node = graph_.find(node_of(fetch));
      check_internal(node != nullptr, "partition: the fetched '", fetch, "' is not in the graph");
      out.fetch_devices[fetch] = parts_[devices_[node->id]].text;
    }
    for (const auto& node : graph_.nodes()) {
      if (!node->is("_Feed")) continue;
      std::vector<std::string>& devices = out.feed_devices[node->attr<std::string>("name")];
      for (const auto& [device, made] : instances_[node->id]) {
        devices.push_back(parts_[device].text);
      }
    }
    for (Part& part : parts_) {
      if (part.graph.size() > 0) out.partitions.emplace(part.text, std::move(part.graph));
    }
    out.edges = std::move(edges_);
    return out;
  }

  // A variable that fetches read before the writes.
  struct EarlyRead {
    std::vector<std::string> fetches;
    Node* made = nullptr;
  };

  struct Part {
    std::string text;
    Shared<DeviceName> name;
    Graph graph;
  };

  const Graph& graph_;
  const PartitionOptions options_;
  Writes writes_;
  std::vector<Part> parts_;  // by device
  Ids devices_;              // by node id
  Ids depths_;               // by node id: most borders on any path to the node
  std::vector<bool> may_be_dead_;
  SetPool sets_;
  bool has_many_waits_ = false;
  Ids waits_;                                 // by node id: what its users wait for, of others
  std::map<std::pair<int, int>, int> waves_;  // by depth and waits
  std::vector<bool> has_any_shape_;  // by node id: a variable of any_shape_attr lies upstream
  std::map<Crossing, Cut> cuts_;
  std::vector<CutEdge> edges_;
  std::map<int, EarlyRead> early_reads_;         // by the variable's id
  std::map<int, std::set<int>> read_before_;     // by a writer's id: ids of variables
  std::vector<std::map<int, Node*>> instances_;  // by node id: device → copy
};

}  // namespace

PartitionedGraph partition(const Graph& graph, const StepSignature& signature,
                           const PartitionOptions& options) {
  return Partitioner(graph, options).run(signature.normalised());
}

PartitionedGraph partition(Graph&& graph, const StepSignature& signature,
                           const PartitionOptions& options) {
  const auto& nodes = graph.nodes();
  const bool is_one = !nodes.empty() && std::ranges::all_of(nodes, [&](const auto& node) {
    return node->assigned_device->is_complete() &&
           node->assigned_device == nodes.front()->assigned_device;
  });
  if (!is_one) return partition(std::as_const(graph), signature, options);
  const std::string device = nodes.front()->assigned_device->to_string();
  const StepSignature all = signature.normalised();
  PartitionedGraph out;
  for (const std::string& feed : all.feeds) out.feed_devices[feed];
  for (const std::string& fetch : all.fetches) {
    check_internal(graph.find(node_of(fetch)) != nullptr, "partition: the fetched '", fetch,
                   "' is not in the graph");
    out.fetch_devices[fetch] = device;
  }
  for (const auto& node : nodes) {
    if (node->is("_Feed")) out.feed_devices[node->attr<std::string>("name")].push_back(device);
  }
  out.partitions.emplace(device, std::move(graph));
  return out;
}

}  // namespace leat
