#include "core/memory/lasting_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace leat {
namespace {

bool is_resident(void* data) {
  unsigned char out = 0;
  void* const page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(data) / 4096 * 4096);
  EXPECT_EQ(mincore(page, 1, &out), 0);
  return (out & 1) != 0;
}

TEST(LastingMemory, BlocksAreLargeEnoughAlignedAndDisjoint) {
  const auto memory = std::make_unique<LastingMemory>();
  uint32_t group = 0;
  std::vector<std::pair<char*, size_t>> blocks;
  for (size_t bytes = 0; bytes <= LastingMemory::most; ++bytes) {
    char* const block = static_cast<char*>(memory->take(bytes, group));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 16, 0u) << bytes;
    EXPECT_GE(memory->size(block), bytes);
    EXPECT_LE(memory->size(block), bytes + std::max<size_t>(16, bytes / 4)) << "a waste";
    std::memset(block, static_cast<int>(bytes % 251), memory->size(block));
    blocks.emplace_back(block, bytes);
  }
  for (const auto& [block, bytes] : blocks) {
    for (size_t i = 0; i < bytes; ++i)
      ASSERT_EQ(static_cast<unsigned char>(block[i]), bytes % 251) << "of the block of " << bytes;
  }
}

TEST(LastingMemory, RecognisesItsOwnBlocks) {
  const auto memory = std::make_unique<LastingMemory>();
  uint32_t group = 0;
  int here = 0;
  EXPECT_FALSE(memory->owns(&here)) << "before the first block";
  EXPECT_FALSE(memory->owns(nullptr));
  void* const block = memory->take(100, group);
  EXPECT_TRUE(memory->owns(block));
  EXPECT_FALSE(memory->owns(&here));
  EXPECT_FALSE(memory->owns(nullptr));
}

