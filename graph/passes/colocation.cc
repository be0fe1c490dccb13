#include "graph/passes/colocation.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <unordered_map>

#include "graph/loops/loop_frame.h"
#include "graph/loops/loops.h"
#include "graph/signature.h"

namespace leat {
namespace {

constexpr std::string_view prefix = "loc:@";
constexpr int by_class = -1;
constexpr int by_absent_class = -2;

// Neither a handle nor a variant goes to another device.
bool stays_there(const Output& value) {
  return value.dtype() == DType::resource || value.dtype() == DType::variant;
}

bool is_tying(const ArgDef& arg, const Output& input) {
  return (arg.is_ref && input.is_ref()) || stays_there(input);
}

// The client asks for a TensorArray, and all that writes and reads it, to be where the first value
// comes from that is written. But it lies where the loop runs that uses it.
bool follows_step_state(const Node& node) {
  return makes_step_state(node) || uses_step_state(node);
}

bool is_gpu(const DeviceName& name) {
  return name.type && device_type_from_name(*name.type) == DeviceType::gpu;
}

}  // namespace

std::vector<std::string_view> colocated_with(const Node& node) {
  std::vector<std::string_view> out;
  const auto found = node.attrs.find("_class");
  if (found == node.attrs.end() || !found->second.is<std::vector<std::string>>()) return out;
  for (const std::string& entry : found->second.get<std::vector<std::string>>()) {
    if (entry.starts_with(prefix)) out.push_back(std::string_view(entry).substr(prefix.size()));
  }
  return out;
}

Colocation::Colocation(const Graph& graph) : graph_(graph), parents_(graph.size()) {
  tie_all();
  if (set_loops_free()) tie_all();
}

// Those in sets that would have to be in several places.
bool Colocation::set_loops_free() {
  std::unordered_map<int, std::vector<const Node*>> loops;  // by set
  for (const auto& node : graph_.nodes()) {
    if (node->is("_Loop")) loops[root(node->id)].push_back(node.get());
  }
  if (loops.empty()) return false;
  std::unordered_map<int, DeviceName> places;  // of sets with loops
  for (const auto& node : graph_.nodes()) {
    const auto set = loops.find(root(node->id));
    const bool is_assigned = !node->assigned_device->is_empty();
    if (set == loops.end() || !(is_assigned || is_resource(*node))) continue;
    const DeviceName place =
        is_assigned ? *node->assigned_device : node->requested_device->task_name();
    const auto [first, is_first] = places.try_emplace(set->first, place);
    if (is_first || first->second.is_compatible(place)) continue;
    if (is_gpu(place) || is_gpu(first->second)) continue;  // with a GPU's state a loop stays
    for (const Node* loop : set->second) free_loops_.insert(loop->id);
  }
  return !free_loops_.empty();
}

void Colocation::tie_all() {
  ties_.clear();
  std::iota(parents_.begin(), parents_.end(), 0);
  const Graph& graph = graph_;
  std::unordered_map<std::string_view, int> absent;  // name → first node that names it
  for (const auto& node : graph.nodes()) {
    for (const std::string_view other : colocated_with(*node)) {
      if (follows_step_state(*node)) break;
      if (const Node* anchor = graph.find(other)) {
        if (!follows_step_state(*anchor)) tie(anchor->id, node->id, by_class);
      } else {
        tie(absent.emplace(other, node->id).first->second, node->id, by_absent_class);
      }
    }
    const bool may_tie = std::any_of(node->inputs.begin(), node->inputs.end(),
                                     [](const Output& x) { return x.is_ref() || stays_there(x); });
    if (!may_tie) continue;
    for (const ArgRange& range : arg_ranges(node->op->schema.inputs, node->attrs)) {
      for (int i = range.begin; i < range.end; ++i) {
        const Output& input = node->inputs[i];
        const bool is_free = free_loops_.contains(node->id) && state_behind(input) != nullptr;
        if (is_tying(*range.arg, input) && !is_free) tie(input.node->id, node->id, i);
      }
    }
  }
}

int Colocation::root(int node) const {
  while (parents_[node] != node) {
    parents_[node] = parents_[parents_[node]];
    node = parents_[node];
  }
  return node;
}

void Colocation::tie(int a, int b, int input) {
  if (a == b) return;
  ties_.push_back({a, b, input});
  const int x = root(a), y = root(b);
  parents_[std::max(x, y)] = std::min(x, y);
}

bool Colocation::is_resource(const Node& node) {
  return node.inputs.empty() && node.num_outputs() == 1 &&
         (node.outputs[0].is_ref || node.outputs[0].dtype == DType::resource);
}

bool Colocation::uses_resource(const Node& node) {
  for (const ArgRange& range : arg_ranges(node.op->schema.inputs, node.attrs)) {
    for (int i = range.begin; i < range.end; ++i) {
      if (is_tying(*range.arg, node.inputs[i])) return true;
    }
  }
  return false;
}

bool Colocation::has_variant(const Node& node) {
  const auto is_variant = [](const auto& value) { return value.dtype == DType::variant; };
  return std::any_of(node.outputs.begin(), node.outputs.end(), is_variant) ||
         std::any_of(node.inputs.begin(), node.inputs.end(),
                     [](const Output& input) { return input.dtype() == DType::variant; });
}

std::string Colocation::describe_tie(const Tie& tie) const {
  const Node& a = *graph_.nodes()[tie.a];
  const Node& b = *graph_.nodes()[tie.b];
  if (tie.input == by_class) return concat(b.name, " has _class loc:@", a.name);
  if (tie.input == by_absent_class) {
    return concat(a.name, " and ", b.name, " have the same _class");
  }
  const Output& input = b.inputs[tie.input];
  const std::string_view kind = input.is_ref()                    ? "variable "
                                : input.dtype() == DType::variant ? "variant of "
                                                                  : "resource ";
  if (b.is("_Loop")) {
    return concat("the while loop '", b.attr<std::string>("frame_name"),
                  "', which runs on one device, uses the ", kind, a.name);
  }
  return concat(b.name, " has the ", kind, a.name, " as input ",
                input_name(*b.op, b.attrs, tie.input));
}

std::string Colocation::chain(const Node& from, const Node& to) const {
  std::unordered_map<int, std::vector<size_t>> ties_of;
  for (size_t i = 0; i < ties_.size(); ++i) {
    ties_of[ties_[i].a].push_back(i);
    ties_of[ties_[i].b].push_back(i);
  }
  std::unordered_map<int, size_t> came_by;
  std::deque<int> queue = {from.id};
  while (!queue.empty() && queue.front() != to.id) {
    const int at = queue.front();
    queue.pop_front();
    for (const size_t i : ties_of[at]) {
      const int next = ties_[i].a == at ? ties_[i].b : ties_[i].a;
      if (next != from.id && came_by.emplace(next, i).second) queue.push_back(next);
    }
  }
  if (!came_by.contains(to.id)) return "nothing";
  std::vector<std::string> steps;
  for (int at = to.id; at != from.id;) {
    const Tie& tie = ties_[came_by.at(at)];
    steps.push_back(describe_tie(tie));
    at = tie.a == at ? tie.b : tie.a;
  }
  std::string out;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    out += (out.empty() ? "" : "; ") + *step;
  }
  return out;
}

}  // namespace leat
