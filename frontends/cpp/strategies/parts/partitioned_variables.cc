#include "frontends/cpp/strategies/parts/partitioned_variables.h"

#include <algorithm>

#include "frontends/cpp/variable_parts.h"

namespace leat {
namespace {

Partitioning checked_partitioning(std::string_view name, const Shape& shape,
                                  const Partitioner& partitioner, DType dtype, Location at) {
  const std::string what = concat("partitioned variable '", name, "' (", at, ")");
  check(shape.is_complete(), what, ": its shape ", shape, " is not complete: give every extent");
  check(shape.rank() > 0, what, ": a scalar has no axis to cut: make it with variable()");
  check(partitioner != nullptr, what, ": its partitioner is empty: give one of partitioners.h");
  const Partitioning cut = partitioner(shape, dtype);
  check(cut.axis >= 0 && cut.axis < shape.rank(), what, ": its partitioner cuts axis ", cut.axis,
        ", but the shape is ", shape, ": give an axis in [0, ", shape.rank(), ")");
  check(cut.parts > 0, what, ": its partitioner makes ", cut.parts, " parts: give 1 or more");
  // A variable without rows is one part without rows.
  check(cut.parts <= std::max<int64_t>(1, shape[cut.axis]), what, ": its partitioner makes ",
        cut.parts, " parts, but axis ", cut.axis, " of ", shape, " has the extent ",
        shape[cut.axis], ": give at most that many parts");
  return cut;
}

}  // namespace

PartitionedVariable partitioned_variable(Graph& graph, std::string_view name, const Shape& shape,
                                         const Partitioner& partitioner, const Initializer& initial,
                                         DType dtype, const VariableOptions& options, Location at) {
  const auto [axis, count] = checked_partitioning(name, shape, partitioner, dtype, at);
  const NameScope scope(graph, name);
  PartitionedVariable out;
  out.name_ = scope.name().substr(0, scope.name().size() - 1);
  out.shape_ = shape;
  out.axis_ = axis;
  out.parts_ = make_parts(scope, graph, shape, axis, count, initial, dtype, options, {}, at);
  return out;
}

Output PartitionedVariable::value(Location at) const { return joined(graph(), name_, parts_, at); }

std::optional<PartitionedVariable> partitioned_variable_of(const Output& value) {
  PartitionedVariable out;
  out.parts_ = parts_joined_in(value);
  if (out.parts_.empty()) return {};
  const VariablePart part = *part_of(out.parts_.front());
  out.name_ = part.of;
  out.shape_ = part.whole;
  return out;
}

}  // namespace leat
