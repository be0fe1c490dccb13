// Memory of the device is host memory that the runtime knows. It is filled with NaNs, so that what
// nobody wrote shows; under AddressSanitizer a kernel that leaves its blocks is found.
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/support/cuda/control.h"
#include "tests/support/cuda/stream.h"

namespace cuda_on_host {
namespace {

struct Block {
  size_t bytes;
  Memory kind;
  int device;
};
struct Blocks {
  std::mutex mutex;
  std::map<const char*, Block> all;
  std::map<int, size_t> on_device;
  size_t limit = size_t{4} << 30;
};
Blocks& blocks() {
  static auto* const out = new Blocks;
  return *out;
}

cudaError_t allocate(void** out, size_t bytes, Memory kind, const char* call) {
  *out = nullptr;
  if (is_stream_thread()) return report(cudaErrorNotPermitted, "called by work of a stream");
  if (const cudaError_t error = forbid_in_capture(call); error != cudaSuccess) return error;
  if (const cudaError_t error = sticky_error(); error != cudaSuccess) return report(error);
  if (bytes == 0) return cudaSuccess;
  ++counts().allocations;
  const std::lock_guard lock(blocks().mutex);
  if (kind == Memory::device && blocks().on_device[present_device()] + bytes > blocks().limit)
    return report(cudaErrorMemoryAllocation);
  if (posix_memalign(out, 256, bytes) != 0) return report(cudaErrorMemoryAllocation);
  std::memset(*out, 0xff, bytes);
  blocks().all[static_cast<char*>(*out)] = {bytes, kind, present_device()};
  if (kind == Memory::device) blocks().on_device[present_device()] += bytes;
  return cudaSuccess;
}

cudaError_t release(void* block, Memory kind, const char* call) {
  if (block == nullptr) return cudaSuccess;
  if (is_stream_thread()) return report(cudaErrorNotPermitted, "called by work of a stream");
  if (const cudaError_t error = forbid_in_capture(call); error != cudaSuccess) return error;
  wait_for_all_streams();
  {
    const std::lock_guard lock(blocks().mutex);
    const auto found = blocks().all.find(static_cast<char*>(block));
    if (found == blocks().all.end() || found->second.kind != kind)
      return report(cudaErrorInvalidValue, std::string(call) + " of what is none of its blocks");
    if (kind == Memory::device) blocks().on_device[found->second.device] -= found->second.bytes;
    blocks().all.erase(found);
  }
  std::free(block);
  return report(sticky_error());
}

const char* name(Memory kind) {
  return kind == Memory::device ? "device" : kind == Memory::pinned ? "pinned" : "pageable";
}

}  // namespace

Memory kind_of(const void* address, size_t bytes) {
  const char* first = static_cast<const char*>(address);
  const std::lock_guard lock(blocks().mutex);
  auto next = blocks().all.upper_bound(first);
  if (next == blocks().all.begin()) return Memory::pageable;
  const auto& [begin, block] = *--next;
  return first + bytes <= begin + block.bytes ? block.kind : Memory::pageable;
}

int device_of(const void* address) {
  const char* const first = static_cast<const char*>(address);
  const std::lock_guard lock(blocks().mutex);
  auto next = blocks().all.upper_bound(first);
  if (next == blocks().all.begin()) return -1;
  const auto& [begin, block] = *--next;
  return first < begin + block.bytes && block.kind == Memory::device ? block.device : -1;
}

std::atomic<int> delay{0};  // ms: shows work that does not wait for a copy
void delay_copies_from_host(int milliseconds) { delay = milliseconds; }
std::atomic<void (*)()> before_copies_to_host{nullptr};
void call_before_copies_to_host(void (*function)()) { before_copies_to_host = function; }

void limit_memory(size_t bytes) {
  const std::lock_guard lock(blocks().mutex);
  blocks().limit = bytes;
}

}  // namespace cuda_on_host

using namespace cuda_on_host;

cudaError_t cudaMalloc(void** block, size_t bytes) {
  return allocate(block, bytes, Memory::device, "cudaMalloc");
}
cudaError_t cudaFree(void* block) { return release(block, Memory::device, "cudaFree"); }
cudaError_t cudaMallocHost(void** block, size_t bytes) {
  return allocate(block, bytes, Memory::pinned, "cudaMallocHost");
}
cudaError_t cudaFreeHost(void* block) { return release(block, Memory::pinned, "cudaFreeHost"); }

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const std::lock_guard lock(blocks().mutex);
  *total = blocks().limit;
  const size_t used = blocks().on_device[present_device()];
  *free = used < *total ? *total - used : 0;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  const Memory source = kind_of(from, bytes), target = kind_of(to, bytes);
  const bool reads_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool writes_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  if (kind != cudaMemcpyDefault &&
      ((source == Memory::device) != reads_device || (target == Memory::device) != writes_device)) {
    return report(cudaErrorInvalidValue, "a copy of " + std::to_string(bytes) + " bytes of kind " +
                                             std::to_string(kind) + " from " + name(source) +
                                             " to " + name(target) + " memory");
  }
  const int device = stream_or_default(stream)->device;
  for (const void* address : {from, static_cast<const void*>(to)}) {
    if (const int owner = device_of(address); owner >= 0 && owner != device)
      return report(cudaErrorInvalidValue, "a copy by a stream of device " +
                                               std::to_string(device) + " of memory of device " +
                                               std::to_string(owner));
  }
  if (source != Memory::device && target == Memory::device) ++counts().from_host;
  if (source == Memory::device && target != Memory::device) ++counts().to_host;
  if (source == Memory::pageable) {  // read before the call returns
    const auto staged = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
    return enqueue(stream, [=] { std::memcpy(to, staged->data(), bytes); });
  }
  const bool is_upload = source != Memory::device && target == Memory::device;
  const bool is_download = source == Memory::device && target != Memory::device;
  const cudaError_t error = enqueue(stream, [=] {
    if (is_upload && has_work_beside(stream_or_default(stream))) ++counts().from_host_beside_work;
    if (void (*const before)() = before_copies_to_host; is_download && before != nullptr) before();
    if (is_upload && delay > 0) std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    std::memmove(to, from, bytes);
  });
  if (error != cudaSuccess || target != Memory::pageable) return error;
  return cudaStreamSynchronize(stream);  // written before the call returns
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_ordinal, const void* from, int from_ordinal,
                                size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (kind_of(to, bytes) != Memory::device || device_of(to) != to_ordinal ||
      kind_of(from, bytes) != Memory::device || device_of(from) != from_ordinal)
    return report(cudaErrorInvalidValue, "cudaMemcpyPeerAsync of what is not on those devices");
  ++counts().between_devices;
  return enqueue(stream, [=] { std::memcpy(to, from, bytes); });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = forbid_in_capture("cudaMemcpy"); error != cudaSuccess) return error;
  if (const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
      error != cudaSuccess) {
    return error;
  }
  return cudaStreamSynchronize(nullptr);
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (kind_of(to, bytes) == Memory::pageable)
    return report(cudaErrorInvalidValue, "cudaMemsetAsync of what is no memory of the device");
  return enqueue(stream, [=] { std::memset(to, value, bytes); });
}
