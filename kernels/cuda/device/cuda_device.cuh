// The parts of a device that CUDA kernels need: the stream to enqueue on, and errors.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "core/device.h"
#include "core/error.h"
#include "core/kernel.h"

namespace leat {

class CudaStream : public Stream {
 public:
  // Takes over the handle.
  CudaStream(int ordinal, cudaStream_t handle) : ordinal_(ordinal), handle_(handle) {}
  ~CudaStream() override {
    (void)cudaSetDevice(ordinal_);
    (void)cudaStreamDestroy(handle_);
  }
  // Where this thread enqueues now: the handle, or while it records, the stream of the recording.
  void* native() const override;
  int ordinal() const { return ordinal_; }
  cudaStream_t handle() const { return handle_; }

 private:
  int ordinal_;  // of the device, for cudaSetDevice
  cudaStream_t handle_;
};

// The stream that a bound function enqueues on. Makes the stream's device current in this thread,
// as launches require.
cudaStream_t cuda_stream(const Stream& stream);
inline cudaStream_t cuda_stream(const Arguments& arguments) {
  return cuda_stream(*arguments.stream);
}

// The number of a device made by this plug-in, or of one that passes on its stream.
int cuda_ordinal(Device& device);

namespace cuda {

// "out of memory (cudaErrorMemoryAllocation)"
std::string error_text(cudaError_t error);
// After one of these every call fails, until the process ends (CUDA Runtime API, cudaError_t).
bool ends_use(cudaError_t error);
// What to say of a failed call. If an earlier one ended the use of the GPU, that is the cause.
std::string explain(int ordinal, const std::string& failure, cudaError_t error);

// INTERNAL (RESOURCE_EXHAUSTED if memory is short) with CUDA's text and the operation.
void check_cuda(cudaError_t error, const char* what);

}  // namespace cuda
}  // namespace leat
