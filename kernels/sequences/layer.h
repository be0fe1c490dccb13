// What recurrent layers share that run along a whole sequence as one op, on CPUs and GPUs.
#pragma once

#include "kernels/cpu.h"
#include "kernels/neural/functors.h"

namespace leat::layer {

using LayerTypes = Types<float, double>;

// A row (an example of the batch) takes part in the first `length` steps. In the others its results
// and their gradients are 0, and its state stays.
struct Extents {
  int64_t time, batch, units;
  bool reverse;  // from the last position to the first

  // From the shape of y.
  Extents(const KernelRequest& r, const Shape& y)
      : time(y[0]), batch(y[1]), units(y[2]), reverse(r.attr<bool>("reverse")) {}
  constexpr int64_t states() const { return batch * units; }
  // The position of a step.
  constexpr int64_t at(int64_t step) const { return reverse ? time - 1 - step : step; }
  // How many steps row `row` takes part in.
  constexpr int64_t length(const int32_t* lengths, int64_t row) const {
    if (lengths == nullptr) return time;
    const int64_t own = lengths[row];
    return own < 0 ? 0 : own < time ? own : time;
  }
};

}  // namespace leat::layer
