// Sets, segments and items.
#include "runtime/plan/planner.h"

#include <algorithm>
#include <utility>

namespace leat {

Planner::Planner(Graph graph, const std::vector<std::string>& fetches, Device& device, Device& host,
                 Containers& containers, NodeStates& node_states, const PartPlaces* part)
    : containers_(containers),
      node_states_(node_states),
      is_host_(device.type() == DeviceType::cpu),
      part_(part) {
  plan_.is_part = part != nullptr;
  plan_.graph = std::move(graph);
  plan_.device = &device;
  plan_.host = &host;
  std::vector<NodeRole> roles = find_roles(plan_.graph, device);
  fetches_ = make_reads_explicit(plan_.graph, roles, fetches, device);
  states_.reserve(roles.size());
  for (NodeRole& role : roles) states_.push_back({std::move(role)});
  has_many_groups_ = has_many_groups();
  for (Node* node : topological_order(plan_.graph)) add(*node);
  add_fetches();
  connect();
}

// Usually a wait set holds all that is waited for, so that nodes which wait for the same have equal
// ones. Of very many boundary nodes behind each other that would be gigabytes of sets: then it
// holds the last ones, which imply the others, and some nodes that could share a segment have two.
bool Planner::has_many_groups() {
  constexpr int many = 2000;
  int count = 0;
  for (const auto& node : plan_.graph.nodes()) {
    const bool waits_for_values = !node->op->value_inputs.empty() || !is_host_;
    if (waits_for_values || state(*node).role == Role::boundary) ++count;
  }
  return count > many;
}

// `waits`: what its members wait for.
int Planner::new_group(int waits) {
  ++groups_;
  if (has_many_groups_) wait_sets_.imply(groups_, waits);
  return groups_;
}

int Planner::segment_variable(int item, int variable, bool is_written) {
  std::vector<SegmentPlan::VariableUse>& uses = plan_.segments[plan_.items[item].segment].variables;
  const auto [known, is_new] = segment_variables_.try_emplace({item, variable}, uses.size());
  if (is_new) uses.push_back({variable, false});
  uses[known->second].is_written = uses[known->second].is_written || is_written;
  return static_cast<int>(known->second);
}

int Planner::segment_constant(int item, int constant) {
  std::vector<int>& constants = plan_.segments[plan_.items[item].segment].constants;
  const auto [known, is_new] = segment_constants_.try_emplace({item, constant}, constants.size());
  if (is_new) constants.push_back(constant);
  return static_cast<int>(known->second);
}

void Planner::add(Node& node) {
  State& s = state(node);
  if (!is_host_ && s.role == Role::segment) stay_on_host(node, s);
  join_sets(node, s);
  const bool has_handle = !node.outputs.empty() && node.outputs[0].is_handle();
  if (has_handle && s.role != Role::state && !find_value_handle(node, s)) resolve_handle(node, s);

  switch (s.role) {
    case Role::constant: {
      s.constant = static_cast<int>(plan_.constants.size());
      const auto& value = node.attr<Tensor>("value");
      if (value.dtype() != node.outputs[0].dtype) {
        fail(Code::invalid_argument, describe(node), " declares ", node.outputs[0].dtype,
             ", but its value is a tensor of ", value.dtype());
      }
      plan_.constants.push_back(value);
      s.is_foldable = true;
      break;
    }
    case Role::state:
      if (node.op->make_resource) {
        s.resource = add_resource(node);
      } else {
        add_variable(node, s);
      }
      break;
    case Role::feed: {
      s.constant = static_cast<int>(plan_.feeds.size());
      plan_.feeds.push_back({node.attr<std::string>("name"), node.outputs[0].dtype,
                             node.outputs[0].shape, node.location, -1, true});
      if (part_ != nullptr && part_->feeds_on_device.contains(plan_.feeds.back().name))
        plan_.feeds.back().on_host = false;
      break;
    }
    case Role::boundary:
      // A shape that depends on data, but only on data that is known when the tape is compiled.
      if (s.kind == ItemKind::execute && node.op->has_data_dependent_shape &&
          has_foldable_inputs(node, s)) {
        s.role = Role::segment;
        s.kind = ItemKind::segment;
        add_to_segment(node, s);
      } else {
        add_boundary(node, s);
      }
      break;
    case Role::segment:
      add_to_segment(node, s);
      break;
  }
  if (s.item < 0) s.upstream = upstream_of(node);
}

void Planner::stay_on_host(const Node& node, State& s) {
  // Some kernels look at no elements, or have made a segment of the node.
  if (node.op->tells_shape || node.op->has_data_dependent_shape) return;
  for (const Output& input : node.inputs) {
    if (input.is_handle() || place_of(input) != Place::host) return;
  }
  if (KernelCopy kernel = host_kernel(node); kernel != nullptr && kernel->prepare)
    s.kernel = std::move(kernel);
}

void Planner::join_sets(const Node& node, State& s) {
  for (const Output& input : node.inputs) {
    const State& from = state(*input.node);
    s.waits = wait_sets_.unite(s.waits, waits_for(from));
    s.dead = from.flag >= 0 ? sets_.with(s.dead, dead_flag_of(from, input.index))
                            : sets_.unite(s.dead, from.dead);
  }
  for (Node* control : node.control_inputs) {
    State& from = state(*control);
    from.is_wanted = true;
    s.waits = wait_sets_.unite(s.waits, waits_for(from));
    s.dead = from.flag >= 0 && from.kind != ItemKind::switch_ ? sets_.with(s.dead, from.flag)
                                                              : sets_.unite(s.dead, from.dead);
  }
  if (node.is("ControlTrigger") && s.dead != sets_.empty()) {
    s.dead = sets_.empty();
    s.group = new_group(s.waits);  // who follows it is not in a segment with what it follows
  }
}

bool Planner::has_foldable_inputs(const Node& node, const State& s) {
  if (node.op->is_stateful || node.inputs.empty() ||
      find_kernel(*node.op, node.attrs, DeviceType::cpu) == nullptr)
    return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Output& input) {
    const State& from = state(*input.node);
    return from.role == Role::constant || (from.role == Role::segment && from.is_foldable &&
                                           from.waits == s.waits && from.dead == s.dead);
  });
}

