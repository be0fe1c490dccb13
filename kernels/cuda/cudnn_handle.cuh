// What all calls of cuDNN share: its errors, and a handle per GPU. Only for files that begin with
// `// leat: cuda-library`.
#pragma once

#include <cudnn.h>

#include <map>
#include <mutex>

#include "kernels/cuda/device/cuda_device.cuh"

namespace leat::cuda {

inline void check_cudnn(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const bool has_no_memory = status == CUDNN_STATUS_ALLOC_FAILED;
  fail(has_no_memory ? Code::resource_exhausted : Code::internal, "cuDNN: ", what,
       " failed: ", cudnnGetErrorString(status));
}

// One per GPU, for the life of the process. A handle serves one call at a time.
struct CudnnHandle {
  std::mutex mutex;
  cudnnHandle_t cudnn = nullptr;
};

inline CudnnHandle& cudnn_handle_of(Device& device) {
  static std::mutex mutex;
  static std::map<int, CudnnHandle> handles;
  const int ordinal = cuda_ordinal(device);
  check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
  const std::lock_guard lock(mutex);
  CudnnHandle& handle = handles[ordinal];
  if (handle.cudnn == nullptr) check_cudnn(cudnnCreate(&handle.cudnn), "cudnnCreate");
  return handle;
}

}  // namespace leat::cuda
