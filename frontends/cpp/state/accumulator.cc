#include "frontends/cpp/state/accumulator.h"

#include <algorithm>
#include <tuple>

#include "frontends/cpp/outside_control_scopes.h"
#include "frontends/cpp/state/tuple.h"

namespace leat {

// ---- AnyAccumulator

AnyAccumulator::AnyAccumulator(Graph& graph, std::string_view op, std::string_view name,
                               DType dtype, const Shape& shape, const AccumulatorOptions& options,
                               Location at)
    : name_(name), dtype_(dtype), shape_(shape) {
  const OutsideControlScopes outside(graph);
  const bool is_mean = options.result == AccumulatorResult::mean;
  handle_ = graph
                .add({.op = std::string(op),
                      .name = name_,
                      .attrs = {{"dtype", dtype},
                                {"shape", shape},
                                {"container", options.container},
                                {"shared_name", options.shared_name},
                                {"reduction_type", is_mean ? "MEAN" : "SUM"}},
                      .location = at})
                .output();
}

std::string AnyAccumulator::what(std::string_view operation, Location at) const {
  return concat(operation, " of the accumulator '", name_, "' (", at, ")");
}

Node& AnyAccumulator::add(std::string_view op, std::string_view operation,
                          std::vector<Output> inputs, AttrMap attrs, Location at) const {
  inputs.insert(inputs.begin(), handle_);
  return handle_.graph().add({.op = std::string(op),
                              .name = concat(name_, "_", operation),
                              .inputs = std::move(inputs),
                              .attrs = std::move(attrs),
                              .location = at});
}

Output AnyAccumulator::step_of(const Operand& step, std::string_view operation, Location at) const {
  check(step.is_constant() || step.output(), what(operation, at), ": the step is an empty Output");
  const Output value = step.as(handle_.graph(), i64);
  check(value.dtype() == i64, what(operation, at), ": the step, '", value.name(), "', is ",
        value.dtype(), ", not int64");
  return value;
}

Output AnyAccumulator::required_of(const Operand& required, std::string_view operation,
                                   Location at) const {
  check(required.is_constant() || required.output(), what(operation, at),
        ": the number of gradients is an empty Output");
  const Output value = required.as(handle_.graph(), i32);
  check(is_integer(value.dtype()), what(operation, at), ": the number of gradients, '",
        value.name(), "', is ", value.dtype(), ", not an integer");
  return value.dtype() == i32 ? value : cast(value, i32, at);
}

void AnyAccumulator::check_gradient(Output gradient, std::string_view operation,
                                    Location at) const {
  check(bool{gradient}, what(operation, at), ": the gradient is an empty Output");
  check(gradient.dtype() == dtype_, what(operation, at), ": the gradient '", gradient.name(),
        "' is ", gradient.dtype(), ", but the accumulator's dtype is ", dtype_);
}

Output AnyAccumulator::count(Location at) const {
  return add("AccumulatorNumAccumulated", "count", {}, {}, at).output();
}

Node& AnyAccumulator::set_global_step(const Operand& step, Location at) const {
  return add("AccumulatorSetGlobalStep", "set_global_step", {step_of(step, "set_global_step", at)},
             {}, at);
}

// ---- Dense gradients

Accumulator::Accumulator(Graph& graph, std::string_view name, DType dtype, const Shape& shape,
                         const AccumulatorOptions& options, Location at)
    : AnyAccumulator(graph, "ConditionalAccumulator", name, dtype, shape, options, at) {}

Node& Accumulator::apply(Output gradient, const Operand& local_step, Location at) const {
  check_gradient(gradient, "apply", at);
  check(shape().is_compatible(gradient.shape()), what("apply", at), ": the gradient '",
        gradient.name(), "' is ", gradient.shape(), ", but the accumulator's shape is ", shape());
  return add("AccumulatorApplyGradient", "apply", {step_of(local_step, "apply", at), gradient}, {},
             at);
}

Output Accumulator::take(const Operand& required, Location at) const {
  const Output taken = add("AccumulatorTakeGradient", "take", {required_of(required, "take", at)},
                           {{"dtype", dtype()}}, at)
                           .output();
  return with_shape(taken, shape(), at);
}

// ---- Sparse gradients

namespace {

// Rows that come once each, in ascending order, as the accumulator takes them: of an index that
// comes twice the sum. {indices, values}.
std::pair<Output, Output> in_order(Output indices, Output values, Location at) {
  const auto [different, numbers] = unique(indices, i32, at);
  const Output count = size_of(different, i32, at);
  const Output sums = segment_sum(values, numbers, count, at);
  const auto [descending, order] = top_k(-Operand(different, at), count, at);
  return {-Operand(descending, at), take(sums, order, 0, at)};
}

}  // namespace

SparseAccumulator::SparseAccumulator(Graph& graph, std::string_view name, DType dtype,
                                     const Shape& shape, const AccumulatorOptions& options,
                                     Location at)
    : AnyAccumulator(graph, "SparseConditionalAccumulator", name, dtype, shape, options, at) {
  check(!shape.has_rank() || shape.rank() > 0, "sparse accumulator '", name, "' (", at,
        "): a scalar has no rows");
}

Node& SparseAccumulator::apply(Output indices, Output values, const Operand& local_step,
                               Location at) const {
  check_gradient(values, "apply", at);
  check(bool{indices}, what("apply", at), ": the indices are an empty Output");
  check(is_integer(indices.dtype()), what("apply", at), ": the indices, '", indices.name(),
        "', are ", indices.dtype(), ", not integers");
  if (indices.dtype() != i64) indices = cast(indices, i64, at);
  std::tie(indices, values) = in_order(indices, values, at);
  const bool is_known = shape().is_complete();
  Tensor dims(i64, {is_known ? shape().rank() : 0});
  if (is_known) std::copy(shape().dims().begin(), shape().dims().end(), dims.data<int64_t>());
  return add("SparseAccumulatorApplyGradient", "apply",
             {step_of(local_step, "apply", at), indices, values,
              constant(handle().graph(), std::move(dims), "shape", at)},
             {{"has_known_shape", is_known}}, at);
}

SparseGradient SparseAccumulator::take(const Operand& required, Location at) const {
  Node& node = add("SparseAccumulatorTakeGradient", "take", {required_of(required, "take", at)},
                   {{"dtype", dtype()}}, at);
  Shape rows = shape();
  if (rows.has_rank()) rows.set(0, any);
  const Shape dims = rows.has_rank() ? Shape{rows.rank()} : Shape{any};
  return {with_shape(node.output(0), {any}, at), with_shape(node.output(1), rows, at),
          with_shape(node.output(2), dims, at)};
}

}  // namespace leat
