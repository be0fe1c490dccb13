// One block per row: shared by softmax and the cross-entropies.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>

#include "kernels/cuda_launch.cuh"

namespace leat {
namespace cuda {

inline constexpr int max_row_threads = 1024;

// Threads per row: a power of two, at least a warp.
inline int row_threads(int64_t columns) {
  int threads = 32;
  while (threads < max_row_threads && threads * 4 < columns) threads *= 2;
  return threads;
}

// combine() over one value per thread; every thread gets the result. `shared` has one element per
// thread.
template <class C, class Combine>
LEAT_DEVICE C reduce_block(C value, C* shared, Combine combine) {
  shared[threadIdx.x] = value;
  for (int width = blockDim.x / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width)
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + width]);
  }
  __syncthreads();
  const C result = shared[0];
  __syncthreads();  // before any thread writes to it again
  return result;
}

// Largest x and the sum of exp(x - largest) over a row, whose elements are `step` apart.
template <class C>
struct RowTotals {
  C max;
  C sum;
};

template <class T, class C = ComputeType<T>>
LEAT_DEVICE RowTotals<C> row_totals(const T* x, int64_t columns, C* shared, int64_t step = 1) {
  C max = -std::numeric_limits<C>::infinity();
  for (int64_t i = threadIdx.x; i < columns; i += blockDim.x)
    max = std::fmax(max, widened(x[i * step]));
  max = reduce_block(max, shared, [](C a, C b) { return std::fmax(a, b); });
  C sum = 0;
  for (int64_t i = threadIdx.x; i < columns; i += blockDim.x)
    sum += std::exp(widened(x[i * step]) - max);
  return {max, reduce_block(sum, shared, [](C a, C b) { return a + b; })};
}

}  // namespace cuda
}  // namespace leat
