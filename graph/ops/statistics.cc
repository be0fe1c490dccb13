#include "graph/ops/statistics.h"

#include <algorithm>

#include "graph/ops/graph_of.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

// x with the axes that are reduced as its last one, and what is to be done to the result.
struct Rows {
  Output x;
  std::vector<int> axes;  // sorted, not negative; empty: all
};

Rows rows_of(std::string_view what, Output x, const Axes& axes, Location at) {
  if (axes.is_all()) return {reshape(x, {-1}, at), {}};
  const std::vector<int>* list = axes.list();
  check(list != nullptr, what, " (", at, "): the axes must be numbers, not an Output");
  const int rank = x.shape().rank();
  check(x.shape().has_rank(), what, " (", at, "): the rank of '", x.name(),
        "' must be known for axes");
  std::vector<int> last;
  for (const int axis : *list) {
    const int positive = axis < 0 ? axis + rank : axis;
    check(positive >= 0 && positive < rank, what, " (", at, "): axis ", axis,
          " is out of range of ", x.name(), " ", x.shape());
    check(std::find(last.begin(), last.end(), positive) == last.end(), what, " (", at, "): axis ",
          axis, " occurs twice");
    last.push_back(positive);
  }
  check(!last.empty(), what, " (", at, "): the list of axes is empty");
  std::sort(last.begin(), last.end());
  std::vector<int> order;
  for (int axis = 0; axis < rank; ++axis) {
    if (std::find(last.begin(), last.end(), axis) == last.end()) order.push_back(axis);
  }
  const auto kept = static_cast<int64_t>(order.size());
  order.insert(order.end(), last.begin(), last.end());
  x = transpose(x, order, at);
  if (last.size() > 1) {
    const Output extents = shape_of(x, i32, at);
    const Output rest = constant(x.graph(), {-1}, "rest", at);
    x = reshape(x, concatenate({extents[{slice(0, kept)}], rest}, 0, at), at);
  }
  return {x, last};
}

// In rising order along the last axis, whose extent may be known only in the step.
Output in_order(Output rows, Output count, Location at) {
  const Output falling = top_k(op("Neg", {rows}, {}, at), Operand(count, at), at).values;
  return op("Neg", {falling}, {}, at);
}

Output quantiles(std::string_view what, Output x, const TensorLike& given, double whole,
                 const Axes& axes, ReduceOptions options, Location at) {
  Graph& graph = graph_of(x, at);
  const LocationScope line(graph, at);
  if (!is_floating(x.dtype())) {
    check(is_integer(x.dtype()), what, " (", at, "): x must be numbers, got '", x.name(), "' ",
          x.dtype());
    x = cast(x, f32, at);
  }
  const auto [rows, reduced] = rows_of(what, x, axes, at);
  const Output count = shape_of(rows, i32, at)[{-1}];
  const Output last = cast(count - 1, f64, at);

  Output q = given.like(last);
  if (q.dtype() != f64) q = cast(q, f64, at);
  check(q.shape().has_rank() && q.shape().rank() <= 1, what, " (", at,
        "): q must be a number or a vector, got ", q.shape());
  if (const Tensor value = constant_value(q); value.is_valid()) {
    for (const double number : value.span<double>()) {
      check(number >= 0 && number <= whole, what, " (", at, "): q must be in [0, ", whole,
            "], got ", number);
    }
  }
  const Output position = q / whole * last;
  const Output below = floor(position, at);
  const Output share = cast(position - below, x.dtype(), at);
  const Output sorted = in_order(rows, count, at);
  const Output low = take(sorted, cast(below, i32, at), -1, at);
  const Output high = take(sorted, cast(ceil(position, at), i32, at), -1, at);
  Output y = low + (high - low) * share;  // [kept…, q…]

  const bool is_vector = q.shape().rank() == 1;
  if (is_vector && !reduced.empty()) {
    const int rank = y.shape().rank();
    std::vector<int> q_first = {rank - 1};
    for (int axis = 0; axis + 1 < rank; ++axis) q_first.push_back(axis);
    y = transpose(y, q_first, at);
  }
  if (!options.keep_dims) return y;
  std::vector<int> ones = reduced;
  if (axes.is_all()) {
    check(x.shape().has_rank(), what, " (", at, "): the rank of '", x.name(),
          "' must be known for .keep_dims");
    for (int axis = 0; axis < x.shape().rank(); ++axis) ones.push_back(axis);
  }
  for (const int axis : ones) y = expand_dims(y, axis + (is_vector ? 1 : 0), at);
  return y;
}

}  // namespace

