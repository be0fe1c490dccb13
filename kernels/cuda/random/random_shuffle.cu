// RandomShuffle and StatelessShuffle on the GPU: the CPU's order for the same seeds. The CPU swaps
// row i with a random row t(i) >= i, one i after another (Fisher and Yates). Here all rows find
// their place at once:
//
// Step i takes for place i what lies in place t(i) by then. That was put there by the last step
// s < i with t(s) = t(i), which moved what lay in place s by then; without such a step it is row
// t(i) itself. What lay in place s was put there by the last step before s with target s, and so
// on: the steps back become rarer, and a thread follows them. A sort by targets, which keeps the
// order of steps, puts the last step with a target beside each step.
#include "graph/op_def.h"
#include "kernels/cuda/random/random_start.cuh"
#include "kernels/cuda/sorting/scatter.cuh"
#include "kernels/moves/moves.h"

namespace leat {
namespace {

using cuda::threads_per_block;

constexpr uint32_t none = UINT32_MAX;

LEAT_DEVICE int64_t thread_number() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// targets[i] = t(i), from word i of the generator. The last row has no step: it is its own target.
template <class Start>
__global__ void __launch_bounds__(threads_per_block)
    targets_kernel(int64_t rows, Start start, Pointers pointers, uint32_t* targets) {
  const int64_t i = thread_number();
  if (i >= rows) return;
  if (i + 1 == rows) {
    targets[i] = static_cast<uint32_t>(i);
    return;
  }
  Philox random = start(pointers);
  random.skip(static_cast<uint64_t>(i / 4));
  const uint32_t word = random.next()[i % 4];
  targets[i] = static_cast<uint32_t>(i + word % static_cast<uint32_t>(rows - i));
}

// Of each step: its target, and the last step before it with the same one.
struct Steps {
  uint32_t* target;
  uint32_t* same_target_before;
};

// A place is the target of its own step at most, or of earlier ones.
__global__ void __launch_bounds__(threads_per_block)
    steps_kernel(int64_t rows, cuda::SortedUpdates sorted, Steps steps) {
  const int64_t k = thread_number();
  if (k >= rows) return;
  const uint32_t step = sorted.numbers[k], target = sorted.slices[k];
  steps.target[step] = target;
  steps.same_target_before[step] =
      k > 0 && sorted.slices[k - 1] == target ? sorted.numbers[k - 1] : none;
}

// last_before[p] = the last step before p with target p.
__global__ void __launch_bounds__(threads_per_block)
    last_before_kernel(int64_t rows, cuda::SortedUpdates sorted, uint32_t* last_before) {
  const int64_t k = thread_number();
  if (k >= rows) return;
  const uint32_t step = sorted.numbers[k], target = sorted.slices[k];
  const bool is_last = k + 1 == rows || sorted.slices[k + 1] != target;
  if (!is_last) return;
  if (step != target) {
    last_before[target] = step;
  } else if (k > 0 && sorted.slices[k - 1] == target) {
    last_before[target] = sorted.numbers[k - 1];
  }
}

__global__ void __launch_bounds__(threads_per_block)
    order_kernel(int64_t rows, Steps steps, const uint32_t* last_before, uint32_t* order) {
  const int64_t i = thread_number();
  if (i >= rows) return;
  uint32_t place = steps.target[i];
  for (uint32_t step = steps.same_target_before[i]; step != none; step = last_before[step])
    place = step;
  order[i] = place;
}

template <class T>
__global__ void __launch_bounds__(threads_per_block)
    gather_kernel(int64_t elements, int64_t row, const uint32_t* order, const T* from, T* to) {
  const int64_t i = thread_number();
  if (i < elements) to[i] = from[order[i / row] * row + i % row];
}

template <class T>
struct Shuffle {
  int64_t rows, row;  // the latter: elements of each
  int num_inputs;

