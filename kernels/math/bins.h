// What Bincount and DenseBincount count.
#pragma once

#include <cstdint>

#include "core/kernel.h"

namespace leat {

// Rows of numbers, in `size` bins of their own each.
struct Bins {
  int64_t numbers, rows, size;
  bool is_weighted, is_binary;  // the sums of weights; only whether there is any

  explicit Bins(const KernelRequest& r)
      : numbers(r.inputs[0].shape.elements()),
        rows(r.outputs[0].shape.rank() == 2 ? r.outputs[0].shape[0] : 1),
        size(to_int64s(*r.inputs[1].value)[0]),
        is_weighted(r.inputs[2].shape.elements() > 0),
        is_binary(r.node.has("binary_output") && r.attr<bool>("binary_output")) {
    const Shape &input = r.inputs[0].shape, &weights = r.inputs[2].shape;
    check(!is_weighted || weights == input,
          "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts "
          "as all weights equal to 1. Received ",
          weights, " for ", input);
  }
  // The bin of number i among those of all rows; -1 if its row has no such bin.
  template <class Index>
  constexpr int64_t bin_of(const Index* input, int64_t i) const {
    const int64_t bin = input[i];
    return bin < 0 || bin >= size ? -1 : i / (numbers / rows) * size + bin;
  }
};

}  // namespace leat
