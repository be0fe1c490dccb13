// Convolutions on a GPU, whoever computes them: cuDNN in the plug-in (cudnn_convolution.cu), loops
// where tests run the plug-in on the host (tests/support/cuda/host_convolution.cc). Kernels see
// only this.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/neural/convolution_extents.h"

namespace leat {

// Images x[batch, in…, channels], or x[batch, channels, in…] with channels_first, become
// y[batch, out…, channels]. The filter is [out_channels, size…, depth], or with channels_first
// [out_channels, depth, size…], where depth = in_channels / groups. All are dense and at least 1.
struct LibraryConvolutionShape {
  struct Axis {
    int64_t in = 1, out = 1, size = 1, stride = 1, dilation = 1;
    int64_t padding = 0;  // as much before as behind
  };
  DType dtype = DType::f32;  // f32, f64, f16 or bf16; 16 bits add up as f32
  int axes = 2;              // 3: volumes
  std::array<Axis, 3> axis;  // the first `axes`, outermost first
  int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  bool channels_first = false;
  bool takes_tf32 = false;  // of f32: operands may be rounded to TensorFloat-32
};

// All that is chosen once for a shape. Thread-safe.
class LibraryConvolution {
 public:
  virtual ~LibraryConvolution() = default;
  virtual size_t workspace_bytes() const = 0;
  // forward: a = x, b = filter, out = y; input_gradient: dy, filter, dx; filter_gradient: x, dy,
  // dfilter. Only enqueues.
  virtual void run(const void* a, const void* b, void* out, void* workspace,
                   Stream& stream) const = 0;
};

std::unique_ptr<LibraryConvolution> make_library_convolution(Device& device, ConvolutionPass pass,
                                                             const LibraryConvolutionShape& shape);

}  // namespace leat
