// Attention with its matrix of scores in the workspace: products by whoever makes them (product.h),
// and one kernel between them, a block per row.
#include "kernels/cuda/attention/composed_attention.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "kernels/cuda/attention/attention_scores.cuh"
#include "kernels/cuda/product.h"
#include "kernels/cuda/row_reduce.cuh"
#include "kernels/cuda/workspace.cuh"
#include "kernels/types.h"

namespace leat {
namespace {

using SixteenBits = Types<half, bfloat16>;

struct Largest {
  LEAT_DEVICE float operator()(float a, float b) const { return std::fmax(a, b); }
};
struct Total {
  LEAT_DEVICE float operator()(float a, float b) const { return a + b; }
};

// One row of scores, by the threads of a block. All call the same functions.
template <class T>
struct Row {
  const AttentionScores& scores;
  const bool* mask;
  const T* x;
  float* shared;  // an element per thread
  int64_t matrix, query;
  float max = 0, sum = 0;  // of what it sees

  LEAT_DEVICE Row(const AttentionScores& s, const bool* mask, const T* all, float* shared)
      : scores(s),
        mask(mask),
        x(all + blockIdx.x * s.keys),
        shared(shared),
        matrix(blockIdx.x / s.queries),
        query(blockIdx.x % s.queries) {
    max = -std::numeric_limits<float>::infinity();
    for (int64_t k = threadIdx.x; k < s.keys; k += blockDim.x)
      if (sees(k)) max = std::fmax(max, score(k));
    max = cuda::reduce_block(max, shared, Largest{});
    for (int64_t k = threadIdx.x; k < s.keys; k += blockDim.x)
      if (sees(k)) sum += std::exp(score(k) - max);
    sum = cuda::reduce_block(sum, shared, Total{});
  }

