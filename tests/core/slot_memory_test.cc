#include "core/memory/slot_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace leat {
namespace {

bool is_resident(void* data) {
  unsigned char out = 0;
  EXPECT_EQ(mincore(data, 1, &out), 0);
  return (out & 1) != 0;
}

TEST(SlotMemory, TakesTheLastFreedSlotNext) {
  const auto memory = std::make_unique<SlotMemory>();
  void* const first = memory->take();
  void* const second = memory->take();
  EXPECT_NE(first, second);
  memory->give(second);
  memory->give(first);
  EXPECT_EQ(memory->take(), first);
  EXPECT_EQ(memory->take(), second);
}

TEST(SlotMemory, RecognisesItsOwnSlots) {
  const auto memory = std::make_unique<SlotMemory>();
  int here = 0;
  EXPECT_FALSE(memory->owns(&here)) << "before the first slot";
  EXPECT_FALSE(memory->owns(nullptr));
  char* const slot = static_cast<char*>(memory->take());
  EXPECT_TRUE(memory->owns(slot));
  EXPECT_TRUE(memory->owns(slot + SlotMemory::most - 1));
  EXPECT_FALSE(memory->owns(slot - 1));
  EXPECT_FALSE(memory->owns(&here));
  EXPECT_FALSE(memory->owns(nullptr));
}

TEST(SlotMemory, ReturnsNullWhenExhausted) {
  const auto memory = std::make_unique<SlotMemory>();
  std::set<void*> taken;
  for (size_t i = 0; i < SlotMemory::slots; ++i) taken.insert(memory->take());
  EXPECT_EQ(taken.size(), SlotMemory::slots);
  EXPECT_FALSE(taken.contains(nullptr));
  EXPECT_EQ(memory->take(), nullptr);
  memory->give(*taken.begin());
  EXPECT_EQ(memory->take(), *taken.begin());
}

TEST(SlotMemory, ReturnsSlotsUnusedBetweenTwoTrims) {
  const auto memory = std::make_unique<SlotMemory>();
  void* const often = memory->take();
  void* const once = memory->take();
  std::memset(often, 1, SlotMemory::most);
  std::memset(once, 1, SlotMemory::most);
  memory->give(once);
  memory->give(often);
  memory->trim();
  EXPECT_EQ(memory->counts().kept, 2u) << "they were in use";
  EXPECT_EQ(memory->take(), often);
  memory->give(often);
  memory->trim();
  EXPECT_EQ(memory->counts().kept, 1u);
  EXPECT_TRUE(is_resident(often));
  EXPECT_FALSE(is_resident(once));
  EXPECT_EQ(memory->take(), often);
  EXPECT_EQ(memory->take(), once);
  std::memset(once, 2, SlotMemory::most);
  EXPECT_EQ(memory->counts().taken, 2u);
}

TEST(SlotMemory, KeepsTheReserve) {
  const auto memory = std::make_unique<SlotMemory>();
  memory->set_reserve(2);
  const std::array<void*, 3> slots = {memory->take(), memory->take(), memory->take()};
  for (void* const slot : slots) std::memset(slot, 1, SlotMemory::most);
  memory->give(slots[0]);
  memory->give(slots[1]);
  memory->trim_all();
  EXPECT_FALSE(is_resident(slots[0]));
  EXPECT_TRUE(is_resident(slots[1]));
  EXPECT_TRUE(is_resident(slots[2]));
  EXPECT_EQ(memory->counts().kept, 1u) << "one of the two is taken";
}

TEST(SlotMemory, PopulatesSlotsBeforeTheyAreTaken) {
  const auto memory = std::make_unique<SlotMemory>();
  memory->populate(2);
  EXPECT_EQ(memory->counts().kept, 2u);
  for (const bool expected : {true, true, false}) EXPECT_EQ(is_resident(memory->take()), expected);
}

TEST(SlotMemory, ReturnsFreeSlotsToTheSystem) {
  const auto memory = std::make_unique<SlotMemory>();
  void* const kept = memory->take();
  void* const freed = memory->take();
  std::memset(kept, 1, SlotMemory::most);
  std::memset(freed, 1, SlotMemory::most);
  memory->give(freed);
  memory->trim_all();
  EXPECT_EQ(memory->counts().kept, 0u);
  EXPECT_TRUE(is_resident(kept));
  EXPECT_FALSE(is_resident(freed));
  EXPECT_EQ(memory->take(), freed);
}

TEST(SlotMemory, ThreadsNeverShareASlot) {
  const auto memory = std::make_unique<SlotMemory>();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<char*> mine;
      for (int i = 0; i < 2'000; ++i) {
        mine.push_back(static_cast<char*>(memory->take()));
        std::memset(mine.back(), t, 100);
        if (mine.size() < 8) continue;
        for (char* slot : mine) {
          EXPECT_EQ(slot[0], t);
          EXPECT_EQ(slot[99], t);
          memory->give(slot);
        }
        mine.clear();
        if (i % 100 == 0) memory->trim();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory->counts().taken, 0u);
}

}  // namespace
}  // namespace leat
