// What tests ask of a library that runs CUDA on the host, besides CUDA's own interface. The library
// exports these; tests look them up by name (tests/cuda/host_gpu.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_on_host {
void limit_memory(size_t bytes);
void delay_copies_from_host(int milliseconds);
void call_before_copies_to_host(void (*function)());
}  // namespace cuda_on_host

// Calls so far that were not captured.
struct CudaCalls {
  int64_t enqueued;     // launches of kernels and graphs, copies, calls of libraries
  int64_t graphs;       // launches of these
  int64_t recorded;     // graphs that were made
  int64_t allocations;  // of memory on the device or pinned
  int64_t waits;        // for a stream or the device
  int64_t from_host, to_host, between_devices;  // copies
  int64_t from_host_beside_work;                // copies that ran while another stream had work
  int64_t collectives;                          // that all members of a group have computed
};

extern "C" {
// The order of blocks and threads in the launches from now on; 0: as they are numbered.
void leat_cuda_on_host_set_order(uint64_t seed);
// Memory of the device of exactly this size, of which AddressSanitizer knows the end; blocks of
// libleat's own allocator are larger than asked for. The second frees it.
void* leat_cuda_on_host_allocate(size_t bytes);
void leat_cuda_on_host_free(void* block);
// Copies from the host take so long more from now on.
void leat_cuda_on_host_delay_copies_from_host(int milliseconds);
// Copies to the host call this first from now on; null: nothing.
void leat_cuda_on_host_call_before_copies_to_host(void (*function)());
// How much memory the device has.
void leat_cuda_on_host_limit_memory(size_t bytes);
void leat_cuda_on_host_set_devices(int count);
void leat_cuda_on_host_count(CudaCalls* calls);
// A kernel's fault, as if one had run: every call fails from now on.
void leat_cuda_on_host_fault();
// Ends the state after a fault in which every call fails.
void leat_cuda_on_host_recover();
// Enqueues a call of the host: on a stream that captures, it is recorded like other work.
void leat_cuda_on_host_enqueue_call(void* stream, void (*function)(void*), void* data);
// From now on the library has no attention, or has it again.
void leat_cuda_on_host_refuse_attention(bool refuse);
// How often it was called for attention so far.
int64_t leat_cuda_on_host_count_attention();
}
