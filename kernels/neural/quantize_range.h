// The arithmetic of QuantizeAndDequantize…, shared by the kernels for CPUs and GPUs.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "kernels/elementwise.h"

namespace leat::quantize {

struct Options {
  int64_t bits;
  bool is_signed, is_narrow, has_range, rounds_up;
  int axis;  // whose indices have ranges of their own; -1: one range for all

  Options(const KernelRequest& r, int64_t bits)
      : bits(bits),
        is_signed(r.attr<bool>("signed_input")),
        is_narrow(r.attr<bool>("narrow_range")),
        has_range(r.attr<bool>("range_given")),
        rounds_up(r.node.has("round_mode") && r.attr<std::string>("round_mode") == "HALF_UP"),
        axis(static_cast<int>(r.attr<int64_t>("axis"))) {
    const int64_t most = is_signed ? 61 : 62;
    check(bits > 0 && bits <= most, "num_bits is out of range: ", bits, " with signed_input ",
          is_signed);
  }
};

// From min to max; the integers are scale times the numbers.
template <class T>
struct Range {
  T min, max, scale, inverse;

  LEAT_DEVICE static Range of(const Options& options, T low, T high) {
    const int64_t half = int64_t{1} << (options.bits - 1);
    const auto lowest =
        static_cast<T>(options.is_signed ? (options.is_narrow ? -half + 1 : -half) : int64_t{0});
    const auto highest = static_cast<T>(options.is_signed ? half - 1 : 2 * half - 1);
    constexpr T none = std::numeric_limits<T>::max();
    const T by_min = lowest * low > 0 ? lowest / low : none;
    const T by_max = highest * high > 0 ? highest / high : none;
    if (by_min < by_max) {
      const T inverse = low / lowest;
      return {low, highest * inverse, by_min, inverse};
    }
    const T inverse = high / highest;
    return {lowest * inverse, high, by_max, inverse};
  }

  // A range taken from the input itself needs no limits, and has none where it is cut at 0.
  LEAT_DEVICE T rounded(T x, const Options& options) const {
    const T inside = options.has_range ? (x < min ? min : x > max ? max : x) : x;
    const T scaled = inside * scale;
    return (options.rounds_up ? std::floor(scaled + T(0.5)) : std::nearbyint(scaled)) * inverse;
  }
};

// An axis of the input: `outer` times `depth` times `inner` elements.
struct Extents {
  int64_t outer = 1, depth = 1, inner = 1;

  Extents(const Shape& shape, int axis) {
    for (int i = 0; i < shape.rank(); ++i)
      (i == axis ? depth : i < axis ? outer : inner) *= shape[i];
  }
  constexpr int64_t elements() const { return outer * depth * inner; }
  constexpr int64_t channel_of(int64_t i) const { return i / inner % depth; }
  // Element `k` of channel `c`.
  constexpr int64_t at(int64_t c, int64_t k) const {
    return (k / inner * depth + c) * inner + k % inner;
  }
  // f(first, count) for each contiguous piece of channel `c`.
  template <class F>
  void visit(int64_t c, const F& f) const {
    for (int64_t o = 0; o < outer; ++o) f((o * depth + c) * inner, inner);
  }
};

}  // namespace leat::quantize
