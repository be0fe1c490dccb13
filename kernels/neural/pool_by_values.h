// Pools whose windows and strides are their last two inputs, on the host, instead of attributes:
// what the ops share with their GPU kernels.
#pragma once

#include <utility>
#include <vector>

#include "graph/op_def.h"

namespace leat {

// The attributes with `ksize` and `strides` among them.
inline AttrMap with_windows(AttrMap attrs, const Tensor& ksize, const Tensor& strides) {
  attrs["ksize"] = to_int64s(ksize);
  attrs["strides"] = to_int64s(strides);
  return attrs;
}

// The kernel of an op that has them as attributes, for one that has them as inputs.
inline Kernel by_values(Kernel kernel) {
  kernel.prepare = [prepare = std::move(kernel.prepare)](const KernelRequest& r) {
    const size_t windows = r.inputs.size() - 2;
    const AttrMap attrs =
        with_windows(r.node.attrs, *r.inputs[windows].value, *r.inputs[windows + 1].value);
    return prepare({{r.node.name, r.node.op, attrs}, r.inputs, r.outputs, r.device, r.node_state});
  };
  return kernel;
}
inline std::vector<Kernel> by_values(std::vector<Kernel> kernels) {
  for (Kernel& kernel : kernels) kernel = by_values(std::move(kernel));
  return kernels;
}

}  // namespace leat
