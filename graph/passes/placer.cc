#include "graph/passes/placer.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <optional>
#include <tuple>

#include "graph/loops/frames.h"
#include "graph/loops/loops.h"
#include "graph/passes/colocation.h"
#include "graph/passes/placement_errors.h"
#include "graph/passes/placement_set.h"

namespace leat {
namespace {

bool is_generator(const Node& node) {
  return node.inputs.empty() && node.num_outputs() == 1 && !node.outputs[0].is_ref &&
         node.outputs[0].dtype != DType::resource;
}

bool is_metadata(const Node& node) { return node.inputs.size() == 1 && node.op->tells_shape; }

DeviceName without_type(DeviceName name) {
  name.type.reset();
  name.id.reset();
  return name;
}

std::vector<DeviceSpec> lost(const PlacementOptions& options) {
  std::vector<DeviceSpec> devices = options.devices;
  std::erase_if(devices, [](const DeviceSpec& device) { return device.problem.empty(); });
  return devices;
}

// Those that can be used, best first.
std::vector<DeviceSpec> ranked(const PlacementOptions& options) {
  std::vector<DeviceSpec> devices = options.devices;
  std::erase_if(devices, [](const DeviceSpec& device) { return !device.problem.empty(); });
  const DeviceName dialled = options.default_device.task_name();
  const DeviceType preferred = options.gpus == Gpus::avoid ? DeviceType::cpu : DeviceType::gpu;
  const auto rank = [&](const DeviceSpec& device) {
    const DeviceName& name = device.name;
    return std::make_tuple(!dialled.matches(name), device.type != preferred, name.job.value_or(""),
                           name.task.value_or(0), name.id.value_or(0));
  };
  std::stable_sort(devices.begin(), devices.end(),
                   [&](const DeviceSpec& a, const DeviceSpec& b) { return rank(a) < rank(b); });
  return devices;
}

class Placement {
  using Set = PlacementSet;

 public:
  Placement(Graph& graph, const PlacementOptions& options)
      : graph_(graph),
        options_(options),
        dialled_(options.default_device.task_name()),
        devices_(ranked(options)),
        names_(devices_.size()),
        kinds_(devices_),
        ties_(graph),
        errors_(devices_, lost(options), kinds_, ties_) {
    check(!devices_.empty(), "there is no device to place the graph on");
    for (size_t i = 0; i < devices_.size(); ++i) names_[i] = devices_[i].name;
    make_sets();
  }

  void place_all() {
    std::vector<Node*> metadata;
    for (const auto& node : graph_.nodes()) {
      Set& set = set_of(*node);
      const bool is_single = set.nodes.size() == 1 && set.pinned == nullptr;
      if (is_single && is_metadata(*node)) {
        metadata.push_back(node.get());
      } else if (!(is_single && is_generator(*node)) && set.nodes.front() == node.get()) {
        place_set(set);
      }
    }
    // Two rounds: a generator may feed a metadata op, and the other way round only through placed
    // nodes.
    for (Node* node : metadata) follow_input(*node, true);
    const Consumers consumers(graph_);
    for (const auto& node : graph_.nodes()) {
      if (is_unplaced(*node) && is_generator(*node)) join_consumers(*node, consumers);
    }
    for (Node* node : metadata) follow_input(*node, false);
    report_failures();
  }

  void place_tied_and_stateful() {
    keep_state_of_loops_near();
    for (Set& set : sets_) {
      const bool matters = set.nodes.size() > 1 || set.nodes.front()->op->is_stateful;
      if (!matters || set.nodes.front()->is("_Feed") || has_only_variants(set) ||
          has_only_step_state(set))
        continue;
      place_set(set);
      if (set.failure) place_state_alone(set);
    }
  }

 private:
  void make_sets() {
    constexpr size_t none = SIZE_MAX;
    std::vector<size_t> index(graph_.size(), none);  // by root: its set
    set_index_.resize(graph_.size());
    size_t count = 0;
    for (const auto& node : graph_.nodes()) {
      size_t& set = index[ties_.root(node->id)];
      if (set == none) set = count++;
      set_index_[node->id] = set;
    }
    sets_.resize(count);
    for (const auto& node : graph_.nodes()) add_to(set_of(*node), *node);
    for (Set& set : sets_) set.kinds = kinds_of(set);
  }

