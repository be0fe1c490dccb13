// Bincount and DenseBincount on the GPU. Atomics add up counts, which are integers; sums of weights
// are made in the order of the weights, as on the CPU (scatter.cuh).
#include "graph/op_def.h"
#include "kernels/cuda/sorting/scatter.cuh"
#include "kernels/cuda/zeros.cuh"
#include "kernels/elementwise.h"
#include "kernels/math/bins.h"
#include "kernels/moves/moves.h"
#include "kernels/scatter_rules.h"

namespace leat {
namespace cuda {
namespace {

template <class Index>
__global__ void __launch_bounds__(threads_per_block)
    count_kernel(Bins bins, const Index* input, unsigned* counts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= bins.numbers) return;
  const int64_t bin = bins.bin_of(input, i);
  if (bin >= 0) atomicAdd(&counts[bin], 1u);
}

// A count as the CPU makes it by adding ones: no further than T goes in steps of one.
template <class T>
LEAT_DEVICE T converted(unsigned count) {
  constexpr unsigned last_step = 1u << 24;
  if (std::is_same_v<T, float> && count > last_step) count = last_step;
  return static_cast<T>(count);
}

template <class T>
__global__ void __launch_bounds__(threads_per_block)
    convert_kernel(Bins bins, const unsigned* counts, T* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= bins.rows * bins.size) return;
  out[i] = bins.is_binary ? T(counts[i] > 0 ? 1 : 0) : converted<T>(counts[i]);
}

// `bins.rows * bins.size` for numbers in no bin.
template <class Index>
__global__ void __launch_bounds__(threads_per_block)
    bins_kernel(Bins bins, const Index* input, uint32_t* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= bins.numbers) return;
  const int64_t bin = bins.bin_of(input, i);
  out[i] = static_cast<uint32_t>(bin < 0 ? bins.rows * bins.size : bin);
}

template <class T, class Index>
BoundKernel bind_counts(const Bins& bins) {
  const size_t bytes = static_cast<size_t>(bins.rows * bins.size) * sizeof(unsigned);
  return BoundKernel::of([bins, bytes](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           auto* const counts = static_cast<unsigned*>(a.workspace);
           check_cuda(cudaMemsetAsync(counts, 0, bytes, stream), "cudaMemsetAsync");
           launch(count_kernel<Index>, blocks_for(bins.numbers), threads_per_block, 0, stream, bins,
                  a.input<Index>(0), counts);
           launch(convert_kernel<T>, blocks_for(bins.rows * bins.size), threads_per_block, 0,
                  stream, bins, static_cast<const unsigned*>(counts), a.output<T>());
         })
      .with_workspace(bytes);
}

template <class T, class Index>
BoundKernel bind_sums(const Bins& bins) {
  const ScatterPlan plan{.count = bins.numbers, .slice = 1, .slices = bins.rows * bins.size};
  return BoundKernel::of([bins, plan](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           fill_elements(a, a.output<T>(), plan.slices);
           launch(bins_kernel<Index>, blocks_for(plan.count), threads_per_block, 0, stream, bins,
                  a.input<Index>(0), static_cast<uint32_t*>(a.workspace));
           const SortedUpdates sorted =
               enqueue_sorted_slices(stream, plan.count, plan.slices, a.workspace);
           launch(combine_kernel<scatter::Add, T>, blocks_for(plan.count), threads_per_block, 0,
                  stream, plan, sorted, static_cast<const void*>(a.inputs[2]), a.outputs[0]);
         })
      .with_workspace(sort_workspace(plan.count));
}

template <class T, class Index>
BoundKernel bind(const KernelRequest& r) {
  const Bins bins(r);
  if (r.outputs[0].shape.elements() == 0) return {};
  if (bins.numbers == 0) return bind_zeros(r.outputs[0]);
  check(bins.numbers < UINT32_MAX && bins.rows * bins.size < UINT32_MAX, r.node.op, " of ",
        bins.numbers, " numbers is too large for a GPU: place the node on a CPU");
  return bins.is_weighted && !bins.is_binary ? bind_sums<T, Index>(bins)
                                             : bind_counts<T, Index>(bins);
}

std::vector<Kernel> kernels() {
  return typed_kernels("T", Types<float, double, int32_t, int64_t>{},
                       []<class T>(TypeTag<T>, const KernelRequest& r) {
                         return r.inputs[0].dtype == DType::i64 ? bind<T, int64_t>(r)
                                                                : bind<T, int32_t>(r);
                       });
}

const OpKernels bincount{"Bincount", kernels()};
const OpKernels dense_bincount{"DenseBincount", kernels()};

}  // namespace
}  // namespace cuda
}  // namespace leat
