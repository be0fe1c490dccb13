// TensorFlow's gradients of an op wait for each other: `tuple` gives every one of them an Identity
// that waits for all. Nothing comes of that order where no effect and no read of state is part of
// it. Without it, a gradient can go into what uses it, in place or as one loop with it. What is in
// a loop waits for one of its variables, which are there from the start.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/fused.h"
#include "graph/passes/dead_together.h"
#include "graph/passes/simplify/simplify.h"
#include "graph/signature.h"

namespace leat {
namespace {

// Sorted. With what goes by rows (graph/fused.h), these have no effect, read no state, and fail for
// no values.
constexpr std::string_view timeless_ops[] = {"AddN",
                                             "AvgPool",
                                             "AvgPoolGrad",
                                             "BatchMatMul",
                                             "BatchMatMulV2",
                                             "BiasAddGrad",
                                             "BroadcastGradientArgs",
                                             "BroadcastTo",
                                             "ConcatV2",
                                             "Conv2D",
                                             "Conv2DBackpropFilter",
                                             "Conv2DBackpropInput",
                                             "DepthwiseConv2dNative",
                                             "DepthwiseConv2dNativeBackpropFilter",
                                             "DepthwiseConv2dNativeBackpropInput",
                                             "ExpandDims",
                                             "Fill",
                                             "FusedBatchNorm",
                                             "FusedBatchNormGrad",
                                             "FusedBatchNormGradV2",
                                             "FusedBatchNormGradV3",
                                             "FusedBatchNormV2",
                                             "FusedBatchNormV3",
                                             "Identity",
                                             "MatMul",
                                             "MaxPool",
                                             "MaxPoolGrad",
                                             "Mean",
                                             "Mul",
                                             "NoOp",
                                             "OnesLike",
                                             "Pack",
                                             "Reshape",
                                             "Shape",
                                             "ShapeN",
                                             "Slice",
                                             "Squeeze",
                                             "StopGradient",
                                             "StridedSliceGrad",
                                             "Sum",
                                             "Tile",
                                             "Transpose",
                                             "ZerosLike",
                                             "_MaxPoolReluGrad"};
static_assert(std::ranges::is_sorted(timeless_ops));

bool is_timeless(const Node& node) {
  if (node.is("NoOp")) return true;
  if (!is_pure(node)) return false;
  if (node.is("Const")) return true;
  return std::ranges::binary_search(timeless_ops, std::string_view(node.op->name)) ||
         row_rule(node) != RowRule::none;
}

// Has nothing that could come earlier or later.
bool is_source(const Node& node) {
  return node.inputs.empty() && node.control_inputs.empty() &&
         (node.is("Const") || node.op->is_variable || node.is("Placeholder") || node.is("_Feed"));
}

bool takes_reference(const Node& node) {
  for (const ArgRange& range : arg_ranges(node.op->schema.inputs, node.attrs)) {
    if (range.begin < range.end && range.arg->is_ref) return true;
  }
  return false;
}

// What it does is seen by others than the users of its values, and of its stack or TensorArray.
bool has_lasting_effect(const Node& node) {
  const bool has_effect = node.op->is_stateful || takes_reference(node);
  if (!has_effect || node.op->only_reads_state || is_source(node)) return false;
  return std::ranges::none_of(
      std::array<std::string_view, 3>{"Random", "Stack", "TensorArray"},
      [&](std::string_view prefix) { return node.op->name.starts_with(prefix); });
}

// Of each handle: does more than one node use it?
std::map<std::pair<int, int>, bool> shared_handles(const Graph& graph) {
  std::map<std::pair<int, int>, bool> out;
  for (const auto& node : graph.nodes()) {
    for (const Output& input : node->inputs) {
      if (!input.is_handle()) continue;
      const auto [at, is_first] = out.emplace(std::pair{input.node->id, input.index}, false);
      if (!is_first) at->second = true;
    }
  }
  return out;
}

// Nodes that may have to come before others. As long as nothing lasts, as in most loops' bodies,
// these are the ones that share a stack or a TensorArray.
std::vector<Node*> timed_nodes(const Graph& graph, const std::vector<bool>& timeless) {
  const bool anything_lasts = std::ranges::any_of(
      graph.nodes(), [](const auto& node) { return has_lasting_effect(*node); });
  std::map<std::pair<int, int>, bool> is_shared;
  if (!anything_lasts) is_shared = shared_handles(graph);
  const auto has_shared_handle = [&](const Output& input) {
    return input.is_handle() && is_shared.at({input.node->id, input.index});
  };
  std::vector<Node*> out;
  for (const auto& node : graph.nodes()) {
    if (timeless[node->id] || is_source(*node)) continue;
    if (anything_lasts || std::ranges::any_of(node->inputs, has_shared_handle))
      out.push_back(node.get());
  }
  return out;
}

struct Wait {
  Node* node;
  Node* for_node;
  bool is_needed = false;
};

// A recomputed layer waits for the gradient that comes to it, many levels behind its input. That is
// a client's wish, which saves memory.
constexpr int most_levels = 3;

// Waits that nothing but time may speak for, by node.
std::vector<Wait> find_candidates(const Graph& graph, const std::vector<bool>& timeless) {
  const DeadTogether dead_together(graph);
  std::vector<int> levels(graph.size());
  std::vector<Wait> out;
  for (const auto& node : graph.nodes()) {
    int level = 0;
    for (const Output& input : node->inputs) level = std::max(level, levels[input.node->id]);
    const int level_of_inputs = level;
    for (Node* control : node->control_inputs) {
      const auto dies_with = [&](const Output& input) {
        return dead_together.are(*control, *input.node);
      };
      const bool may_go =
          !node->is("NoOp") && timeless[node->id] &&
          (timeless[control->id] || control->is("_Feed")) &&
          levels[control->id] <= level_of_inputs + most_levels &&
          (dead_together.is_in_no_branch(*control) || std::ranges::any_of(node->inputs, dies_with));
      if (may_go) {
        out.push_back({node.get(), control});
      } else {
        level = std::max(level, levels[control->id]);
      }
    }
    const bool takes_time = !node->is("NoOp") && !node->is("Identity");
    levels[node->id] = level + (takes_time ? 1 : 0);
  }
  return out;
}

// Marks those that come, by way of the node they wait for, behind one of `timed` that the node's
// own inputs do not come behind. `timed` are at most 64.
void mark_needed(const Graph& graph, std::span<Node* const> timed, std::vector<Wait>& waits) {
  std::vector<uint64_t> behind(graph.size());
  for (size_t i = 0; i < timed.size(); ++i) behind[timed[i]->id] = uint64_t{1} << i;
  auto wait = waits.begin();
  for (const auto& node : graph.nodes()) {
    uint64_t own = behind[node->id];
    for (const Output& input : node->inputs) own |= behind[input.node->id];
    const auto first = wait;
    while (wait != waits.end() && wait->node == node.get()) ++wait;
    const std::span<Wait> of_node(first, wait);
    uint64_t all = own;
    for (const Node* control : node->control_inputs) {
      all |= behind[control->id];
      if (!std::ranges::any_of(of_node, [&](const Wait& w) { return w.for_node == control; }))
        own |= behind[control->id];
    }
    for (Wait& w : of_node) w.is_needed |= (behind[w.for_node->id] & ~own) != 0;
    behind[node->id] = all;
  }
}

}  // namespace

bool drop_needless_waits(Graph& graph) {
  const bool waits_for_any = std::ranges::any_of(
      graph.nodes(), [](const auto& node) { return !node->control_inputs.empty(); });
  if (!waits_for_any) return false;
  std::vector<bool> timeless(graph.size());
  for (const auto& node : graph.nodes()) timeless[node->id] = is_timeless(*node);
  std::vector<Wait> waits = find_candidates(graph, timeless);
  if (waits.empty()) return false;
  const std::vector<Node*> timed = timed_nodes(graph, timeless);
  constexpr size_t most_work = 50'000'000, at_once = 64;  // nodes looked at: half a second
  if (timed.size() / at_once * graph.size() > most_work) return false;
  for (size_t i = 0; i < timed.size(); i += at_once)
    mark_needed(graph, std::span(timed).subspan(i, std::min(at_once, timed.size() - i)), waits);
  for (const Wait& wait : waits) {
    if (!wait.is_needed) std::erase(wait.node->control_inputs, wait.for_node);
  }
  return true;
}

}  // namespace leat
