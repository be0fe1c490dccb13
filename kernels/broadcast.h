// Numpy broadcasting, resolved once: the output's extents, and a stride per input that is 0 where
// the input is repeated.
#pragma once

#include <cstdint>
#include <span>

#include "core/kernel.h"
#include "core/shape.h"

namespace leat {

// Neighbouring dimensions that behave alike are merged, and extents of 1 are dropped: equal shapes,
// or a scalar operand, give rank 1; a row vector or a column gives rank 2. The innermost stride of
// an input is 1 or 0.
struct BroadcastPlan {
  static constexpr int max_inputs = 3;

  int rank = 1;
  int64_t elements = 0;
  int64_t extents[Shape::max_rank] = {};              // outermost first
  int64_t strides[max_inputs][Shape::max_rank] = {};  // in elements

  int64_t inner() const { return extents[rank - 1]; }
  bool repeats_inner(int input) const { return strides[input][rank - 1] == 0; }
};

// Every input's shape must broadcast to `output` (the op's shape function has checked that).
BroadcastPlan plan_broadcast(const Shape& output, std::span<const Shape> inputs);
BroadcastPlan plan_broadcast(const KernelRequest& request);

}  // namespace leat
