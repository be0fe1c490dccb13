// The GPU plug-in, run on the host (tests/support/cuda/README.md), as a device of this process.
#pragma once

#include <cstdint>
#include <memory>

#include "core/device.h"
#include "tests/support/cuda/control.h"
#include "tests/support/run_op.h"

namespace leat {

// Made on first use, for the life of the process.
Device& host_gpu();

// Memory of that device of exactly this size, filled with NaNs: AddressSanitizer finds a kernel
// that leaves it, and what no kernel wrote shows.
std::shared_ptr<Buffer> allocate_exactly(Device& device, size_t bytes);
inline RunChoices exactly(bool in_place = false) { return {in_place, allocate_exactly}; }

// Blocks and threads run in another order for each seed; 0: as they are numbered.
void set_order_of_threads(uint64_t seed);
// How much memory the device has.
void limit_gpu_memory(size_t bytes);
CudaCalls count_gpu_calls();
void delay_copies_from_host(int milliseconds);
// Copies to the host call this first from now on; null: nothing.
void call_before_copies_to_host(void (*function)());
// Enqueues a call, which may wait, as a kernel does its work.
void enqueue_call(const Stream& stream, void (*function)(void*), void* data = nullptr);
// How many GPUs sessions find from now on.
void set_gpus(int count);
// As a kernel's fault does it.
void break_gpu();
// After a kernel's fault every call fails until this one.
void recover_gpu();
// From now on the library that stands in for cuDNN has no attention, or has it again.
void refuse_attention(bool refuse = true);
// How often it was called for attention so far.
int64_t count_attention();

}  // namespace leat
