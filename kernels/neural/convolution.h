// Convolutions of images and of volumes, and their two gradients, below the ops: f32 through
// oneDNN, other types in loops.
#pragma once

#include "core/kernel.h"
#include "kernels/linear_algebra/sgemm.h"
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

// A convolution of f32 below its kernel: no extent is 0. The parts that it is cut into depend on
// the extents alone, not on the number of threads: equal inputs give equal results.
class FloatConvolution {
 public:
  // No part takes longer than some hundredths of a second, unless it is a single row (or plane).
  FloatConvolution(ConvolutionPass pass, const Convolution& convolution);
  // In about so many parts.
  FloatConvolution(ConvolutionPass pass, const Convolution& convolution, int64_t parts);
  size_t workspace_bytes() const;
  void operator()(Stream& stream, const float* a, const float* b, float* out,
                  void* workspace) const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

// The same as one product of matrices, where that is faster: windows of one pixel, and gradients of
// large filters that see few places, whose inputs are laid out first, a row per place.
class ConvolutionProduct {
 public:
  static bool is_possible(ConvolutionPass pass, const Convolution& convolution);
  static bool is_faster(ConvolutionPass pass, const Convolution& convolution);
  // is_possible().
  ConvolutionProduct(ConvolutionPass pass, const Convolution& convolution);
  size_t workspace_bytes() const;
  void operator()(Stream& stream, const float* a, const float* b, float* out,
                  void* workspace) const;

 private:
  void lay_out(Stream& stream, const float* x, float* patches) const;
  void lay_out_row(int64_t at, const float* x, float* to) const;

  Sgemm product_;
  Convolution c_;
  int64_t patches_;  // elements laid out
};

}  // namespace leat
