// Reductions over all axes, or those given: mean(x), mean(x, 1), mean(x, {0, 1}, {.keep_dims =
// true}).
#pragma once

#include "graph/ops/operand.h"

namespace leat {

struct ReduceOptions {
  bool keep_dims = false;  // reduced axes stay, with length 1
};

Output sum(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
Output mean(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
Output prod(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
Output max(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
Output min(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
// log(sum(exp(x))), without overflow.
Output logsumexp(Output x, const Axes& axes = {}, ReduceOptions options = {}, Location at = here());
// Of bools: all(x, axis), and the whole axis in an index: x[{all, 0}]. any(x, axis) is in
// core/shape.h, because it is an unknown extent, too.
struct AllOrAxis {
  Output operator()(Output x, const Axes& axes = {}, ReduceOptions options = {},
                    Location at = here()) const;
};
inline constexpr AllOrAxis all;

// Positions of the first of the largest (smallest) elements along the axis, int64.
struct ArgOptions {
  DType dtype = i64;
};
Output argmax(Output x, int axis, ArgOptions options = {}, Location at = here());
Output argmin(Output x, int axis, ArgOptions options = {}, Location at = here());
// {values, int32 indices} of the k largest elements of each row, the largest first.
std::vector<Output> top_k(Output x, const Operand& k, Location at = here());
Output cumsum(Output x, int axis, Location at = here());
Output cumprod(Output x, int axis, Location at = here());

}  // namespace leat
