// Errors as CUDA returns them, and the devices.
#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "tests/support/cuda/stream.h"

namespace cuda_on_host {
namespace {

struct Known {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr Known known[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not initiated in this stream"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
};

const Known& lookup(cudaError_t error) {
  for (const Known& each : known) {
    if (each.error == error) return each;
  }
  static constexpr Known unknown = {cudaSuccess, "unrecognized error code",
                                    "unrecognized error code"};
  return unknown;
}

struct Sticky {
  std::mutex mutex;
  cudaError_t error = cudaSuccess;
  std::string why;
};
Sticky& sticky() {
  static auto* const out = new Sticky;
  return *out;
}

std::atomic<int> devices{1};
thread_local int present_ordinal = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local cudaError_t explained_error = cudaSuccess;
thread_local std::string explanation;  // of explained_error
thread_local std::string error_text;   // what cudaGetErrorString() returned

}  // namespace

cudaError_t report(cudaError_t error, std::string why) {
  if (error == cudaSuccess) return error;
  last_error = error;
  explained_error = error;
  explanation = std::move(why);
  return error;
}

void fault(cudaError_t error, std::string why) {
  const std::lock_guard lock(sticky().mutex);
  if (sticky().error != cudaSuccess) return;
  sticky().error = error;
  sticky().why = std::move(why);
}

void set_devices(int count) { devices = count; }
int present_device() { return present_ordinal; }

cudaError_t sticky_error() {
  const std::lock_guard lock(sticky().mutex);
  return sticky().error;
}

}  // namespace cuda_on_host

using namespace cuda_on_host;

cudaError_t cudaGetLastError() {
  const cudaError_t error = sticky_error() != cudaSuccess ? sticky_error() : last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() {
  return sticky_error() != cudaSuccess ? sticky_error() : last_error;
}
const char* cudaGetErrorName(cudaError_t error) { return lookup(error).name; }
const char* cudaGetErrorString(cudaError_t error) {
  error_text = lookup(error).text;
  const std::lock_guard lock(sticky().mutex);
  if (error != cudaSuccess && error == sticky().error) {
    error_text += ": " + sticky().why;
  } else if (error == explained_error && !explanation.empty()) {
    error_text += ": " + explanation;
  }
  return error_text.c_str();
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int ordinal) {
  if (ordinal < 0 || ordinal >= devices) return report(cudaErrorInvalidDevice);
  present_ordinal = ordinal;
  return report(sticky_error());
}
cudaError_t cudaGetDevice(int* ordinal) {
  *ordinal = present_ordinal;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  if (ordinal < 0 || ordinal >= devices) return report(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "CUDA on the host");
  size_t free = 0;
  (void)cudaMemGetInfo(&free, &properties->totalGlobalMem);
  properties->sharedMemPerBlock = 48 * 1024;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->multiProcessorCount = 1;
  properties->major = 9;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  if (std::max(ordinal, peer) >= devices) return report(cudaErrorInvalidDevice);
  *can = ordinal != peer ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  int can = 0;
  if (const cudaError_t error = cudaDeviceCanAccessPeer(&can, present_ordinal, peer);
      error != cudaSuccess || can == 0) {
    return report(cudaErrorInvalidDevice);
  }
  static std::mutex mutex;
  static auto* const enabled = new std::set<std::pair<int, int>>;
  const std::lock_guard lock(mutex);
  return enabled->insert({present_ordinal, peer}).second
             ? cudaSuccess
             : report(cudaErrorPeerAccessAlreadyEnabled);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaDeviceReset() {
  wait_for_all_streams();
  const std::lock_guard lock(sticky().mutex);
  sticky().error = cudaSuccess;
  last_error = cudaSuccess;
  return cudaSuccess;
}
