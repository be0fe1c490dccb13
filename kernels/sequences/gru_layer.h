// The recurrence of a GRU along a sequence, shared by its kernels for CPUs and GPUs, in the form of
// cuDNN and Keras (reset_after). The input parts z, r, g of the gates, x·kernel + bias, are there
// already: [time, batch, 3 units], side by side. The state's parts are h·recurrent_kernel +
// recurrent_bias.
#pragma once

#include "kernels/sequences/layer.h"

namespace leat::layer {

// Of one unit: the update gate u, the reset gate r, the new value n, the new h.
template <class T>
struct GruUnit {
  T u, r, n, h;

  // From the input's parts and the state's.
  LEAT_DEVICE static GruUnit step(T xz, T xr, T xg, T hz, T hr, T hg, T h_before) {
    GruUnit out{Sigmoid{}(xz + hz), Sigmoid{}(xr + hr), T(0), T(0)};
    out.n = std::tanh(xg + out.r * hg);
    out.h = out.u * h_before + (T(1) - out.u) * out.n;
    return out;
  }
};

// The gradients of the input's parts; of the state's parts, which differ in the last one alone; and
// the part of that of h_before which does not go through the gates.
template <class T>
struct GruGradient {
  T z, r, g, hg, h_before;

  LEAT_DEVICE static GruGradient of(T u, T r, T n, T hg, T h_before, T dh) {
    const T dg = dh * (T(1) - u) * (T(1) - n * n);
    return {dh * (h_before - n) * (u * (T(1) - u)), dg * hg * (r * (T(1) - r)), dg, dg * r, dh * u};
  }
};

}  // namespace leat::layer
