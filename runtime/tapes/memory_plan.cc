#include "runtime/tapes/memory_plan.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include "core/error.h"

namespace leat {
namespace {

// The blocks placed so far, found by the instructions during which they live.
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

  static int64_t buckets_of(const MemoryBlock& block) {
    return block.last / bucket_size - block.first / bucket_size + 1;
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

// What is free of an arena: gaps, and all above the last block.
class Gaps {
 public:
  // Of the smallest that fits.
  size_t take(size_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best == by_size_.end()) {
      const size_t offset = std::exchange(top_, top_ + bytes);
      most_ = std::max(most_, top_);
      return offset;
    }
    const auto [size, offset] = *best;
    remove(offset, size);
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }

  void give(size_t offset, size_t bytes) {
    if (const auto next = by_offset_.find(offset + bytes); next != by_offset_.end()) {
      bytes += next->second;
      remove(next->first, next->second);
    }
    if (const auto after = by_offset_.lower_bound(offset); after != by_offset_.begin()) {
      if (const auto [begin, size] = *std::prev(after); begin + size == offset) {
        remove(begin, size);
        offset = begin;
        bytes += size;
      }
    }
    if (offset + bytes == top_) {
      top_ = offset;
    } else {
      add(offset, bytes);
    }
  }

  size_t most() const { return most_; }

 private:
  void add(size_t offset, size_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(size_t offset, size_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<size_t, size_t> by_offset_;
  std::set<std::pair<size_t, size_t>> by_size_;
  size_t top_ = 0, most_ = 0;
};

// ---- Plans without sizes

using Stack = MemoryHints::Stack;

bool is_for(const Stack& stack, std::span<const MemoryBlock> blocks) {
  return std::ranges::equal(stack.lives, blocks, [](const auto& life, const MemoryBlock& block) {
    return life == std::pair(block.first, block.last);
  });
}

// What is on top at each time, while blocks are put on each other from the lowest up.
class Skyline {
 public:
  // f(each block that this one comes to lie on; some of them twice)
  template <class F>
  void put(int block, int first, int last, F f) {
    auto at = cut(first);
    const auto end = cut(last + 1);
    for (; at != end; at = tops_.erase(at)) {
      if (at->second >= 0) f(at->second);
    }
    tops_.emplace_hint(end, first, block);
  }

 private:
  // The part that begins at `time`.
  std::map<int, int>::iterator cut(int time) {
    const auto after = tops_.lower_bound(time);
    if (after != tops_.end() && after->first == time) return after;
    return tops_.emplace_hint(after, time, after == tops_.begin() ? -1 : std::prev(after)->second);
  }

  std::map<int, int> tops_;  // since when, which block; -1: none
};

Stack stack_of(std::span<const MemoryBlock> blocks, const std::vector<size_t>& offsets) {
  Stack out;
  for (const MemoryBlock& block : blocks) out.lives.emplace_back(block.first, block.last);
  out.blocks.resize(blocks.size());
  std::iota(out.blocks.begin(), out.blocks.end(), 0);
  // Blocks without bytes lie where others do.
  std::ranges::stable_sort(out.blocks, [&](int a, int b) {
    return offsets[a] != offsets[b] ? offsets[a] < offsets[b] : blocks[a].bytes < blocks[b].bytes;
  });
  Skyline skyline;
  for (const int block : out.blocks) {
    const auto begin = static_cast<std::ptrdiff_t>(out.below.size());
    skyline.put(block, blocks[block].first, blocks[block].last,
                [&](int other) { out.below.push_back(other); });
    std::sort(out.below.begin() + begin, out.below.end());
    out.below.erase(std::unique(out.below.begin() + begin, out.below.end()), out.below.end());
    out.ends.push_back(out.below.size());
  }
  return out;
}

// ---- Search

// The best plan of all that are tried.
class Search {
 public:
  Search(std::span<const MemoryBlock> blocks, size_t alignment) : blocks_(blocks) {
    for (const MemoryBlock& block : blocks) {
      check_internal(block.first >= 0 && block.first <= block.last, "a memory block lives from ",
                     block.first, " to ", block.last);
      sizes_.push_back((block.bytes + alignment - 1) / alignment * alignment);
      instructions_ = std::max(instructions_, block.last + 1);
    }
    best_.max_live = max_live();
  }

  MemoryPlan run(MemoryHints* hints) && {
    if (hints != nullptr && is_for(hints->stack, blocks_)) {
      pile_up(hints->stack);
      if (is_close()) return std::move(best_);
    }
    search(hints);
    if (hints != nullptr) {
      hints->order = std::move(order_);
      // Of more, it would take a share of the first step that no later one may earn.
      constexpr size_t most_stacked = 50'000;
      hints->stack = blocks_.size() <= most_stacked ? stack_of(blocks_, best_.offsets) : Stack();
    }
    return std::move(best_);
  }

 private:
  void search(const MemoryHints* hints) {
    if (hints != nullptr && hints->order.size() == blocks_.size() && !blocks_.empty()) {
      attempt(hints->order);
      if (is_close()) return;
    }
    if (is_small()) {
      try_sorted();
      improve();
    } else {
      place_as_they_come();
    }
  }

  void pile_up(const Stack& stack) {
    best_.offsets.resize(blocks_.size());
    best_.bytes = 0;
    size_t below = 0;
    for (size_t at = 0; at < stack.blocks.size(); ++at) {
      size_t offset = 0;
      for (; below < stack.ends[at]; ++below) {
        const int other = stack.below[below];
        offset = std::max(offset, best_.offsets[other] + sizes_[other]);
      }
      best_.offsets[stack.blocks[at]] = offset;
      best_.bytes = std::max(best_.bytes, offset + sizes_[stack.blocks[at]]);
    }
  }

  size_t max_live() const {
    // Bytes that begin minus bytes that end: modular arithmetic is fine.
    std::vector<size_t> changes(instructions_ + 1);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      changes[blocks_[i].first] += sizes_[i];
      changes[blocks_[i].last + 1] -= sizes_[i];
    }
    size_t now = 0, most = 0;
    for (const size_t change : changes) most = std::max(most, now += change);
    return most;
  }

  // Few enough blocks live at the same time to compare each with all of them.
  bool is_small() const {
    constexpr int64_t most_pairs = 2'000'000;
    std::vector<int64_t> changes(instructions_ + 1);
    for (const MemoryBlock& block : blocks_) ++changes[block.first], --changes[block.last + 1];
    std::partial_sum(changes.begin(), changes.end(), changes.begin());
    int64_t pairs = 0, buckets = 0;
    for (const MemoryBlock& block : blocks_) {
      pairs += changes[block.first];
      buckets += Placed::buckets_of(block);
    }
    const int64_t few = 4 * static_cast<int64_t>(blocks_.size());
    return pairs <= most_pairs + few && buckets <= most_pairs + few;
  }

  // In the order of the instructions, the larger one first, each into the smallest gap that fits.
  void place_as_they_come() {
    std::vector<int> order(blocks_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return blocks_[a].first != blocks_[b].first ? blocks_[a].first < blocks_[b].first
                                                  : sizes_[a] > sizes_[b];
    });
    Gaps gaps;
    using Ending = std::pair<int, int>;  // (last instruction, block)
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>> living;
    best_.offsets.resize(blocks_.size());
    for (const int block : order) {
      for (; !living.empty() && living.top().first < blocks_[block].first; living.pop()) {
        const int ended = living.top().second;
        gaps.give(best_.offsets[ended], sizes_[ended]);
      }
      best_.offsets[block] = gaps.take(sizes_[block]);
      living.push({blocks_[block].last, block});
    }
    best_.bytes = gaps.most();
  }

  bool is_optimal() const { return best_.bytes == best_.max_live; }
  bool is_close() const { return best_.bytes - best_.max_live <= best_.max_live / 50; }

  // Places the blocks in this order; kept unless it makes things worse.
  void attempt(std::vector<int> order) {
    Placed placed(blocks_, sizes_, instructions_);
    for (const int block : order) {
      placed.place(block);
      if (!order_.empty() && placed.bytes() > best_.bytes) return;
    }
    best_.offsets = placed.offsets();
    best_.bytes = placed.bytes();
    order_ = std::move(order);
  }

  template <class ComesFirst>
  void attempt_sorted(ComesFirst comes_first) {
    if (!order_.empty() && is_optimal()) return;
    std::vector<int> order(blocks_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), comes_first);
    attempt(std::move(order));
  }

