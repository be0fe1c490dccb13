// What the kernels of poolings share: the extents of one, and its loops over the channels of a
// pixel. Channels-first images are treated as one image per channel.
#pragma once

#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/window.h"

namespace leat {

// x[image, z, y, x, channel], pooled along planes (of volumes; images have one), height and width.
struct Pool {
  int64_t images, channels;
  Window planes{.in = 1, .out = 1}, height, width;

  int64_t x_elements() const { return images * planes.in * height.in * width.in * channels; }
  int64_t y_elements() const { return rows() * width.out * channels; }
  // Rows of the output are numbered through all images and planes.
  int64_t rows_per_image() const { return planes.out * height.out; }
  int64_t rows() const { return images * rows_per_image(); }

  // Is every pixel of the input in exactly one window?
  bool has_each_pixel_once() const {
    const auto is_tiled = [](const Window& w) {
      return w.dilation == 1 && w.before == 0 && w.size == w.stride && w.out * w.stride == w.in;
    };
    return is_tiled(planes) && is_tiled(height) && is_tiled(width);
  }
  // f(the input pixel) for each tap of pixel ox of an output row; how many there are.
  template <class F>
  LEAT_INLINE int64_t for_each_tap(int64_t output_row, int64_t ox, F f) const {
    const int64_t oy = output_row % height.out, plane = output_row / height.out;
    const int64_t oz = plane % planes.out, image = plane / planes.out;
    const Window::Range depth = planes.taps(oz), rows = height.taps(oy), columns = width.taps(ox);
    for (int64_t kz = depth.begin; kz < depth.end; ++kz) {
      const int64_t from = (image * planes.in + planes.input_of(oz, kz)) * height.in;
      for (int64_t ky = rows.begin; ky < rows.end; ++ky) {
        const int64_t row = (from + height.input_of(oy, ky)) * width.in;
        for (int64_t kx = columns.begin; kx < columns.end; ++kx) f(row + width.input_of(ox, kx));
      }
    }
    return (depth.end - depth.begin) * (rows.end - rows.begin) * (columns.end - columns.begin);
  }
  LEAT_INLINE int64_t count_taps(int64_t output_row, int64_t ox) const {
    return for_each_tap(output_row, ox, [](int64_t) {});
  }
};

// Of a node with the attributes that pooling.h names.
Pool pool_of(const NodeView& node, const Shape& x);

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

// Calls f(row of the output, its column) for each output pixel of rows [begin, end).
template <class F>
LEAT_INLINE inline void for_each_pixel(const Pool& p, int64_t begin, int64_t end, F f) {
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t ox = 0; ox < p.width.out; ++ox) f(row, ox);
  }
}

}  // namespace leat
