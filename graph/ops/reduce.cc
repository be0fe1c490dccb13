#include "graph/ops/reduce.h"

#include "graph/ops/graph_of.h"

namespace leat {
namespace {

Output reduce(std::string_view name, Output x, const Axes& axes, ReduceOptions options,
              Location at) {
  return op(name, {x, axes.of(x, at)}, {{"keep_dims", options.keep_dims}}, at);
}

Output number(Output x, int value, std::string_view name, Location at) {
  return constant(graph_of(x, at), Tensor::scalar<int32_t>(value), name, at);
}

}  // namespace

Output sum(Output x, const Axes& axes, ReduceOptions options, Location at) {
  return reduce("Sum", x, axes, options, at);
}
Output mean(Output x, const Axes& axes, ReduceOptions options, Location at) {
  return reduce("Mean", x, axes, options, at);
}
Output prod(Output x, const Axes& axes, ReduceOptions options, Location at) {
  return reduce("Prod", x, axes, options, at);
}
Output max(Output x, const Axes& axes, ReduceOptions options, Location at) {
  return reduce("Max", x, axes, options, at);
}
Output min(Output x, const Axes& axes, ReduceOptions options, Location at) {
  return reduce("Min", x, axes, options, at);
}
Output AllOrAxis::operator()(Output x, const Axes& axes, ReduceOptions options, Location at) const {
  return reduce("All", x, axes, options, at);
}
Output AnyExtent::operator()(const Operand& x) const { return (*this)(x, Axes(), {}); }
Output AnyExtent::operator()(const Operand& x, const Axes& axes) const {
  return (*this)(x, axes, {});
}
Output AnyExtent::operator()(const Operand& x, const Axes& axes,
                             const ReduceOptions& options) const {
  return reduce("Any", x.output(), axes, options, x.at());
}

Output logsumexp(Output x, const Axes& axes, ReduceOptions options, Location at) {
  const Output where = axes.of(x, at);
  // The largest is taken away, so that exp() does not overflow, unless it is infinite itself.
  const Output largest = reduce("Max", x, where, {.keep_dims = true}, at);
  const Output finite = op("IsFinite", {largest}, {}, at);
  const Output offset =
      op("StopGradient",
         {op("SelectV2", {finite, largest, op("ZerosLike", {largest}, {}, at)}, {}, at)}, {}, at);
  const Output exponentials = op("Exp", {op("Sub", {x, offset}, {}, at)}, {}, at);
  const Output result =
      op("AddV2",
         {op("Log", {reduce("Sum", exponentials, where, {.keep_dims = true}, at)}, {}, at), offset},
         {}, at);
  // The axes have length 1 now.
  return options.keep_dims ? result : reduce("Sum", result, where, {}, at);
}

Output argmax(Output x, int axis, ArgOptions options, Location at) {
  return op("ArgMax", {x, number(x, axis, "dimension", at)}, {{"output_type", options.dtype}}, at);
}
Output argmin(Output x, int axis, ArgOptions options, Location at) {
  return op("ArgMin", {x, number(x, axis, "dimension", at)}, {{"output_type", options.dtype}}, at);
}
std::vector<Output> top_k(Output x, const Operand& k, Location at) {
  return op_outputs("TopKV2", {x, k.as(graph_of(x, at), i32)}, {}, at);
}
Output cumsum(Output x, int axis, Location at) {
  return op("Cumsum", {x, number(x, axis, "axis", at)}, {}, at);
}
Output cumprod(Output x, int axis, Location at) {
  return op("Cumprod", {x, number(x, axis, "axis", at)}, {}, at);
}

}  // namespace leat
