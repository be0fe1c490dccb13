#include "runtime/tapes/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>

namespace leat {
namespace {

void expect_sound(const std::vector<MemoryBlock>& blocks, const MemoryPlan& plan,
                  size_t alignment) {
  ASSERT_EQ(plan.offsets.size(), blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % alignment, 0u);
    EXPECT_LE(plan.offsets[i] + blocks[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool live_together =
          blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
      const bool overlap = plan.offsets[i] < plan.offsets[j] + blocks[j].bytes &&
                           plan.offsets[j] < plan.offsets[i] + blocks[i].bytes;
      EXPECT_FALSE(live_together && overlap && blocks[i].bytes > 0 && blocks[j].bytes > 0)
          << "blocks " << i << " and " << j;
    }
  }
  EXPECT_GE(plan.bytes, plan.max_live);
}

TEST(MemoryPlan, IsEmptyWithoutBlocks) { EXPECT_EQ(plan_memory({}).bytes, 0u); }

TEST(MemoryPlan, ReusesFreeMemory) {
  const std::vector<MemoryBlock> blocks = {{100, 0, 1}, {100, 1, 2}, {100, 2, 3}, {10, 0, 3}};
  const MemoryPlan plan = plan_memory(blocks);
  expect_sound(blocks, plan, 64);
  EXPECT_EQ(plan.bytes, 128u + 128 + 64);
  EXPECT_EQ(plan.max_live, plan.bytes);
}

TEST(MemoryPlan, KeepsTheAlignmentOfDevices) {
  const std::vector<MemoryBlock> blocks = {{1, 0, 9}, {1, 0, 9}, {1, 0, 9}};
  const MemoryPlan plan = plan_memory(blocks, 256);
  expect_sound(blocks, plan, 256);
  EXPECT_EQ(plan.bytes, 768u);
}

// Layers: an activation that lives until its gradient exists, its scratch memory, its gradient.
std::vector<MemoryBlock> training_step(std::mt19937& random) {
  const int layers = 4 + static_cast<int>(random() % 40);
  const size_t batch = 64 * (1 + random() % 64);
  std::vector<MemoryBlock> blocks;
  for (int i = 0; i < layers; ++i) {
    const size_t bytes = batch << (random() % 5);
    const int forward = i, backward = 2 * layers - 1 - i;
    blocks.push_back({bytes, forward, backward});
    if (random() % 2 == 0) blocks.push_back({bytes, forward, backward});
    if (random() % 2 == 0) blocks.push_back({bytes * (1 + random() % 3), forward, forward});
    blocks.push_back({bytes, std::max(layers, backward - 1), backward});
  }
  return blocks;
}

// A chain with skips.
std::vector<MemoryBlock> inference(std::mt19937& random) {
  const int layers = 4 + static_cast<int>(random() % 60);
  const size_t batch = 64 * (1 + random() % 64);
  std::vector<MemoryBlock> blocks;
  for (int i = 0; i < layers; ++i) {
    const int last = i + 1 + (random() % 3 == 0 ? static_cast<int>(random() % 4) : 0);
    blocks.push_back({batch << (random() % 5), i, std::min(last, layers)});
  }
  return blocks;
}

TEST(MemoryPlan, IsCloseToTheBoundOnRandomNetworks) {
  std::mt19937 random(1);
  double sum = 0;
  int graphs = 0;
  for (int i = 0; i < 100; ++i) {
    for (const auto& blocks : {training_step(random), inference(random)}) {
      const MemoryPlan plan = plan_memory(blocks);
      expect_sound(blocks, plan, 64);
      const double ratio = static_cast<double>(plan.bytes) / static_cast<double>(plan.max_live);
      EXPECT_LE(ratio, 1.06) << "graph " << i << " of " << blocks.size() << " blocks";
      sum += ratio;
      ++graphs;
    }
  }
  EXPECT_LE(sum / graphs, 1.005);
}

TEST(MemoryPlan, IsSoundAndCloseToTheBoundOnAnyGraph) {
  std::mt19937 random(2);
  double sum = 0;
  constexpr int graphs = 50;
  for (int i = 0; i < graphs; ++i) {
    const int nodes = 10 + static_cast<int>(random() % 100);
    std::vector<MemoryBlock> blocks;
    for (int n = 0; n < nodes; ++n) {
      blocks.push_back({64 * (random() % 1000), n, n});
      for (int input = 0; input < 2 && n > 0; ++input) {
        const int from = random() % 4 != 0 ? std::max(0, n - 1 - static_cast<int>(random() % 3))
                                           : static_cast<int>(random() % n);
        blocks[from].last = n;
      }
    }
    const MemoryPlan plan = plan_memory(blocks);
    expect_sound(blocks, plan, 64);
    sum += static_cast<double>(plan.bytes) / static_cast<double>(plan.max_live);
  }
  EXPECT_LE(sum / graphs, 1.03);
}

// Too many blocks live at the same time to compare each with the others.
TEST(MemoryPlan, IsSoundAndCloseToTheBoundForManyBlocks) {
  constexpr int count = 100'000;
  std::mt19937 random(1);
  std::vector<MemoryBlock> blocks;
  for (int i = 0; i < count; ++i) {
    const int life = random() % 10 == 0 ? count : static_cast<int>(random() % 1000);
    blocks.push_back({64 * (1 + random() % 16), i, std::min(count, i + life)});
  }
  const MemoryPlan plan = plan_memory(blocks);
  // A sweep over the instructions: the live blocks by offset, and when each block ends.
  std::map<size_t, size_t> living;
  std::multimap<int, int> endings;
  for (int i = 0; i < count; ++i) {
    for (; !endings.empty() && endings.begin()->first < i; endings.erase(endings.begin()))
      living.erase(plan.offsets[endings.begin()->second]);
    const auto [at, is_new] = living.emplace(plan.offsets[i], plan.offsets[i] + blocks[i].bytes);
    ASSERT_TRUE(is_new);
    if (at != living.begin()) {
      ASSERT_LE(std::prev(at)->second, at->first) << i;
    }
    if (std::next(at) != living.end()) {
      ASSERT_LE(at->second, std::next(at)->first) << i;
    }
    endings.emplace(blocks[i].last, i);
  }
  EXPECT_LE(plan.bytes, plan.max_live + plan.max_live / 4);
}

// A plan for other sizes of the same lives rarely takes a search: each block lies on those that it
// lay on.
TEST(MemoryPlan, KeepsItsStackForOtherSizes) {
  std::mt19937 random(3);
  double sum = 0;
  int plans = 0, searches = 0;
  for (int i = 0; i < 50; ++i) {
    for (std::vector<MemoryBlock> blocks : {training_step(random), inference(random)}) {
      MemoryHints hints;
      const MemoryPlan first = plan_memory(blocks, 64, &hints);
      EXPECT_EQ(plan_memory(blocks, 64, &hints).offsets, first.offsets);
      for (const size_t factor : {3, 1, 7}) {
        for (MemoryBlock& block : blocks) block.bytes = block.bytes * factor + 64;
        const int* const stack = hints.stack.blocks.data();
        const MemoryPlan plan = plan_memory(blocks, 64, &hints);
        expect_sound(blocks, plan, 64);
        if (hints.stack.blocks.data() != stack) ++searches;
        sum += static_cast<double>(plan.bytes) / static_cast<double>(plan.max_live);
        ++plans;
      }
    }
  }
  EXPECT_LE(sum / plans, 1.01);
  EXPECT_LE(searches, plans / 20);
}

// Blocks may be empty, and then not.
TEST(MemoryPlan, IsSoundWhateverSizesFollow) {
  std::mt19937 random(4);
  for (int i = 0; i < 100; ++i) {
    std::vector<MemoryBlock> blocks;
    const int nodes = 10 + static_cast<int>(random() % 50);
    for (int n = 0; n < nodes; ++n)
      blocks.push_back({0, n, std::min(nodes, n + static_cast<int>(random() % 20))});
    MemoryHints hints;
    for (int round = 0; round < 5; ++round) {
      for (MemoryBlock& block : blocks)
        block.bytes = random() % 3 == 0 ? 0 : 64 * (random() % (1 << 2 * round));
      const MemoryPlan plan = plan_memory(blocks, 64, &hints);
      expect_sound(blocks, plan, 64);
      EXPECT_LE(plan.bytes, plan.max_live + plan.max_live / 4);
    }
  }
}

TEST(MemoryPlan, SearchesAgainForOtherLives) {
  // What lives longer now would lie in its neighbour, below what decides about the arena's size.
  std::vector<MemoryBlock> blocks = {{64, 0, 1}, {64, 2, 3}, {640, 4, 5}};
  MemoryHints hints;
  EXPECT_EQ(plan_memory(blocks, 64, &hints).bytes, 640u);
  blocks[1].first = 0;
  const MemoryPlan plan = plan_memory(blocks, 64, &hints);
  expect_sound(blocks, plan, 64);
  EXPECT_EQ(plan.bytes, 640u);
  blocks.pop_back();
  expect_sound(blocks, plan_memory(blocks, 64, &hints), 64);
}

}  // namespace
}  // namespace leat