  // Where a set has state, values that are only tied to it by `_class`, such as a variable's first
  // value, do not decide: without a kernel there they are computed on the task's CPU.
  unsigned kinds_of(const Set& set) const {
    const auto touches_state = [&](const Node* node) { return touches_state_or_variant(*node); };
    const bool has_state =
        set.nodes.size() > 1 && std::any_of(set.nodes.begin(), set.nodes.end(), touches_state);
    unsigned kinds = ~0u;
    for (const Node* node : set.nodes) {
      if (!has_state || touches_state(node)) kinds &= kinds_.with_kernels_for(*node);
    }
    return kinds;
  }

  static bool touches_state_or_variant(const Node& node) {
    const auto is_handle = [](const auto& value) { return value.is_handle(); };
    return std::any_of(node.inputs.begin(), node.inputs.end(), is_handle) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), is_handle) ||
           Colocation::has_variant(node);
  }

  // A step's loop is one node, `_Loop`: what it updates, or reads by reference, must be where all
  // of the loop can be.
  void keep_state_of_loops_near() {
    if (!has_frames(graph_)) return;
    std::optional<Frames> frames;
    try {
      frames.emplace(graph_);
    } catch (const Error&) {  // the step that needs what is wrong there says so
      return;
    }
    if (frames->count() == 0) return;
    std::vector<unsigned> kinds(static_cast<size_t>(frames->count()), ~0u);  // of outermost loops
    for (const auto& node : graph_.nodes()) {
      if (frames->of(*node) == Frames::none) continue;
      kinds[static_cast<size_t>(frames->outermost(frames->of(*node)))] &=
          kinds_.with_kernels_in_loop(*node);
    }
    for (const auto& node : graph_.nodes()) {
      if (frames->of(*node) == Frames::none) continue;
      const unsigned here = kinds[static_cast<size_t>(frames->outermost(frames->of(*node)))];
      for (const Output& input : node->inputs) {
        const bool is_changed =
            input.dtype() == DType::resource && !is_loop_node(*node) && !node->op->only_reads_state;
        if (input.is_ref() || is_changed) set_of(*input.node).kinds &= here | bit(DeviceType::cpu);
      }
    }
  }

  // They are values, which each step may have elsewhere.
  static bool has_only_variants(const Set& set) {
    const auto stays = [](const Node* node) {
      const auto is_handle = [](const auto& value) { return value.is_handle(); };
      return node->op->is_stateful || node->view().has("_class") ||
             std::any_of(node->inputs.begin(), node->inputs.end(), is_handle) ||
             std::any_of(node->outputs.begin(), node->outputs.end(), is_handle);
    };
    return std::none_of(set.nodes.begin(), set.nodes.end(), stays);
  }

  // It may be elsewhere in each step as well: where the loop is that uses it.
  bool has_only_step_state(const Set& set) const {
    const auto is = [&](auto&& what) {
      return std::any_of(set.nodes.begin(), set.nodes.end(), what);
    };
    return is([](const Node* node) { return makes_step_state(*node); }) &&
           !is([&](const Node* node) { return ties_.is_resource(*node); });
  }

  void add_to(Set& set, Node& node) {
    set.nodes.push_back(&node);
    if (!node.assigned_device->is_empty() && set.pinned == nullptr) set.pinned = &node;
    if (node.requested_device->is_empty()) return;
    const bool is_resource = ties_.is_resource(node);
    if (set.asker == nullptr) {
      set.request = node.requested_device;
      set.asker = &node;
      set.is_resource = is_resource;
      return;
    }
    const bool is_stronger = is_resource && !set.is_resource;
    if (set.request == node.requested_device && !is_stronger) return;
    DeviceName strong = node.requested_device, weak = set.request;
    if (!is_stronger) std::swap(strong, weak);
    const Node& weaker = is_stronger ? *set.asker : node;
    const bool goes_along =
        ties_.has_variant(weaker) || (!is_stronger && !is_resource && ties_.uses_resource(weaker));
    if (!strong.is_compatible(weak) && goes_along) {
      // As in TensorFlow, what uses a variable goes to it, whatever device scope it was made in.
      set.relaxed = concat(" (", weaker.name, " requests ", weak, ", but uses state elsewhere)");
      weak = DeviceName();
    }
    if (!strong.is_compatible(weak) && options_.allow_soft_placement) {
      set.relaxed = concat(" (soft placement: ", weak, " was requested, too)");
      weak = without_type(weak);
    }
    if (strong.is_compatible(weak)) {
      set.request = strong.with_defaults(weak);
    } else if (!set.failure && set.pinned == nullptr) {
      set.failure = errors_.opposite_requests(set, node);
    }
    if (is_stronger) {
      set.asker = &node;
      set.is_resource = true;
    }
  }

  Set& set_of(const Node& node) { return sets_[set_index_[node.id]]; }
  static bool is_unplaced(const Node& node) { return node.assigned_device->is_empty(); }

