// What a convolution of images, or of volumes, consists of. Of no device.
#pragma once

#include <cstdint>

#include "core/kernel.h"
#include "kernels/window.h"

namespace leat {

// y[n, oy, ox, o] = sum over (ky, kx, i) of x[n, iy, ix, g * depth() + i] * filter[ky, kx, i, o], g
// = o's group. A depthwise filter [ky, kx, channel, multiplier] is the same with one group per
// input channel. Volumes x[n, iz, iy, ix, channel] have a filter [kz, ky, kx, i, o]; images have
// one plane.
struct Convolution {
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  Window planes{.in = 1, .out = 1}, height, width;
  bool channels_first = false;  // NCHW or NCDHW: f32 and 16-bit floats only

  int64_t depth() const { return groups == 0 ? 0 : in_channels / groups; }
  bool is_of_images() const { return planes.in == 1 && planes.out == 1 && planes.size == 1; }
  int64_t x_elements() const { return batch * planes.in * height.in * width.in * in_channels; }
  int64_t y_elements() const { return batch * planes.out * height.out * width.out * out_channels; }
  int64_t taps() const { return planes.size * height.size * width.size; }
  int64_t filter_elements() const { return taps() * depth() * out_channels; }
  double flops() const { return 2.0 * y_elements() * taps() * depth(); }
};

enum class ConvolutionPass { forward, input_gradient, filter_gradient };

// The convolution of a kernel's request: forward x, filter -> y; input_gradient dy, filter -> dx;
// filter_gradient x, dy -> filter.
struct ConvolutionRequest {
  Convolution extents;
  int a = 0, b = 1;      // the positions of the two operands among the kernel's inputs
  bool is_idle = false;  // there is nothing to compute, and no output
};
// Checks the attributes.
ConvolutionRequest convolution_request(ConvolutionPass pass, const KernelRequest& request);

}  // namespace leat
