#include "runtime/program_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

namespace leat {
namespace {

// Sets of small integers by number, so that equal sets compare in one instruction.
class SetPool {
 public:
  SetPool() { number({}); }
  int empty() const { return 0; }
  const std::vector<int>& operator[](int set) const { return *sets_[set]; }

  int unite(int a, int b) {
    if (a == b || b == empty()) return a;
    if (a == empty()) return b;
    const auto [it, is_new] = unions_.try_emplace({std::min(a, b), std::max(a, b)}, 0);
    if (is_new) {
      std::vector<int> both;
      std::set_union(sets_[a]->begin(), sets_[a]->end(), sets_[b]->begin(), sets_[b]->end(),
                     std::back_inserter(both));
      it->second = number(std::move(both));
    }
    return it->second;
  }
  int with(int set, int element) { return unite(set, number({element})); }

 private:
  int number(std::vector<int> set) {
    const auto [it, is_new] = numbers_.try_emplace(std::move(set), static_cast<int>(sets_.size()));
    if (is_new) sets_.push_back(&it->first);
    return it->second;
  }

  std::map<std::vector<int>, int> numbers_;
  std::vector<const std::vector<int>*> sets_;
  std::map<std::pair<int, int>, int> unions_;
};

bool contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Where a value lies. On a CPU everything is `host`; only on other devices do values get copied.
enum class Place : uint8_t { host, device };

class Planner {
 public:
  Planner(Graph graph, const std::vector<std::string>& fetches, Device& device, Device& host,
          Containers& containers)
      : containers_(containers), is_host_(device.type() == DeviceType::cpu) {
    plan_.graph = std::move(graph);
    plan_.device = &device;
    plan_.host = &host;
    std::vector<NodeRole> roles = find_roles(plan_.graph, device);
    fetches_ = make_reads_explicit(plan_.graph, roles, fetches, device);
    for (NodeRole& role : roles) states_.push_back({std::move(role)});
    for (Node* node : topological_order(plan_.graph)) add(*node);
    add_fetches();
    connect();
  }

  ProgramPlan take() { return std::move(plan_); }

 private:
  struct State : NodeRole {
    int waits = 0, dead = 0;  // sets
    int group = -1;           // of a boundary node: what others wait for
    int flag = -1;            // of a boundary node: first dead flag
    int item = -1;
    std::vector<const Node*> upstream;  // of a node without an item: the nodes that it stands for
    int segment_node = -1;
    int variable = -1, resource = -1;  // handle outputs resolve to one of them
    int constant = -1;                 // its number; of a feed: the feed's
    // A handle on state of the step, such as a TensorArray: known when it runs, as other values
    // are.
    bool is_value_handle = false;
    bool is_wanted = false;
    // Known when a tape is compiled, from shapes and constants of its own segment.
    bool is_foldable = false;
  };

  State& state(const Node& node) { return states_[node.id]; }

  // ---- Sets, segments, items ----

  void add(Node& node) {
    State& s = state(node);
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
      const Output& input = node.inputs[i];
      const State& from = state(*input.node);
      s.waits = sets_.unite(s.waits, waits_for(from));
      if (from.flag >= 0) {
        s.dead = sets_.with(s.dead, from.flag + (from.kind == ItemKind::switch_ ? input.index : 0));
      } else {
        s.dead = sets_.unite(s.dead, from.dead);
      }
    }
    for (Node* control : node.control_inputs) {
      State& from = state(*control);
      from.is_wanted = true;
      s.waits = sets_.unite(s.waits, waits_for(from));
      s.dead = from.flag >= 0 && from.kind != ItemKind::switch_ ? sets_.with(s.dead, from.flag)
                                                                : sets_.unite(s.dead, from.dead);
    }
    if (node.is("ControlTrigger")) s.dead = sets_.empty();
    const bool has_handle = !node.outputs.empty() && node.outputs[0].is_handle();
    if (has_handle && s.role != Role::state && !find_value_handle(node, s)) resolve_handle(node, s);

    switch (s.role) {
      case Role::constant: {
        s.constant = static_cast<int>(plan_.constants.size());
        plan_.constants.push_back(node.attr<Tensor>("value"));
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
                               node.outputs[0].shape, node.location, -1});
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

