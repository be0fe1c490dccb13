#include "frontends/cpp/variable_parts.h"

#include <algorithm>

namespace leat {
namespace {

int64_t start_of(const VariablePart& part, int axis) {
  return part.slice.extents[static_cast<size_t>(axis)].start;
}

// The one that is cut.
int axis_of(const VariablePart& part) {
  int axis = 0;
  for (int i = 0; i < part.whole.rank(); ++i) {
    if (part.shape()[i] != part.whole[i]) axis = i;
  }
  return axis;
}

}  // namespace

std::vector<Output> make_parts(const NameScope& name, Graph& graph, const Shape& shape, int axis,
                               int64_t count, const Initializer& initial, DType dtype,
                               const VariableOptions& options,
                               const std::vector<DeviceName>& devices, Location at) {
  const std::string whole = name.name().substr(0, name.name().size() - 1);
  TensorSlice slice = TensorSlice::whole(shape.rank()).resolved(shape);
  TensorSlice::Extent& rows = slice.extents[static_cast<size_t>(axis)];
  rows.length = 0;
  std::vector<Output> out;
  for (int64_t i = 0; i < count; ++i) {
    rows.start += rows.length;
    rows.length = shape[axis] / count + (i < shape[axis] % count ? 1 : 0);
    const std::string part_name = concat("part_", i);
    VariableOptions of_part = options;
    of_part.part.emplace(whole, shape, slice);
    if (!options.shared_name.empty())
      of_part.shared_name = concat(options.shared_name, "/", part_name);
    std::optional<DeviceAlone> there;
    if (!devices.empty()) there.emplace(graph, devices[static_cast<size_t>(i)]);
    out.push_back(variable(graph, part_name, slice.shape(), initial, dtype, of_part, at));
  }
  return out;
}

std::vector<Output> parts_of(const Graph& graph, std::string_view name) {
  std::vector<std::pair<VariablePart, Output>> parts;
  for (const Output& each : graph.collection("variables")) {
    if (const auto part = part_of(each); part && part->of == name) parts.push_back({*part, each});
  }
  if (parts.empty()) return {};
  const int axis = axis_of(parts[0].first);
  std::sort(parts.begin(), parts.end(), [&](const auto& a, const auto& b) {
    return start_of(a.first, axis) < start_of(b.first, axis);
  });
  std::vector<Output> out;
  for (const auto& [part, value] : parts) out.push_back(value);
  return out;
}

Output joined(Graph& graph, std::string_view name, const std::vector<Output>& parts, Location at) {
  if (parts.size() == 1) return identity(parts.front(), at);
  const NameScope scope(graph, concat(name.substr(name.rfind('/') + 1), "/ConcatPartitions"));
  return concatenate(parts, axis_of(*part_of(parts.front())), at);
}

std::vector<Output> parts_joined_in(const Output& value) {
  if (value.node->op->name != "ConcatV2") return {};
  std::vector<Output> parts = value.node->inputs;
  parts.pop_back();  // the axis
  int64_t rows = 0;
  std::string whole;
  for (const Output& each : parts) {
    const auto part = part_of(each);
    if (!part || axis_of(*part) != 0 || start_of(*part, 0) != rows) return {};
    if (rows > 0 && part->of != whole) return {};
    whole = part->of;
    rows += part->shape()[0];
  }
  const bool is_whole = !parts.empty() && part_of(parts.front())->whole == value.shape();
  return is_whole ? parts : std::vector<Output>();
}

}  // namespace leat
