#include "core/block_memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <ranges>
#include <thread>

#include "core/lasting_memory.h"
#include "core/slot_memory.h"

namespace leat {
namespace {

constexpr size_t page = 4096;
constexpr size_t huge_page = size_t{2} << 20;
constexpr uint64_t takes_per_trim = 1'024;

void* map(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

// Starts on a huge page, and asks for them.
void* map_huge(size_t bytes) {
  auto* data = static_cast<char*>(map(bytes + huge_page));
  if (data == nullptr) return nullptr;
  const size_t before = -reinterpret_cast<uintptr_t>(data) % huge_page;
  if (before > 0) munmap(data, before);
  munmap(data + before + bytes, huge_page - before);
  madvise(data + before, bytes, MADV_HUGEPAGE);
  return data + before;
}

}  // namespace

BlockMemory& BlockMemory::process() {
  static auto* const memory =
      new BlockMemory(size_t{8} << 20);  // never destroyed: buffers may outlive all else
  return *memory;
}

BlockMemory::~BlockMemory() {
  for (const auto& [size, blocks] : free_) {
    for (const Free& block : blocks) munmap(block.data, size);
  }
}

// At most an eighth too much, and few sizes.
size_t BlockMemory::rounded(size_t bytes) {
  const size_t unit = std::max(page, std::bit_floor(bytes) / 8);
  return (bytes + unit - 1) / unit * unit;
}

void* BlockMemory::take(size_t bytes) {
  const size_t size = rounded(bytes);
  {
    std::lock_guard lock(mutex_);
    if (++taken_ % takes_per_trim == 0) trim_locked();
    if (const auto found = free_.find(size); found != free_.end() && !found->second.empty()) {
      void* const data = found->second.back().data;
      found->second.pop_back();
      --counts_.kept_blocks;
      counts_.kept_bytes -= size;
      return data;
    }
  }
  void* const data = size >= 2 * huge_page ? map_huge(size) : map(size);
  if (data == nullptr) return nullptr;
  std::lock_guard lock(mutex_);
  ++counts_.blocks;
  counts_.bytes += size;
  return data;
}

void BlockMemory::give(void* data, size_t bytes) {
  const size_t size = rounded(bytes);
  {
    std::lock_guard lock(mutex_);
    if (counts_.kept_bytes + size <= keep_at_most) {
      free_[size].push_back({data, trims_});
      ++counts_.kept_blocks;
      counts_.kept_bytes += size;
      return;
    }
    --counts_.blocks;
    counts_.bytes -= size;
  }
  munmap(data, size);
}

void BlockMemory::trim() {
  std::lock_guard lock(mutex_);
  trim_locked();
}

void BlockMemory::trim_heap() {
  SlotMemory::process().trim();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void BlockMemory::prepare_heaps() {
  SlotMemory::process().set_reserve((size_t{4} << 20) / SlotMemory::most);
  LastingMemory::process().set_reserve((size_t{2} << 20) / LastingMemory::page_bytes);
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, std::max(2, static_cast<int>(std::thread::hardware_concurrency())));
#endif
}

void BlockMemory::trim_locked() {
  for (auto& [size, blocks] : std::views::reverse(free_)) {
    size_t old = 0;
    while (old < blocks.size() && blocks[old].since < trims_ && counts_.bytes > reserve_) {
      munmap(blocks[old++].data, size);
      counts_.bytes -= size;
    }
    blocks.erase(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(old));
    counts_.blocks -= old;
    counts_.kept_blocks -= old;
    counts_.kept_bytes -= old * size;
  }
  ++trims_;
}

BlockMemory::Counts BlockMemory::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace leat
