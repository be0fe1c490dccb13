// expand_collectives: a group of TensorFlow's collectives, a node for each member, becomes plain
// ops on the members' devices, between which the partitioner puts the transfers: each member
// reduces all, or, if that costs less, its part of the elements, which the others then gather. All
// reduce in the order of the ranks, so the results are equal bit by bit. Where GPUs can do it, a
// library does (lower_collectives).
//
// A step may have some of the members alone, because each task runs a program of its own, as with
// TensorFlow's MultiWorkerMirroredStrategy. They meet on the leader's task (`_CollectiveMeet`).
#include <algorithm>
#include <map>
#include <queue>

#include "graph/ops.h"
#include "graph/ops/collective_result.h"
#include "graph/passes/pipeline.h"
#include "graph/rebuild.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

// Of an op in either version: the second takes the key as inputs, the first as attributes.
bool is_second_version(const Node& node) { return node.op->name.ends_with("V2"); }
bool is_kind(const Node& node, std::string_view name) {
  const std::string_view op = node.op->name;
  return op.starts_with(name) && (op.size() == name.size() || op.substr(name.size()) == "V2");
}
bool is_reduce(const Node& node) { return is_kind(node, "CollectiveReduce"); }
bool is_gather(const Node& node) { return is_kind(node, "CollectiveGather"); }
bool is_send(const Node& node) { return is_kind(node, "CollectiveBcastSend"); }
bool is_receive(const Node& node) { return is_kind(node, "CollectiveBcastRecv"); }
bool is_broadcast(const Node& node) { return is_send(node) || is_receive(node); }
bool is_collective(const Node& node) {
  return is_broadcast(node) || is_reduce(node) || is_gather(node);
}

struct Key {
  int32_t size = 0, group = 0, instance = 0;
  bool operator<(const Key& other) const {
    return std::tie(group, instance) < std::tie(other.group, other.instance);
  }
};

// None if an input is not constant: such a node is for its kernel.
std::optional<Key> key_of(const Node& node) {
  if (!is_second_version(node)) {
    const auto number = [&](const char* name) {
      return static_cast<int32_t>(node.attr<int64_t>(name));
    };
    return Key{number("group_size"), number("group_key"), number("instance_key")};
  }
  const size_t first = is_receive(node) ? 0 : 1;
  int32_t numbers[3];
  for (size_t i = 0; i < 3; ++i) {
    const Tensor value = constant_value(node.inputs[first + i]);
    if (!value.is_valid() || value.elements() != 1) return {};
    numbers[i] = value.item<int32_t>();
  }
  return Key{numbers[0], numbers[1], numbers[2]};
}

using Members = std::vector<const Node*>;

std::string text(const Key& key) {
  return concat("the collective of group ", key.group, ", instance ", key.instance);
}

// Same op, dtype, shape and reduction on all; the first difference is an error. With a leader,
// members may be elsewhere.
void check_members(const Key& key, const Members& members, bool has_leader) {
  const Node& first = *members.front();
  for (const Node* node : members) {
    const auto differs = [&](const auto& what, const auto& own, const auto& others) {
      fail(Code::invalid_argument, text(key), ": ", describe(*node), " has ", what, " ", own,
           ", but ", describe(first), " has ", others);
    };
    const Key own = *key_of(*node);
    if (own.size != key.size) differs("group_size", own.size, key.size);
    if (is_broadcast(*node) != is_broadcast(first) ||
        (!is_broadcast(first) && node->op != first.op))
      differs("the op", node->op->name, first.op->name);
    const OutputSpec &spec = node->outputs[0], &of_first = first.outputs[0];
    if (spec.dtype != of_first.dtype) differs("dtype", spec.dtype, of_first.dtype);
    if (!is_gather(*node) && spec.shape.is_complete() && of_first.shape.is_complete() &&
        spec.shape != of_first.shape)
      differs("shape", spec.shape, of_first.shape);
    for (const char* name : {"merge_op", "final_op"}) {
      if (!node->attrs.contains(name)) continue;
      const auto &value = node->attr<std::string>(name), &others = first.attr<std::string>(name);
      if (value != others) differs(name, value, others);
    }
  }
  if (has_leader && std::ssize(members) < key.size) return;
  check(std::ssize(members) == key.size, text(key), " has ", key.size, " members, but the step ",
        "runs ", members.size(), std::ssize(members) < key.size ? " of them" : "",
        ", the first is ", describe(first), ": run all of them in one step");
  const auto senders = std::count_if(members.begin(), members.end(),
                                     [](const Node* node) { return is_send(*node); });
  check(!is_broadcast(first) || senders == 1, text(key), " has ", senders,
        " senders (CollectiveBcastSend); it needs one");
}

// The ops of one group, on the devices of its members.
class Expansion {
 public:
  Expansion(Rebuild& rebuild, const Key& key, const Members& members)
      : rebuild_(rebuild), key_(key), members_(members) {}

  void run();
  // The members that the step has, with others that it lacks. `own`: the task that runs what
  // requests none.
  void meet(const DeviceName& leader, const DeviceName& own);

