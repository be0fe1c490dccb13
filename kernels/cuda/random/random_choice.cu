// Multinomial and StatelessMultinomial on the GPU: the CPU's classes for the same seeds. A block
// per row adds up the weights of the classes; then a thread per sample searches its number.
#include "graph/op_def.h"
#include "kernels/cuda/random/random_start.cuh"
#include "kernels/cuda/row_reduce.cuh"
#include "kernels/types.h"

namespace leat {
namespace {

using cuda::max_row_threads;
using cuda::threads_per_block;
using IndexTypes = Types<int32_t, int64_t>;

struct Extents {
  int64_t rows, classes, samples;
};

// sums[r, j] = the weight of the classes up to j, exp(logit - largest); logits that are not finite
// have weight 0. Each thread adds up a piece of the row.
template <class T>
__global__ void __launch_bounds__(max_row_threads)
    add_up_kernel(Extents n, const T* logits, double* sums) {
  __shared__ double shared[max_row_threads];
  const T* const row = logits + blockIdx.x * n.classes;
  double* const out = sums + blockIdx.x * n.classes;
  const int64_t begin = threadIdx.x * n.classes / blockDim.x,
                end = (threadIdx.x + 1) * n.classes / blockDim.x;
  double largest = std::numeric_limits<float>::lowest();
  for (int64_t j = begin; j < end; ++j) {
    const auto logit = static_cast<double>(cuda::widened(row[j]));
    if (std::isfinite(logit) && logit > largest) largest = logit;
  }
  largest = cuda::reduce_block(largest, shared, [](double a, double b) { return a < b ? b : a; });
  double sum = 0;
  for (int64_t j = begin; j < end; ++j) {
    const auto logit = static_cast<double>(cuda::widened(row[j]));
    if (std::isfinite(logit)) sum += std::exp(logit - largest);
    out[j] = sum;
  }
  shared[threadIdx.x] = sum;
  __syncthreads();
  double before = 0;
  for (unsigned t = 0; t < threadIdx.x; ++t) before += shared[t];
  for (int64_t j = begin; j < end; ++j) out[j] += before;
}

// The first class whose sum is above a random part of the total. Two samples share a block of the
// generator.
template <class Start, class Out>
__global__ void __launch_bounds__(threads_per_block)
    choose_kernel(Extents n, Start start, Pointers pointers, const double* sums, Out* chosen) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n.rows * n.samples) return;
  Philox random = start(pointers);
  random.skip(static_cast<uint64_t>(i / 2));
  const Philox::Block words = random.next();
  const int first = static_cast<int>(i % 2) * 2;
  const double* const row = sums + i / n.samples * n.classes;
  const double wanted = uniform(words[first], words[first + 1]) * row[n.classes - 1];
  int64_t begin = 0, end = n.classes;
  while (begin < end) {
    const int64_t middle = (begin + end) / 2;
    if (row[middle] <= wanted) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  chosen[i] = static_cast<Out>(begin);
}

template <class T, class Out>
struct Choice {
  Extents n;
  int num_inputs;

  template <class Start>
  void enqueue(const Arguments& a, Start start) const {
    auto* const sums = static_cast<double*>(a.workspace);
    cuda::launch(add_up_kernel<T>, cuda::as_blocks(n.rows), cuda::row_threads(n.classes), 0,
                 cuda_stream(a), n, a.input<T>(0), sums);
    cuda::launch(choose_kernel<Start, Out>, cuda::blocks_for(n.rows * n.samples), threads_per_block,
                 0, cuda_stream(a), n, start, cuda::copy_pointers(a, num_inputs, 1), sums,
                 a.output<Out>());
  }
};

template <class T, class Out>
BoundKernel bind(const KernelRequest& r) {
  const Choice<T, Out> choice{{r.inputs[0].shape[0], r.inputs[0].shape[1], r.outputs[0].shape[1]},
                              static_cast<int>(r.inputs.size())};
  const Extents n = choice.n;
  check(n.classes > 0, "num_classes should be positive, got ", n.classes);
  if (n.rows * n.samples == 0) return {};
  const auto bytes = static_cast<size_t>(n.rows * n.classes) * sizeof(double);
  if (r.node.has("Tseed")) {
    const auto with = [&](auto start) {
      return BoundKernel::of([=](const Arguments& a) { choice.enqueue(a, start); })
          .with_workspace(bytes);
    };
    return r.inputs[2].dtype == DType::i64 ? with(SeedStart<int64_t>{2})
                                           : with(SeedStart<int32_t>{2});
  }
  const std::shared_ptr<RandomStream> stream = RandomStream::of(r);
  const auto taken_of_run = static_cast<uint64_t>(2 * 256 * n.rows * ((n.samples + 3) / 4 * 4));
  return BoundKernel::of([choice, start = stream->start(), taken = stream->taken_on(r.device),
                          taken_of_run](const Arguments& a) {
           auto* const count = static_cast<uint64_t*>(taken->data());
           choice.enqueue(a, StreamStart{start, count});
           count_taken(count, taken_of_run, cuda_stream(a));
         })
      .with_workspace(bytes);
}

const std::vector<Kernel> kernels = {
    {.device = DeviceType::gpu,
     .types = {{"T", FloatTypes::list()}, {"output_dtype", IndexTypes::list()}},
     .prepare = [](const KernelRequest& r) {
       return visit_type(FloatTypes{}, r.inputs[0].dtype, [&](auto tag) {
         using T = typename decltype(tag)::type;
         return r.outputs[0].dtype == DType::i64 ? bind<T, int64_t>(r) : bind<T, int32_t>(r);
       });
     }}};

const OpKernels multinomial{"Multinomial", kernels};
const OpKernels stateless_multinomial{"StatelessMultinomial", kernels};

}  // namespace
}  // namespace leat
