// Reductions over all axes, or those given: mean(x), mean(x, 1), mean(x, {0, 1}, {.keep_dims =
// true}).
#pragma once

#include "graph/ops/operand.h"

namespace leat {

struct ReduceOptions {
  Flag keep_dims = false;  // reduced axes stay, with length 1
};
// The same beside no axes: mean(x, {.keep_dims = true}).
struct ReduceAllOptions {
  Flag keep_dims;
};

// Of bools, how many are true, int64.
Output sum(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
inline Output sum(Output x, ReduceAllOptions options, Location at = here()) {
  return sum(x, Axes(), {options.keep_dims}, at);
}
// Of floating-point or complex numbers; of integers and bools as float32, as NumPy has a float:
// mean(x > 0.5) is the share of true ones. So do var() and stddev().
Output mean(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
inline Output mean(Output x, ReduceAllOptions options, Location at = here()) {
  return mean(x, Axes(), {options.keep_dims}, at);
}
Output prod(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
inline Output prod(Output x, ReduceAllOptions options, Location at = here()) {
  return prod(x, Axes(), {options.keep_dims}, at);
}
Output max(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
inline Output max(Output x, ReduceAllOptions options, Location at = here()) {
  return max(x, Axes(), {options.keep_dims}, at);
}
Output min(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
inline Output min(Output x, ReduceAllOptions options, Location at = here()) {
  return min(x, Axes(), {options.keep_dims}, at);
}
// How many elements are not 0, or are true; int64.
Output count_nonzero(Output x, const Axes& axes = {}, ReduceOptions options = {},
                     Location at = here());
inline Output count_nonzero(Output x, ReduceAllOptions options, Location at = here()) {
  return count_nonzero(x, Axes(), {options.keep_dims}, at);
}
// log(sum(exp(x))), without overflow.
Output logsumexp(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
inline Output logsumexp(Output x, ReduceAllOptions options, Location at = here()) {
  return logsumexp(x, Axes(), {options.keep_dims}, at);
}
// mean((x - mean(x))²), and its root: of all elements, not of a sample.
Output var(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
inline Output var(Output x, ReduceAllOptions options, Location at = here()) {
  return var(x, Axes(), {options.keep_dims}, at);
}
Output stddev(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
inline Output stddev(Output x, ReduceAllOptions options, Location at = here()) {
  return stddev(x, Axes(), {options.keep_dims}, at);
}
// √(sum(x²))
Output norm(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
inline Output norm(Output x, ReduceAllOptions options, Location at = here()) {
  return norm(x, Axes(), {options.keep_dims}, at);
}
// Of bools: all(x, axis), and the whole axis in an index: x[{all, 0}]. any(x, axis) is in
// core/shape.h, because it is an unknown extent, too.
struct AllOrAxis {
  Output operator()(Output x, const Axes& axes = {}, ReduceOptions options = {},
                    Location at = here()) const;
  Output operator()(Output x, ReduceAllOptions options, Location at = here()) const {
    return (*this)(x, Axes(), {options.keep_dims}, at);
  }
};
inline constexpr AllOrAxis all;

// Positions of the first of the largest (smallest) elements along the axis, int64.
struct ArgOptions {
  DType dtype = i64;
};
Output argmax(Output x, int axis, ArgOptions options = {}, Location at = here());
Output argmin(Output x, int axis, ArgOptions options = {}, Location at = here());
// In the order of the elements, over all axes.
Output argmax(Output x, Location at = here());
Output argmin(Output x, Location at = here());
// The k largest elements of each row, the largest first, and where they are, int32:
// auto [values, indices] = top_k(x, 3).
struct TopK {
  Output values, indices;
};
TopK top_k(Output x, const Operand& k, Location at = here());
// Along an axis, whose extent must be known, the smallest first; and the positions, int32, of equal
// elements the first one first.
//   Output rows_in_order = sort(x), columns_in_order = sort(x, 0);
Output sort(Output x, int axis = -1, Location at = here());
Output argsort(Output x, int axis = -1, Location at = here());
// Sums (products) of all elements up to each one, along the axis; without an axis, of x flattened.
struct CumulativeOptions {
  Flag exclusive = false;  // without the element itself
  Flag reverse = false;    // from the last element on
};
Output cumsum(Output x, int axis, CumulativeOptions options = {}, Location at = here());
Output cumsum(Output x, CumulativeOptions options = {}, Location at = here());
Output cumprod(Output x, int axis, CumulativeOptions options = {}, Location at = here());
Output cumprod(Output x, CumulativeOptions options = {}, Location at = here());

}  // namespace leat
