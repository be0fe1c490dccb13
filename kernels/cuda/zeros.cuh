// Outputs that are zeros, because there is nothing to add up.
#pragma once

#include <vector>

#include "kernels/cuda/device/cuda_device.cuh"

namespace leat::cuda {

inline BoundKernel bind_zeros(const TensorSpec& output) {
  const size_t bytes = static_cast<size_t>(output.shape.elements()) * dtype_size(output.dtype);
  return BoundKernel::of([bytes](const Arguments& arguments) {
    check_cuda(cudaMemsetAsync(arguments.outputs[0], 0, bytes, cuda_stream(arguments)),
               "cudaMemsetAsync");
  });
}

// All outputs.
inline BoundKernel bind_zeros(const KernelRequest& request) {
  std::vector<size_t> bytes;
  for (const TensorSpec& output : request.outputs)
    bytes.push_back(static_cast<size_t>(output.shape.elements()) * dtype_size(output.dtype));
  return BoundKernel::of([bytes](const Arguments& arguments) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      check_cuda(cudaMemsetAsync(arguments.outputs[i], 0, bytes[i], cuda_stream(arguments)),
                 "cudaMemsetAsync");
    }
  });
}

}  // namespace leat::cuda
