// Sequences: which positions belong to each, and pools along them.
#pragma once

#include "graph/ops/neural.h"

namespace leat {

struct SequenceMaskOptions {
  DType dtype = boolean;
};
// mask[b…, i] = i < lengths[b…], for i below `maximum`: [lengths' shape, maximum]. Without a
// maximum, that of the lengths. lengths: int32 or int64. tf.sequence_mask.
//   Output mean_of_each = sum(x * sequence_mask(lengths, 10, {.dtype = f32}), 1);
Output sequence_mask(Output lengths, const Operand& maximum,
                     const SequenceMaskOptions& options = {}, Location at = here());
Output sequence_mask(Output lengths, const SequenceMaskOptions& options = {}, Location at = here());

struct Pool1dOptions {
  int64_t strides = 0;      // 0: as the size
  Padding padding = valid;  // or same
};
// The largest, or the mean, of each window of that size along sequences [batch, length, channels]:
// [batch, length', channels]. Keras' MaxPooling1D and AveragePooling1D.
Output max_pool1d(Output x, int64_t size = 2, const Pool1dOptions& options = {},
                  Location at = here());
Output avg_pool1d(Output x, int64_t size = 2, const Pool1dOptions& options = {},
                  Location at = here());

}  // namespace leat