 private:
  // The member's input, once all that the member waits for has run.
  Output entry(const Node& node) {
    Node& made = rebuild_.graph().insert({.op = "Identity",
                                          .name = fresh(node, "input"),
                                          .inputs = {rebuild_.map(node.inputs[0])},
                                          .control_inputs = rebuild_.control_inputs_of(node),
                                          .location = node.location},
                                         {});
    made.requested_device = node.requested_device;
    return made.output();
  }
  std::vector<Output> marked(const std::vector<Output>& values, std::vector<Output> results);
  // A node of the member's name with the result.
  void leave(const Node& node, const Output& result) {
    Node& made = rebuild_.graph().insert(
        {.op = "Identity",
         .name = node.name,
         .inputs = {result},
         .control_inputs =
             is_receive(node) ? rebuild_.control_inputs_of(node) : std::vector<Node*>{},
         .location = node.location},
        {});
    made.requested_device = node.requested_device;
    rebuild_.replace(node, {made.output()}, {&made});
  }
  std::string fresh(const Node& node, std::string_view what) {
    return rebuild_.graph().unique_name(concat(node.name, "/", what));
  }

  // What `make(k)` makes under the name and on the device of member k.
  template <class Make>
  auto on_each(const Make& make) {
    std::vector<decltype(make(size_t{0}))> out;
    Graph& graph = rebuild_.graph();
    for (size_t k = 0; k < members_.size(); ++k) {
      const NameScope scope(graph, concat(members_[k]->name, "/exchange"));
      const DeviceScope there(graph, members_[k]->requested_device->to_string());
      const LocationScope line(graph, members_[k]->location);
      out.push_back(make(k));
    }
    return out;
  }

  static Output joined(const std::vector<Output>& values) {
    return values.size() == 1 ? values.front() : concatenate(values, 0);
  }

  Output merged(const std::vector<Output>& values) const {
    const auto& merge = members_.front()->attr<std::string>("merge_op");
    Output out = values.front();
    if (merge == "Add" && values.size() > 1) out = add_n(values);
    for (size_t i = 1; merge != "Add" && i < values.size(); ++i) {
      if (merge == "Mul") out = out * values[i];
      if (merge == "Min") out = minimum(out, values[i]);
      if (merge == "Max") out = maximum(out, values[i]);
    }
    if (members_.front()->attr<std::string>("final_op") != "Div") return out;
    const Output count =
        cast(constant(out.graph(), static_cast<int32_t>(values.size())), out.dtype());
    return op(is_integer(out.dtype()) ? "TruncateDiv" : "RealDiv", {out, count});
  }

  std::vector<Output> reduced(const std::vector<Output>& values) {
    constexpr int64_t trip_bytes = 256 << 10;  // that could be sent in the time of a trip
    const auto n = std::ssize(values);
    const Shape& shape = values.front().shape();
    const bool is_known = std::all_of(values.begin(), values.end(), [](const Output& value) {
      return value.shape().is_complete();
    });
    const int64_t elements = is_known ? shape.elements() : 0;
    const auto bytes = elements * static_cast<int64_t>(dtype_size(values.front().dtype()));
    if (elements < n || (n - 1) * (n - 2) * bytes <= n * trip_bytes)
      return on_each([&](size_t) { return merged(values); });
    std::vector<int64_t> sizes;
    for (int64_t k = 0; k < n; ++k) sizes.push_back((k + 1) * elements / n - k * elements / n);
    const auto parts =
        on_each([&](size_t k) { return split(reshape(values[k], {elements}), sizes, 0); });
    const auto sums = on_each([&](size_t k) {
      std::vector<Output> of_part;
      for (const auto& of_member : parts) of_part.push_back(of_member[k]);
      return merged(of_part);
    });
    return on_each([&](size_t) { return reshape(concatenate(sums, 0), shape); });
  }

  Rebuild& rebuild_;
  const Key& key_;
  const Members& members_;
};

// For GPUs, if their library has the collective.
std::vector<Output> Expansion::marked(const std::vector<Output>& values,
                                      std::vector<Output> results) {
  const Node& first = *members_.front();
  const bool gathers = is_gather(first);
  if (!gathers && first.attr<std::string>("merge_op") != "Add") return results;
  return on_each([&](size_t k) {
    return collective_result(
        results[k], values[k],
        {.kind = gathers ? CollectiveKind::all_gather : CollectiveKind::all_reduce,
         .is_mean = !gathers && first.attr<std::string>("final_op") == "Div",
         .group = first.name,
         .rank = static_cast<int64_t>(k),
         .members = std::ssize(members_)});
  });
}

