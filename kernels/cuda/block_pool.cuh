// Memory of a GPU, kept for reuse: cudaMalloc and cudaMallocHost wait for the device.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "core/memory_owner.h"

namespace leat::cuda {

// Blocks of one kind of memory. Thread-safe.
class BlockPool {
 public:
  using Allocate = cudaError_t (*)(void** block, size_t bytes);
  using Free = cudaError_t (*)(void* block);
  // `kind` as errors name it: "device".
  BlockPool(int ordinal, const char* kind, Allocate allocate, Free free);
  ~BlockPool();

  // For the thread's MemoryOwner. If there is too little, all pools of this process give up what
  // they keep of the GPU's memory of this kind; RESOURCE_EXHAUSTED says who has how much.
  void* take(size_t bytes);
  void give_back(void* block);

 private:
  struct Block {
    size_t bytes;
    MemoryUse use = MemoryUse::other;
    std::string name = {};  // of the variable
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
  std::mutex mutex_;
  std::multimap<size_t, void*> unused_;
  std::map<void*, Block> blocks_;  // all
};

}  // namespace leat::cuda
