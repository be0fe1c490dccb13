// What the recurrent layers share on a GPU (kernels/sequences/layer.h).
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "graph/op_def.h"
#include "graph/passes/mixed_precision/mixed_precision.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product.h"
#include "kernels/cuda/typed_kernel.cuh"
#include "kernels/cuda/workspace.cuh"
#include "kernels/cuda_launch.cuh"
#include "kernels/sequences/layer.h"
#include "kernels/types.h"

namespace leat::layer {
namespace {

inline std::shared_ptr<const Product> product_of(const KernelRequest& r, ProductShape shape) {
  shape.dtype = r.inputs[0].dtype;
  shape.takes_tf32 = r.node.has(tensor_float_32_attr);
  return make_product(r.device, shape);
}

template <class T>
void copy(T* to, const T* from, int64_t elements, cudaStream_t stream) {
  if (elements == 0) return;
  cuda::check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(elements) * sizeof(T),
                                   cudaMemcpyDeviceToDevice, stream),
                   "cudaMemcpyAsync");
}
template <class T>
void clear(T* to, int64_t elements, cudaStream_t stream) {
  if (elements == 0) return;
  cuda::check_cuda(cudaMemsetAsync(to, 0, static_cast<size_t>(elements) * sizeof(T), stream),
                   "cudaMemsetAsync");
}

// The state of each row after its last step.
template <class T>
__global__ void __launch_bounds__(cuda::threads_per_block)
    copy_last_kernel(Extents n, const int32_t* lengths, const T* first, const T* all, T* last) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n.states()) return;
  const int64_t steps = n.length(lengths, i / n.units);
  last[i] = steps == 0 ? first[i] : all[n.at(steps - 1) * n.states() + i];
}
template <class T>
void copy_last(const Extents& n, const int32_t* lengths, const T* first, const T* all, T* last,
               cudaStream_t stream) {
  cuda::launch(copy_last_kernel<T>, cuda::blocks_for(n.states()), cuda::threads_per_block, 0,
               stream, n, lengths, first, all, last);
}

// The state before each position: the first one, and y of the position before.
template <class T>
void gather_states(const Extents& n, const T* first, const T* y, T* states, cudaStream_t stream) {
  copy(states + n.at(0) * n.states(), first, n.states(), stream);
  const int64_t others = (n.time - 1) * n.states();
  if (n.reverse) return copy(states, y + n.states(), others, stream);
  copy(states + n.states(), y, others, stream);
}

// Sums over the rows of a matrix, in a fixed order: of parts of the rows, then of these.
template <class T>
struct ColumnSums {
  using Sum = ComputeType<T>;

  int64_t rows, columns;

  static constexpr int64_t parts = 32;
  size_t partial_bytes() const { return static_cast<size_t>(parts * columns) * sizeof(Sum); }
  void run(const T* matrix, void* partials, T* sums, cudaStream_t stream) const;
};

template <class From, class To>
__global__ void __launch_bounds__(cuda::threads_per_block)
    column_sums_kernel(int64_t rows, int64_t columns, int64_t parts, const From* matrix, To* sums) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= parts * columns) return;
  const int64_t part = i / columns, column = i % columns;
  ComputeType<From> sum = 0;
  for (int64_t r = part * rows / parts; r < (part + 1) * rows / parts; ++r)
    sum += static_cast<ComputeType<From>>(matrix[r * columns + column]);
  sums[i] = static_cast<To>(sum);
}

template <class T>
void ColumnSums<T>::run(const T* matrix, void* partials, T* sums, cudaStream_t stream) const {
  auto* const of_parts = static_cast<Sum*>(partials);
  cuda::launch(column_sums_kernel<T, Sum>, cuda::blocks_for(parts * columns),
               cuda::threads_per_block, 0, stream, rows, columns, parts, matrix, of_parts);
  cuda::launch(column_sums_kernel<Sum, T>, cuda::blocks_for(columns), cuda::threads_per_block, 0,
               stream, parts, columns, int64_t{1}, static_cast<const Sum*>(of_parts), sums);
}

// Without examples or positions: outputs that are an input, {output, input}, and those that are 0.
inline BoundKernel bind_nothing_done(const KernelRequest& r, const Extents& n, size_t size,
                                     std::vector<std::pair<int, int>> copies,
                                     const std::vector<int>& zeros) {
  std::vector<std::pair<int, size_t>> cleared;
  for (const int i : zeros)
    cleared.emplace_back(i, static_cast<size_t>(r.outputs[i].shape.elements()) * size);
  const int64_t bytes = n.states() * static_cast<int64_t>(size);
  return BoundKernel::of([copies = std::move(copies), cleared, bytes](const Arguments& a) {
    const cudaStream_t stream = cuda_stream(a);
    for (const auto& [i, count] : cleared)
      clear(a.output<char>(i), static_cast<int64_t>(count), stream);
    for (const auto& [to, from] : copies)
      copy(a.output<char>(to), a.input<char>(from), bytes, stream);
  });
}

// In 16 bits, sums and functions are computed as f32, and what goes from step to step is rounded.
template <class F>
std::vector<Kernel> kernels(F prepare) {
  return {cuda::kernel_for("T", FloatTypes{}, prepare)};
}

}  // namespace
}  // namespace leat::layer
