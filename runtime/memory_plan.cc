#include "runtime/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace leat {
namespace {

// Blocks that have their place, found by the instructions at which they live.
class Placed {
 public:
  Placed(std::span<const MemoryBlock> blocks, std::span<const size_t> sizes, int instructions)
      : blocks_(blocks),
        sizes_(sizes),
        buckets_(instructions / bucket_size + 1),
        offsets_(blocks.size()),
        seen_(blocks.size(), -1) {}

  void place(int block) {
    const size_t offset = best_gap(block);
    offsets_[block] = offset;
    for (int b = blocks_[block].first / bucket_size; b <= blocks_[block].last / bucket_size; ++b)
      buckets_[b].push_back(block);
    bytes_ = std::max(bytes_, offset + sizes_[block]);
  }

  size_t bytes() const { return bytes_; }
  const std::vector<size_t>& offsets() const { return offsets_; }

 private:
  static constexpr int bucket_size = 16;

  // The smallest gap between blocks that live at the same time; above them all if none fits.
  size_t best_gap(int block) {
    const MemoryBlock& mine = blocks_[block];
    neighbours_.clear();
    for (int b = mine.first / bucket_size; b <= mine.last / bucket_size; ++b) {
      for (int other : buckets_[b]) {
        if (seen_[other] == block || blocks_[other].first > mine.last ||
            blocks_[other].last < mine.first)
          continue;
        seen_[other] = block;
        neighbours_.push_back({offsets_[other], offsets_[other] + sizes_[other]});
      }
    }
    std::sort(neighbours_.begin(), neighbours_.end());
    const size_t need = sizes_[block];
    size_t end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (const auto& [begin, limit] : neighbours_) {
      if (begin > end && begin - end >= need && begin - end < best_gap) {
        best_gap = begin - end;
        best = end;
      }
      end = std::max(end, limit);
    }
    return best == SIZE_MAX ? end : best;
  }

  std::span<const MemoryBlock> blocks_;
  std::span<const size_t> sizes_;
  std::vector<std::vector<int>> buckets_;
  std::vector<size_t> offsets_;
  std::vector<int> seen_;  // the last block whose neighbours it was counted among
  std::vector<std::pair<size_t, size_t>> neighbours_;
  size_t bytes_ = 0;
};

}  // namespace

MemoryPlan plan_memory(std::span<const MemoryBlock> blocks, size_t alignment) {
  MemoryPlan plan;
  std::vector<size_t> sizes;
  int instructions = 0;
  for (const MemoryBlock& block : blocks) {
    check_internal(block.first >= 0 && block.first <= block.last, "a memory block lives from ",
                   block.first, " to ", block.last);
    sizes.push_back((block.bytes + alignment - 1) / alignment * alignment);
    instructions = std::max(instructions, block.last + 1);
  }

  std::vector<size_t> live(instructions +
                           1);  // bytes that begin minus bytes that end: modular arithmetic is fine
  for (size_t i = 0; i < blocks.size(); ++i) {
    live[blocks[i].first] += sizes[i];
    live[blocks[i].last + 1] -= sizes[i];
  }
  size_t now = 0;
  for (const size_t change : live) plan.max_live = std::max(plan.max_live, now += change);

  std::vector<int> order(blocks.size()), best_order;
  const auto attempt = [&] {
    Placed placed(blocks, sizes, instructions);
    for (int block : order) placed.place(block);
    if (!best_order.empty() && placed.bytes() > plan.bytes) return;
    plan.offsets = placed.offsets();
    plan.bytes = placed.bytes();
    best_order = order;
  };
  const auto attempt_sorted = [&](auto&& comes_first) {
    if (!best_order.empty() && plan.bytes == plan.max_live) return;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), comes_first);
    attempt();
  };
  const auto span_of = [&](int block) {
    return static_cast<size_t>(blocks[block].last - blocks[block].first + 1);
  };
  const auto is_larger = [&](int a, int b) {
    return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : blocks[a].first < blocks[b].first;
  };
  attempt_sorted(is_larger);
  attempt_sorted([&](int a, int b) { return sizes[a] * span_of(a) > sizes[b] * span_of(b); });
  attempt_sorted([&](int a, int b) {
    return span_of(a) != span_of(b) ? span_of(a) > span_of(b) : is_larger(a, b);
  });
  attempt_sorted([&](int a, int b) { return blocks[a].first < blocks[b].first; });

  // What still sticks out of the bound came too late: such a block moves before one that lives at
  // the same time, which of them a fixed sequence of pseudo-random numbers tells. Kept unless it
  // makes things worse.
  uint32_t random = 1;
  const auto pick = [&](size_t count) {
    random = random * 1664525u + 1013904223u;
    return (random >> 8) % count;
  };
  const auto overlap = [&](int a, int b) {
    return blocks[a].first <= blocks[b].last && blocks[b].first <= blocks[a].last;
  };
  const int64_t tries = std::min<int64_t>(400, 100'000 / (1 + static_cast<int64_t>(blocks.size())));
  for (int64_t i = 0; i < tries && plan.bytes > plan.max_live; ++i) {
    order = best_order;
    std::vector<size_t> late, earlier;
    for (size_t at = 1; at < order.size(); ++at) {
      if (plan.offsets[order[at]] + sizes[order[at]] > plan.max_live) late.push_back(at);
    }
    if (late.empty()) break;
    const size_t at = late[pick(late.size())];
    for (size_t before = 0; before < at; ++before) {
      if (overlap(order[at], order[before])) earlier.push_back(before);
    }
    if (earlier.empty()) break;
    const size_t to = earlier[pick(earlier.size())];
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(to),
                order.begin() + static_cast<std::ptrdiff_t>(at),
                order.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    attempt();
  }
  return plan;
}

}  // namespace leat
