#include "graph/ops/reduce.h"

#include <functional>
#include <numeric>

#include "graph/ops/graph_of.h"

namespace leat {
namespace {

Output reduce(std::string_view name, Output x, const Axes& axes, ReduceOptions options,
              Location at) {
  return op(name, {x, axes.of(x, at)}, {{"keep_dims", bool{options.keep_dims}}}, at);
}

// Integers and bools as floats.
Output averaged(Output x, Location at) {
  graph_of(x, at);
  const bool is_whole = is_integer(x.dtype()) || x.dtype() == boolean;
  return is_whole ? op("Cast", {x}, {{"DstT", f32}}, at) : x;
}

Output flat(Output x, Location at) {
  Graph& graph = graph_of(x, at);
  return x.shape().rank() == 1 ? x : op("Reshape", {x, constant(graph, {-1}, "shape", at)}, {}, at);
}

Output number(Output x, int value, std::string_view name, Location at) {
  return constant(graph_of(x, at), Tensor::scalar<int32_t>(value), name, at);
}

}  // namespace

Output sum(Output x, const Axes& axes, ReduceOptions options, Location at) {
  graph_of(x, at);
  if (x.dtype() == boolean) x = op("Cast", {x}, {{"DstT", i64}}, at);
  return reduce("Sum", x, axes, options, at);
}
Output mean(Output x, const Axes& axes, ReduceOptions options, Location at) {
  return reduce("Mean", averaged(x, at), axes, options, at);
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
Output var(Output x, const Axes& axes, ReduceOptions options, Location at) {
  x = averaged(x, at);
  const Output away = op("Sub", {x, mean(x, axes, {.keep_dims = true}, at)}, {}, at);
  return mean(op("Square", {away}, {}, at), axes, options, at);
}
Output count_nonzero(Output x, const Axes& axes, ReduceOptions options, Location at) {
  graph_of(x, at);
  const Output nonzero =
      x.dtype() == boolean ? x : op("NotEqual", {x, op("ZerosLike", {x}, {}, at)}, {}, at);
  return sum(nonzero, axes, options, at);
}
Output stddev(Output x, const Axes& axes, ReduceOptions options, Location at) {
  return op("Sqrt", {var(x, axes, options, at)}, {}, at);
}
Output norm(Output x, const Axes& axes, ReduceOptions options, Location at) {
  return op("Sqrt", {sum(op("Square", {x}, {}, at), axes, options, at)}, {}, at);
}
Output AllOrAxis::operator()(Output x, const Axes& axes, ReduceOptions options, Location at) const {
  return reduce("All", x, axes, options, at);
}
Output AnyExtent::operator()(const Operand& x) const { return (*this)(x, Axes(), {}); }
Output AnyExtent::operator()(const Operand& x, const ReduceAllOptions& options) const {
  return (*this)(x, Axes(), {options.keep_dims});
}
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
Output argmax(Output x, Location at) { return argmax(flat(x, at), 0, {}, at); }
Output argmin(Output x, Location at) { return argmin(flat(x, at), 0, {}, at); }
TopK top_k(Output x, const Operand& k, Location at) {
  const std::vector<Output> out = op_outputs("TopKV2", {x, k.as(graph_of(x, at), i32)}, {}, at);
  return {out[0], out[1]};
}
namespace {
// The axis exchanged with the last one, which `f` works along, and back. `f` gets its extent.
Output along_axis(std::string_view what, Output x, int axis, Location at,
                  const std::function<Output(Output, int64_t)>& f) {
  graph_of(x, at);
  const Shape& shape = x.shape();
  const int rank = shape.rank(), which = axis < 0 ? axis + rank : axis;
  check(rank > 0 && which >= 0 && which < rank && shape[which] != any, what, " (", at,
        "): the extent of axis ", axis, " of its input must be known, got ", x.name(), " ", shape);
  if (which == rank - 1) return f(x, shape[which]);
  std::vector<int> exchanged(rank);
  std::iota(exchanged.begin(), exchanged.end(), 0);
  std::swap(exchanged[which], exchanged.back());
  const Output axes = Axes(exchanged).of(x, at);
  return op("Transpose", {f(op("Transpose", {x, axes}, {}, at), shape[which]), axes}, {}, at);
}
}  // namespace
Output sort(Output x, int axis, Location at) {
  return along_axis("sort", x, axis, at, [&](Output rows, int64_t extent) {
    const Output last = constant(x.graph(), {-1}, "axis", at);
    return op("ReverseV2", {top_k(rows, extent, at).values, last}, {}, at);
  });
}
Output argsort(Output x, int axis, Location at) {
  return along_axis("argsort", x, axis, at, [&](Output rows, int64_t extent) {
    // In falling order of the negative, so that equal elements stay in their order.
    return top_k(op(is_integer(x.dtype()) ? "Invert" : "Neg", {rows}, {}, at), extent, at).indices;
  });
}
namespace {
Output cumulative(std::string_view name, Output x, int axis, CumulativeOptions options,
                  Location at) {
  return op(name, {x, number(x, axis, "axis", at)},
            {{"exclusive", bool{options.exclusive}}, {"reverse", bool{options.reverse}}}, at);
}
}  // namespace
Output cumsum(Output x, int axis, CumulativeOptions options, Location at) {
  return cumulative("Cumsum", x, axis, options, at);
}
Output cumsum(Output x, CumulativeOptions options, Location at) {
  return cumsum(flat(x, at), 0, options, at);
}
Output cumprod(Output x, int axis, CumulativeOptions options, Location at) {
  return cumulative("Cumprod", x, axis, options, at);
}
Output cumprod(Output x, CumulativeOptions options, Location at) {
  return cumprod(flat(x, at), 0, options, at);
}

}  // namespace leat
