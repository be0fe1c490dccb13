// The parts of a device that CUDA kernels need: the stream to enqueue on, and errors.
#pragma once

#include <cuda_runtime.h>

#include "core/device.h"
#include "core/error.h"
#include "core/kernel.h"

namespace leat {

class CudaStream : public Stream {
 public:
  CudaStream(int ordinal, cudaStream_t handle) : ordinal_(ordinal), handle_(handle) {}
  void* native() const override { return handle_; }
  int ordinal() const { return ordinal_; }
  cudaStream_t handle() const { return handle_; }

 private:
  int ordinal_;  // of the device, for cudaSetDevice
  cudaStream_t handle_;
};

// The stream that a bound function enqueues on. Makes the stream's device current in this thread,
// as launches require.
cudaStream_t cuda_stream(const Arguments& arguments);

// The number of a device made by this plug-in.
int cuda_ordinal(Device& device);

namespace cuda {

// INTERNAL (RESOURCE_EXHAUSTED if memory is short) with CUDA's text and the operation.
void check_cuda(cudaError_t error, const char* what);

}  // namespace cuda
}  // namespace leat
