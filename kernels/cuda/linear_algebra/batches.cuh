// Batches of matrices on the GPU: transposed, and NaN where there is no result.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "graph/op_def.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/linear_algebra/solver.h"
#include "kernels/cuda/typed_kernel.cuh"
#include "kernels/cuda/workspace.cuh"
#include "kernels/cuda_launch.cuh"
#include "kernels/types.h"

namespace leat {

// What is solved on the GPU.
using GpuSolvedTypes = Types<float, double>;

// The last two extents of a shape, and how many matrices there are.
struct MatrixBatch {
  int64_t m, n, count = 1;

  explicit MatrixBatch(const Shape& shape)
      : m(shape[shape.rank() - 2]), n(shape[shape.rank() - 1]) {
    for (int axis = 0; axis < shape.rank() - 2; ++axis) count *= shape[axis];
  }
};

// Kernels of the op for f32 and f64. prepare(TypeTag<T>, request).
template <class F>
std::vector<Kernel> solver_kernels(F prepare) {
  return {cuda::kernel_for("T", GpuSolvedTypes{}, prepare)};
}

// Of ops that always need a solver.
template <class F>
std::vector<Kernel> library_kernels(F prepare) {
  if (!has_solver_libraries()) return {};
  return solver_kernels(std::move(prepare));
}

namespace cuda {

// Where the parts of a workspace begin.
class WorkspaceParts {
 public:
  size_t add(size_t bytes) { return std::exchange(bytes_, bytes_ + aligned(bytes)); }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

template <class T>
T* part_of(const Arguments& a, size_t begin) {
  return reinterpret_cast<T*>(static_cast<char*>(a.workspace) + begin);
}

// ---- Transposing

inline constexpr int transposed_tile = 32;

// A block per tile, with 8 threads for each of its columns: a warp reads and writes rows.
template <class From, class To>
__global__ void __launch_bounds__(256)
    transpose_kernel(int64_t rows, int64_t columns, int64_t row_tiles, int64_t column_tiles,
                     int64_t from_step, const From* from, To* to) {
  __shared__ To tile[transposed_tile][transposed_tile + 1];
  const int64_t matrix = blockIdx.x / (row_tiles * column_tiles);
  const int64_t first_row = blockIdx.x / column_tiles % row_tiles * transposed_tile;
  const int64_t first_column = blockIdx.x % column_tiles * transposed_tile;
  const int lane = threadIdx.x % transposed_tile, group = threadIdx.x / transposed_tile;
  for (int i = group; i < transposed_tile; i += 8) {
    const int64_t row = first_row + i, column = first_column + lane;
    if (row < rows && column < columns)
      tile[i][lane] = static_cast<To>(from[matrix * from_step + row * columns + column]);
  }
  __syncthreads();
  for (int i = group; i < transposed_tile; i += 8) {
    const int64_t row = first_row + lane, column = first_column + i;
    if (row < rows && column < columns)
      to[(matrix * columns + column) * rows + row] = tile[lane][i];
  }
}

// to [columns, rows] = the transpose of from [rows, columns], for each matrix of a batch. The
// matrices of `from` are `from_step` elements apart.
template <class From, class To>
void enqueue_transposed(const Arguments& a, int64_t count, int64_t rows, int64_t columns,
                        int64_t from_step, const From* from, To* to) {
  if (count * rows * columns == 0) return;
  const int64_t row_tiles = (rows + transposed_tile - 1) / transposed_tile,
                column_tiles = (columns + transposed_tile - 1) / transposed_tile;
  launch(transpose_kernel<From, To>, as_blocks(count * row_tiles * column_tiles), 256, 0,
         cuda_stream(a), rows, columns, row_tiles, column_tiles, from_step, from, to);
}

// ---- Unit matrices

template <class T>
__global__ void __launch_bounds__(threads_per_block)
    unit_kernel(int64_t elements, int64_t m, int64_t n, T* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < elements) out[i] = T(i / n % m == i % n ? 1 : 0);
}

// Matrices [m, n] with 1 on their diagonals; `elements` of all of them.
template <class T>
void enqueue_unit(const Arguments& a, int64_t elements, int64_t m, int64_t n, T* out) {
  launch(unit_kernel<T>, blocks_for(elements), threads_per_block, 0, cuda_stream(a), elements, m, n,
         out);
}

// ---- Matrices without a result

template <class T>
__global__ void __launch_bounds__(threads_per_block)
    invalidate_kernel(int64_t elements, int64_t of_each, const int32_t* failures, T* values) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < elements && failures[i / of_each] != 0) values[i] = std::numeric_limits<T>::quiet_NaN();
}

// The matrices [count, of_each] that failed become NaN.
template <class T>
void enqueue_invalidation(const Arguments& a, int64_t count, int64_t of_each,
                          const int32_t* failures, T* values) {
  launch(invalidate_kernel<T>, blocks_for(count * of_each), threads_per_block, 0, cuda_stream(a),
         count * of_each, of_each, failures, values);
}

}  // namespace cuda
}  // namespace leat
