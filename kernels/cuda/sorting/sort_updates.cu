// The part of scatters that does not depend on the elements (scatter.cuh): which slices the updates
// change, and the order of the updates by slice. Few are ranked by comparing all with
// all; many by digits: every thread counts the digits of a chunk, the counts are added up, and
// every thread puts its chunk in place. Both keep the order of equal ones.
#include "kernels/cuda/sorting/scatter.cuh"
#include "kernels/moves/moves.h"

namespace leat {
namespace cuda {
namespace {

constexpr int64_t few = 2048;
constexpr int bits = 4, digits = 1 << bits;
constexpr int64_t most_chunks = 8192;
constexpr int scan_threads = 1024;

int64_t chunk_size(int64_t n) { return std::max<int64_t>(32, (n + most_chunks - 1) / most_chunks); }
int64_t chunks_of(int64_t n) { return (n + chunk_size(n) - 1) / chunk_size(n); }

LEAT_DEVICE int64_t thread_number() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ void __launch_bounds__(threads_per_block)
    rank_kernel(int64_t n, const uint32_t* slices, uint32_t* sorted, uint32_t* numbers) {
  const int64_t i = thread_number();
  if (i >= n) return;
  const uint32_t own = slices[i];
  int64_t rank = 0;
  for (int64_t k = 0; k < n; ++k) {
    const uint32_t other = slices[k];
    rank += other < own || (other == own && k < i) ? 1 : 0;
  }
  sorted[rank] = own;
  numbers[rank] = static_cast<uint32_t>(i);
}

// counts[digit][chunk]
__global__ void __launch_bounds__(threads_per_block)
    count_kernel(int64_t n, int64_t chunks, int64_t chunk, int shift, const uint32_t* slices,
                 uint32_t* counts) {
  const int64_t c = thread_number();
  if (c >= chunks) return;
  uint32_t count[digits] = {};
  const int64_t end = (c + 1) * chunk < n ? (c + 1) * chunk : n;
  for (int64_t i = c * chunk; i < end; ++i) {
    const uint32_t digit = slices[i] >> shift & (digits - 1);
    for (int d = 0; d < digits; ++d)
      count[d] += digit == static_cast<uint32_t>(d) ? 1 : 0;  // stays in registers
  }
  for (int d = 0; d < digits; ++d) counts[d * chunks + c] = count[d];
}

// Replaces every count by the sum of those before it. One block.
__global__ void __launch_bounds__(scan_threads) scan_kernel(int64_t n, uint32_t* counts) {
  __shared__ uint32_t totals[scan_threads];
  const int64_t part = (n + scan_threads - 1) / scan_threads, begin = threadIdx.x * part;
  const int64_t end = begin + part < n ? begin + part : n;
  uint32_t total = 0;
  for (int64_t i = begin; i < end; ++i) total += counts[i];
  totals[threadIdx.x] = total;
  __syncthreads();
  for (unsigned distance = 1; distance < scan_threads; distance *= 2) {
    const uint32_t before = threadIdx.x >= distance ? totals[threadIdx.x - distance] : 0;
    __syncthreads();
    totals[threadIdx.x] += before;
    __syncthreads();
  }
  uint32_t sum = totals[threadIdx.x] - total;
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t count = counts[i];
    counts[i] = sum;
    sum += count;
  }
}

// `numbers` is null in the first pass, where update i is at i.
__global__ void __launch_bounds__(threads_per_block)
    place_kernel(int64_t n, int64_t chunks, int64_t chunk, int shift, uint32_t* places,
                 const uint32_t* slices, const uint32_t* numbers, uint32_t* to_slices,
                 uint32_t* to_numbers) {
  const int64_t c = thread_number();
  if (c >= chunks) return;
  const int64_t end = (c + 1) * chunk < n ? (c + 1) * chunk : n;
  for (int64_t i = c * chunk; i < end; ++i) {
    const uint32_t slice = slices[i], digit = slice >> shift & (digits - 1);
    const uint32_t to = places[digit * chunks + c]++;
    to_slices[to] = slice;
    to_numbers[to] = numbers == nullptr ? static_cast<uint32_t>(i) : numbers[i];
  }
}

// The slice of every update; `plan.slices` if there is none.
template <class Index>
__global__ void __launch_bounds__(threads_per_block)
    slices_kernel(ScatterPlan plan, const Index* indices, uint32_t* out) {
  const int64_t i = thread_number();
  if (i >= plan.count) return;
  int64_t slice;
  if (plan.naming == Naming::vector) {
    slice = plan.vectors.slice_of(indices + i * plan.vectors.depth);
  } else {
    slice = static_cast<int64_t>(indices[i]);
    if (plan.naming == Naming::row_modulo)
      slice = (slice % plan.slices + plan.slices) % plan.slices;
  }
  out[i] = static_cast<uint32_t>(slice < 0 || slice >= plan.slices ? plan.slices : slice);
}

template <class T>
__global__ void __launch_bounds__(threads_per_block) fill_bits_kernel(int64_t n, T bits, T* to) {
  const int64_t i = thread_number();
  if (i < n) to[i] = bits;
}

template <class T>
void enqueue_fill_bits(cudaStream_t stream, int64_t n, uint64_t bits, void* to) {
  launch(fill_bits_kernel<T>, blocks_for(n), threads_per_block, 0, stream, n, static_cast<T>(bits),
         static_cast<T*>(to));
}

template <class Index>
void enqueue_slices(cudaStream_t stream, const ScatterPlan& plan, const void* indices,
                    void* workspace) {
  launch(slices_kernel<Index>, blocks_for(plan.count), threads_per_block, 0, stream, plan,
         static_cast<const Index*>(indices), static_cast<uint32_t*>(workspace));
}

// What a scatter does on the stream, for one dtype of the target and one of the indices.
struct Scatter {
  ScatterPlan plan;
  CombineKernel combine;
  int64_t elements;  // of the target
  size_t size;       // bytes of one
  DType index;
  StridedCopy copy;

