// Places each intermediate value of a tape in the tape's arena.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
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
};

// What the plan of some blocks leaves for that of others, which differ in their sizes alone.
struct MemoryHints {
  std::vector<int> order;  // in which the blocks were placed; empty if there are very many
  // The plan without its sizes; empty if there are many. At any time, the live blocks lie on each
  // other in some order.
  struct Stack {
    std::vector<std::pair<int, int>> lives;  // by block: first, last
    std::vector<int> blocks;                 // those that others lie on come before them
    std::vector<int> below;                  // of each of these, those that it lies on …
    std::vector<size_t> ends;                // … up to here
  };
  Stack stack;
};

// Chooses offsets so that blocks that live at the same time never overlap. Greedy by size (arXiv
// 2001.03288): the largest block first, each into the smallest gap that fits. This meets the bound
// on the graphs of networks; where it does not, other orders are tried and the best is kept. With
// very many blocks live at the same time, each is placed once, in order of arrival.
//
// `hints`, if given, are those of the plan before, and become those of this one. If its stack, or
// else its order, comes within 2 % of the bound, that is the plan.
MemoryPlan plan_memory(std::span<const MemoryBlock> blocks, size_t alignment = 64,
                       MemoryHints* hints = nullptr);

}  // namespace leat
