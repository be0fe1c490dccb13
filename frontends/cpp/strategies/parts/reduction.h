// What exchanges in one graph (collectives.h) and between programs (program_group.h) share: which
// tensors travel together, whether they are cut, and how values become one.
#pragma once

#include <cstdint>
#include <vector>

#include "frontends/cpp/strategies/parts/collectives.h"

namespace leat::collectives {

// Numbers of tensors that travel together: of one dtype, in their order, and not above `limit`
// bytes unless there is only one. The first ends where it reaches 1 MiB.
std::vector<std::vector<size_t>> make_buckets(const std::vector<Output>& tensors, int64_t limit);

// Whether each of n members sends `value` to all others, instead of a part to each (collectives.h).
bool is_sent_whole(const Output& value, int64_t n, const AllReduceOptions& options);

// Whether it is one of the algorithms that ProgramGroup has.
bool goes_between_programs(Algorithm algorithm);

Output reshaped(Output x, const Shape& shape);
// The parts as one tensor, and a tensor as parts of these sizes along axis 0; one part is the
// whole.
Output joined(const std::vector<Output>& parts, int axis = 0);
std::vector<Output> cut(const Output& value, const std::vector<int64_t>& sizes);
// `rows` in `parts` parts that differ by at most one.
std::vector<int64_t> even_parts(int64_t rows, int64_t parts);

// The sum or mean of the values, added in their order.
Output reduced(const std::vector<Output>& values, Reduction reduction);

}  // namespace leat::collectives
