// Variables in parts: where scopes cut and place what variable() makes, and how parts are joined.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "frontends/cpp/variables.h"

namespace leat {

// A Graph::Scopes::device_function that variable() asks by name, and that may cut a trainable
// variable into parts. Not asked for colocated variables.
struct VariablePlacement {
  std::function<DeviceName(const OpDef&, const AttrMap&)> of_node;  // made in another way
  std::function<DeviceName(std::string_view name, const Shape&, DType)> of_variable;
  // Where the row ranges of a trainable variable go, the longer ones first; none: it is not cut.
  std::function<std::vector<DeviceName>(const Shape&, DType)> of_parts;

  DeviceName operator()(const OpDef& op, const AttrMap& attrs) const { return of_node(op, attrs); }
};

// While it lives, new nodes get the device, and no device function is asked.
class DeviceAlone {
 public:
  DeviceAlone(Graph& graph, const DeviceName& device) : graph_(graph), outer_(graph.scopes()) {
    graph.scopes().device = device.with_defaults(outer_.device);
    graph.scopes().device_function = nullptr;
  }
  ~DeviceAlone() { graph_.scopes() = std::move(outer_); }
  DeviceAlone(const DeviceAlone&) = delete;

 private:
  Graph& graph_;
  Graph::Scopes outer_;
};

// The variables `name`/part_0, …, of consecutive ranges of `shape` along the axis, whose extents
// differ by at most one, the longer ones first. `devices`, if given, override the scopes', one for
// each part. `name` is that of the whole in checkpoints, and the parts are made in that name scope.
std::vector<Output> make_parts(const NameScope& name, Graph& graph, const Shape& shape, int axis,
                               int64_t count, const Initializer& initial, DType dtype,
                               const VariableOptions& options,
                               const std::vector<DeviceName>& devices, Location at);

// The parts of the variable `name`, by their place; none if it has none.
std::vector<Output> parts_of(const Graph& graph, std::string_view name);
// What they hold together, joined on the device of the current scopes. `name`: of the whole.
Output joined(Graph& graph, std::string_view name, const std::vector<Output>& parts,
              Location at = here());
// The parts of which joined() made that value along axis 0; none if it did not.
std::vector<Output> parts_joined_in(const Output& value);

}  // namespace leat
