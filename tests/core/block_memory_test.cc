#include "core/memory/block_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace leat {
namespace {

constexpr size_t megabyte = size_t{1} << 20;

TEST(BlockMemory, ReusesFreedBlocks) {
  BlockMemory memory;
  void* const first = memory.take(400'000);
  ASSERT_NE(first, nullptr);
  memory.give(first, 400'000);
  EXPECT_EQ(memory.take(401'000), first) << "of the same size, rounded";
  void* const second = memory.take(400'000);
  EXPECT_NE(second, first);
  memory.give(first, 401'000);
  memory.give(second, 400'000);
  EXPECT_EQ(memory.counts().blocks, 2u);
  EXPECT_EQ(memory.counts().kept_blocks, 2u);
}

TEST(BlockMemory, WholeBlockIsWritable) {
  BlockMemory memory;
  for (const size_t bytes :
       {BlockMemory::least, size_t{100'001}, 4 * megabyte, 5 * megabyte + 1, BlockMemory::most}) {
    void* const data = memory.take(bytes);
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % (bytes >= 4 * megabyte ? 2 * megabyte : 4096),
              0u);
    std::memset(data, 1, bytes);
    memory.give(data, bytes);
  }
}

TEST(BlockMemory, ReturnsUnusedBlocksToTheSystem) {
  BlockMemory memory;
  void* const used = memory.take(megabyte);
  void* const unused = memory.take(2 * megabyte);
  memory.give(used, megabyte);
  memory.give(unused, 2 * megabyte);
  memory.trim();
  EXPECT_EQ(memory.counts().blocks, 2u) << "they were used before this trim";
  memory.give(memory.take(megabyte), megabyte);
  memory.trim();
  EXPECT_EQ(memory.counts().blocks, 1u);
  EXPECT_GE(memory.counts().kept_bytes, megabyte);
  memory.trim();
  EXPECT_EQ(memory.counts().blocks, 0u);
  EXPECT_EQ(memory.counts().kept_bytes, 0u);
}

TEST(BlockMemory, TrimKeepsTheReserve) {
  BlockMemory memory(3 * megabyte);
  std::vector<void*> blocks;
  memory.give(memory.take(2 * megabyte), 2 * megabyte);
  for (int i = 0; i < 4; ++i) blocks.push_back(memory.take(megabyte));
  for (void* const block : blocks) memory.give(block, megabyte);
  memory.trim();
  EXPECT_EQ(memory.counts().bytes, 6 * megabyte);
  memory.trim();
  EXPECT_EQ(memory.counts().bytes, 3 * megabyte) << "the largest goes first";
  EXPECT_EQ(memory.counts().blocks, 3u);
  memory.trim();
  EXPECT_EQ(memory.counts().blocks, 3u);
}

TEST(BlockMemory, BlockCountGrowsByHalfWithinTheReserve) {
  BlockMemory memory(6 * megabyte);
  std::vector<void*> blocks;
  std::vector<size_t> mapped;
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(memory.take(megabyte));
    std::memset(blocks.back(), 1, megabyte);
    mapped.push_back(memory.counts().blocks);
  }
  EXPECT_EQ(mapped, (std::vector<size_t>{1, 3, 3, 6, 6, 6, 7, 8}));
  EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), 8u);
}

TEST(BlockMemory, TakingABlockTrimsUnusedBlocks) {
  BlockMemory memory;
  memory.give(memory.take(2 * megabyte), 2 * megabyte);
  for (int i = 0; i < 3'000; ++i) memory.give(memory.take(megabyte), megabyte);
  EXPECT_EQ(memory.counts().blocks, 1u);
}

TEST(BlockMemory, KeepsFreeBlocksUpToItsLimit) {
  BlockMemory memory;
  std::vector<void*> blocks;
  for (size_t i = 0; i < BlockMemory::keep_at_most / (16 * megabyte) + 3; ++i)
    blocks.push_back(memory.take(16 * megabyte));
  for (void* const block : blocks) memory.give(block, 16 * megabyte);
  EXPECT_EQ(memory.counts().kept_bytes, BlockMemory::keep_at_most);
  EXPECT_EQ(memory.counts().blocks, memory.counts().kept_blocks);
}

}  // namespace
}  // namespace leat
