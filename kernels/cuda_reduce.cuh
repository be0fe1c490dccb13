// The GPU's side of reduction.h. Rows (the innermost axis is reduced): a warp or a block per
// result. Columns: a thread per result, so that neighbouring threads read neighbouring elements. If
// a few results combine many elements each, they are computed in chunks, whose partial results a
// second launch combines. The order is fixed, so results are reproducible.
#pragma once

#include <algorithm>

#include "core/kernel.h"
#include "kernels/cuda_launch.cuh"
#include "kernels/reduction_plan.h"

namespace leat {
namespace cuda {

LEAT_DEVICE int64_t offset_of(int64_t index, int rank, const int64_t* extents,
                              const int64_t* strides) {
  if (rank == 1) return index * strides[0];
  int64_t offset = 0;
  for (int axis = rank - 1; axis >= 0; --axis) {
    offset += index % extents[axis] * strides[axis];
    index /= extents[axis];
  }
  return offset;
}

// The reduced elements that chunk `blockIdx.y` handles.
struct ChunkRange {
  int64_t begin;
  int64_t end;
};
LEAT_DEVICE ChunkRange chunk_range(int64_t reduced) {
  const int64_t size = (reduced + gridDim.y - 1) / gridDim.y;
  const int64_t begin = size * blockIdx.y;
  return {begin, begin + size < reduced ? begin + size : reduced};
}

// The result of one chunk: final if there is only one chunk, else partial.
template <class R, class T>
LEAT_DEVICE void store(const ReductionPlan& plan, int64_t output, Accumulator<R, T> total, T* out,
                       Accumulator<R, T>* partial) {
  if (gridDim.y == 1) {
    out[output] = static_cast<T>(R::template finish<Accumulator<R, T>>(total, plan.reduced));
  } else {
    partial[blockIdx.y * plan.outputs + output] = total;
  }
}

// `team` threads (a power of two, at most a block) share a result.
template <class R, class T>
__global__ void __launch_bounds__(threads_per_block)
    reduce_rows(ReductionPlan plan, int team, const T* in, T* out, Accumulator<R, T>* partial) {
  using C = Accumulator<R, T>;
  __shared__ C totals[threads_per_block];
  const int member = threadIdx.x % team;
  const int64_t output =
      static_cast<int64_t>(blockIdx.x) * (threads_per_block / team) + threadIdx.x / team;
  C total = R::template identity<C>();
  if (output < plan.outputs) {
    const T* from = in + offset_of(output, plan.kept_rank, plan.kept_extents, plan.kept_strides);
    const ChunkRange range = chunk_range(plan.reduced);
    for (int64_t i = range.begin + member; i < range.end; i += team) {
      const int64_t offset =
          offset_of(i, plan.reduced_rank, plan.reduced_extents, plan.reduced_strides);
      total = R::template combine<C>(total, R::template map<C>(widened(from[offset])));
    }
  }
  totals[threadIdx.x] = total;
  for (int width = team / 2; width > 0; width /= 2) {
    __syncthreads();
    if (member < width) {
      totals[threadIdx.x] =
          R::template combine<C>(totals[threadIdx.x], totals[threadIdx.x + width]);
    }
  }
  if (member == 0 && output < plan.outputs)
    store<R, T>(plan, output, totals[threadIdx.x], out, partial);
}

template <class R, class T>
__global__ void __launch_bounds__(threads_per_block)
    reduce_columns(ReductionPlan plan, const T* in, T* out, Accumulator<R, T>* partial) {
  using C = Accumulator<R, T>;
  const int64_t output = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (output >= plan.outputs) return;
  const T* from = in + offset_of(output, plan.kept_rank, plan.kept_extents, plan.kept_strides);
  const ChunkRange range = chunk_range(plan.reduced);
  C total = R::template identity<C>();
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t offset =
        offset_of(i, plan.reduced_rank, plan.reduced_extents, plan.reduced_strides);
    total = R::template combine<C>(total, R::template map<C>(widened(from[offset])));
  }
  store<R, T>(plan, output, total, out, partial);
}

template <class R, class T>
__global__ void __launch_bounds__(threads_per_block)
    combine_chunks(ReductionPlan plan, int chunks, const Accumulator<R, T>* partial, T* out) {
  using C = Accumulator<R, T>;
  const int64_t output = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (output >= plan.outputs) return;
  C total = R::template identity<C>();
  for (int chunk = 0; chunk < chunks; ++chunk) {
    total = R::template combine<C>(total, partial[chunk * plan.outputs + output]);
  }
  out[output] = static_cast<T>(R::template finish<C>(total, plan.reduced));
}

}  // namespace cuda

template <class R, class T>
BoundKernel bind_reduction(const ReductionPlan& plan) {
  using C = Accumulator<R, T>;
  if (plan.outputs == 0) return {};
  const bool rows = plan.reduces_inner();
  // Threads per result, and chunks: gives some hundred thousand threads work.
  int team = 1;
  while (rows && team < cuda::threads_per_block && team * 4 < plan.reduced) team *= 2;
  constexpr int64_t wanted_threads = 1 << 17;
  constexpr int64_t min_per_thread = 16;
  const int64_t for_width = wanted_threads / std::max<int64_t>(1, plan.outputs * team);
  const int64_t for_work = plan.reduced / (min_per_thread * team);
  const int chunks = static_cast<int>(std::clamp<int64_t>(std::min(for_width, for_work), 1, 512));

  BoundKernel kernel = BoundKernel::of([plan, rows, team, chunks](const Arguments& arguments) {
    const cudaStream_t stream = cuda_stream(arguments);
    const T* in = arguments.input<T>(0);
    T* out = arguments.output<T>();
    C* partial = static_cast<C*>(arguments.workspace);
    const dim3 grid(cuda::blocks_for(plan.outputs * team), chunks);
    if (rows) {
      cuda::launch(cuda::reduce_rows<R, T>, grid, cuda::threads_per_block, 0, stream, plan, team,
                   in, out, partial);
    } else {
      cuda::launch(cuda::reduce_columns<R, T>, grid, cuda::threads_per_block, 0, stream, plan, in,
                   out, partial);
    }
    if (chunks > 1) {
      cuda::launch(cuda::combine_chunks<R, T>, cuda::blocks_for(plan.outputs),
                   cuda::threads_per_block, 0, stream, plan, chunks, partial, out);
    }
  });
  if (chunks > 1) kernel.workspace_bytes = static_cast<size_t>(chunks) * plan.outputs * sizeof(C);
  return kernel;
}

}  // namespace leat