  LEAT_DEVICE bool sees(int64_t k) const { return scores.sees(mask, matrix, query, k); }
  LEAT_DEVICE float score(int64_t k) const { return cuda::widened(x[k]) * scores.scale; }
  // Without a term there is no sum; all keys have the same weight then.
  LEAT_DEVICE float weight(int64_t k) const {
    if (sum == 0) return 1.0F / static_cast<float>(scores.keys);
    return sees(k) ? std::exp(score(k) - max) / sum : 0.0F;
  }
};

// Scores become weights.
template <class T>
__global__ void __launch_bounds__(cuda::max_row_threads)
    weigh(AttentionScores scores, const bool* mask, T* x, float* statistics) {
  __shared__ float shared[cuda::max_row_threads];
  const Row<T> row(scores, mask, x, shared);
  if (threadIdx.x == 0) statistics[blockIdx.x] = row.max + std::log(row.sum);
  T* const y = x + blockIdx.x * scores.keys;
  for (int64_t k = threadIdx.x; k < scores.keys; k += blockDim.x) y[k] = T(row.weight(k));
}

// Scores become weights, and gradients of weights those of scores.
template <class T>
__global__ void __launch_bounds__(cuda::max_row_threads)
    weigh_backward(AttentionScores scores, const bool* mask, T* x, T* dweights) {
  __shared__ float shared[cuda::max_row_threads];
  const Row<T> row(scores, mask, x, shared);
  T* const y = x + blockIdx.x * scores.keys;
  T* const dy = dweights + blockIdx.x * scores.keys;
  float inner = 0;
  for (int64_t k = threadIdx.x; k < scores.keys; k += blockDim.x)
    inner += cuda::widened(dy[k]) * row.weight(k);
  inner = cuda::reduce_block(inner, shared, Total{});
  for (int64_t k = threadIdx.x; k < scores.keys; k += blockDim.x) {
    const float weight = row.weight(k);
    const float dx = row.sees(k) ? (cuda::widened(dy[k]) - inner) * weight * scores.scale : 0.0F;
    y[k] = T(weight);
    dy[k] = T(dx);
  }
}

using SharedProduct = std::shared_ptr<const Product>;

// One product per matrix of scores. The operands are dense.
SharedProduct product_of(const KernelRequest& request, const AttentionScores& scores, int64_t m,
                         int64_t n, int64_t k, bool transpose_a, bool transpose_b) {
  return make_product(request.device, {.dtype = request.inputs[0].dtype,
                                       .m = m,
                                       .n = n,
                                       .k = k,
                                       .transpose_a = transpose_a,
                                       .transpose_b = transpose_b,
                                       .batch = scores.matrices(),
                                       .stride_a = m * k,
                                       .stride_b = k * n,
                                       .stride_out = m * n});
}

size_t bytes_of_scores(const AttentionScores& scores) {
  return cuda::aligned(static_cast<size_t>(scores.elements()) * sizeof(half));
}

const bool* mask_of(const Arguments& arguments, bool has_mask, int input) {
  return has_mask ? arguments.input<bool>(input) : nullptr;
}

template <class T>
BoundKernel bind(const KernelRequest& request, const AttentionScores& s) {
  const SharedProduct scores = product_of(request, s, s.queries, s.keys, s.size, false, true),
                      output =
                          product_of(request, s, s.queries, s.value_size, s.keys, false, false);
  const size_t matrix = bytes_of_scores(s);
  const bool has_mask = request.inputs.size() > 3;
  return BoundKernel::of([=](const Arguments& a) {
           T* const x = static_cast<T*>(a.workspace);
           void* const workspace = static_cast<char*>(a.workspace) + matrix;
           scores->run({a.inputs[0], a.inputs[1], x}, workspace, *a.stream);
           cuda::launch(weigh<T>, cuda::as_blocks(s.rows()), cuda::row_threads(s.keys), 0,
                        cuda_stream(a), s, mask_of(a, has_mask, 3), x, a.output<float>(1));
           output->run({x, a.inputs[2], a.outputs[0]}, workspace, *a.stream);
         })
      .with_workspace(matrix + std::max(scores->workspace_bytes(), output->workspace_bytes()));
}

template <class T>
BoundKernel bind_gradient(const KernelRequest& request, const AttentionScores& s) {
  const SharedProduct scores = product_of(request, s, s.queries, s.keys, s.size, false, true),
                      dweights =
                          product_of(request, s, s.queries, s.keys, s.value_size, false, true),
                      dq = product_of(request, s, s.queries, s.size, s.keys, false, false),
                      dk = product_of(request, s, s.keys, s.size, s.queries, true, false),
                      dv = product_of(request, s, s.keys, s.value_size, s.queries, true, false);
  size_t most = 0;
  for (const SharedProduct& each : {scores, dweights, dq, dk, dv})
    most = std::max(most, each->workspace_bytes());
  const size_t matrix = bytes_of_scores(s);
  const bool has_mask = request.inputs.size() > 6;
  return BoundKernel::of([=](const Arguments& a) {
           const void *const q = a.inputs[0], *const k = a.inputs[1], *const v = a.inputs[2],
                             *const doutput = a.inputs[5];
           char* const memory = static_cast<char*>(a.workspace);
           T *const x = reinterpret_cast<T*>(memory), *const dx =
                                                          reinterpret_cast<T*>(memory + matrix);
           void* const workspace = memory + 2 * matrix;
           scores->run({q, k, x}, workspace, *a.stream);
           dweights->run({doutput, v, dx}, workspace, *a.stream);
           cuda::launch(weigh_backward<T>, cuda::as_blocks(s.rows()), cuda::row_threads(s.keys), 0,
                        cuda_stream(a), s, mask_of(a, has_mask, 6), x, dx);
           dq->run({dx, k, a.outputs[0]}, workspace, *a.stream);
           dk->run({dx, q, a.outputs[1]}, workspace, *a.stream);
           dv->run({x, doutput, a.outputs[2]}, workspace, *a.stream);
         })
      .with_workspace(2 * matrix + most);
}

}  // namespace

BoundKernel bind_composed_attention(const KernelRequest& request, const AttentionScores& scores) {
  return visit_type(SixteenBits{}, request.inputs[0].dtype,
                    [&]<class T>(TypeTag<T>) { return bind<T>(request, scores); });
}

BoundKernel bind_composed_attention_gradient(const KernelRequest& request,
                                             const AttentionScores& scores) {
  return visit_type(SixteenBits{}, request.inputs[0].dtype,
                    [&]<class T>(TypeTag<T>) { return bind_gradient<T>(request, scores); });
}

}  // namespace leat
