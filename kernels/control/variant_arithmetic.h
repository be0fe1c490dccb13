// Sums and zeros of variants, element by element: gradients of values that pass through loops and
// branches.
#pragma once

#include <vector>

#include "core/kernel.h"
#include "core/variant.h"

namespace leat {

// The kernels, and the same for GPUs: the host computes with variants on any device.
inline std::vector<Kernel> and_on_gpus(std::vector<Kernel> kernels) {
  const size_t count = kernels.size();
  for (size_t i = 0; i < count; ++i) {
    Kernel& kernel = kernels.emplace_back(kernels[i]);
    kernel.device = DeviceType::gpu;
  }
  return kernels;
}

// INVALID_ARGUMENT unless both are TensorLists, Optionals or ragged tensors of one structure.
Tensor sum_of_variants(const Tensor& a, const Tensor& b);
Tensor zeros_like_variant(const Tensor& tensor);

}  // namespace leat
