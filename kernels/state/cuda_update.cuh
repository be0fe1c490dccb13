// The GPU's side of update_rule.h: one pass over the parameter, its slots and the gradient. The
// device reads the rates when the update runs; it cannot report invalid ones.
#pragma once

#include "kernels/cuda/sorting/scatter.cuh"
#include "kernels/cuda_launch.cuh"
#include "kernels/state/update_plan.h"

namespace leat {
namespace cuda {

// Element `at` of var and its slots, with the gradient's element `from`.
template <class Rule, class T>
LEAT_DEVICE void update_element(const Rule& rule, const Pointers& pointers, int gradient,
                                int64_t at, int64_t from) {
  ComputeType<T> values[Rule::variables];
  for (int i = 0; i < Rule::variables; ++i) values[i] = widened(pointers.ref<T>(i)[at]);
  rule(values, widened(pointers.input<T>(gradient)[from]));
  for (int i = 0; i < Rule::variables; ++i) pointers.ref<T>(i)[at] = static_cast<T>(values[i]);
}

template <class Rule, class T>
__global__ void __launch_bounds__(threads_per_block)
    update_kernel(UpdatePlan plan, Pointers pointers) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= plan.row_elements) return;
  update_element<Rule, T>(rule_now<Rule, T>(plan, pointers), pointers, plan.gradient, i, i);
}

// One block per index, sorted by row. All updates of a repeated row count, in the order of the
// indices: the block of the row's first index makes them, the others return. Missing rows are
// skipped.
template <class Rule, class T>
__global__ void __launch_bounds__(threads_per_block)
    update_rows_kernel(UpdatePlan plan, SortedUpdates sorted, Pointers pointers) {
  const int64_t first = blockIdx.x, row = sorted.slices[first];
  if (row >= plan.rows || (first > 0 && sorted.slices[first - 1] == row)) return;
  const Rule rule = rule_now<Rule, T>(plan, pointers);
  for (int64_t i = first; i < plan.count && sorted.slices[i] == row; ++i) {
    for (int64_t k = threadIdx.x; k < plan.row_elements; k += blockDim.x) {
      update_element<Rule, T>(rule, pointers, plan.gradient, row * plan.row_elements + k,
                              sorted.numbers[i] * plan.row_elements + k);
    }
  }
}

}  // namespace cuda

template <class Rule, class T>
BoundKernel bind_update(const KernelRequest& request, const UpdatePlan& plan) {
  if (plan.row_elements == 0 || plan.count == 0) return {};
  const int num_inputs = static_cast<int>(request.inputs.size());
  check_internal(num_inputs <= Pointers::max_inputs, request.node.op, " has too many inputs");
  const DType index = plan.indices < 0 ? DType::i32 : request.inputs[plan.indices].dtype;
  check(plan.count < UINT32_MAX && plan.rows < UINT32_MAX, request.node.op, " of ", plan.count,
        " rows of ", plan.rows, " is too large for a GPU: place the node on a CPU");
  return BoundKernel::of([plan, num_inputs, index](const Arguments& arguments) {
           const Pointers pointers = cuda::copy_pointers(arguments, num_inputs, 0);
           const cudaStream_t stream = cuda_stream(arguments);
           if (plan.indices < 0) {
             cuda::launch(cuda::update_kernel<Rule, T>, cuda::blocks_for(plan.row_elements),
                          cuda::threads_per_block, 0, stream, plan, pointers);
             return;
           }
           const cuda::SortedUpdates sorted =
               cuda::enqueue_sorted_rows(stream, index, arguments.inputs[plan.indices], plan.count,
                                         plan.rows, arguments.workspace);
           cuda::launch(cuda::update_rows_kernel<Rule, T>, cuda::as_blocks(plan.count),
                        cuda::threads_per_block, 0, stream, plan, sorted, pointers);
         })
      .with_workspace(plan.indices < 0 ? 0 : cuda::sort_workspace(plan.count));
}

}  // namespace leat