  // Devices that match and are of one of the kinds, best first. Few combinations, many nodes.
  const std::vector<const DeviceSpec*>& candidates(const Shared<DeviceName>& request,
                                                   unsigned kinds) {
    if (last_candidates_ != nullptr && last_request_ == request && last_kinds_ == kinds)
      return *last_candidates_;
    auto [found, is_new] = candidates_.try_emplace({request->to_string(), kinds});
    if (is_new) {
      for (const DeviceSpec& device : devices_) {
        if (request->matches(device.name) && (kinds & kinds_.of(device)) != 0) {
          found->second.push_back(&device);
        }
      }
    }
    last_request_ = request;
    last_kinds_ = kinds;
    last_candidates_ = &found->second;
    return found->second;
  }

  // Empty if the set cannot be placed; then set.failure says why.
  const std::vector<const DeviceSpec*>& candidates_of(Set& set) {
    static const std::vector<const DeviceSpec*> none;
    if (set.failure) return none;
    if (const auto& exact = candidates(set.request, set.kinds); !exact.empty()) return exact;
    if (options_.allow_soft_placement) {
      const auto& soft = candidates(without_type(set.request), set.kinds);
      if (!soft.empty()) {
        set.relaxed = concat(" (soft placement: ", set.request, " was requested)");
        return soft;
      }
    }
    set.failure = errors_.no_device(set);
    return none;
  }

  std::string why_placed(const Set& set, const Node& node) const {
    const Node* with = set.pinned != nullptr ? set.pinned : set.asker;
    std::string out;
    if (with == nullptr && set.nodes.size() > 1) with = set.nodes.front();
    if (with != nullptr && with != &node) {
      out = concat("colocated with ", with->name);
    } else if (with != nullptr && !node.requested_device->is_empty()) {
      out = "explicit";
    } else {
      const bool is_dialled = !dialled_.is_empty() && dialled_.matches(node.assigned_device);
      out = is_dialled ? "default of the dialled task" : "first device with a kernel";
    }
    if (node.is("_Loop") && node.assigned_device->type == "CPU") {
      const std::string obstacle = kinds_.has_gpus() ? kinds_.obstacle_in(node) : "";
      if (!obstacle.empty()) out += concat("; no GPU has a kernel for ", obstacle, " in the loop");
    }
    return out + set.relaxed;
  }

  void assign(Node& node, const Shared<DeviceName>& device, std::string reason) {
    node.assigned_device = device;
    if (!(last_reason_ == reason)) last_reason_ = std::move(reason);
    node.placement_reason = last_reason_;
  }

  const Shared<DeviceName>& name_of(const DeviceSpec& device) const {
    return names_[&device - devices_.data()];
  }

  void place_set(Set& set) {
    const DeviceSpec* device = nullptr;
    if (set.pinned != nullptr) {
      if (!check_pinned(set)) return;
      device = spec_of(*set.pinned->assigned_device);
    } else {
      const std::vector<const DeviceSpec*>& devices = candidates_of(set);
      if (devices.empty()) return;
      device = devices.front();
    }
    for (Node* node : set.nodes) {
      if (!is_unplaced(*node) || is_without_kernel(*node, *device, set)) continue;
      node->assigned_device = name_of(*device);  // the reason names it
      assign(*node, name_of(*device), why_placed(set, *node));
    }
  }

  // True for a value that goes with the set's state, but has no kernel there: then it gets the CPU
  // of the task.
  bool is_without_kernel(Node& node, const DeviceSpec& device, Set& set) {
    if (set.nodes.size() == 1 || (kinds_.with_kernels_for(node) & kinds_.of(device)) != 0)
      return false;
    const bool asks_for_type = node.requested_device->type.has_value();
    DeviceName request = without_type(*name_of(device));
    if (asks_for_type && !options_.allow_soft_placement)
      request = node.requested_device->with_defaults(request);
    const auto& devices = candidates(request, kinds_.with_kernels_for(node));
    if (devices.empty()) {
      if (!set.failure) set.failure = errors_.no_kernel_on(device, set);
      return true;
    }
    assign(node, name_of(*devices.front()),
           concat("near ",
                  set.nodes.front() == &node ? set.nodes.back()->name : set.nodes.front()->name,
                  ", with which it is colocated: ", node.op->name, " has no kernel on ",
                  device.name.type.value_or(""), "s"));
    return true;
  }

  const DeviceSpec* spec_of(const DeviceName& name) const {
    const auto found =
        std::find_if(devices_.begin(), devices_.end(),
                     [&](const DeviceSpec& candidate) { return candidate.name == name; });
    return found == devices_.end() ? nullptr : &*found;
  }

