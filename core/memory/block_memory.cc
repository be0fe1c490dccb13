#include "core/memory/block_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/memory/promised_memory.h"
#include "core/memory/shared_region.h"

namespace leat {
namespace {

constexpr size_t page = 4096;
constexpr size_t huge_page = size_t{2} << 20;
constexpr uint64_t takes_per_trim = 1'024;

void* map_pages(size_t bytes, int flags = 0) {
  void* data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

// Starts at a huge page, and asks for huge pages.
void* map_huge(size_t bytes) {
  auto* data = static_cast<char*>(map_pages(bytes + huge_page));
  if (data == nullptr) return nullptr;
  const size_t before = -reinterpret_cast<uintptr_t>(data) % huge_page;
  if (before > 0) munmap(data, before);
  munmap(data + before + bytes, huge_page - before);
  madvise(data + before, bytes, MADV_HUGEPAGE);
  return data + before;
}

bool is_shared(const void* data) {
  const SharedRegion* const region = SharedRegion::process();
  return region != nullptr && region->place_of(data, 1).has_value();
}

void unmap(void* data, size_t bytes) {
  PromisedMemory::process().remove(data);
  if (is_shared(data)) {
    SharedRegion::process()->give(data, bytes);
  } else {
    munmap(data, bytes);
  }
}

}  // namespace

BlockMemory& BlockMemory::process() {
  static auto* const memory = [] {
    auto* made = new BlockMemory(size_t{8} << 20);
    made->is_of_process_ = true;
    return made;
  }();  // never destroyed: buffers may outlive all else
  return *memory;
}

BlockMemory::~BlockMemory() {
  for (const auto& [size, all] : sizes_) {
    for (const Free& block : all.free) unmap(block.data, size);
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
    if (const auto found = sizes_.find(size);
        found != sizes_.end() && !found->second.free.empty()) {
      void* const data = found->second.free.back().data;
      found->second.free.pop_back();
      --counts_.kept_blocks;
      counts_.kept_bytes -= size;
      return data;
    }
  }
  void* const data = map(size, false);
  if (data == nullptr) return nullptr;
  PromisedMemory::process().add(data, size);
  std::lock_guard lock(mutex_);
  ++sizes_[size].blocks;
  ++counts_.blocks;
  counts_.bytes += size;
  add_spares(size);
  return data;
}

// `is_for_later`: its pages come at once.
void* BlockMemory::map(size_t size, bool is_for_later) const {
  const bool is_huge = size >= 2 * huge_page;
  if (SharedRegion* const region = SharedRegion::process(); is_of_process_ && region != nullptr) {
    if (void* const data = region->take(size, is_huge ? huge_page : page); data != nullptr) {
      if (is_for_later) madvise(data, size, MADV_POPULATE_WRITE);
      return data;
    }
  }
  if (is_huge) return map_huge(size);
  return map_pages(size, is_for_later ? MAP_POPULATE : 0);
}

// Half as many as there are of the size. With the lock held.
void BlockMemory::add_spares(size_t size) {
  Size& all = sizes_[size];
  for (size_t spares = all.blocks / 2; spares > 0 && counts_.bytes + size <= reserve_; --spares) {
    void* const data = map(size, true);
    if (data == nullptr) return;
    all.free.push_back({data, trims_});
    ++all.blocks;
    ++counts_.blocks;
    counts_.bytes += size;
    ++counts_.kept_blocks;
    counts_.kept_bytes += size;
  }
}

void BlockMemory::give(void* data, size_t bytes) {
  const size_t size = rounded(bytes);
  {
    std::lock_guard lock(mutex_);
    Size& all = sizes_[size];
    // What is older than the region goes, so that the region comes into use.
    const bool is_old = is_of_process_ && SharedRegion::process() != nullptr && !is_shared(data);
    if (!is_old && counts_.kept_bytes + size <= keep_at_most) {
      all.free.push_back({data, trims_});
      ++counts_.kept_blocks;
      counts_.kept_bytes += size;
      return;
    }
    --all.blocks;
    --counts_.blocks;
    counts_.bytes -= size;
  }
  unmap(data, size);
}

void BlockMemory::trim() {
  std::lock_guard lock(mutex_);
  trim_locked();
}

void BlockMemory::trim_locked() {
  for (auto at = sizes_.rbegin(); at != sizes_.rend(); ++at) {
    auto& [size, all] = *at;
    size_t old = 0;
    while (old < all.free.size() && all.free[old].since < trims_ && counts_.bytes > reserve_) {
      unmap(all.free[old++].data, size);
      counts_.bytes -= size;
    }
    all.free.erase(all.free.begin(), all.free.begin() + static_cast<std::ptrdiff_t>(old));
    all.blocks -= old;
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
