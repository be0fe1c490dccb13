// Places each intermediate value of a tape in the tape's arena.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace leat {

// A value that needs memory while instructions `first` to `last` (inclusive) run.
struct MemoryBlock {
  size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // by block, multiples of the alignment
  size_t bytes = 0;             // of the whole arena
  size_t max_live = 0;          // most bytes live at one time: a lower bound for any plan
  std::vector<int> order;       // in which the blocks were placed; empty if there are very many
};

// Chooses offsets so that blocks that live at the same time never overlap. Greedy by size (arXiv
// 2001.03288): the largest block first, each into the smallest gap that fits. This meets the bound
// on the graphs of networks; where it does not, other orders are tried and the best is kept. With
// very many blocks live at the same time, each is placed once, in order of arrival.
//
// `order`, if it has all blocks, is that of a plan for blocks of other sizes, and is tried first:
// if it comes within 2 % of the bound, that is the plan.
MemoryPlan plan_memory(std::span<const MemoryBlock> blocks, size_t alignment = 64,
                       std::span<const int> order = {});

}  // namespace leat