  void resolve_handle(const Node& node, State& s) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is_handle_input(node, static_cast<int>(i))) continue;
      const State& from = state(*node.inputs[i].node);
      const bool is_first = s.variable < 0 && s.resource < 0;
      check(is_first || s.kind != ItemKind::merge ||
                (s.variable == from.variable && s.resource == from.resource),
            node.op->name, " node '", node.name,
            "' may pass on one or another variable; merge their values instead");
      if (is_first) s.variable = from.variable, s.resource = from.resource;
    }
    check(s.variable >= 0 || s.resource >= 0, node.op->name, " node '", node.name,
          "' passes on a reference that does not lead to a variable");
  }

  // Made by a kernel, fed, or passed on.
  bool find_value_handle(const Node& node, State& s) {
    if (node.outputs[0].is_ref) return false;
    const auto is_passed = [&] {
      return std::any_of(node.inputs.begin(), node.inputs.end(),
                         [&](const Output& input) { return state(*input.node).is_value_handle; });
    };
    s.is_value_handle = s.role == Role::feed ||
                        (s.role == Role::boundary && s.kind == ItemKind::execute) || is_passed();
    if (s.is_value_handle && s.role == Role::segment) {  // Identity
      s.role = Role::boundary;
      s.kind = ItemKind::execute;
      s.kernel.execute = [](ExecuteContext& c) { c.set_output(0, c.input(0)); };
    }
    return s.is_value_handle;
  }

  // A handle that leads to one piece of state, whatever the step.
  bool is_fixed_handle(const Output& output) {
    return output.is_handle() && !state(*output.node).is_value_handle;
  }

  bool has_foldable_inputs(const Node& node, const State& s) {
    if (node.op->is_stateful || node.inputs.empty() ||
        find_kernel(*node.op, node.attrs, DeviceType::cpu) == nullptr)
      return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Output& input) {
      const State& from = state(*input.node);
      return from.role == Role::constant || (from.role == Role::segment && from.is_foldable &&
                                             from.waits == s.waits && from.dead == s.dead);
    });
  }

  int waits_for(const State& from) {
    return from.group >= 0 ? sets_.with(from.waits, from.group) : from.waits;
  }

  static const std::string& state_name(const Node& node) {
    const std::string& shared_name = node.attr<std::string>("shared_name");
    return shared_name.empty() ? node.name : shared_name;
  }

  // A resource does not show what its variable holds: the node's attributes claim it.
  void check_dtype(const Node& node, const Output& handle) {
    const int variable = state(*handle.node).variable;
    if (handle.is_ref() || variable < 0) return;
    const DType held = plan_.variables[variable]->dtype();
    for (const char* name : {"dtype", "T"}) {
      const auto attr = node.attrs.find(name);
      if (attr == node.attrs.end() || !attr->second.is<DType>()) continue;
      const auto wanted = attr->second.get<DType>();
      if (wanted == held || wanted == DType::resource) continue;
      fail(Code::invalid_argument,
           with_node(concat(node.op->name, ": the variable '", plan_.variables[variable]->name(),
                            "' holds ", held, ", not ", wanted),
                     node.name));
    }
  }

  int add_resource(const Node& node) {
    const NodeView view = node.view();
    auto resource = containers_.resource(node.attr<std::string>("container"), state_name(node),
                                         [&] { return node.op->make_resource(view); });
    resource->check_fits(view);
    plan_.resources.push_back(std::move(resource));
    return static_cast<int>(plan_.resources.size()) - 1;
  }

  void add_variable(const Node& node, State& s) {
    auto variable = containers_.variable(node.attr<std::string>("container"), state_name(node),
                                         node.attr<DType>("dtype"));
    const auto known = std::find(plan_.variables.begin(), plan_.variables.end(), variable);
    s.variable = static_cast<int>(known - plan_.variables.begin());
    if (known != plan_.variables.end()) return;
    plan_.variables.push_back(std::move(variable));
    plan_.variable_shapes.push_back(node.outputs[0].shape);
  }

  void add_boundary(Node& node, State& s) {
    Item item{.kind = s.kind, .node = &node, .kernel = s.kernel};
    item.dead_on = sets_[s.dead];
    if (node.op->make_resource) item.resource = add_resource(node);
    switch (s.kind) {
      case ItemKind::send:
        item.edge = node.attr<int64_t>("edge");
        s.group = new_group();
        break;
      case ItemKind::receive: {
        item.edge = node.attr<int64_t>("edge");
        item.label = node.attr<std::string>("tensor_name");
        // What comes from one peer in one wave comes together: its users wait for all of it.
        auto& group = receive_groups_[{node.attr<std::string>("send_device"),
                                       node.attr<int64_t>("wave"), s.waits}];
        if (group == 0) group = new_group();
        s.group = group;
        if (node.view().has("may_be_dead") && node.attr<bool>("may_be_dead"))
          item.dead_flag = s.flag = new_flags(1);
        break;
      }
      case ItemKind::switch_: {
        // All that one predicate switches lives and dies together.
        const Output& predicate = node.inputs[1];
        auto& [group, flag] =
            switch_groups_[{predicate.node->id, predicate.index, s.waits, s.dead}];
        if (group == 0) group = new_group(), flag = new_flags(2);
        s.group = group;
        item.dead_flag = s.flag = flag;
        break;
      }
      case ItemKind::merge:
        s.group = new_group();
        item.dead_flag = s.flag = new_flags(1);
        item.dead_on.clear();
        s.dead = sets_.empty();
        item.first_counter = plan_.counters;
        plan_.counters += static_cast<int>(node.inputs.size()) + 2;  // see is_merge_decided()
        break;
      case ItemKind::loop:
        item.loop = plan_.loops++;
        s.group = new_group();
        break;
      case ItemKind::execute: {
        // They wait for nothing, so what is ready together is used together.
        int& group = execute_groups_[{s.waits, s.dead}];
        if (group == 0) group = new_group();
        s.group = group;
        break;
      }
      default:
        s.group = new_group();
    }
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

  void add_to_segment(Node& node, State& s) {
    // What must be known before the tape is compiled, or lie in another memory, comes from another
    // segment.
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
      const Output& input = node.inputs[i];
      State& from = state(*input.node);
      if (input.is_handle() || from.role == Role::constant) continue;
      const bool needs_value = is_value_input(node, i);
      const bool is_local =
          from.role == Role::segment && from.waits == s.waits && from.dead == s.dead;
      if (needs_value && is_local && from.is_foldable) continue;
      const Place place = wanted_place(node, s, i, input);
      if (place != place_of(input)) {
        if (is_local && from.is_foldable && place == Place::host) continue;
        // Copies to a device are enqueued and need no wait of their own.
        const int copy = copy_item(input, place);
        if (is_local || place == Place::host) s.waits = sets_.with(s.waits, copy_group(copy));
      } else if (needs_value && is_local) {
        s.waits = sets_.with(s.waits, value_group(input));
      }
    }

    int& item = segment_items_[{s.waits, s.dead}];
    if (item == 0) {
      plan_.items.push_back({.kind = ItemKind::segment,
                             .segment = static_cast<int>(plan_.segments.size()),
                             .dead_on = sets_[s.dead]});
      plan_.segments.emplace_back();
      dependencies_.emplace_back();
      item = static_cast<int>(plan_.items.size());  // one more than the index: 0 means new
    }
    s.item = item - 1;
    SegmentPlan& segment = plan_.segments[plan_.items[s.item].segment];
    s.segment_node = static_cast<int>(segment.nodes.size());
    segment.nodes.push_back({&node, s.kernel, {}, {}, false});

    bool all_foldable = !node.inputs.empty();
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
      const Output& input = node.inputs[i];
      State& from = state(*input.node);
      SegmentSource source{};
      if (input.is_handle()) {
        check(from.variable >= 0, describe(node), ": '", input.name(), "' is not a variable");
        check_dtype(node, input);
        source = {SegmentSource::Kind::variable, from.variable, 0};
        use_variable(segment, from.variable, is_written(node, i));
        all_foldable = false;
      } else if (from.role == Role::constant) {
        source = {SegmentSource::Kind::constant, from.constant, 0};
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
                    (all_foldable || tells_shape(node));
  }

  // Another item first, or an earlier node of the same segment.
  void run_after(const Node& before, const State& s) {
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

  static void use_variable(SegmentPlan& segment, int variable, bool is_written) {
    for (SegmentPlan::VariableUse& use : segment.variables) {
      if (use.variable != variable) continue;
      use.is_written = use.is_written || is_written;
      return;
    }
    segment.variables.push_back({variable, is_written});
  }

  // ---- Values that cross ----

  Place place_of(const Output& value) {
    if (is_host_) return Place::host;
    const State& from = state(*value.node);
    if (from.role == Role::constant || from.role == Role::feed) return Place::host;
    switch (from.kind) {
      case ItemKind::receive:
        return Place::host;
      case ItemKind::switch_:
        return place_of(value.node->inputs[0]);
      case ItemKind::merge:
        return value.index == 0 ? Place::device : Place::host;
      default:
        return contains(from.kernel.host_outputs, value.index) ? Place::host : Place::device;
    }
  }

  Place wanted_place(const Node& node, const State& s, int input, const Output& value) {
    if (is_host_) return Place::host;
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
    if (s.role == Role::segment && tells_shape(node)) return place_of(value);
    return is_value_input(node, input) || contains(s.kernel.host_inputs, input) ? Place::host
                                                                                : Place::device;
  }

  // The item that copies a value to another place; made when first asked for.
  int copy_item(const Output& value, Place place) {
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
  int copy_group(int copy) {
    int& group = copy_groups_[copy];
    if (group == 0) group = new_group();
    return group;
  }

  ItemSource source_of(const Output& value, Place place) {
    ItemSource source;
    if (state(*value.node).role == Role::constant && place == Place::host) {
      source.constant = state(*value.node).constant;
    } else {
      source.slot = slot_of(value, place);
    }
    return source;
  }

  int slot_of(const Output& value, Place place) {
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

  // The items that must be done before the value is there.
  std::vector<int> suppliers_of(const Output& value, Place place) {
    if (place != place_of(value) &&
        !(state(*value.node).role == Role::constant && place == Place::host)) {
      return {copy_item(value, place)};
    }
    return items_of(*value.node);
  }

  int segment_input(int item, const Output& value, Place place, bool is_by_value) {
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

  std::vector<int> dead_flags_of(const Output& value) {
    const State& from = state(*value.node);
    if (from.flag >= 0) return {from.flag + (from.kind == ItemKind::switch_ ? value.index : 0)};
    return sets_[from.dead];
  }

  int new_group() { return ++groups_; }
  int new_flags(int count) {
    plan_.flags += count;
    return plan_.flags - count;
  }
  int value_group(const Output& value) {
    int& group = value_groups_[{value.node->id, value.index}];
    if (group == 0) group = new_group();
    return group;
  }

  // The node itself, or what stands before it if it does nothing (constants, variables).
  std::vector<const Node*> real_nodes(const Node& node) {
    const State& s = state(node);
    return s.item >= 0 ? std::vector<const Node*>{&node} : s.upstream;
  }
  std::vector<int> items_of(const Node& node) {
    std::vector<int> items;
    for (const Node* real : real_nodes(node)) {
      if (const int item = state(*real).item; !contains(items, item)) items.push_back(item);
    }
    return items;
  }
  std::vector<const Node*> upstream_of(const Node& node) {
    std::vector<const Node*> nodes;
    const auto collect = [&](const Node& input) {
      for (const Node* real : real_nodes(input)) {
        if (std::find(nodes.begin(), nodes.end(), real) == nodes.end()) nodes.push_back(real);
      }
    };
    for (const Output& input : node.inputs) collect(*input.node);
    for (const Node* control : node.control_inputs) collect(*control);
    return nodes;
  }

  // ---- The end ----

  void add_fetches() {
    for (const FetchedOutput& fetch : fetches_) {
      plan_.fetches.push_back({fetch.name, source_of(fetch.source, Place::host), fetch.node});
      plan_.fetches.back().source.dead_on = dead_flags_of(fetch.source);
    }
  }

  void connect() {
    for (size_t i = 0; i < plan_.items.size(); ++i) {
      dependencies_[i].erase(static_cast<int>(i));
      plan_.items[i].dependencies = static_cast<int>(dependencies_[i].size());
      for (int from : dependencies_[i])
        plan_.items[from].successors.push_back({static_cast<int>(i), -1});
    }
    plan_.slot_uses.assign(plan_.slots, 0);
    for (Item& item : plan_.items) {
      for (const ItemSource& source : item.inputs) {
        if (source.slot < 0 || contains(item.releases, source.slot)) continue;
        item.releases.push_back(source.slot);
        ++plan_.slot_uses[source.slot];
      }
    }
    for (const ProgramPlan::Fetch& fetch : plan_.fetches) {
      if (fetch.source.slot >= 0) ++plan_.slot_uses[fetch.source.slot];
    }
    const Consumers consumers(plan_.graph);
    for (const auto& node : plan_.graph.nodes()) {
      const State& s = state(*node);
      if (s.role != Role::segment) continue;
      plan_.segments[plan_.items[s.item].segment].nodes[s.segment_node].is_wanted =
          s.is_wanted || consumers.of(*node).empty();
    }
    plan_.is_straight = is_host_ && plan_.items.size() <= 1 &&
                        (plan_.items.empty() || plan_.items[0].kind == ItemKind::segment);
  }

  Containers& containers_;
  const bool is_host_;
  ProgramPlan plan_;
  std::vector<State> states_;
  SetPool sets_;
  int groups_ = 0;
  std::map<std::tuple<std::string, int64_t, int>, int> receive_groups_;
  std::map<std::tuple<int, int, int, int>, std::pair<int, int>> switch_groups_;
  std::map<std::pair<int, int>, int> execute_groups_;  // (waits, dead)
  std::map<std::pair<int, int>, int> value_groups_;
  std::map<std::pair<int, int>, int> slots_, copies_;  // by (node, output)
  std::map<int, int> copy_groups_;
  std::map<std::pair<int, int>, int> segment_inputs_;  // (item, slot) → input of the segment
  std::vector<std::set<int>> dependencies_;            // of an item
  std::map<std::pair<int, int>, int> segment_items_;   // (waits, dead) → item + 1
  std::vector<FetchedOutput> fetches_;
};

}  // namespace

ProgramPlan plan_program(Graph graph, const std::vector<std::string>& fetches, Device& device,
                         Device& host, Containers& containers) {
  return Planner(std::move(graph), fetches, device, host, containers).take();
}

}  // namespace leat