int Planner::waits_for(const State& from) {
  if (from.group < 0) return from.waits;
  return has_many_groups_ ? wait_sets_.one(from.group) : wait_sets_.with(from.waits, from.group);
}

void Planner::add_boundary(Node& node, State& s) {
  Item item{.kind = s.kind, .node = &node, .kernel = s.kernel};
  item.dead_on = sets_[s.dead];
  if (node.op->make_resource) item.resource = add_resource(node);
  enter_group(node, s, item);
  item.outputs.assign(node.outputs.size(), -1);
  s.item = static_cast<int>(plan_.items.size());
  plan_.items.push_back(std::move(item));
  dependencies_.emplace_back();

  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    const Output& input = node.inputs[i];
    const bool is_fixed = is_fixed_handle(input);
    const Place place = is_fixed ? place_of(input) : wanted_place(node, s, i, input);
    ItemSource source;
    if (is_fixed) {
      check_dtype(node, input);
      source.variable = state(*input.node).variable;
      source.resource = state(*input.node).resource;
    } else {
      source = source_of(input, place);
    }
    if (s.kind == ItemKind::merge) {
      source.dead_on = dead_flags_of(input);
      for (int from : suppliers_of(input, place)) {
        plan_.items[from].successors.push_back({s.item, i});
        ++source.arrivals;
      }
    } else {
      for (int from : suppliers_of(input, place)) dependencies_[s.item].insert(from);
    }
    plan_.items[s.item].inputs.push_back(std::move(source));
  }
  for (Node* control : node.control_inputs) {
    for (int from : items_of(*control)) dependencies_[s.item].insert(from);
  }
}

void Planner::enter_group(const Node& node, State& s, Item& item) {
  switch (s.kind) {
    case ItemKind::send:
      item.edge = node.attr<int64_t>("edge");
      s.group = new_group(s.waits);
      break;
    case ItemKind::receive: {
      item.edge = node.attr<int64_t>("edge");
      item.label = node.attr<std::string>("tensor_name");
      // What comes from one peer in one wave comes together: its users wait for all of it.
      auto& group = receive_groups_[{node.attr<std::string>("send_device"),
                                     node.attr<int64_t>("wave"), s.waits}];
      if (group == 0) group = new_group(s.waits);
      s.group = group;
      if (node.view().has("may_be_dead") && node.attr<bool>("may_be_dead"))
        item.dead_flag = s.flag = new_flags(1);
      break;
    }
    case ItemKind::switch_: {
      // All that one predicate switches lives and dies together.
      const Output& predicate = node.inputs[1];
      auto& [group, flag] = switch_groups_[{predicate.node->id, predicate.index, s.waits, s.dead}];
      if (group == 0) group = new_group(s.waits), flag = new_flags(2);
      s.group = group;
      item.dead_flag = s.flag = flag;
      break;
    }
    case ItemKind::merge:
      s.group = new_group(s.waits);
      item.dead_flag = s.flag = new_flags(1);
      item.dead_on.clear();
      s.dead = sets_.empty();
      item.first_counter = plan_.counters;
      plan_.counters += static_cast<int>(node.inputs.size()) + 2;  // see is_merge_decided()
      break;
    case ItemKind::loop:
      item.loop = plan_.loops++;
      s.group = new_group(s.waits);
      break;
    case ItemKind::execute: {
      // They wait for nothing, so what is ready together is used together.
      int& group = execute_groups_[{s.waits, s.dead}];
      if (group == 0) group = new_group(s.waits);
      s.group = group;
      break;
    }
    default:
      s.group = new_group(s.waits);
  }
}

