// The ways in which N workers come to the sum or mean of a vector that each has. Every way computes
// an element once, or with the same operands in the same order everywhere: all workers get the same
// bits, in every run. collectives.h has what each costs.
#pragma once

#include <vector>

#include "frontends/cpp/strategies/parts/collectives.h"
#include "frontends/cpp/strategies/parts/exchange.h"

namespace leat::collectives {

// Each worker sends its vector to all others.
PerReplica directly(const Exchange& exchange, const PerReplica& values, Reduction reduction);
// Each owner sums its part along the axis.
std::vector<Output> scattered(const Exchange& exchange, const PerReplica& values,
                              const std::vector<Owner>& owners, Reduction reduction, int axis = 0);
// Each worker gets all values, joined along the axis.
PerReplica gathered(const Exchange& exchange, const PerReplica& values, int axis = 0);

// The following take vectors of a known extent of at least N.

// Segment s begins at worker s, and goes round: each adds its own. The sums go round once more.
PerReplica by_ring(const Exchange& exchange, const PerReplica& values, Reduction reduction);
// Pairs at half the distance each time exchange halves of what they still have to sum, then at
// twice the distance what they have. N is a power of two; the workers beyond one first give their
// vector to one within, and get the result from it.
PerReplica by_halving(const Exchange& exchange, const PerReplica& values, Reduction reduction);
// Up a binomial tree to worker 0, and down again.
PerReplica by_tree(const Exchange& exchange, const PerReplica& values, Reduction reduction);
// Within each group the first workers sum a part each, then those with the same part in different
// groups sum it in chunks, then each sends it to its group. `groups` has all workers once.
PerReplica by_groups(const Exchange& exchange, const PerReplica& values,
                     const std::vector<std::vector<int>>& groups, Reduction reduction);

}  // namespace leat::collectives