void Expansion::meet(const DeviceName& leader, const DeviceName& own) {
  for (const Node* node : members_) {
    const bool reduces = is_reduce(*node);
    const DeviceName member = node->requested_device->with_defaults(own);
    std::vector<Output> value;
    if (!is_receive(*node)) value.push_back(entry(*node));
    Shape shape = node->outputs[0].shape;  // others may bring more rows to a gather, or fewer
    if (is_gather(*node) && shape.has_rank() && shape.rank() > 0) shape.set(0, any);
    AttrMap attrs = {
        {"T", node->outputs[0].dtype},
        {"N", std::ssize(value)},
        {"op", is_broadcast(*node) ? "broadcast"
               : reduces           ? "reduce"
                                   : "gather"},
        {"group_size", static_cast<int64_t>(key_.size)},
        {"member", member.to_string()},
        {"shape", shape},
        {"shared_name", text(key_)},
    };
    if (reduces) {
      attrs.insert_or_assign("merge_op", node->attr<std::string>("merge_op"));
      attrs.insert_or_assign("final_op", node->attr<std::string>("final_op"));
    }
    Node& made = rebuild_.graph().insert(
        {.op = "_CollectiveMeet",
         .name = fresh(*node, "meet"),
         .inputs = value,
         .attrs = std::move(attrs),
         .control_inputs =
             is_receive(*node) ? rebuild_.control_inputs_of(*node) : std::vector<Node*>{},
         .location = node->location},
        {});
    made.requested_device = leader;
    leave(*node, made.output());
  }
}

void Expansion::run() {
  const Node& first = *members_.front();
  std::vector<Output> values;
  for (const Node* node : members_) values.push_back(is_receive(*node) ? Output{} : entry(*node));
  std::vector<Output> results;
  if (is_broadcast(first)) {
    const Output sent = *std::find_if(values.begin(), values.end(),
                                      [](const Output& value) { return bool{value}; });
    results.assign(members_.size(), sent);
  } else if (is_gather(first)) {
    results = marked(values, on_each([&](size_t) { return joined(values); }));
  } else {
    results = marked(values, reduced(values));
  }
  for (size_t k = 0; k < members_.size(); ++k) leave(*members_[k], results[k]);
}

// The CPU of the task that the option names.
DeviceName device_of(const std::string& leader) {
  DeviceName out = DeviceName::parse(leader);
  out.type = "CPU";
  out.id = 0;
  return out;
}

}  // namespace

bool expand_collectives(Graph& graph, const std::string& leader, const DeviceName& own) {
  std::map<Key, Members> groups;
  std::vector<int> group_of(graph.size(), -1);  // by id: the position in `units`
  for (const auto& node : graph.nodes()) {
    if (!is_collective(*node)) continue;
    if (const auto key = key_of(*node)) groups[*key].push_back(node.get());
  }
  if (groups.empty()) return false;
  struct Group {
    Key key;
    Members members;
    int waits = 0;  // for so many edges
  };
  std::vector<Group> units;
  for (auto& [key, members] : groups) {
    std::stable_sort(members.begin(), members.end(), [](const Node* a, const Node* b) {
      return a->requested_device->to_string() < b->requested_device->to_string();
    });
    check_members(key, members, !leader.empty());
    for (const Node* node : members)
      group_of[static_cast<size_t>(node->id)] = static_cast<int>(units.size());
    units.push_back({key, std::move(members)});
  }

  // All members of a group before the users of any.
  std::vector<int> waits(graph.size());
  const auto wait_of = [&](const Node& node) -> int& {
    const int group = group_of[static_cast<size_t>(node.id)];
    return group < 0 ? waits[static_cast<size_t>(node.id)]
                     : units[static_cast<size_t>(group)].waits;
  };
  for (const auto& node : graph.nodes())
    wait_of(*node) += static_cast<int>(node->inputs.size() + node->control_inputs.size());
  const Consumers consumers(graph);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;  // ids, the first of a group's
  const auto first_of = [&](const Node& node) {
    const int group = group_of[static_cast<size_t>(node.id)];
    return group < 0 ? node.id : units[static_cast<size_t>(group)].members.front()->id;
  };
  for (const auto& node : graph.nodes()) {
    if (wait_of(*node) == 0 && first_of(*node) == node->id) ready.push(node->id);
  }
  Rebuild rebuild(graph);
  size_t done = 0;
  while (!ready.empty()) {
    const Node& node = *graph.nodes()[static_cast<size_t>(ready.top())];
    ready.pop();
    const int group = group_of[static_cast<size_t>(node.id)];
    const Members made = group < 0 ? Members{&node} : units[static_cast<size_t>(group)].members;
    if (group < 0) {
      rebuild.copy(node);
    } else {
      const Key& key = units[static_cast<size_t>(group)].key;
      Expansion expansion(rebuild, key, made);
      if (std::ssize(made) == key.size) {
        expansion.run();
      } else {
        expansion.meet(device_of(leader), own);
      }
    }
    done += made.size();
    for (const Node* each : made) {
      for (const Consumers::Use& use : consumers.of(*each)) {
        if (--wait_of(*use.node) == 0) ready.push(first_of(*use.node));
      }
    }
  }
  if (done < graph.size()) {
    std::string list;
    for (const Group& each : units) {
      if (each.waits > 0)
        list +=
            concat(list.empty() ? "" : "; ", text(each.key), " (", describe(*each.members[0]), ")");
    }
    fail(Code::invalid_argument, "collectives wait for each other, so none can run: ", list,
         ": let all members take part in them in the same order");
  }
  graph = std::move(rebuild).finish();
  return true;
}

}  // namespace leat
