// receive_in_place: chunks that come from other tasks, as those of an all-reduce, are received into
// the tensor that joins them. A chunk that is computed here, or that comes before its step begins,
// is copied there.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/block_memory.h"
#include "graph/passes/pipeline.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

constexpr size_t worth_it = size_t{128} << 10;

// Where the inputs of a concatenation lie in its output.
struct Joint {
  std::vector<size_t> offsets;
  size_t total = 0;
};

// None if the inputs are not whole there, or if not all is known.
std::optional<Joint> joint_of(const Node& node) {
  const auto parts = static_cast<size_t>(node.attr<int64_t>("N"));
  const Output& first = node.inputs.front();
  const size_t size = dtype_size(first.dtype());
  const Tensor axis = constant_value(node.inputs.back());
  const int rank = first.shape().rank();
  if (size == 0 || rank < 1 || !axis.is_valid() || axis.elements() != 1) return {};
  int64_t at = axis.dtype() == i32 ? axis.item<int32_t>() : axis.item<int64_t>();
  if (at < 0) at += rank;
  if (at < 0 || at >= rank) return {};
  Joint out;
  for (size_t i = 0; i < parts; ++i) {
    const Shape& shape = node.inputs[i].shape();
    if (!shape.is_complete() || shape.rank() != rank) return {};
    for (int k = 0; k < at; ++k) {
      if (shape[k] != 1) return {};
    }
    out.offsets.push_back(out.total);
    out.total += static_cast<size_t>(shape.elements()) * size;
    if (out.total > BlockMemory::most) return {};
  }
  return out;
}

bool is_from_elsewhere(const Node& node) {
  if (!node.is("_Recv") || node.attr<bool>("may_be_dead")) return false;
  const auto task_of = [&](std::string_view end) {
    return DeviceName::parse(node.attr<std::string>(end)).task_name();
  };
  return task_of("send_device") != task_of("recv_device");
}

}  // namespace

bool receive_in_place(PartitionedGraph& parts) {
  const OpDef& in_place = op_named("_ConcatInPlace");
  int64_t joints = 0;
  for (auto& [device, part] : parts.partitions) {
    if (DeviceName::parse(device).type != "CPU") continue;
    std::set<const Node*> placed;
    for (const auto& node : part.nodes()) {
      if (!node->is("ConcatV2")) continue;
      const std::optional<Joint> joint = joint_of(*node);
      if (!joint || joint->total < worth_it) continue;
      std::vector<int64_t> received;
      for (size_t i = 0; i < joint->offsets.size(); ++i) {
        const Node* const source = node->inputs[i].node;
        if (is_from_elsewhere(*source) && placed.insert(source).second)
          received.push_back(static_cast<int64_t>(i));
      }
      if (received.empty()) continue;
      node->op = &in_place;
      node->attrs.emplace("joint", ++joints);
      node->attrs.emplace("received", std::move(received));
    }
  }
  return joints > 0;
}

void set_places(const std::map<std::string, Graph>& partitions, std::vector<CutEdge>& edges) {
  std::map<int64_t, const Node*> joints;
  std::map<int64_t, CutEdge::Place> places;  // by edge
  for (const auto& [device, part] : partitions) {
    for (const auto& node : part.nodes()) {
      if (!node->is("_ConcatInPlace")) continue;
      const auto number = node->attr<int64_t>("joint");
      const auto [other, is_new] = joints.emplace(number, node.get());
      check(is_new, describe(*node), " has the joint ", number, " of ", describe(*other->second));
      const std::optional<Joint> joint = joint_of(*node);
      if (!joint) continue;
      for (const int64_t i : node->attr<std::vector<int64_t>>("received")) {
        const auto at = static_cast<size_t>(i);
        check(at < joint->offsets.size(), describe(*node), " has no input ", i);
        const Node& source = *node->inputs[at].node;
        if (is_from_elsewhere(source))
          places.emplace(source.attr<int64_t>("edge"),
                         CutEdge::Place{number, joint->offsets[at], joint->total});
      }
    }
  }
  if (places.empty()) return;
  for (CutEdge& edge : edges) {
    const auto place = places.find(edge.id);
    if (place != places.end() && !edge.repeats) edge.place = place->second;
  }
}

}  // namespace leat
