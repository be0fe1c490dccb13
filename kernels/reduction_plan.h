// A reduction's loops, resolved once: merged runs of kept and of reduced axes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kernel.h"
#include "core/shape.h"
#include "kernels/types.h"

namespace leat {

struct ReductionPlan {
  int64_t outputs = 1;  // elements of the result
  int64_t reduced = 1;  // elements combined into each of them
  // Extents and strides (of the input, in elements), outermost first, with neighbours merged and
  // extents of 1 left out.
  int kept_rank = 0;
  int64_t kept_extents[Shape::max_rank] = {};
  int64_t kept_strides[Shape::max_rank] = {};
  int reduced_rank = 0;
  int64_t reduced_extents[Shape::max_rank] = {};
  int64_t reduced_strides[Shape::max_rank] = {};

  // Whether the innermost axis of the input is reduced: elements to combine are adjacent.
  bool reduces_inner() const { return reduced_rank > 0 && reduced_strides[reduced_rank - 1] == 1; }
};

// The type in which reducer R accumulates elements of type T: its own `Accumulator<T>`, or T (float
// for 16-bit floats).
template <class R, class T>
struct AccumulatorOf {
  using type = ComputeType<T>;
};
template <class R, class T>
requires requires { typename R::template Accumulator<T>; }
struct AccumulatorOf<R, T> {
  using type = typename R::template Accumulator<T>;
};
template <class R, class T>
using Accumulator = typename AccumulatorOf<R, T>::type;

ReductionPlan plan_reduction(const Shape& shape, const std::vector<bool>& reduced);
// For a node with `reduction_indices` as input 1.
ReductionPlan plan_reduction(const KernelRequest& request);

}  // namespace leat
