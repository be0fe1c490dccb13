// Convolutions of images and of volumes, and their two gradients, below the ops: f32 through
// oneDNN, other types in loops.
#pragma once

#include "core/kernel.h"
#include "kernels/linear_algebra/sgemm.h"
#include "kernels/neural/convolution_extents.h"

namespace leat {

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
