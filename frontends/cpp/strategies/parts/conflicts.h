// Which updates of a batch touch the same rows.
#pragma once

#include <vector>

#include "graph/ops.h"

namespace leat {

// For n samples, of which each updates some rows of tables: int32 [n], for each sample one of
// `threads` numbers, so that samples with different numbers have no row in common. Samples are
// connected if they share a row. Each connected component gets one number; the numbers of samples
// per number are as equal as the components allow. tables[t]: the ids of rows of table t, int32 or
// int64 [n, …], one Output for each tensor of ids. Runs where the scopes say, and costs a few
// passes over the ids: the logarithm of the longest chain of conflicts. Pan et al., "Cyclades",
// NIPS 2016.
Output without_conflicts(const std::vector<std::vector<Output>>& tables, int64_t threads,
                         Location at = here());

}  // namespace leat
