// A variable in parts: for a table that is too large, or too busy, for one task.
//   auto table = partitioned_variable(graph, "words", {1000000, 64}, partitioners::fixed_size(4));
//   Output rows = embedding_lookup(table, ids);  // embedding_lookup.h
// Under a ParameterServer strategy each part goes to the ps task with the fewest bytes so far.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/cpp/strategies/parts/partitioners.h"
#include "frontends/cpp/variables.h"

namespace leat {

// Cheap to copy; valid as long as its graph. Made by partitioned_variable().
class PartitionedVariable {
 public:
  // "layer/words": the tensor in a checkpoint that holds all parts.
  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }  // of the whole
  DType dtype() const { return parts_.front().dtype(); }
  int axis() const { return axis_; }  // which is cut
  // Refs of ordinary variables name()/part_0, …: consecutive along the axis, with extents that
  // differ by at most one, the longer ones first.
  const std::vector<Output>& parts() const { return parts_; }
  Graph& graph() const { return parts_.front().graph(); }

  // The value of the whole, [shape()], gathered on the device of the current scopes.
  Output value(Location at = here()) const;

 private:
  friend PartitionedVariable partitioned_variable(Graph&, std::string_view, const Shape&,
                                                  const Partitioner&, const Initializer&, DType,
                                                  const VariableOptions&, Location);
  friend std::optional<PartitionedVariable> partitioned_variable_of(const Output&);
  std::string name_;
  Shape shape_;
  int axis_ = 0;
  std::vector<Output> parts_;
};

// Makes the parts, each as variable() does: under the current scopes, in the collections, with an
// initial value of its own from the initialiser, which sees the part. Optimizers and averages treat
// parts as variables; a Saver saves each part, and each of its slots, as a slice of one tensor. A
// shared_name gets the suffix /part_<i>, too. `options.part` is ignored. INVALID_ARGUMENT if the
// shape is not complete or a scalar, the axis is not one of its axes, or the number of parts is not
// in [1, extent].
PartitionedVariable partitioned_variable(Graph& graph, std::string_view name, const Shape& shape,
                                         const Partitioner& partitioner,
                                         const Initializer& initial = initializers::zeros(),
                                         DType dtype = f32, const VariableOptions& options = {},
                                         Location at = here());

// The variable in parts of which `value` is the whole: what variable() returns where a strategy
// cuts variables in row ranges (ServerSharding), or value() for one that is cut along axis 0. None
// if it is something else.
std::optional<PartitionedVariable> partitioned_variable_of(const Output& value);

}  // namespace leat
