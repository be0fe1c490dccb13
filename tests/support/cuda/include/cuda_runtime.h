// The part of CUDA's runtime that the plug-in uses, on the host: a C++ compiler that finds this
// file before the toolkit's compiles kernels as host code. Names and meanings are CUDA's; README.md
// in the folder above says how it runs, and what it cannot show.
#pragma once

#include <stddef.h>

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "tests/support/cuda/include/device_code.h"

// ---- Errors

enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoDevice = 100,
  cudaErrorECCUncorrectable = 214,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchTimeout = 702,
  cudaErrorAssert = 710,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorInvalidPc = 718,
  cudaErrorLaunchFailure = 719,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorNotPermitted = 800,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorCapturedEvent = 907,
  cudaErrorStreamCaptureWrongThread = 908,
};
using cudaError_t = cudaError;

cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);

// ---- Devices: one, or as many as a test asks for (control.h)

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int warpSize;
  int maxThreadsPerBlock;
  int multiProcessorCount;
  int major, minor;
};
struct cudaFuncAttributes {
  int maxThreadsPerBlock;
};

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int ordinal);
cudaError_t cudaGetDevice(int* ordinal);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal);
cudaError_t cudaDeviceCanAccessPeer(int* can, int ordinal, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
// Ends a sticky error; memory and streams stay.
cudaError_t cudaDeviceReset();
template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*)(Parameters...)) {
  *attributes = {1024};
  return cudaSuccess;
}

// ---- Memory

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};

cudaError_t cudaMalloc(void** block, size_t bytes);
cudaError_t cudaFree(void* block);
cudaError_t cudaMallocHost(void** block, size_t bytes);
cudaError_t cudaFreeHost(void* block);
template <class T>
cudaError_t cudaMalloc(T** block, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(block), bytes);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpyPeerAsync(void* to, int to_ordinal, const void* from, int from_ordinal,
                                size_t bytes, cudaStream_t stream = nullptr);
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream = nullptr);

// ---- Streams and events

inline constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDefault = 0, cudaEventBlockingSync = 1,
                          cudaEventDisableTiming = 2;

cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* data);

cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);

// ---- Capture

enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2,
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2,
};

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
// `nodes` is null: only how many there are.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void** nodes, size_t* count);

// ---- Launches

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  void* attrs = nullptr;
  unsigned numAttrs = 0;
};

namespace cuda_on_host {

// What one launch runs. `arguments` holds the kernel's, one after the other.
struct Launch {
  dim3 grid;
  dim3 block;
  const void* kernel;
  void (*call)(const void* kernel, const char* arguments);  // the body of one thread
  std::shared_ptr<const char[]> arguments;
};

// Copies `count` arguments.
cudaError_t enqueue_launch(const cudaLaunchConfig_t& config, const void* kernel,
                           void (*call)(const void*, const char*), const void* const* arguments,
                           const size_t* sizes, const size_t* starts, const bool* are_pointers,
                           int count);

// For what stands in for libraries: work on the host, in stream order.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

// Where each argument starts, on multiples of 16; then where they end.
template <class... Parameters>
struct Layout {
  static constexpr int count = sizeof...(Parameters);
  size_t sizes[count + 1] = {sizeof(Parameters)...};
  size_t starts[count + 1] = {};
  bool are_pointers[count + 1] = {std::is_pointer_v<Parameters>...};
  constexpr Layout() {
    for (int i = 0; i < count; ++i) starts[i + 1] = starts[i] + (sizes[i] + 15) / 16 * 16;
  }
};
template <class... Parameters>
inline constexpr Layout<Parameters...> layout;

template <class... Parameters, size_t... Index>
void call(void (*kernel)(Parameters...), const char* arguments, std::index_sequence<Index...>) {
  kernel(*reinterpret_cast<const Parameters*>(arguments + layout<Parameters...>.starts[Index])...);
}

}  // namespace cuda_on_host

template <class... Parameters, class... Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Given&&... given) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "a launch copies bytes");
  const auto& layout = cuda_on_host::layout<Parameters...>;
  const auto enqueue = [&](const Parameters&... coerced) {
    const void* arguments[] = {&coerced..., nullptr};
    return cuda_on_host::enqueue_launch(
        *config, reinterpret_cast<const void*>(kernel),
        [](const void* kernel, const char* arguments) {
          cuda_on_host::call(reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(kernel)),
                             arguments, std::index_sequence_for<Parameters...>{});
        },
        arguments, layout.sizes, layout.starts, layout.are_pointers, sizeof...(Parameters));
  };
  return enqueue(std::forward<Given>(given)...);
}