TEST(LastingMemory, ReusesFreeBlocks) {
  const auto memory = std::make_unique<LastingMemory>();
  uint32_t group = 0;
  std::vector<void*> blocks;
  std::set<void*> first, second;
  for (int i = 0; i < 10'000; ++i) blocks.push_back(memory->take(48, group));
  first.insert(blocks.begin(), blocks.end());
  EXPECT_EQ(first.size(), 10'000u);
  const size_t pages = memory->counts().pages;
  for (size_t i = 0; i < blocks.size(); i += 2) memory->give(blocks[i]);
  EXPECT_EQ(memory->counts().blocks, 5'000u);
  EXPECT_EQ(memory->counts().bytes, 5'000u * 48);
  for (size_t i = 0; i < blocks.size(); i += 2) blocks[i] = memory->take(33, group);
  second.insert(blocks.begin(), blocks.end());
  EXPECT_EQ(first, second);
  EXPECT_EQ(memory->counts().pages, pages);
}

TEST(LastingMemory, EmptyPagesServeAnyScopeAndReturnToTheSystem) {
  const auto memory = std::make_unique<LastingMemory>();
  uint32_t group = 0;
  std::vector<void*> blocks;
  for (int i = 0; i < 2'000; ++i) blocks.push_back(memory->take(64, group));
  for (void* const block : blocks) std::memset(block, 1, 64);
  const size_t pages = memory->counts().pages;
  ASSERT_GE(pages, 31u);
  void* const last = blocks.back();
  for (void* const block : blocks) memory->give(block);
  EXPECT_EQ(memory->counts().pages, 0u);
  EXPECT_EQ(memory->counts().free_pages, pages);
  EXPECT_TRUE(is_resident(last));
  memory->close(group);
  EXPECT_EQ(memory->counts().free_pages, 0u);
  EXPECT_FALSE(is_resident(last));
  uint32_t other = 0;
  for (size_t i = 0; i < pages; ++i) std::memset(memory->take(1'000, other), 2, 1'000);
  EXPECT_EQ(memory->counts().pages, (pages + 3) / 4);
}

TEST(LastingMemory, ScopesDoNotSharePages) {
  const auto memory = std::make_unique<LastingMemory>();
  uint32_t first = 0, second = 0, third = 0;
  const auto page_of = [](const void* data) { return reinterpret_cast<uintptr_t>(data) / 4096; };
  void* const a = memory->take(48, first);
  void* const b = memory->take(48, second);
  void* const c = memory->take(48, first);
  EXPECT_EQ(page_of(a), page_of(c));
  EXPECT_NE(page_of(a), page_of(b));
  memory->close(first);
  EXPECT_EQ(first, 0u);
  memory->give(a);  // is not used before c is free as well
  void* const d = memory->take(48, third);
  EXPECT_NE(page_of(d), page_of(c));
  EXPECT_NE(page_of(d), page_of(b));
  EXPECT_EQ(memory->counts().pages, 3u);
  memory->give(c);
  EXPECT_EQ(memory->counts().pages, 2u);
  EXPECT_EQ(memory->counts().free_pages, 0u) << "its scope is over: it goes back at once";
  void* const e = memory->take(64, third);
  EXPECT_EQ(page_of(e), page_of(c));
}

TEST(LastingMemory, LeavesScopesBeyondItsLimitToMalloc) {
  const auto memory = std::make_unique<LastingMemory>();
  std::vector<uint32_t> groups(100);
  size_t served = 0;
  for (uint32_t& group : groups) served += memory->take(48, group) != nullptr;
  EXPECT_EQ(served, 64u) << "malloc's own heap serves the others";
  memory->close(groups[10]);
  EXPECT_NE(memory->take(48, groups[99]), nullptr);
  EXPECT_EQ(memory->take(48, groups[98]), nullptr);
}

TEST(LastingMemory, ReturnsNullWhenExhausted) {
  const auto memory = std::make_unique<LastingMemory>();
  uint32_t group = 0;
  constexpr size_t all = LastingMemory::pages * (LastingMemory::page_bytes / LastingMemory::most);
  void* last = nullptr;
  for (size_t i = 0; i < all; ++i) {
    void* const block = memory->take(LastingMemory::most, group);
    ASSERT_NE(block, nullptr) << i;
    last = block;
  }
  EXPECT_EQ(memory->take(LastingMemory::most, group), nullptr);
  EXPECT_EQ(memory->take(16, group), nullptr);
  memory->give(last);
  EXPECT_EQ(memory->take(LastingMemory::most, group), last);
}

TEST(LastingMemory, ScopesNestAndBelongToOneThread) {
  EXPECT_FALSE(LastingMemory::Scope::is_open());
  {
    const LastingMemory::Scope outer;
    { const LastingMemory::Scope inner; }
    EXPECT_TRUE(LastingMemory::Scope::is_open());
    std::thread([] { EXPECT_FALSE(LastingMemory::Scope::is_open()); }).join();
  }
  EXPECT_FALSE(LastingMemory::Scope::is_open());
}

// One thread returns what another takes.
TEST(LastingMemory, ThreadsReturnEachOthersBlocks) {
  const auto memory = std::make_unique<LastingMemory>();
  std::mutex mutex;
  std::vector<std::pair<unsigned char*, size_t>> shared;
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    uint32_t group = 0;
    for (int i = 0; i < 20'000; ++i) {
      const size_t bytes = random() % (LastingMemory::most + 1);
      auto* const block = static_cast<unsigned char*>(memory->take(bytes, group));
      std::memset(block, static_cast<int>(bytes % 251), bytes);
      std::pair<unsigned char*, size_t> other;
      {
        const std::lock_guard lock(mutex);
        shared.emplace_back(block, bytes);
        if (shared.size() < 500) continue;
        std::swap(shared[random() % shared.size()], shared.back());
        other = shared.back();
        shared.pop_back();
      }
      for (size_t b = 0; b < other.second; ++b)
        if (other.first[b] != other.second % 251) return ADD_FAILURE() << "a block was overwritten";
      memory->give(other.first);
      if (i % 1'000 == 0) memory->close(group);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  for (const auto& [block, bytes] : shared) memory->give(block);
  EXPECT_EQ(memory->counts().blocks, 0u);
  EXPECT_EQ(memory->counts().bytes, 0u);
  EXPECT_EQ(memory->counts().pages, 0u);
}

}  // namespace
}  // namespace leat
