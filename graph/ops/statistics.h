// Order statistics, and comparisons within a tolerance, as NumPy has them.
#pragma once

#include "graph/ops/arrays.h"
#include "graph/ops/math.h"
#include "graph/ops/reduce.h"

namespace leat {

// The value below which a share q of the elements lies: of n elements in rising order, that at
// position q · (n - 1), between two of them by linear interpolation, as numpy.quantile. q: a number
// in [0, 1], or a vector of them, whose axis then comes first in the result. Over all axes or those
// given; floating-point numbers without NaN, integers as float32. Gradients go to x.
//   Output q = quantile(x, {0.25, 0.75}, 0);
Output quantile(Output x, const TensorLike& q, const Axes& axes = {}, ReduceOptions options = {},
                Location at = here());
inline Output quantile(Output x, const TensorLike& q, ReduceAllOptions options,
                       Location at = here()) {
  return quantile(x, q, Axes(), {options.keep_dims}, at);
}
// The same of q / 100: numpy.percentile.
Output percentile(Output x, const TensorLike& q, const Axes& axes = {}, ReduceOptions options = {},
                  Location at = here());
inline Output percentile(Output x, const TensorLike& q, ReduceAllOptions options,
                         Location at = here()) {
  return percentile(x, q, Axes(), {options.keep_dims}, at);
}
// quantile(x, 0.5): the middle one, or the mean of both in the middle.
Output median(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
inline Output median(Output x, ReduceAllOptions options, Location at = here()) {
  return median(x, Axes(), {options.keep_dims}, at);
}

struct SortOptions {
  Flag descending;
};
// The largest first: sort(x, -1, {.descending = true}); of equal elements the first one first.
Output sort(Output x, int axis, SortOptions options, Location at = here());
Output argsort(Output x, int axis, SortOptions options, Location at = here());

// The number of the bin of each element: i with bins[i - 1] <= x < bins[i], 0 below the first edge
// and the number of edges above the last; int32, of x's shape. bins: a rising vector. With .right:
// bins[i - 1] < x <= bins[i]. numpy.digitize.
//   Output bin = digitize(x, {18, 25, 35});
Output digitize(Output x, const TensorLike& bins, SearchOptions options = {}, Location at = here());

struct ToleranceOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;  // NaN is close to NaN
};
// |a - b| <= atol + rtol · |b|, elementwise with broadcasting, bool; infinities are close to
// themselves. numpy.isclose. allclose: whether all elements are, a scalar.
Output isclose(Output a, const Operand& b, const ToleranceOptions& options = {},
               Location at = here());
Output allclose(Output a, const Operand& b, const ToleranceOptions& options = {},
                Location at = here());

}  // namespace leat