  void try_sorted() {
    const auto span_of = [&](int block) {
      return static_cast<size_t>(blocks_[block].last - blocks_[block].first + 1);
    };
    const auto is_larger = [&](int a, int b) {
      return sizes_[a] != sizes_[b] ? sizes_[a] > sizes_[b] : blocks_[a].first < blocks_[b].first;
    };
    attempt_sorted(is_larger);
    attempt_sorted([&](int a, int b) { return sizes_[a] * span_of(a) > sizes_[b] * span_of(b); });
    attempt_sorted([&](int a, int b) {
      return span_of(a) != span_of(b) ? span_of(a) > span_of(b) : is_larger(a, b);
    });
    attempt_sorted([&](int a, int b) { return blocks_[a].first < blocks_[b].first; });
  }

  // What still sticks out of the bound came too late: such a block moves before one that lives at
  // the same time.
  void improve() {
    const int64_t tries =
        std::min<int64_t>(400, 100'000 / (1 + static_cast<int64_t>(blocks_.size())));
    for (int64_t i = 0; i < tries && !is_optimal(); ++i) {
      std::vector<int> order = order_;
      std::vector<size_t> late, earlier;
      for (size_t at = 1; at < order.size(); ++at) {
        if (best_.offsets[order[at]] + sizes_[order[at]] > best_.max_live) late.push_back(at);
      }
      if (late.empty()) return;
      const size_t at = late[pick(late.size())];
      for (size_t before = 0; before < at; ++before) {
        if (overlap(order[at], order[before])) earlier.push_back(before);
      }
      if (earlier.empty()) return;
      const auto to = order.begin() + static_cast<std::ptrdiff_t>(earlier[pick(earlier.size())]);
      const auto from = order.begin() + static_cast<std::ptrdiff_t>(at);
      std::rotate(to, from, from + 1);
      attempt(std::move(order));
    }
  }

  bool overlap(int a, int b) const {
    return blocks_[a].first <= blocks_[b].last && blocks_[b].first <= blocks_[a].last;
  }

  // A fixed sequence of pseudo-random numbers: the same blocks always get the same plan.
  size_t pick(size_t count) {
    random_ = random_ * 1664525u + 1013904223u;
    return (random_ >> 8) % count;
  }

  std::span<const MemoryBlock> blocks_;
  std::vector<size_t> sizes_;  // aligned
  int instructions_ = 0;
  MemoryPlan best_;
  std::vector<int> order_;  // of the best plan; empty: none was placed in an order
  uint32_t random_ = 1;
};

}  // namespace

MemoryPlan plan_memory(std::span<const MemoryBlock> blocks, size_t alignment, MemoryHints* hints) {
  return Search(blocks, alignment).run(hints);
}

}  // namespace leat
