// The checks of ops that put the elements of a sparse tensor into a dense one, for both devices.
#pragma once

#include <cstdint>

#include "core/error.h"
#include "core/kernel.h"

namespace leat {

// SparseToDense: `count` places of `depth` numbers each.
struct DenseForm {
  int64_t count;
  int depth;
  bool repeats;  // one value is for all places

  explicit DenseForm(const KernelRequest& r) {
    const Shape &indices = r.inputs[0].shape, &dense = r.outputs[0].shape,
                &values = r.inputs[2].shape;
    count = indices.rank() == 0 ? 1 : indices[0];
    depth = indices.rank() > 1 ? static_cast<int>(indices[1]) : 1;
    repeats = values.rank() == 0;
    check(depth == dense.rank(), "output_shape has incorrect number of elements: ", dense.rank(),
          " should be: ", depth);
    check(depth > 0 || count <= 1, "indices without columns name the same place ", count, " times");
    check(repeats || (values.rank() == 1 && values[0] == count),
          "sparse_values has incorrect shape ", values, ", should be [] or [", count, "]");
  }
};

// SparseTensorDenseAdd.
inline void check_dense_add(const KernelRequest& r) {
  const Shape &indices = r.inputs[0].shape, &dense = r.inputs[3].shape;
  check(indices[1] == dense.rank(), "Two operands have different ranks: received: ", indices[1],
        " and ", dense.rank());
}

}  // namespace leat
