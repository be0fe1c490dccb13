#include "distributed/recent_table.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <unordered_map>

namespace leat {
namespace {

TEST(RecentTable, DropsTheOldestEntry) {
  RecentTable<int> table(2);
  EXPECT_TRUE(table.insert(7, 70));
  EXPECT_TRUE(table.insert(8, 80));
  EXPECT_FALSE(table.insert(7, 71)) << "it is there";
  EXPECT_EQ(*table.find(7), 70);
  EXPECT_TRUE(table.insert(9, 90));
  EXPECT_EQ(table.find(7), nullptr);
  EXPECT_EQ(*table.find(8), 80);
  EXPECT_EQ(*table.find(9), 90);
}

// Compared with a map and a queue, on few different ids: runs of slots become long and wrap around.
TEST(RecentTable, BehavesLikeAMap) {
  std::mt19937_64 random(5);
  for (const size_t capacity : {1, 2, 7, 64}) {
    RecentTable<uint64_t> table(capacity);
    std::unordered_map<uint64_t, uint64_t> expected;
    std::deque<uint64_t> order;
    for (uint64_t i = 0; i < 20'000; ++i) {
      const uint64_t id = random() % (3 * capacity);
      EXPECT_EQ(table.insert(id, i), expected.emplace(id, i).second);
      if (expected.size() > order.size()) order.push_back(id);
      if (order.size() > capacity) {
        expected.erase(order.front());
        order.pop_front();
      }
      const uint64_t asked = random() % (3 * capacity);
      const uint64_t* found = table.find(asked);
      ASSERT_EQ(found != nullptr, expected.contains(asked)) << "after " << i << " of " << capacity;
      if (found != nullptr) {
        ASSERT_EQ(*found, expected[asked]);
      }
    }
    size_t count = 0;
    table.for_each([&](uint64_t id, uint64_t value) {
      ++count;
      EXPECT_EQ(expected.at(id), value);
    });
    EXPECT_EQ(count, expected.size());
  }
}

}  // namespace
}  // namespace leat