void Planner::add_to_segment(Node& node, State& s) {
  wait_for_values(node, s);
  s.item = segment_item(s);
  SegmentPlan& segment = plan_.segments[plan_.items[s.item].segment];
  s.segment_node = static_cast<int>(segment.nodes.size());
  segment.nodes.push_back({&node, s.kernel, {}, {}, false});

  bool all_foldable = !node.inputs.empty();
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    const Output& input = node.inputs[i];
    State& from = state(*input.node);
    SegmentSource source{};
    if (input.is_handle()) {
      if (from.variable < 0) {
        fail(Code::invalid_argument, describe(node), ": '", input.name(), "' is not a variable");
      }
      check_dtype(node, input);
      source = {SegmentSource::Kind::variable,
                segment_variable(s.item, from.variable, is_written(node, i)), 0};
      all_foldable = false;
    } else if (from.role == Role::constant) {
      source = {SegmentSource::Kind::constant, segment_constant(s.item, from.constant), 0};
    } else if (from.role == Role::segment && from.item == s.item) {
      source = {SegmentSource::Kind::local, from.segment_node, input.index};
      all_foldable = all_foldable && from.is_foldable;
    } else {
      all_foldable = false;
      const Place place = wanted_place(node, s, i, input);
      source = {SegmentSource::Kind::input,
                segment_input(s.item, input, place, is_value_input(node, i)), 0};
    }
    if (source.kind != SegmentSource::Kind::input) run_after(*input.node, s);
    plan_.segments[plan_.items[s.item].segment].nodes.back().inputs.push_back(source);
  }
  for (const Node* control : node.control_inputs) run_after(*control, s);
  const bool has_cpu_kernel =
      is_host_ || find_kernel(*node.op, node.attrs, DeviceType::cpu) != nullptr;
  s.is_foldable = has_cpu_kernel && !node.op->is_stateful && !node.inputs.empty() &&
                  (all_foldable || node.op->tells_shape);
}

void Planner::wait_for_values(const Node& node, State& s) {
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    const Output& input = node.inputs[i];
    State& from = state(*input.node);
    if (input.is_handle() || from.role == Role::constant) continue;
    const bool needs_value = is_value_input(node, i);
    const bool is_local =
        from.role == Role::segment && from.waits == s.waits && from.dead == s.dead;
    // It is a constant of the tape then, which lies where it is wanted.
    if (is_local && from.is_foldable) continue;
    const Place place = wanted_place(node, s, i, input);
    if (place != place_of(input)) {
      // Copies to a device are enqueued and need no wait of their own.
      const int copy = copy_item(input, place);
      if (is_local || place == Place::host)
        s.waits = wait_sets_.with(s.waits, copy_group(copy, waits_for(from)));
    } else if (needs_value && is_local) {
      s.waits = wait_sets_.with(s.waits, value_group(input));
    }
  }
}

int Planner::segment_item(const State& s) {
  int& item = segment_items_[{s.waits, s.dead}];
  if (item == 0) {
    plan_.items.push_back({.kind = ItemKind::segment,
                           .segment = static_cast<int>(plan_.segments.size()),
                           .dead_on = sets_[s.dead]});
    plan_.segments.emplace_back();
    dependencies_.emplace_back();
    item = static_cast<int>(plan_.items.size());  // one more than the index: 0 means new
  }
  return item - 1;
}

void Planner::run_after(const Node& before, const State& s) {
  for (const Node* real : real_nodes(before)) {
    const State& from = state(*real);
    if (from.item != s.item) {
      dependencies_[s.item].insert(from.item);
    } else {
      plan_.segments[plan_.items[s.item].segment].nodes[s.segment_node].after.push_back(
          from.segment_node);
    }
  }
}

void Planner::add_fetches() {
  for (const FetchedOutput& fetch : fetches_) {
    const bool on_device =
        !is_host_ && part_ != nullptr && part_->fetches_on_device.contains(fetch.name);
    const Place place = on_device ? Place::device : Place::host;
    plan_.fetches.push_back({fetch.name, source_of(fetch.source, place), fetch.node});
    plan_.fetches.back().source.dead_on = dead_flags_of(fetch.source);
  }
}