Output quantile(Output x, const TensorLike& q, const Axes& axes, ReduceOptions options,
                Location at) {
  return quantiles("quantile", x, q, 1, axes, options, at);
}
Output percentile(Output x, const TensorLike& q, const Axes& axes, ReduceOptions options,
                  Location at) {
  return quantiles("percentile", x, q, 100, axes, options, at);
}
Output median(Output x, const Axes& axes, ReduceOptions options, Location at) {
  return quantiles("median", x, TensorLike(0.5, at), 1, axes, options, at);
}

namespace {
// x so that its rising order is the falling one of x. Integers keep their smallest value that way.
Output reversed(Output x, Location at) {
  graph_of(x, at);
  return op(is_integer(x.dtype()) ? "Invert" : "Neg", {x}, {}, at);
}
}  // namespace
Output sort(Output x, int axis, SortOptions options, Location at) {
  return options.descending ? reversed(sort(reversed(x, at), axis, at), at) : sort(x, axis, at);
}
Output argsort(Output x, int axis, SortOptions options, Location at) {
  return argsort(options.descending ? reversed(x, at) : x, axis, at);
}

Output digitize(Output x, const TensorLike& bins, SearchOptions options, Location at) {
  Graph& graph = graph_of(x, at);
  // A fraction may be between integers.
  Output edges = is_floating(x.dtype()) ? bins.like(x) : bins.in(graph);
  check(bool{edges} && edges.shape().is_compatible(Shape{any}), "digitize (", at,
        "): the bins must be a vector of edges, got ",
        edges ? concat(edges.name(), " ", edges.shape()) : "an empty Output");
  if (is_floating(edges.dtype()) && !is_floating(x.dtype())) {
    x = cast(x, edges.dtype(), at);
  } else if (edges.dtype() != x.dtype()) {
    edges = cast(edges, x.dtype(), at);
  }
  // Opposite words: the search puts x to the right of an edge that is equal; here the bin's right
  // edge belongs to it.
  return searchsorted(edges, x, {.right = !options.right}, at);
}

Output isclose(Output a, const Operand& b, const ToleranceOptions& options, Location at) {
  Graph& graph = graph_of(a, at);
  check(options.rtol >= 0 && options.atol >= 0, "isclose (", at,
        "): rtol and atol must not be negative, got ", options.rtol, " and ", options.atol);
  const LocationScope line(graph, at);
  Output expected = b.as(Operand(a, at));
  if (!is_floating(a.dtype())) {
    a = cast(a, f64, at);
    expected = cast(expected, f64, at);
  }
  // Infinities, whose difference is NaN, are compared as they are.
  Output close =
      op("LessEqual", {abs(a - expected, at), options.atol + options.rtol * abs(expected, at)}, {},
         at);
  close = logical_and(close, isfinite(expected, at), at);
  close = logical_or(close, op("Equal", {a, expected}, {}, at), at);
  if (options.equal_nan)
    close = logical_or(close, logical_and(isnan(a, at), isnan(expected, at), at), at);
  return close;
}
Output allclose(Output a, const Operand& b, const ToleranceOptions& options, Location at) {
  return all(isclose(a, b, options, at), {}, {}, at);
}

}  // namespace leat
