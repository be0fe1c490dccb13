// Convolutions of images and volumes, and their gradients, on the GPU. A library makes them
// (library_convolution.h), which wants a filter's output channels outermost, and as much padding
// before as behind: what differs is laid out in the workspace.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "graph/op_def.h"
#include "graph/passes/mixed_precision/mixed_precision.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/library_convolution.h"
#include "kernels/cuda/workspace.cuh"
#include "kernels/cuda/zeros.cuh"
#include "kernels/cuda_launch.cuh"
#include "kernels/types.h"

namespace leat {
namespace {

// The filter's axes: taps, depth, output channels, as the op has them.
struct FilterExtents {
  int64_t taps, depth, out_channels;
  bool channels_first;

  // Where the op has the element that the library has at `at`.
  LEAT_DEVICE int64_t place_in_op(int64_t at) const {
    const int64_t inner = channels_first ? taps : depth;
    const int64_t innermost = at % inner, middle = at / inner % (taps * depth / inner);
    const int64_t channel = at / (taps * depth);
    const int64_t tap = channels_first ? innermost : middle;
    const int64_t d = channels_first ? middle : innermost;
    return (tap * depth + d) * out_channels + channel;
  }
};

// Images with other borders: cut, or with zeros. All lie as [outer, space…, inner].
struct Borders {
  int64_t in[3], padded[3];  // extents, outermost first; 1 where there is no such axis
  int64_t before[3];         // zeros
  int64_t inner;
};

template <class T, bool to_library>
__global__ void __launch_bounds__(cuda::threads_per_block)
    reorder_filter(int64_t n, FilterExtents extents, const T* from, T* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int64_t in_op = extents.place_in_op(i);
  to[to_library ? i : in_op] = from[to_library ? in_op : i];
}

// Writes element i of `to`, which has the padded extents or the input's: what `from` has there, or
// zero.
template <class T>
__global__ void __launch_bounds__(cuda::threads_per_block)
    copy_with_borders(int64_t n, Borders b, bool to_padded, const T* from, T* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int64_t rest = i / b.inner, at = i % b.inner, stride = b.inner;
  bool is_there = true;
  for (int axis = 2; axis >= 0; --axis) {
    const int64_t extent = to_padded ? b.padded[axis] : b.in[axis];
    const int64_t other_extent = to_padded ? b.in[axis] : b.padded[axis];
    const int64_t position = rest % extent + (to_padded ? -b.before[axis] : b.before[axis]);
    rest /= extent;
    is_there = is_there && position >= 0 && position < other_extent;
    at += position * stride;
    stride *= other_extent;
  }
  to[i] = is_there ? from[rest * stride + at] : T{};
}

// Extents and borders of one axis as the library takes them.
LibraryConvolutionShape::Axis axis_of(const Window& w, int64_t& in, int64_t& padded,
                                      int64_t& before) {
  LibraryConvolutionShape::Axis axis{.in = w.in,
                                     .out = w.out,
                                     .size = w.size,
                                     .stride = w.stride,
                                     .dilation = w.dilation,
                                     .padding = w.before};
  in = padded = w.in;
  before = 0;
  const int64_t reach = (w.size - 1) * w.dilation + 1;
  const int64_t same_on_both_sides = w.in + 2 * w.before - reach;
  if (same_on_both_sides >= 0 && same_on_both_sides / w.stride + 1 == w.out) return axis;
  // All that the windows see, and no more.
  axis.in = padded = (w.out - 1) * w.stride + reach;
  axis.padding = 0;
  before = w.before;
  return axis;
}

// T: an integer as large as an element.
template <class T>
class Call {
 public:
  Call(const KernelRequest& kernel, ConvolutionPass pass, const ConvolutionRequest& request)
      : pass_(pass), a_(request.a), b_(request.b) {
    const Convolution& c = request.extents;
    LibraryConvolutionShape shape{.dtype = kernel.outputs[0].dtype,
                                  .axes = c.is_of_images() ? 2 : 3,
                                  .batch = c.batch,
                                  .in_channels = c.in_channels,
                                  .out_channels = c.out_channels,
                                  .groups = c.groups,
                                  .channels_first = c.channels_first,
                                  .takes_tf32 = kernel.node.has(tensor_float_32_attr)};
    const std::array<const Window*, 3> windows = {&c.planes, &c.height, &c.width};
    int64_t x = c.batch * c.in_channels, padded = x;
    for (size_t i = 0; i < 3; ++i) {
      const auto axis =
          axis_of(*windows[i], borders_.in[i], borders_.padded[i], borders_.before[i]);
      if (shape.axes == 3) {
        shape.axis[i] = axis;
      } else if (i > 0) {
        shape.axis[i - 1] = axis;
      }
      x *= borders_.in[i];
      padded *= borders_.padded[i];
      has_borders_ =
          has_borders_ || borders_.in[i] != borders_.padded[i] || borders_.before[i] != 0;
    }
    borders_.inner = c.channels_first ? 1 : c.in_channels;
    x_ = x;
    padded_ = padded;
    filter_ = {c.taps(), c.depth(), c.out_channels, c.channels_first};
    library_ = make_library_convolution(kernel.device, pass, shape);
    padded_at_ = cuda::aligned(static_cast<size_t>(filter_elements()) * sizeof(T));
    library_at_ =
        padded_at_ + (has_borders_ ? cuda::aligned(static_cast<size_t>(padded_) * sizeof(T)) : 0);
  }