  void prepare_target(cudaStream_t stream, const Arguments& a) const {
    if (plan.target == Target::variable || elements == 0) return;
    void* const to = a.outputs[0];
    if (plan.target == Target::copied) {
      if (to != a.inputs[plan.base]) enqueue_copy(copy, a, size, a.inputs[plan.base], to);
    } else if (plan.target == Target::repeated) {
      enqueue_fill(a, size, a.inputs[plan.base], elements, to);
    } else if (plan.target == Target::zeros) {
      enqueue_fill(a, size, nullptr, elements, to);
    } else if (size == 1) {
      enqueue_fill_bits<uint8_t>(stream, elements, plan.fill, to);
    } else if (size == 2) {
      enqueue_fill_bits<uint16_t>(stream, elements, plan.fill, to);
    } else if (size == 4) {
      enqueue_fill_bits<uint32_t>(stream, elements, plan.fill, to);
    } else {
      enqueue_fill_bits<uint64_t>(stream, elements, plan.fill, to);
    }
  }

  void operator()(const Arguments& a) const {
    const cudaStream_t stream = cuda_stream(a);
    prepare_target(stream, a);
    if (plan.count == 0 || plan.slice == 0) return;
    const void* const indices = a.inputs[plan.indices];
    const SortedUpdates sorted = enqueue_sorted_updates(stream, plan, index, indices, a.workspace);
    launch(combine, blocks_for(plan.count * plan.slice), threads_per_block, 0, stream, plan, sorted,
           static_cast<const void*>(a.inputs[plan.updates]),
           plan.target == Target::variable ? a.inputs[0] : a.outputs[0]);
  }
};

}  // namespace

// It holds slices and numbers of n updates, twice, and counts of digits. The unsorted slices are at
// its beginning.
size_t sort_workspace(int64_t n) {
  return static_cast<size_t>(4 * n + digits * chunks_of(n)) * sizeof(uint32_t);
}

SortedUpdates enqueue_sorted_slices(cudaStream_t stream, int64_t n, int64_t slices,
                                    void* workspace) {
  uint32_t* from = static_cast<uint32_t*>(workspace);
  uint32_t* to = from + 2 * n;
  uint32_t* const counts = from + 4 * n;
  if (n <= few) {
    launch(rank_kernel, blocks_for(n), threads_per_block, 0, stream, n, from, to, to + n);
    return {to, to + n};
  }
  const int64_t chunk = chunk_size(n), chunks = chunks_of(n);
  const unsigned blocks = blocks_for(chunks);
  for (int shift = 0; shift < 32 && slices >> shift != 0; shift += bits) {
    const uint32_t* const numbers = shift == 0 ? nullptr : from + n;
    launch(count_kernel, blocks, threads_per_block, 0, stream, n, chunks, chunk, shift, from,
           counts);
    launch(scan_kernel, 1, scan_threads, 0, stream, digits * chunks, counts);
    launch(place_kernel, blocks, threads_per_block, 0, stream, n, chunks, chunk, shift, counts,
           from, numbers, to, to + n);
    std::swap(from, to);
  }
  return {from, from + n};
}

SortedUpdates enqueue_sorted_updates(cudaStream_t stream, const ScatterPlan& plan, DType index,
                                     const void* indices, void* workspace) {
  if (index == DType::i64) {
    enqueue_slices<int64_t>(stream, plan, indices, workspace);
  } else if (index == DType::i16) {
    enqueue_slices<int16_t>(stream, plan, indices, workspace);
  } else if (index == DType::u16) {
    enqueue_slices<uint16_t>(stream, plan, indices, workspace);
  } else {
    enqueue_slices<int32_t>(stream, plan, indices, workspace);
  }
  return enqueue_sorted_slices(stream, plan.count, plan.slices, workspace);
}

SortedUpdates enqueue_sorted_rows(cudaStream_t stream, DType index, const void* indices,
                                  int64_t count, int64_t rows, void* workspace) {
  return enqueue_sorted_updates(stream, {.count = count, .slices = rows}, index, indices,
                                workspace);
}

BoundKernel bind_scatter(const KernelRequest& request, const ScatterPlan& plan,
                         CombineKernel combine) {
  const TensorSpec& updates = request.inputs[plan.updates];
  const int64_t given = updates.shape.elements();
  check(plan.has_one_for_all || given == plan.count * plan.slice, request.node.op, " has ", given,
        " elements of updates for ", plan.count, " slices of ", plan.slice);
  check(plan.count < UINT32_MAX && plan.slices < UINT32_MAX, request.node.op, " of ", plan.count,
        " updates of ", plan.slices, " slices is too large for a GPU: place the node on a CPU");
  const int64_t elements =
      plan.target == Target::variable ? 0 : request.outputs[0].shape.elements();
  BoundKernel kernel = BoundKernel::of(Scatter{.plan = plan,
                                               .combine = combine,
                                               .elements = elements,
                                               .size = dtype_size(updates.dtype),
                                               .index = request.inputs[plan.indices].dtype,
                                               .copy = StridedCopy({{elements, 1, 1}})});
  kernel.workspace_bytes = sort_workspace(plan.count);
  if (plan.target == Target::copied) kernel.may_share.push_back({0, plan.base});
  return kernel;
}

}  // namespace cuda
}  // namespace leat
