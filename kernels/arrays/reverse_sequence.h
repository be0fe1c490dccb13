// Where ReverseSequence takes its elements from, for its kernels on both devices.
#pragma once

#include "core/kernel.h"

namespace leat {

struct SequenceExtents {
  int64_t length;          // along seq_dim
  int64_t sequences;       // along batch_dim
  int64_t row = 1;         // elements after both axes; they stay together
  int64_t rows = 0;        // how many of these
  int64_t step = 0;        // between neighbours of a sequence
  int64_t batch_step = 0;  // between neighbouring sequences

  // Of the element at this offset of the output.
  constexpr int64_t sequence_of(int64_t at) const { return at / batch_step % sequences; }
  // Where it comes from, if the first n elements of its sequence change places.
  constexpr int64_t source_of(int64_t at, int64_t n) const {
    const int64_t s = at / step % length;
    return s < n ? at + (n - 1 - 2 * s) * step : at;
  }
};

SequenceExtents sequence_extents(const KernelRequest& request);

}  // namespace leat
