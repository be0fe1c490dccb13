#include "core/memory/malloc_heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "core/memory/host_memory.h"
#include "tests/support/sanitizers.h"

namespace leat {
namespace {

// Frees about `bytes` in small blocks, below one block that stays.
std::unique_ptr<char[]> free_in_heap(int64_t bytes) {
  constexpr int64_t block = 1'000;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int64_t i = 0; i < bytes / block; ++i) {
    blocks.push_back(std::make_unique_for_overwrite<char[]>(block));
    std::memset(blocks.back().get(), 1, block);
  }
  return std::make_unique<char[]>(block);
}

TEST(MallocHeap, ReturnsLargeFreeMemoryAndKeepsASmallRest) {
#ifdef LEAT_UNDER_SANITIZER
  GTEST_SKIP() << "the heap is the sanitizer's";
#endif
  constexpr int64_t some = 1 << 20;
  const auto trim = [] {
    for (int looks = 0; looks < 3; ++looks) trim_heaps();
  };
  trim();
  const int64_t before = resident_host_memory();
  const auto above_much = free_in_heap(5 * kept_in_heaps);
  EXPECT_GT(resident_host_memory(), before + 4 * kept_in_heaps);
  trim();
  EXPECT_LT(resident_host_memory(), before + kept_in_heaps);
  const auto above_little = free_in_heap(kept_in_heaps / 2);
  const int64_t freed = resident_host_memory();
  trim();
  EXPECT_GT(resident_host_memory(), freed - some);
}

}  // namespace
}  // namespace leat
