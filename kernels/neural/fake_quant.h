// The arithmetic of FakeQuantWithMinMax…, shared by the kernels for CPUs and GPUs.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/elementwise.h"

namespace leat::fake_quant {

// The lowest and the highest integer.
struct Levels {
  float lowest, highest;

  explicit Levels(const KernelRequest& r) {
    const int64_t bits = r.attr<int64_t>("num_bits");
    check(bits >= 2 && bits <= 16, "num_bits must be between 2 and 16, inclusive, got ", bits);
    lowest = r.attr<bool>("narrow_range") ? 1 : 0;
    highest = static_cast<float>((1 << bits) - 1);
  }
};

// [min, max] moved so that it represents 0 exactly.
struct Range {
  float min = 0, max = 0, scale = 0;
  bool is_empty = false;  // min = max = 0: everything is 0

  LEAT_DEVICE static Range of(const Levels& levels, float low, float high) {
    const float scale = (high - low) / (levels.highest - levels.lowest);
    const float exact = levels.lowest - low / scale;
    const float zero = exact < levels.lowest    ? levels.lowest
                       : exact > levels.highest ? levels.highest
                                                : std::round(exact);
    return {(levels.lowest - zero) * scale, (levels.highest - zero) * scale, scale,
            low == 0 && high == 0};
  }

  LEAT_DEVICE float rounded(float x) const {
    const float inverse = 1 / scale, zero = std::floor(-min * inverse + 0.5F);
    const float inside = x > max ? max : x < min ? min : x;  // NaN stays
    return is_empty ? 0 : std::floor((inside - min) * inverse - zero + 0.5F) * scale;
  }

  LEAT_DEVICE bool is_below(float x) const { return !is_empty && x < min; }
  LEAT_DEVICE bool is_above(float x) const { return !is_empty && x > max; }
  LEAT_DEVICE bool has(float x) const { return is_empty || (x >= min && x <= max); }
};

// The bounds in the attributes of the ops …Args.
struct Bounds {
  float min, max;

  explicit Bounds(const KernelRequest& r) : min(r.attr<float>("min")), max(r.attr<float>("max")) {
    check(min < max, "min has to be smaller than max, was: ", min, " >= ", max);
  }
};

}  // namespace leat::fake_quant
