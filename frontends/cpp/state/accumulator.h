// Accumulators: collect gradients from many steps and give their mean once enough have arrived. For
// synchronous training that drops stale gradients (Chen et al., "Revisiting Distributed Synchronous
// SGD", 2016).
//   Accumulator sum(g, "w/acc", f32, {784, 10});
//   Node& push = sum.apply(gradient, local_step);
//   Output mean = sum.take(3);
#pragma once

#include <string>
#include <string_view>

#include "graph/ops.h"

namespace leat {

enum class AccumulatorResult { mean, sum };

struct AccumulatorOptions {
  AccumulatorResult result = AccumulatorResult::mean;
  std::string container = {};  // "" = the task's default container
  // Sessions whose graphs give the same name share it; "" = each session has its own.
  std::string shared_name = {};
};

// The node behind an accumulator, and the methods that do not depend on the kind of gradient. An
// accumulator counts its own steps: it begins at step 0, and each take() adds one. It lives as long
// as its session and is not part of checkpoints.
class AnyAccumulator {
 public:
  // Sets its step: after a restart, to a checkpoint's global step. When the node runs, a step
  // before the accumulator's fails with INVALID_ARGUMENT.
  Node& set_global_step(const Operand& step, Location at = here()) const;
  Output count(Location at = here()) const;  // int32: the gradients since the last take()

  Output handle() const { return handle_; }  // for other ops on accumulators
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }

 protected:
  AnyAccumulator(Graph& graph, std::string_view op, std::string_view name, DType dtype,
                 const Shape& shape, const AccumulatorOptions& options, Location at);

  std::string what(std::string_view operation, Location at) const;
  // A node of that op on the accumulator.
  Node& add(std::string_view op, std::string_view operation, std::vector<Output> inputs,
            AttrMap attrs, Location at) const;
  Output step_of(const Operand& step, std::string_view operation, Location at) const;
  Output required_of(const Operand& required, std::string_view operation, Location at) const;
  void check_gradient(Output gradient, std::string_view operation, Location at) const;

 private:
  std::string name_;  // as the user gave it
  DType dtype_;
  Shape shape_;
  Output handle_;
};

// For dense gradients: numbers of that dtype and shape (extents may be `any`). Cheap to copy; valid
// as long as its graph.
class Accumulator : public AnyAccumulator {
 public:
  Accumulator(Graph& graph, std::string_view name, DType dtype, const Shape& shape,
              const AccumulatorOptions& options = {}, Location at = here());

  // Adds the gradient, unless `local_step`, an int64 scalar, is before the accumulator's step: then
  // the gradient was computed from variables that have changed since, and is dropped.
  Node& apply(Output gradient, const Operand& local_step = 0, Location at = here()) const;
  // Waits for `required` gradients, returns the mean (or sum) of all that have arrived, and empties
  // the accumulator.
  Output take(const Operand& required, Location at = here()) const;
};

// Rows `indices`, int64 [n], of a gradient of that dense shape, int64 [rank].
struct SparseGradient {
  Output indices;
  Output values;  // [n, …]
  Output shape;
};

// For gradients that touch some rows of a table. The mean of a row is over the gradients that had
// it. `shape` is that of the table.
class SparseAccumulator : public AnyAccumulator {
 public:
  SparseAccumulator(Graph& graph, std::string_view name, DType dtype, const Shape& shape,
                    const AccumulatorOptions& options = {}, Location at = here());

  // values[i] belongs to row indices[i]: int64 or int32, [n], in any order; rows with one index are
  // added up, as one gradient of that row. `local_step` is that of Accumulator::apply.
  Node& apply(Output indices, Output values, const Operand& local_step = 0,
              Location at = here()) const;
  SparseGradient take(const Operand& required, Location at = here()) const;  // rows in order
};

}  // namespace leat
