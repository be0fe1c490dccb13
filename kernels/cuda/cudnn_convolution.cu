// leat: cuda-library
// Convolutions by cuDNN. The algorithm is chosen once, by cuDNN's heuristics, and the workspace is
// the caller's, so a convolution only enqueues.
#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

#include "kernels/cuda/cudnn_handle.cuh"
#include "kernels/cuda/library_convolution.h"

namespace leat {
namespace {

using cuda::check_cudnn;

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return CUDNN_DATA_DOUBLE;
    case DType::f16:
      return CUDNN_DATA_HALF;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

int as_int(int64_t extent) {
  check(extent <= std::numeric_limits<int>::max(), "an extent of ", extent,
        " is more than cuDNN's convolutions take");
  return static_cast<int>(extent);
}

class CudnnConvolution : public LibraryConvolution {
 public:
  CudnnConvolution(Device& device, ConvolutionPass pass, const LibraryConvolutionShape& shape)
      : handle_(cuda::cudnn_handle_of(device)), pass_(pass), is_double_(shape.dtype == DType::f64) {
    try {
      describe(shape);
      choose(shape);
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~CudnnConvolution() override { destroy(); }
  CudnnConvolution(const CudnnConvolution&) = delete;

  size_t workspace_bytes() const override { return workspace_bytes_; }

  void run(const void* a, const void* b, void* out, void* workspace,
           Stream& stream) const override {
    const double one_double = 1, zero_double = 0;
    const float one_float = 1, zero_float = 0;
    const void* one = is_double_ ? static_cast<const void*>(&one_double) : &one_float;
    const void* zero = is_double_ ? static_cast<const void*>(&zero_double) : &zero_float;
    const cudaStream_t present = cuda_stream(stream);
    const std::lock_guard lock(handle_.mutex);
    check_cudnn(cudnnSetStream(handle_.cudnn, present), "cudnnSetStream");
    switch (pass_) {
      case ConvolutionPass::forward:
        return check_cudnn(
            cudnnConvolutionForward(handle_.cudnn, one, x_, a, filter_, b, convolution_, forward_,
                                    workspace, workspace_bytes_, zero, y_, out),
            "cudnnConvolutionForward");
      case ConvolutionPass::input_gradient:
        return check_cudnn(cudnnConvolutionBackwardData(handle_.cudnn, one, filter_, b, y_, a,
                                                        convolution_, input_gradient_, workspace,
                                                        workspace_bytes_, zero, x_, out),
                           "cudnnConvolutionBackwardData");
      case ConvolutionPass::filter_gradient:
        return check_cudnn(cudnnConvolutionBackwardFilter(handle_.cudnn, one, x_, a, y_, b,
                                                          convolution_, filter_gradient_, workspace,
                                                          workspace_bytes_, zero, filter_, out),
                           "cudnnConvolutionBackwardFilter");
    }
  }

 private:
  void describe(const LibraryConvolutionShape& shape) {
    const cudnnDataType_t type = data_type(shape.dtype);
    const cudnnTensorFormat_t format = shape.channels_first ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC;
    // cuDNN names extents in the order batch, channels, space, whatever the format.
    std::vector<int> x = {as_int(shape.batch), as_int(shape.in_channels)},
                     y = {as_int(shape.batch), as_int(shape.out_channels)},
                     filter = {as_int(shape.out_channels),
                               as_int(shape.in_channels / shape.groups)},
                     padding, stride, dilation;
    for (int i = 0; i < shape.axes; ++i) {
      const LibraryConvolutionShape::Axis& axis = shape.axis[static_cast<size_t>(i)];
      x.push_back(as_int(axis.in));
      y.push_back(as_int(axis.out));
      filter.push_back(as_int(axis.size));
      padding.push_back(as_int(axis.padding));
      stride.push_back(as_int(axis.stride));
      dilation.push_back(as_int(axis.dilation));
    }
    const int rank = shape.axes + 2;
    check_cudnn(cudnnCreateTensorDescriptor(&x_), "cudnnCreateTensorDescriptor");
    check_cudnn(cudnnCreateTensorDescriptor(&y_), "cudnnCreateTensorDescriptor");
    check_cudnn(cudnnCreateFilterDescriptor(&filter_), "cudnnCreateFilterDescriptor");
    check_cudnn(cudnnCreateConvolutionDescriptor(&convolution_),
                "cudnnCreateConvolutionDescriptor");
    check_cudnn(cudnnSetTensorNdDescriptorEx(x_, format, type, rank, x.data()),
                "cudnnSetTensorNdDescriptorEx");
    check_cudnn(cudnnSetTensorNdDescriptorEx(y_, format, type, rank, y.data()),
                "cudnnSetTensorNdDescriptorEx");
    check_cudnn(cudnnSetFilterNdDescriptor(filter_, type, format, rank, filter.data()),
                "cudnnSetFilterNdDescriptor");
    check_cudnn(cudnnSetConvolutionNdDescriptor(
                    convolution_, shape.axes, padding.data(), stride.data(), dilation.data(),
                    CUDNN_CROSS_CORRELATION, is_double_ ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
                "cudnnSetConvolutionNdDescriptor");
    check_cudnn(cudnnSetConvolutionGroupCount(convolution_, as_int(shape.groups)),
                "cudnnSetConvolutionGroupCount");
    // f32 is computed as f32, unless asked for: CUDNN_DEFAULT_MATH takes TF32.
    const bool is_half = shape.dtype == DType::f16 || shape.dtype == DType::bf16;
    const cudnnMathType_t math = is_half            ? CUDNN_TENSOR_OP_MATH
                                 : shape.takes_tf32 ? CUDNN_DEFAULT_MATH
                                                    : CUDNN_FMA_MATH;
    check_cudnn(cudnnSetConvolutionMathType(convolution_, math), "cudnnSetConvolutionMathType");
  }

  // The fastest, by cuDNN's heuristics, whose workspace is not excessive.
  template <class Performance>
  auto best_of(const std::vector<Performance>& found, const LibraryConvolutionShape& shape) {
    constexpr size_t most_workspace = size_t{1} << 30;
    for (const Performance& one : found) {
      // A sum of parts in any order would not be reproducible.
      if (one.status != CUDNN_STATUS_SUCCESS || one.memory > most_workspace ||
          one.determinism != CUDNN_DETERMINISTIC)
        continue;
      check_cudnn(cudnnSetConvolutionMathType(convolution_, one.mathType),
                  "cudnnSetConvolutionMathType");
      workspace_bytes_ = one.memory;
      return one.algo;
    }
    fail(Code::unimplemented, "cuDNN has no algorithm for a convolution of ", shape.dtype, " with ",
         shape.in_channels, " input channels, ", shape.out_channels, " output channels and ",
         shape.groups, " groups: place it on a CPU");
  }

  void choose(const LibraryConvolutionShape& shape) {
    const std::lock_guard lock(handle_.mutex);
    int count = 0;
    switch (pass_) {
      case ConvolutionPass::forward: {
        std::vector<cudnnConvolutionFwdAlgoPerf_t> found(CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
        check_cudnn(cudnnGetConvolutionForwardAlgorithm_v7(handle_.cudnn, x_, filter_, convolution_,
                                                           y_, static_cast<int>(found.size()),
                                                           &count, found.data()),
                    "cudnnGetConvolutionForwardAlgorithm_v7");
        found.resize(static_cast<size_t>(count));
        forward_ = best_of(found, shape);
        break;
      }
      case ConvolutionPass::input_gradient: {
        std::vector<cudnnConvolutionBwdDataAlgoPerf_t> found(CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
        check_cudnn(cudnnGetConvolutionBackwardDataAlgorithm_v7(
                        handle_.cudnn, filter_, y_, convolution_, x_,
                        static_cast<int>(found.size()), &count, found.data()),
                    "cudnnGetConvolutionBackwardDataAlgorithm_v7");
        found.resize(static_cast<size_t>(count));
        input_gradient_ = best_of(found, shape);
        break;
      }
      case ConvolutionPass::filter_gradient: {
        std::vector<cudnnConvolutionBwdFilterAlgoPerf_t> found(
            CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
        check_cudnn(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                        handle_.cudnn, x_, y_, convolution_, filter_,
                        static_cast<int>(found.size()), &count, found.data()),
                    "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
        found.resize(static_cast<size_t>(count));
        filter_gradient_ = best_of(found, shape);
        break;
      }
    }
  }

  void destroy() {
    if (x_ != nullptr) (void)cudnnDestroyTensorDescriptor(x_);
    if (y_ != nullptr) (void)cudnnDestroyTensorDescriptor(y_);
    if (filter_ != nullptr) (void)cudnnDestroyFilterDescriptor(filter_);
    if (convolution_ != nullptr) (void)cudnnDestroyConvolutionDescriptor(convolution_);
  }

  cuda::CudnnHandle& handle_;
  const ConvolutionPass pass_;
  const bool is_double_;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t filter_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  cudnnConvolutionFwdAlgo_t forward_{};
  cudnnConvolutionBwdDataAlgo_t input_gradient_{};
  cudnnConvolutionBwdFilterAlgo_t filter_gradient_{};
  size_t workspace_bytes_ = 0;
};

}  // namespace

std::unique_ptr<LibraryConvolution> make_library_convolution(Device& device, ConvolutionPass pass,
                                                             const LibraryConvolutionShape& shape) {
  return std::make_unique<CudnnConvolution>(device, pass, shape);
}

}  // namespace leat