  // The set contradicts itself, which a step with less of it does not see: its variables must not
  // be elsewhere there.
  void place_state_alone(const Set& set) {
    for (Node* node : set.nodes) {
      if (!is_unplaced(*node) || !ties_.is_resource(*node) || node->requested_device->is_empty())
        continue;
      const auto& devices = candidates(node->requested_device, kinds_.with_kernels_for(*node));
      if (!devices.empty()) assign(*node, name_of(*devices.front()), "explicit");
    }
  }

  // The nodes that have a device must agree, and the session must still have it.
  bool check_pinned(Set& set) {
    for (const Node* node : set.nodes) {
      if (is_unplaced(*node) || node->assigned_device == set.pinned->assigned_device) continue;
      set.failure = errors_.opposite_devices(set, *node);
      return false;
    }
    const DeviceSpec* const device = spec_of(*set.pinned->assigned_device);
    if (device == nullptr) {
      set.failure = errors_.device_is_gone(set);
      return false;
    }
    if ((set.kinds & kinds_.of(*device)) == 0) {
      set.failure = errors_.no_kernel_on(*device, set);
      return false;
    }
    return true;
  }

  void follow_input(Node& node, bool only_placed) {
    if (!is_unplaced(node)) return;
    Set& set = set_of(node);
    const Node& input = *node.inputs[0].node;
    if (only_placed && is_unplaced(input)) return;
    for (const DeviceSpec* device : candidates_of(set)) {
      if (device->name != input.assigned_device) continue;
      return assign(node, name_of(*device), "follows its input " + input.name + set.relaxed);
    }
    place_set(set);
  }

  // The one device of all placed users (by data, or by control edges where there is no data), else
  // none.
  static const Node* only_consumer(const Node& node, const Consumers& consumers) {
    const Node* first = nullptr;
    for (const bool data : {true, false}) {
      for (const Consumers::Use& use : consumers.of(node)) {
        if ((use.input >= 0) != data || is_unplaced(*use.node)) continue;
        if (first == nullptr) first = use.node;
        const bool is_same = use.node->assigned_device == first->assigned_device;
        // A feed is sent to each of its consumers, so that any of them will do.
        if (!is_same && !node.is("_Feed")) return nullptr;
      }
      if (first != nullptr) return first;
    }
    return nullptr;
  }

  void join_consumers(Node& node, const Consumers& consumers) {
    Set& set = set_of(node);
    if (const Node* consumer = only_consumer(node, consumers)) {
      for (const DeviceSpec* device : candidates_of(set)) {
        if (device->name != consumer->assigned_device) continue;
        return assign(node, name_of(*device), "joins its consumer " + consumer->name + set.relaxed);
      }
    }
    place_set(set);
  }

  void report_failures() const {
    std::string message;
    std::string node;
    int count = 0;
    for (const Set& set : sets_) {
      if (!set.failure) continue;
      if (count == 0) node = set.failure->node;
      if (++count > 10) continue;
      message += concat(count == 1 ? "" : "\n", "Cannot assign a device for operation ",
                        set.failure->node, ": ", set.failure->why);
    }
    if (count == 0) return;
    if (count > 10) message += concat("\n… and ", count - 10, " more");
    // The client adds the Python line of the node that is named.
    fail_at(node, Code::invalid_argument, message);
  }

  Graph& graph_;
  const PlacementOptions& options_;
  const DeviceName dialled_;               // the task
  const std::vector<DeviceSpec> devices_;  // best first
  std::vector<Shared<DeviceName>> names_;  // of these, for many nodes
  const DeviceKinds kinds_;
  const Colocation ties_;
  const PlacementErrors errors_;
  std::vector<Set> sets_;
  std::vector<size_t> set_index_;  // by node id
  std::map<std::pair<std::string, unsigned>, std::vector<const DeviceSpec*>> candidates_;
  // The last answer, which is the next one mostly.
  Shared<DeviceName> last_request_;
  unsigned last_kinds_ = 0;
  const std::vector<const DeviceSpec*>* last_candidates_ = nullptr;
  Shared<std::string> last_reason_;
};

}  // namespace

void place(Graph& graph, const PlacementOptions& options) {
  Placement(graph, options).place_all();
  if (!options.log_placement) return;
  for (const auto& node : graph.nodes()) {
    std::clog << node->name << ": (" << node->op->name << "): " << node->assigned_device << " ("
              << node->placement_reason << ")\n";
  }
}

void place_stateful(Graph& graph, const PlacementOptions& options) {
  Placement(graph, options).place_tied_and_stateful();
}

}  // namespace leat
