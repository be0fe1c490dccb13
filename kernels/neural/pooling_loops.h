// What the CPU's kernels of poolings share: their loops over the channels of a pixel.
#pragma once

#include <cstring>

#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/neural/pool_extents.h"

namespace leat {

// Versions for vector instructions only where they pay: for floats.
template <class T, class Loop>
void run_loop(const Loop& loop) {
  if constexpr (std::is_floating_point_v<ComputeType<T>>) {
    vectorized(loop);
  } else {
    loop();
  }
}

// An upper bound: a window may be far larger than the input below it.
inline int64_t taps(const Pool& p) {
  const auto along = [](const Window& w) { return std::min(w.size, w.in); };
  return along(p.planes) * along(p.height) * along(p.width);
}
// The grain for units that read `elements` elements for each tap of the window.
inline int64_t grain(const Pool& p, int64_t elements) {
  return 1 + 200'000 / std::max<int64_t>(1, elements * taps(p));
}
inline double cost_ns(const Pool& p) { return 0.3 * static_cast<double>(p.y_elements() * taps(p)); }

template <class Run>
BoundKernel bound_kernel(double cost_ns, Run run) {
  BoundKernel kernel = BoundKernel::of(std::move(run));
  kernel.cost_ns = cost_ns;
  return kernel;
}

// Sets all images of `out` to zero, `image` elements each, then calls f(begin, end) for ranges of
// images, which adds to them.
template <class T, class F>
void for_zeroed_images(const Arguments& a, const Pool& p, T* out, int64_t image, F f) {
  a.stream->parallel_for(p.images, grain(p, image), [&](int64_t begin, int64_t end) {
    std::fill(out + begin * image, out + end * image, T(0));
    f(begin, end);
  });
}

// Channels that stay in registers while all taps of a pixel are looked at.
using Lanes [[gnu::vector_size(64)]] = float;
constexpr int64_t lanes = sizeof(Lanes) / sizeof(float);

// Through references: how a vector is returned would depend on the processor.
LEAT_INLINE inline void load_lanes(const float* from, Lanes& values) {
  std::memcpy(&values, from, sizeof values);
}
LEAT_INLINE inline void store_lanes(float* to, const Lanes& values) {
  std::memcpy(to, &values, sizeof values);
}

// bfloat16 has the upper half of a float's bits, which casts of vectors keep.
using LaneBits [[gnu::vector_size(64)]] = uint32_t;
using HalfLaneBits [[gnu::vector_size(32)]] = uint16_t;
LEAT_INLINE inline void load_lanes(const bfloat16* from, Lanes& values) {
  HalfLaneBits bits;
  std::memcpy(&bits, &from->bits, sizeof bits);
  values = (Lanes)(__builtin_convertvector(bits, LaneBits) << 16);
}
// For values that a bfloat16 holds: nothing is rounded.
LEAT_INLINE inline void store_lanes(bfloat16* to, const Lanes& values) {
  const auto bits = __builtin_convertvector((LaneBits)values >> 16, HalfLaneBits);
  std::memcpy(&to->bits, &bits, sizeof bits);
}
template <class T>
inline constexpr bool has_lanes = std::is_same_v<T, float> || std::is_same_v<T, bfloat16>;

// Rounds the values as T() does it.
template <class T>
LEAT_INLINE inline void round_lanes(Lanes& values) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    const auto bits = (LaneBits)values;
    const LaneBits nan = bits | 0x400000U, rounded = bits + 0x7fffU + (bits >> 16 & 1U);
    values = (Lanes)((bits & 0x7fffffffU) > 0x7f800000U ? nan : rounded);
  }
}

// Calls f(count, first) for each count * lanes channels, where count, an integral constant, is at
// most `most`; returns how many channels these are. The rest are for for_channel_blocks().
template <int most, class F>
LEAT_INLINE inline int64_t for_channel_lanes(int64_t channels, F f) {
  int64_t first = 0;
  for (; first + most * lanes <= channels; first += most * lanes)
    f(std::integral_constant<int, most>(), first);
  if constexpr (most > 1) {
    first += for_channel_lanes<most / 2>(
        channels - first, [&](auto count, int64_t at) LEAT_INLINE { f(count, first + at); });
  }
  return first;
}

// Calls f(first, n) for blocks of n channels, which stay in the first-level cache.
inline constexpr int64_t channel_block = 64;
template <class F>
LEAT_INLINE inline void for_channel_blocks(int64_t channels, F f, int64_t from = 0) {
  for (int64_t first = from; first < channels; first += channel_block)
    f(first, std::min(channel_block, channels - first));
}

// The taps of windows of 2 by 2, as Pool has them. `rolled`: as a loop, where the compiler would
// make branches of what it knows of each tap.
template <bool rolled>
struct SquareTaps {
  int64_t width;  // of the input
  int64_t count = 4, offsets[4] = {0, 1, width, width + 1};
  template <class F>
  LEAT_INLINE int64_t for_each_tap(int64_t output_row, int64_t ox, F f) const {
    const int64_t first = 2 * (output_row * width + ox);
    if constexpr (rolled) {
      for (int64_t i = 0; i < count; ++i) f(first + offsets[i]);
    } else {
      f(first), f(first + 1), f(first + width), f(first + width + 1);
    }
    return 4;
  }
};

// Calls f(taps) with the simplest of the structs that have them.
template <bool rolled = false, class F>
LEAT_INLINE inline void with_taps_of(const Pool& p, F f) {
  const bool has_squares =
      p.has_each_pixel_once() && p.planes.size == 1 && p.height.size == 2 && p.width.size == 2;
  if (has_squares) return f(SquareTaps<rolled>{p.width.in});
  f(p);
}

// Calls f(row of the output, its column) for each output pixel of rows [begin, end).
template <class F>
LEAT_INLINE inline void for_each_pixel(const Pool& p, int64_t begin, int64_t end, F f) {
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t ox = 0; ox < p.width.out; ++ox) f(row, ox);
  }
}

}  // namespace leat
