#include "tests/support/cuda/control.h"

#include "tests/support/cuda/block.h"
#include "tests/support/cuda/include/cuda_runtime.h"
#include "tests/support/cuda/stream.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void leat_cuda_on_host_set_order(uint64_t seed) { cuda_on_host::set_order(seed); }
EXPORTED void* leat_cuda_on_host_allocate(size_t bytes) {
  void* block = nullptr;
  (void)cudaMalloc(&block, bytes);
  return block;
}
EXPORTED void leat_cuda_on_host_free(void* block) { (void)cudaFree(block); }
EXPORTED void leat_cuda_on_host_delay_copies_from_host(int milliseconds) {
  cuda_on_host::delay_copies_from_host(milliseconds);
}
EXPORTED void leat_cuda_on_host_call_before_copies_to_host(void (*function)()) {
  cuda_on_host::call_before_copies_to_host(function);
}
EXPORTED void leat_cuda_on_host_limit_memory(size_t bytes) { cuda_on_host::limit_memory(bytes); }
EXPORTED void leat_cuda_on_host_count(CudaCalls* calls) {
  const cuda_on_host::Counts& counts = cuda_on_host::counts();
  *calls = {counts.enqueued,    counts.graphs,          counts.recorded,
            counts.allocations, counts.waits,           counts.from_host,
            counts.to_host,     counts.between_devices, counts.from_host_beside_work,
            counts.collectives};
}
EXPORTED void leat_cuda_on_host_enqueue_call(void* stream, void (*function)(void*), void* data) {
  (void)cuda_on_host::enqueue(static_cast<cudaStream_t>(stream), [=] { function(data); });
}
EXPORTED void leat_cuda_on_host_set_devices(int count) { cuda_on_host::set_devices(count); }
EXPORTED void leat_cuda_on_host_fault() {
  cuda_on_host::fault(cudaErrorIllegalAddress, "of a test");
}
EXPORTED void leat_cuda_on_host_recover() { (void)cudaDeviceReset(); }
