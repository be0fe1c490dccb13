// The arithmetic of GRUBlockCell and its gradient, shared by their kernels for CPUs and GPUs: gates
// r and u, a candidate c from the part r h_prev of the state, and h = u h_prev + (1 - u) c.
#pragma once

#include <cstdint>

#include "kernels/neural/functors.h"

namespace leat::gru {

struct Extents {
  int64_t batch, inputs, cells;

  explicit Extents(const KernelRequest& r)
      : batch(r.inputs[0].shape[0]), inputs(r.inputs[0].shape[1]), cells(r.inputs[1].shape[1]) {}
  constexpr int64_t states() const { return batch * cells; }
  constexpr int64_t width() const { return inputs + cells; }
};

LEAT_DEVICE float state_after(float u, float h_prev, float c) { return u * h_prev + (1 - u) * c; }

// Of the arguments of tanh and of the two sigmoids.
LEAT_DEVICE float gradient_of_candidate(float u, float c, float d_h) {
  return d_h * (1 - u) * (1 - c * c);
}
LEAT_DEVICE float gradient_of_reset(float r, float h_prev, float d_kept) {
  return d_kept * h_prev * r * (1 - r);
}
LEAT_DEVICE float gradient_of_update(float u, float h_prev, float c, float d_h) {
  return d_h * (h_prev - c) * u * (1 - u);
}
// Of h_prev: through the gates, through the candidate, and straight on.
LEAT_DEVICE float gradient_of_state(float r, float u, float through_gates, float d_kept,
                                    float d_h) {
  return through_gates + d_kept * r + d_h * u;
}

}  // namespace leat::gru