void Planner::find_early_uses() {
  struct Origin {
    int item;  // a segment's
    size_t result;
  };
  std::unordered_map<int, Origin> origins;  // by slot
  for (size_t i = 0; i < plan_.items.size(); ++i) {
    if (plan_.items[i].kind != ItemKind::segment) continue;
    for (size_t r = 0; r < plan_.items[i].outputs.size(); ++r)
      origins.emplace(plan_.items[i].outputs[r], Origin{static_cast<int>(i), r});
  }
  for (size_t i = 0; i < plan_.items.size(); ++i) {
    for (size_t input = 0; input < plan_.items[i].inputs.size(); ++input) {
      const auto from = origins.find(plan_.items[i].inputs[input].slot);
      if (from == origins.end()) continue;
      const auto [item, r] = from->second;
      SegmentPlan& segment = plan_.segments[plan_.items[item].segment];
      SegmentPlan::Result& result = segment.results[r];
      if (is_sent_early(static_cast<int>(i), item)) {
        result.sends.push_back(static_cast<int>(i));
      } else if (is_marked_input(static_cast<int>(i), static_cast<int>(input), item)) {
        result.is_marked = true;
      } else {
        continue;
      }
      segment.has_early_uses = true;
    }
  }
}

// From a GPU, to the host: another GPU of the task would have this one wait for it.
bool Planner::is_sent_early(int item, int segment) const {
  const Item& send = plan_.items[item];
  if (send.kind != ItemKind::send || send.dependencies != 1 ||
      !dependencies_[item].contains(segment) || plan_.items[segment].dead_on != send.dead_on)
    return false;
  const auto device_of = [&](const char* attr) {
    return DeviceName::parse(send.node->attr<std::string>(attr));
  };
  const DeviceName from = device_of("send_device"), to = device_of("recv_device");
  return from.task_string() != to.task_string() || (!is_host_ && to.type == "CPU");
}

// A collective reads its value beside the GPU's compute stream (HasMarks). A control edge from the
// segment says that the value alone is not enough.
bool Planner::is_marked_input(int item, int input, int segment) {
  const Item& user = plan_.items[item];
  if (user.node == nullptr || !user.node->is("_CollectiveRun") || input != 0) return false;
  return std::ranges::none_of(user.node->control_inputs, [&](const Node* control) {
    return contains(items_of(*control), segment);
  });
}

void Planner::find_received_for_device() {
  std::vector<int> copies(plan_.slots);  // by slot: how many of its readers copy it to the device
  for (const Item& item : plan_.items) {
    if (item.kind == ItemKind::to_device) ++copies[item.inputs[0].slot];
  }
  for (Item& item : plan_.items) {
    if (item.kind != ItemKind::receive || item.outputs.empty() || item.outputs[0] < 0) continue;
    const int slot = item.outputs[0];
    item.goes_to_device = copies[slot] > 0 && copies[slot] == plan_.slot_uses[slot];
  }
}

void Planner::connect() {
  for (size_t i = 0; i < plan_.items.size(); ++i) {
    dependencies_[i].erase(static_cast<int>(i));
    plan_.items[i].dependencies = static_cast<int>(dependencies_[i].size());
    for (int from : dependencies_[i])
      plan_.items[from].successors.push_back({static_cast<int>(i), -1});
  }
  plan_.slot_uses.assign(plan_.slots, 0);
  std::vector<const Item*> released_by(plan_.slots);  // the last item that was seen to read it
  for (Item& item : plan_.items) {
    for (const ItemSource& source : item.inputs) {
      if (source.slot < 0 || std::exchange(released_by[source.slot], &item) == &item) continue;
      item.releases.push_back(source.slot);
      ++plan_.slot_uses[source.slot];
    }
  }
  for (const ProgramPlan::Fetch& fetch : plan_.fetches) {
    if (fetch.source.slot >= 0) ++plan_.slot_uses[fetch.source.slot];
  }
  find_received_for_device();
  const Consumers consumers(plan_.graph);
  for (const auto& node : plan_.graph.nodes()) {
    const State& s = state(*node);
    if (s.role != Role::segment) continue;
    plan_.segments[plan_.items[s.item].segment].nodes[s.segment_node].is_wanted =
        s.is_wanted || consumers.of(*node).empty();
  }
  find_early_uses();
  plan_.is_straight = is_host_ && plan_.items.size() <= 1 &&
                      (plan_.items.empty() || plan_.items[0].kind == ItemKind::segment);
}

ProgramPlan plan_program(Graph graph, const std::vector<std::string>& fetches, Device& device,
                         Device& host, Containers& containers, NodeStates& node_states,
                         const PartPlaces* part) {
  return Planner(std::move(graph), fetches, device, host, containers, node_states, part).take();
}

}  // namespace leat
