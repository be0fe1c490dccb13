// The gradient of an input that was repeated by broadcasting is the sum over its repetitions.
#pragma once

#include "graph/gradient.h"

namespace leat {

// Sums `dx`, of the shape of x op y, to the shape of x. The axes come from the static shapes if
// they are known, else from BroadcastGradientArgs when the step runs.
Output sum_to_shape_of(const Output& x, const Output& y, const Output& dx);

// For ops of two broadcast inputs: g.dx(0) and g.dx(1).
inline void set_broadcast_gradients(Gradient& g, const Output& dx0, const Output& dx1) {
  g.dx(0) = sum_to_shape_of(g.x(0), g.x(1), dx0);
  g.dx(1) = sum_to_shape_of(g.x(1), g.x(0), dx1);
}

}  // namespace leat
