// A batch in parts that are computed one after the other.
#pragma once

#include <vector>

#include "frontends/cpp/data/dataset.h"

namespace leat {

struct MicroBatches {
  std::vector<Batch> parts;
  // f32 scalars: the part of the batch's rows that each has; none if all have as many. The mean
  // over the batch is the sum of weight · mean of the part.
  std::vector<Output> weights;

  // The mean over the batch of what is a mean over the rows of each part. A part without rows does
  // not count.
  Output mean_of(const std::vector<Output>& values, Location at = here()) const;
};

// Rows m·n/count to (m+1)·n/count of each component. INVALID_ARGUMENT if a component has no rows.
MicroBatches divide(const Batch& batch, int count, Location at = here());

}  // namespace leat
