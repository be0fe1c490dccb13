// Convolutions of images and of volumes, and their two gradients, below the ops: f32 through
// oneDNN, other types in loops.
#pragma once

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

// Reads and writes of a pass: forward x, filter -> y; input_gradient dy, filter -> dx;
// filter_gradient x, dy -> filter. `a` and `b` are the positions of the two operands among the
// kernel's inputs. T: float, double, half, bfloat16, int32.
BoundKernel bind_convolution(ConvolutionPass pass, const Convolution& convolution, DType dtype,
                             int a, int b);

// For convolution.cc: f32, no extent is 0. A kernel's function object, and the workspace it needs.
class OneDnnConvolution {
 public:
  OneDnnConvolution(ConvolutionPass pass, const Convolution& convolution);
  size_t workspace_bytes() const;
  void operator()(Stream& stream, const float* a, const float* b, float* out,
                  void* workspace) const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

// The same, in parts that are each short.
class LargeConvolution {
 public:
  // If false, OneDnnConvolution holds no thread for long.
  static bool is_needed(const Convolution& convolution);
  // Each part has at most this much work, unless a single row (or plane) has more.
  LargeConvolution(ConvolutionPass pass, const Convolution& convolution,
                   double flops_per_part = 2e9);
  size_t workspace_bytes() const;
  void operator()(Stream& stream, const float* a, const float* b, float* out,
                  void* workspace) const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace leat
