#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "kernels/cuda/device/cuda_device.cuh"

namespace leat {

std::string cuda::error_text(cudaError_t error) {
  return concat(cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
}

bool cuda::ends_use(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
      return true;
    default:
      return false;
  }
}

std::string cuda::explain(int ordinal, const std::string& failure, cudaError_t error) {
  if (!ends_use(error)) return failure;
  static std::mutex mutex;
  static std::map<int, std::pair<cudaError_t, std::string>> first;  // by ordinal
  const std::lock_guard lock(mutex);
  auto& [known, cause] = first[ordinal];
  const bool is_first = known != error;  // the error stays the same
  if (is_first) std::tie(known, cause) = std::pair(error, failure);
  return concat(is_first ? "" : concat("GPU:", ordinal, " is lost since: "), cause,
                "; CUDA cannot use GPU:", ordinal, " again in this process: restart the task");
}

void cuda::check_cuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // else the thread's next launch would report it again
  const Code code = error == cudaErrorMemoryAllocation ? Code::resource_exhausted : Code::internal;
  int ordinal = 0;
  (void)cudaGetDevice(&ordinal);
  fail(code, explain(ordinal, concat("CUDA: ", what, " failed: ", error_text(error)), error));
}

}  // namespace leat
