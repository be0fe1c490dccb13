// An output that is zeros, because there is nothing to add up.
#pragma once

#include "kernels/cuda/device/cuda_device.cuh"

namespace leat::cuda {

inline BoundKernel bind_zeros(const TensorSpec& output) {
  const size_t bytes = static_cast<size_t>(output.shape.elements()) * dtype_size(output.dtype);
  return BoundKernel::of([bytes](const Arguments& arguments) {
    check_cuda(cudaMemsetAsync(arguments.outputs[0], 0, bytes, cuda_stream(arguments)),
               "cudaMemsetAsync");
  });
}

}  // namespace leat::cuda