  size_t workspace_bytes() const { return library_at_ + library_->workspace_bytes(); }

  void operator()(const Arguments& arguments) const {
    char* const workspace = static_cast<char*>(arguments.workspace);
    T* const filter = reinterpret_cast<T*>(workspace);
    T* const padded = reinterpret_cast<T*>(workspace + padded_at_);
    const cudaStream_t stream = cuda_stream(arguments);
    const void* a = arguments.inputs[a_];
    const void* b = arguments.inputs[b_];
    void* out = arguments.outputs[0];
    if (pass_ == ConvolutionPass::filter_gradient) {
      out = filter;
    } else {
      reorder<true>(b, filter, stream);
      b = filter;
    }
    if (has_borders_ && pass_ == ConvolutionPass::input_gradient) out = padded;
    if (has_borders_ && pass_ != ConvolutionPass::input_gradient) {
      copy(a, padded, padded_, true, stream);
      a = padded;
    }
    library_->run(a, b, out, workspace + library_at_, *arguments.stream);
    if (pass_ == ConvolutionPass::filter_gradient)
      reorder<false>(filter, arguments.output<T>(), stream);
    if (has_borders_ && pass_ == ConvolutionPass::input_gradient)
      copy(padded, arguments.output<T>(), x_, false, stream);
  }

 private:
  int64_t filter_elements() const { return filter_.taps * filter_.depth * filter_.out_channels; }

  template <bool to_library>
  void reorder(const void* from, T* to, cudaStream_t stream) const {
    cuda::launch(reorder_filter<T, to_library>, cuda::blocks_for(filter_elements()),
                 cuda::threads_per_block, 0, stream, filter_elements(), filter_,
                 static_cast<const T*>(from), to);
  }
  void copy(const void* from, T* to, int64_t n, bool to_padded, cudaStream_t stream) const {
    cuda::launch(copy_with_borders<T>, cuda::blocks_for(n), cuda::threads_per_block, 0, stream, n,
                 borders_, to_padded, static_cast<const T*>(from), to);
  }

  ConvolutionPass pass_;
  int a_, b_;
  FilterExtents filter_{};
  Borders borders_{};
  bool has_borders_ = false;
  int64_t x_ = 0, padded_ = 0;  // elements
  std::shared_ptr<const LibraryConvolution> library_;
  size_t padded_at_ = 0, library_at_ = 0;  // in the workspace; the filter is first
};

template <class T>
BoundKernel bind(const KernelRequest& request, ConvolutionPass pass, const ConvolutionRequest& c) {
  Call<T> call(request, pass, c);
  const size_t workspace = call.workspace_bytes();
  return BoundKernel::of(std::move(call)).with_workspace(workspace);
}

template <ConvolutionPass pass>
BoundKernel prepare(const KernelRequest& request) {
  const ConvolutionRequest c = convolution_request(pass, request);
  const TensorSpec& output = request.outputs[0];
  if (c.is_idle || output.shape.elements() == 0) return {};
  const Convolution& extents = c.extents;
  if (extents.x_elements() == 0 || extents.y_elements() == 0 || extents.filter_elements() == 0)
    return cuda::bind_zeros(output);
  switch (dtype_size(output.dtype)) {
    case 2:
      return bind<uint16_t>(request, pass, c);
    case 4:
      return bind<uint32_t>(request, pass, c);
    default:
      return bind<uint64_t>(request, pass, c);
  }
}

template <ConvolutionPass pass>
std::vector<Kernel> kernels() {
  Kernel kernel;
  kernel.device = DeviceType::gpu;
  kernel.types = {{"T", FloatTypes::list()}};
  kernel.prepare = prepare<pass>;
  return {kernel};
}

const OpKernels conv2d{"Conv2D", kernels<ConvolutionPass::forward>()};
const OpKernels conv2d_input{"Conv2DBackpropInput", kernels<ConvolutionPass::input_gradient>()};
const OpKernels conv2d_filter{"Conv2DBackpropFilter", kernels<ConvolutionPass::filter_gradient>()};
const OpKernels conv3d{"Conv3D", kernels<ConvolutionPass::forward>()};
const OpKernels conv3d_input{"Conv3DBackpropInputV2", kernels<ConvolutionPass::input_gradient>()};
const OpKernels conv3d_filter{"Conv3DBackpropFilterV2",
                              kernels<ConvolutionPass::filter_gradient>()};
const OpKernels depthwise{"DepthwiseConv2dNative", kernels<ConvolutionPass::forward>()};
const OpKernels depthwise_input{"DepthwiseConv2dNativeBackpropInput",
                                kernels<ConvolutionPass::input_gradient>()};
const OpKernels depthwise_filter{"DepthwiseConv2dNativeBackpropFilter",
                                 kernels<ConvolutionPass::filter_gradient>()};

}  // namespace
}  // namespace leat
