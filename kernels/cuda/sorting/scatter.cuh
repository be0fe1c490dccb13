// Updates of slices of a tensor, several of which may hit the same one: they are made in their
// order, as on the CPU, without atomics. The updates are sorted by slice, which keeps the order of
// equal ones; then each element of a slice has one thread, which makes all updates of it.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda_launch.cuh"
#include "kernels/index_vectors.h"

namespace leat {
namespace cuda {

// What the target of a scatter is, and what it holds before the updates.
enum class Target {
  variable,  // input 0, as it is
  zeros,     // output 0
  filled,    // output 0, all elements of which are ScatterPlan::fill
  repeated,  // output 0, all elements of which are the one of input `base`
  copied,    // output 0, a copy of input `base`; both may be the same memory
};

// How a number in an index tensor names a slice. `vector`: several numbers name one.
enum class Naming { row, row_modulo, vector };

struct ScatterPlan {
  Target target = Target::variable;
  Naming naming = Naming::row;
  IndexVectors vectors;          // for Naming::vector
  int64_t count = 0;             // updates
  int64_t slice = 0;             // elements of each
  int64_t slices = 0;            // of the target
  int indices = 1, updates = 2;  // the inputs that hold them
  int base = 0;                  // the input that the target begins with
  bool has_one_for_all = false;  // the updates are a single element
  uint64_t fill = 0;             // the bits of an element
};

// Updates in the order of their slices; those of no slice are at the end, with the number `slices`.
struct SortedUpdates {
  const uint32_t* slices;
  const uint32_t* numbers;
};

// Rows that indices name (int32 or int64), sorted; `rows` for those that are not there. The
// workspace is as large as sort_workspace() says.
size_t sort_workspace(int64_t count);
SortedUpdates enqueue_sorted_rows(cudaStream_t stream, DType index, const void* indices,
                                  int64_t count, int64_t rows, void* workspace);
// The same for the slices that a plan names.
SortedUpdates enqueue_sorted_updates(cudaStream_t stream, const ScatterPlan& plan, DType index,
                                     const void* indices, void* workspace);
// The same for slices whose numbers (uint32) the caller has put at the beginning of the workspace.
SortedUpdates enqueue_sorted_slices(cudaStream_t stream, int64_t count, int64_t slices,
                                    void* workspace);

using CombineKernel = void (*)(ScatterPlan, SortedUpdates, const void* updates, void* target);

template <class Rule, class T>
__global__ void __launch_bounds__(threads_per_block)
    combine_kernel(ScatterPlan plan, SortedUpdates sorted, const void* updates, void* target) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= plan.count * plan.slice) return;
  const int64_t first = i / plan.slice, element = i % plan.slice;
  const uint32_t slice = sorted.slices[first];
  if (slice >= plan.slices || (first > 0 && sorted.slices[first - 1] == slice)) return;
  const T* from = static_cast<const T*>(updates);
  T& to = static_cast<T*>(target)[slice * plan.slice + element];
  T value = to;
  for (int64_t k = first; k < plan.count && sorted.slices[k] == slice; ++k) {
    Rule{}(value, from[plan.has_one_for_all ? 0 : sorted.numbers[k] * plan.slice + element]);
  }
  to = value;
}

// An update of a slice that is not there is skipped. INVALID_ARGUMENT if the updates do not have
// the plan's elements.
BoundKernel bind_scatter(const KernelRequest& request, const ScatterPlan& plan,
                         CombineKernel combine);

}  // namespace cuda
}  // namespace leat
