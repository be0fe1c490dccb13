// Numbers for programs that measure.
#pragma once

#include <random>

#include "core/tensor.h"

namespace leat::bench {

// Normally distributed, the same in every run.
inline Tensor noise(const Shape& shape, unsigned seed = 1) {
  Tensor out(f32, shape);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (float& x : out.span<float>()) x = normal(random);
  return out;
}

}  // namespace leat::bench