  explicit Shuffle(const KernelRequest& r)
      : rows(r.inputs[0].shape[0]),
        row(r.inputs[0].shape.elements() / rows),
        num_inputs(static_cast<int>(r.inputs.size())) {
    check(rows < UINT32_MAX, "cannot shuffle ", rows, " rows on a GPU");
  }
  size_t workspace_bytes() const {
    return cuda::sort_workspace(rows) + static_cast<size_t>(4 * rows) * sizeof(uint32_t);
  }

  template <class Start>
  void enqueue(const Arguments& a, Start start) const {
    const cudaStream_t stream = cuda_stream(a);
    const unsigned blocks = cuda::blocks_for(rows);
    auto* const targets = static_cast<uint32_t*>(a.workspace);
    cuda::launch(targets_kernel<Start>, blocks, threads_per_block, 0, stream, rows, start,
                 cuda::copy_pointers(a, num_inputs, 1), targets);
    const cuda::SortedUpdates sorted = cuda::enqueue_sorted_slices(stream, rows, rows, a.workspace);
    auto* const rest =
        reinterpret_cast<uint32_t*>(static_cast<char*>(a.workspace) + cuda::sort_workspace(rows));
    const Steps steps{rest, rest + rows};
    uint32_t *const last_before = rest + 2 * rows, *const order = rest + 3 * rows;
    cuda::launch(steps_kernel, blocks, threads_per_block, 0, stream, rows, sorted, steps);
    static_assert(none == 0xffffffff);
    cuda::check_cuda(
        cudaMemsetAsync(last_before, 0xff, static_cast<size_t>(rows) * sizeof(uint32_t), stream),
        "cudaMemsetAsync");
    cuda::launch(last_before_kernel, blocks, threads_per_block, 0, stream, rows, sorted,
                 last_before);
    cuda::launch(order_kernel, blocks, threads_per_block, 0, stream, rows, steps, last_before,
                 order);
    cuda::launch(gather_kernel<T>, cuda::blocks_for(rows * row), threads_per_block, 0, stream,
                 rows * row, row, order, a.input<T>(0), a.output<T>());
  }
};

bool has_one_order(const Shape& shape) {
  return shape.rank() == 0 || shape[0] <= 1 || shape.elements() <= 1;
}

template <class T>
BoundKernel bind_shuffle(const KernelRequest& r) {
  if (has_one_order(r.inputs[0].shape)) return BoundKernel::view();
  const Shuffle<T> shuffle(r);
  const std::shared_ptr<RandomStream> stream = RandomStream::of(r);
  const auto taken_of_run = static_cast<uint64_t>((shuffle.rows - 1 + 3) / 4);
  return BoundKernel::of([shuffle, start = stream->start(), taken = stream->taken_on(r.device),
                          taken_of_run](const Arguments& a) {
           auto* const count = static_cast<uint64_t*>(taken->data());
           shuffle.enqueue(a, StreamStart{start, count});
           count_taken(count, taken_of_run, cuda_stream(a));
         })
      .with_workspace(shuffle.workspace_bytes());
}

template <class T>
BoundKernel bind_stateless_shuffle(const KernelRequest& r) {
  if (has_one_order(r.inputs[0].shape)) return BoundKernel::view();
  const Shuffle<T> shuffle(r);
  return BoundKernel::of([shuffle](const Arguments& a) { shuffle.enqueue(a, KeyStart{}); })
      .with_workspace(shuffle.workspace_bytes());
}

const OpKernels shuffle{"RandomShuffle",
                        moving_kernels("T", []<class T>(TypeTag<T>, const KernelRequest& r) {
                          return bind_shuffle<T>(r);
                        })};
const OpKernels stateless_shuffle{
    "StatelessShuffle", moving_kernels("T", []<class T>(TypeTag<T>, const KernelRequest& r) {
      return bind_stateless_shuffle<T>(r);
    })};

}  // namespace
}  // namespace leat
