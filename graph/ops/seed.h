// One seed for all random numbers of a graph.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace leat::random {

// From here on, what draws random numbers in this graph draws the same ones in every session:
// random tensors, initial values of variables, dropout, sampled losses, shuffling queues. Ops
// without a seed of their own differ from each other by their place in the graph, so the program
// must build the same graph each time. By the rule of tf.set_random_seed. It may be called again:
// the last one counts for what follows. A dataset is a graph of its own: its shuffle() takes a
// seed.
//   Graph g;
//   random::seed(g, 7);
void seed(Graph& graph, int64_t seed, Location at = here());

// The attributes seed and seed2 of a random op, for one that was given `own` (0: none): own and 0
// without a seed of the graph, where 0 and 0 draw other numbers in each session; else the graph's
// seed, and own or the number of nodes so far.
struct Seeds {
  int64_t seed, seed2;
};
Seeds seeds(const Graph& graph, int64_t own);

}  // namespace leat::random
