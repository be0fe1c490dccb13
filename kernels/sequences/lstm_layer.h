// The recurrence of an LSTM along a sequence, shared by its kernels for CPUs and GPUs. The input
// part of the gates, x·kernel + bias, is there already: [time, batch, 4 units], the columns of the
// gates i, f, g, o side by side.
#pragma once

#include "kernels/sequences/layer.h"

namespace leat::layer {

// Of one unit: gates i, f, g, o from their sums; the new c and y.
template <class T>
struct LstmUnit {
  T i, f, g, o, c, y;

  LEAT_DEVICE static LstmUnit step(T i, T f, T g, T o, T c_before) {
    LstmUnit out{Sigmoid{}(i), Sigmoid{}(f), std::tanh(g), Sigmoid{}(o), T(0), T(0)};
    out.c = out.f * c_before + out.i * out.g;
    out.y = out.o * std::tanh(out.c);
    return out;
  }
};

// The gradients of the sums and of c_before, from those of y and of the new c.
template <class T>
struct LstmGradient {
  T i, f, g, o, c_before;

  LEAT_DEVICE static LstmGradient of(T i, T f, T g, T o, T c_before, T c, T dy, T dc) {
    const T shown = std::tanh(c);
    const T through_c = dc + dy * o * (T(1) - shown * shown);
    return {through_c * g * (i * (T(1) - i)), through_c * c_before * (f * (T(1) - f)),
            through_c * i * (T(1) - g * g), dy * shown * (o * (T(1) - o)), through_c * f};
  }
};

}  // namespace leat::layer
