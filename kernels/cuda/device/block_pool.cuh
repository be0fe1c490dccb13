// Memory of a GPU, kept for reuse: cudaMalloc and cudaMallocHost wait for the device.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "core/memory/memory_owner.h"

namespace leat::cuda {

// Blocks of one kind of memory. Thread-safe.
class BlockPool {
 public:
  using Allocate = cudaError_t (*)(void** block, size_t bytes);
  using Free = cudaError_t (*)(void* block);
  // `kind` as errors name it: "device". `users`: the stream of the work that uses the blocks.
  BlockPool(int ordinal, const char* kind, Allocate allocate, Free free,
            cudaStream_t users = nullptr);
  ~BlockPool();
  // Call it before the stream is destroyed. Blocks may still come back.
  void end_of_stream();

  // For the thread's MemoryOwner. If there is too little, all pools of this process give up what
  // they keep of the GPU's memory of this kind; RESOURCE_EXHAUSTED says who has how much.
  void* take(size_t bytes);
  void give_back(void* block);
  // Of a block that was handed out for copied values: when the work that used it before has ended.
  // Null if that is not known, or the block may have been used since (a second call): then all work
  // on the stream may use it.
  cudaEvent_t end_of_use(const void* block);
  // Whether an address lies in one of its blocks.
  bool has(const void* address);

 private:
  struct Block {
    size_t bytes;
    MemoryUse use = MemoryUse::other;
    std::string name = {};  // of the variable
    cudaEvent_t end_of_use = nullptr;
    bool is_recorded = false;  // the event, when the block was given back
    bool is_untouched = false;
  };

  class Usage;
  class All;

  void* find_unused(size_t bytes);
  void* hand_out(void* block, size_t bytes);  // to the thread's MemoryOwner
  void release_unused();
  void add_to(Usage& usage);

  const int ordinal_;
  const char* const kind_;
  const Allocate allocate_;
  const Free free_;
  cudaStream_t users_;
  std::mutex mutex_;
  // The lowest of the smallest that fit is taken: steps that want the same get the same, so that
  // what was recorded for its addresses serves them all.
  std::set<std::pair<size_t, void*>> unused_;
  std::map<const void*, Block> blocks_;  // all
};

}  // namespace leat::cuda
