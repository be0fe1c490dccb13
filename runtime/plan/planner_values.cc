// Where values lie, the slots that carry them between segments, and the items that must complete
// before they are available.
#include "runtime/plan/planner.h"

#include <algorithm>

#include "core/memory/memory_owner.h"
#include "graph/host_values.h"

namespace leat {

Place Planner::place_of(const Output& value) {
  if (is_host_ || is_host_object(value.dtype())) return Place::host;
  const State& from = state(*value.node);
  if (from.role == Role::constant) return Place::host;
  if (from.role == Role::feed)
    return plan_.feeds[from.constant].on_host ? Place::host : Place::device;
  switch (from.kind) {
    case ItemKind::receive:
      return Place::host;
    case ItemKind::switch_:
      return place_of(value.node->inputs[0]);
    case ItemKind::merge:
      return value.index == 0 ? Place::device : Place::host;
    default:
      return contains(from.kernel->host_outputs, value.index) ? Place::host : Place::device;
  }
}

Place Planner::wanted_place(const Node& node, const State& s, int input, const Output& value) {
  if (is_host_ || is_host_object(value.dtype())) return Place::host;
  switch (s.kind) {
    case ItemKind::send:
      return place_of(value);
    case ItemKind::switch_:
      return input == 0 ? place_of(value) : Place::host;
    case ItemKind::merge:
      return Place::device;
    default:
      break;
  }
  if (s.role == Role::segment && node.op->tells_shape) return place_of(value);
  return is_value_input(node, input) || contains(s.kernel->host_inputs, input) ? Place::host
                                                                               : Place::device;
}

int Planner::copy_item(const Output& value, Place place) {
  int& copy = copies_[{value.node->id, value.index}];
  if (copy == 0) {
    Item item{.kind = place == Place::host ? ItemKind::to_host : ItemKind::to_device,
              .node = value.node};
    item.dead_on = dead_flags_of(value);
    item.inputs = {source_of(value, place_of(value))};
    item.outputs = {plan_.slots++};
    plan_.items.push_back(std::move(item));
    copy = static_cast<int>(plan_.items.size());  // one more than the index: 0 means new
    const std::vector<int> from = items_of(*value.node);
    dependencies_.emplace_back(from.begin(), from.end());
  }
  return copy - 1;
}

int Planner::copy_group(int copy, int waits) {
  int& group = copy_groups_[copy];
  if (group == 0) group = new_group(waits);
  return group;
}

ItemSource Planner::source_of(const Output& value, Place place) {
  ItemSource source;
  if (state(*value.node).role == Role::constant) {
    source.constant = state(*value.node).constant;
    source.is_on_device = place == Place::device;
    if (source.is_on_device) upload_constant(source.constant);
  } else {
    source.slot = slot_of(value, place);
  }
  return source;
}

void Planner::upload_constant(int number) {
  plan_.device_constants.resize(plan_.constants.size());
  Tensor& there = plan_.device_constants[static_cast<size_t>(number)];
  if (there.is_valid()) return;
  const Tensor& host = plan_.constants[static_cast<size_t>(number)];
  const MemoryOwner owner(MemoryUse::constant);
  there = Tensor(host.dtype(), host.shape(), plan_.device->allocate(host.bytes()));
  if (host.bytes() > 0)
    plan_.device->copy_from_host(host.raw(), there.raw(), host.bytes(),
                                 [host, there](const Status&) {});
}

int Planner::slot_of(const Output& value, Place place) {
  if (place != place_of(value)) return plan_.items[copy_item(value, place)].outputs[0];
  State& from = state(*value.node);
  const auto [it, is_new] = slots_.try_emplace({value.node->id, value.index}, plan_.slots);
  if (!is_new) return it->second;
  const int slot = plan_.slots++;
  if (from.role == Role::feed) {
    plan_.feeds[from.constant].slot = slot;
  } else if (from.role == Role::boundary) {
    plan_.items[from.item].outputs[value.index] = slot;
  } else {
    plan_.segments[plan_.items[from.item].segment].results.push_back(
        {from.segment_node, value.index});
    plan_.items[from.item].outputs.push_back(slot);
  }
  return slot;
}

std::vector<int> Planner::suppliers_of(const Output& value, Place place) {
  if (place != place_of(value) && state(*value.node).role != Role::constant)
    return {copy_item(value, place)};
  return items_of(*value.node);
}

int Planner::segment_input(int item, const Output& value, Place place, bool is_by_value) {
  for (int supplier : suppliers_of(value, place)) dependencies_[item].insert(supplier);
  const int slot = slot_of(value, place);
  SegmentPlan& segment = plan_.segments[plan_.items[item].segment];
  const auto [it, is_new] =
      segment_inputs_.try_emplace({item, slot}, static_cast<int>(segment.inputs.size()));
  if (is_new) {
    segment.inputs.push_back({value, is_by_value, place == Place::host});
    plan_.items[item].inputs.push_back({.slot = slot});
  } else if (is_by_value) {
    segment.inputs[it->second].is_by_value = true;
  }
  return it->second;
}

int Planner::dead_flag_of(const State& boundary, int output) {
  return boundary.flag + (boundary.kind == ItemKind::switch_ ? output : 0);
}

std::vector<int> Planner::dead_flags_of(const Output& value) {
  const State& from = state(*value.node);
  if (from.flag >= 0) return {dead_flag_of(from, value.index)};
  return sets_[from.dead];
}

int Planner::new_flags(int count) {
  plan_.flags += count;
  return plan_.flags - count;
}

int Planner::value_group(const Output& value) {
  int& group = value_groups_[{value.node->id, value.index}];
  if (group == 0) group = new_group(state(*value.node).waits);
  return group;
}

std::vector<const Node*> Planner::real_nodes(const Node& node) {
  const State& s = state(node);
  return s.item >= 0 ? std::vector<const Node*>{&node} : s.upstream;
}

std::vector<int> Planner::items_of(const Node& node) {
  const State& s = state(node);
  if (s.item >= 0) return {s.item};
  std::vector<int> items;
  std::set<int> seen;
  for (const Node* real : s.upstream) {
    if (const int item = state(*real).item; seen.insert(item).second) items.push_back(item);
  }
  return items;
}

std::vector<const Node*> Planner::upstream_of(const Node& node) {
  std::vector<const Node*> nodes;
  std::set<const Node*> seen;
  const auto collect = [&](const Node& input) {
    for (const Node* real : real_nodes(input)) {
      if (seen.insert(real).second) nodes.push_back(real);
    }
  };
  for (const Output& input : node.inputs) collect(*input.node);
  for (const Node* control : node.control_inputs) collect(*control);
  return nodes;
}

}  // namespace leat
