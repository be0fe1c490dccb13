// The extents of a pooling and the taps of its windows, for the kernels on both devices (constexpr:
// nvcc compiles them for the GPU, too). Channels-first images are treated as one image per channel.
#pragma once

#include <cstdint>

#include "core/attr.h"
#include "core/shape.h"
#include "kernels/window.h"

namespace leat {

// x[image, z, y, x, channel], pooled along planes (of volumes; images have one), height and width.
struct Pool {
  int64_t images, channels;
  Window planes{.in = 1, .out = 1}, height, width;

  constexpr int64_t x_elements() const {
    return images * planes.in * height.in * width.in * channels;
  }
  constexpr int64_t y_elements() const { return rows() * width.out * channels; }
  // Rows of the output are numbered through all images and planes.
  constexpr int64_t rows_per_image() const { return planes.out * height.out; }
  constexpr int64_t rows() const { return images * rows_per_image(); }

  // Is every pixel of the input in exactly one window?
  bool has_each_pixel_once() const {
    const auto is_tiled = [](const Window& w) {
      return w.dilation == 1 && w.before == 0 && w.size == w.stride && w.out * w.stride == w.in;
    };
    return is_tiled(planes) && is_tiled(height) && is_tiled(width);
  }
  // f(the input pixel) for each tap of pixel ox of an output row; how many there are.
  template <class F>
  [[gnu::always_inline]] constexpr int64_t for_each_tap(int64_t output_row, int64_t ox, F f) const {
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
  [[gnu::always_inline]] constexpr int64_t count_taps(int64_t output_row, int64_t ox) const {
    return for_each_tap(output_row, ox, [](int64_t) {});
  }
};

// Of a node with the attributes that pooling.h names.
Pool pool_of(const NodeView& node, const Shape& x);

}  // namespace leat
