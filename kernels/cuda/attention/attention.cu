// `_Attention` and its gradient on the GPU. A library makes them (library_attention.h); where it
// has no way for a shape, composed_attention.cu. The library takes no mask of bools, but terms to
// add to the scores, and would do something else with a row that sees no key: kernels here make
// the terms, and see to such rows.
#include <limits>
#include <memory>

#include "graph/op_def.h"
#include "kernels/cuda/attention/attention_scores.cuh"
#include "kernels/cuda/attention/composed_attention.h"
#include "kernels/cuda/attention/library_attention.h"
#include "kernels/cuda/row_reduce.cuh"
#include "kernels/cuda/workspace.cuh"
#include "kernels/types.h"

namespace leat {
namespace {

using SixteenBits = Types<half, bfloat16>;

// So small that exp() of it is 0 beside any other score, and not too small for float16.
constexpr float least_term = -6e4F;

// One block per row of the terms: writes them, and whether any query of this row sees a key. The
// heads of `terms` are those of the mask.
template <class T>
__global__ void __launch_bounds__(cuda::max_row_threads)
    write_terms(AttentionScores terms, const bool* mask, T* out, bool* sees_any) {
  __shared__ float shared[cuda::max_row_threads];
  const int64_t matrix = blockIdx.x / terms.queries, query = blockIdx.x % terms.queries;
  T* const row = out + blockIdx.x * terms.keys;
  float seen = 0;
  for (int64_t k = threadIdx.x; k < terms.keys; k += blockDim.x) {
    const bool sees = terms.sees(mask, matrix, query, k);
    row[k] = T(sees ? 0.0F : least_term);
    if (sees) seen = 1;
  }
  seen = cuda::reduce_block(seen, shared, [](float a, float b) { return std::fmax(a, b); });
  if (threadIdx.x == 0) sees_any[blockIdx.x] = seen > 0;
}

// Which rows see a key, by the row of the terms that they add.
struct SeenRows {
  int64_t heads, queries;
  int64_t batch_stride, head_stride;  // 0: the mask repeats

  LEAT_DEVICE bool sees(const bool* sees_any, int64_t row) const {
    const int64_t matrix = row / queries;
    return sees_any[matrix / heads * batch_stride + matrix % heads * head_stride + row % queries];
  }
};

// One block per row of the output: the mean of v where the row sees no key.
template <class T>
__global__ void __launch_bounds__(cuda::threads_per_block)
    average_unseen(SeenRows rows, const bool* sees_any, int64_t keys, int64_t value_size,
                   const T* v, T* output) {
  const int64_t row = blockIdx.x;
  if (rows.sees(sees_any, row)) return;
  const T* const values = v + row / rows.queries * keys * value_size;
  for (int64_t c = threadIdx.x; c < value_size; c += blockDim.x) {
    float sum = 0;
    for (int64_t k = 0; k < keys; ++k) sum += cuda::widened(values[k * value_size + c]);
    output[row * value_size + c] = T(sum / static_cast<float>(keys));
  }
}

// The gradient of the output without the rows that see no key.
template <class T>
__global__ void __launch_bounds__(cuda::threads_per_block)
    drop_unseen(int64_t n, SeenRows rows, const bool* sees_any, int64_t value_size,
                const T* doutput, T* kept) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) kept[i] = rows.sees(sees_any, i / value_size) ? doutput[i] : T(0.0F);
}

// One block per matrix of scores: what those rows add to dv.
template <class T>
__global__ void __launch_bounds__(cuda::threads_per_block)
    add_unseen(SeenRows rows, const bool* sees_any, int64_t keys, int64_t value_size,
               const T* doutput, T* dv) {
  const int64_t matrix = blockIdx.x;
  for (int64_t c = threadIdx.x; c < value_size; c += blockDim.x) {
    float sum = 0;
    for (int64_t q = 0; q < rows.queries; ++q) {
      const int64_t row = matrix * rows.queries + q;
      if (!rows.sees(sees_any, row)) sum += cuda::widened(doutput[row * value_size + c]);
    }
    if (sum == 0) continue;
    for (int64_t k = 0; k < keys; ++k) {
      T& to = dv[(matrix * keys + k) * value_size + c];
      to = T(cuda::widened(to) + sum / static_cast<float>(keys));
    }
  }
}

// The extents of an op whose inputs begin with q, k and v; the mask, if any, is input `mask`.
AttentionScores scores_of(const KernelRequest& request, size_t mask) {
  const Shape &q = request.inputs[0].shape, &v = request.inputs[2].shape;
  const int rank = q.rank();
  AttentionScores out{.batch = q[0],
                      .heads = rank == 4 ? q[1] : 1,
                      .queries = q[rank - 2],
                      .keys = v[rank - 2],
                      .size = q[rank - 1],
                      .value_size = v[rank - 1],
                      .scale = request.attr<float>("scale"),
                      .causal = request.attr<bool>("causal")};
  if (request.inputs.size() <= mask) return out;
  const Shape& shape = request.inputs[mask].shape;
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    // Counted from the last: key, query, head if there are heads, batch entry.
    const int from_last = shape.rank() - 1 - axis;
    const int place = from_last == 2 && rank == 3 ? 0 : 3 - from_last;
    if (shape[axis] != 1) out.mask_strides[static_cast<size_t>(place)] = stride;
    stride *= shape[axis];
  }
  return out;
}

// The terms that stand for the mask. They repeat where it does, but for queries and keys.
AttentionScores terms_of(const AttentionScores& scores) {
  AttentionScores out = scores;
  if (scores.mask_strides[0] == 0) out.batch = 1;
  if (scores.mask_strides[1] == 0) out.heads = 1;
  return out;
}

LibraryAttentionShape library_shape(DType dtype, const AttentionScores& scores, bool has_mask) {
  LibraryAttentionShape out{.dtype = dtype,
                            .batch = scores.batch,
                            .heads = scores.heads,
                            .queries = scores.queries,
                            .keys = scores.keys,
                            .size = scores.size,
                            .value_size = scores.value_size,
                            .scale = scores.scale,
                            .causal = scores.causal};
  if (has_mask) {
    const AttentionScores terms = terms_of(scores);
    out.bias_batch = terms.batch;
    out.bias_heads = terms.heads;
  }
  return out;
}

// One call of the library, and what it needs around it.
template <class T>
class LibraryCall {
 public:
  // `operands`: the inputs that the library reads.
  LibraryCall(const KernelRequest& request, const AttentionScores& scores, bool has_mask,
              std::shared_ptr<const LibraryAttention> library, int operands)
      : scores_(scores),
        terms_(terms_of(scores)),
        has_mask_(has_mask),
        library_(std::move(library)) {
    for (int i = 0; i < operands; ++i) {
      const TensorSpec& input = request.inputs[static_cast<size_t>(i)];
      bytes_.push_back(static_cast<size_t>(input.shape.elements()) * dtype_size(input.dtype));
      copies_.push_back(reserve(bytes_.back()));
    }
    if (has_mask) {
      terms_at_ = reserve(static_cast<size_t>(terms_.elements()) * sizeof(T));
      sees_any_at_ = reserve(static_cast<size_t>(terms_.rows()));
    }
    library_at_ = reserve(library_->workspace_bytes());
  }

  size_t workspace_bytes() const { return end_; }

 protected:
  char* place(const Arguments& arguments, size_t at) const {
    return static_cast<char*>(arguments.workspace) + at;
  }

  // The input, or a copy where the library can read it: a part of another tensor may lie anywhere.
  const void* input(const Arguments& arguments, int i) const {
    const void* const from = arguments.inputs[i];
    if (reinterpret_cast<uintptr_t>(from) % 16 == 0) return from;
    return copy(arguments, i);
  }
  void* copy(const Arguments& arguments, int i) const {
    void* const to = copy_of(arguments, i);
    cuda::check_cuda(cudaMemcpyAsync(to, arguments.inputs[i], bytes_[static_cast<size_t>(i)],
                                     cudaMemcpyDeviceToDevice, cuda_stream(arguments)),
                     "cudaMemcpyAsync");
    return to;
  }
  void* copy_of(const Arguments& arguments, int i) const {
    return place(arguments, copies_[static_cast<size_t>(i)]);
  }

  // Null if there is no mask.
  const T* terms(const Arguments& arguments, int mask) const {
    if (!has_mask_) return nullptr;
    T* const out = reinterpret_cast<T*>(place(arguments, terms_at_));
    cuda::launch(write_terms<T>, cuda::as_blocks(terms_.rows()), cuda::row_threads(terms_.keys), 0,
                 cuda_stream(arguments), terms_, arguments.input<bool>(mask), out,
                 sees_any(arguments));
    return out;
  }
  bool* sees_any(const Arguments& arguments) const {
    return reinterpret_cast<bool*>(place(arguments, sees_any_at_));
  }
  SeenRows seen_rows() const {
    return {.heads = scores_.heads,
            .queries = scores_.queries,
            .batch_stride = terms_.batch == 1 ? 0 : terms_.heads * terms_.queries,
            .head_stride = terms_.heads == 1 ? 0 : terms_.queries};
  }

  void run_library(const Arguments& arguments, const AttentionOperands& operands) const {
    library_->run(operands, place(arguments, library_at_), *arguments.stream);
  }

  const AttentionScores scores_, terms_;
  const bool has_mask_;

 private:
  size_t reserve(size_t bytes) {
    const size_t at = end_;
    end_ += cuda::aligned(bytes);
    return at;
  }

  std::shared_ptr<const LibraryAttention> library_;
  std::vector<size_t> bytes_, copies_;  // by input; places in the workspace, as all of these
  size_t terms_at_ = 0, sees_any_at_ = 0, library_at_ = 0, end_ = 0;
};

template <class T>
class Forward : public LibraryCall<T> {
 public:
  Forward(const KernelRequest& request, const AttentionScores& scores, bool has_mask,
          std::shared_ptr<const LibraryAttention> library)
      : LibraryCall<T>(request, scores, has_mask, std::move(library), 3) {}

  void operator()(const Arguments& arguments) const {
    const void* const v = this->input(arguments, 2);
    this->run_library(arguments, {.q = this->input(arguments, 0),
                                  .k = this->input(arguments, 1),
                                  .v = v,
                                  .bias = this->terms(arguments, 3),
                                  .output = arguments.outputs[0],
                                  .statistics = arguments.outputs[1]});
    if (!this->has_mask_) return;
    cuda::launch(average_unseen<T>, cuda::as_blocks(this->scores_.rows()), 128, 0,
                 cuda_stream(arguments), this->seen_rows(),
                 static_cast<const bool*>(this->sees_any(arguments)), this->scores_.keys,
                 this->scores_.value_size, static_cast<const T*>(v), arguments.output<T>());
  }
};

template <class T>
class Backward : public LibraryCall<T> {
 public:
  Backward(const KernelRequest& request, const AttentionScores& scores, bool has_mask,
           std::shared_ptr<const LibraryAttention> library)
      : LibraryCall<T>(request, scores, has_mask, std::move(library), 6) {}

  void operator()(const Arguments& arguments) const {
    const T* const terms = this->terms(arguments, 6);
    this->run_library(arguments,
                      {.q = this->input(arguments, 0),
                       .k = this->input(arguments, 1),
                       .v = this->input(arguments, 2),
                       .bias = terms,
                       .output = const_cast<void*>(this->input(arguments, 3)),
                       .statistics = const_cast<void*>(this->input(arguments, 4)),
                       .doutput = this->has_mask_ ? kept(arguments) : this->input(arguments, 5),
                       .dq = arguments.outputs[0],
                       .dk = arguments.outputs[1],
                       .dv = arguments.outputs[2]});
    if (!this->has_mask_) return;
    cuda::launch(add_unseen<T>, cuda::as_blocks(this->scores_.matrices()), 128, 0,
                 cuda_stream(arguments), this->seen_rows(),
                 static_cast<const bool*>(this->sees_any(arguments)), this->scores_.keys,
                 this->scores_.value_size, arguments.input<T>(5), arguments.output<T>(2));
  }

 private:
  const void* kept(const Arguments& arguments) const {
    const int64_t n = this->scores_.rows() * this->scores_.value_size;
    T* const out = static_cast<T*>(this->copy_of(arguments, 5));
    cuda::launch(drop_unseen<T>, cuda::blocks_for(n), cuda::threads_per_block, 0,
                 cuda_stream(arguments), n, this->seen_rows(),
                 static_cast<const bool*>(this->sees_any(arguments)), this->scores_.value_size,
                 arguments.input<T>(5), out);
    return out;
  }
};

template <template <class> class Call>
BoundKernel bind_library(const KernelRequest& request, const AttentionScores& scores, bool has_mask,
                         std::shared_ptr<const LibraryAttention> library) {
  return visit_type(SixteenBits{}, request.inputs[0].dtype, [&]<class T>(TypeTag<T>) {
    Call<T> call(request, scores, has_mask, std::move(library));
    const size_t workspace = call.workspace_bytes();
    return BoundKernel::of(std::move(call)).with_workspace(workspace);
  });
}

// Without elements there is nothing to compute, or only sums of nothing.
BoundKernel bind_empty(const KernelRequest& request) {
  std::vector<size_t> bytes;
  for (const TensorSpec& output : request.outputs)
    bytes.push_back(static_cast<size_t>(output.shape.elements()) * dtype_size(output.dtype));
  return BoundKernel::of([bytes](const Arguments& arguments) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == 0) continue;
      cuda::check_cuda(cudaMemsetAsync(arguments.outputs[i], 0, bytes[i], cuda_stream(arguments)),
                       "cudaMemsetAsync");
    }
  });
}

BoundKernel prepare(const KernelRequest& request) {
  const AttentionScores scores = scores_of(request, 3);
  if (scores.elements() * scores.size * scores.value_size == 0) return bind_empty(request);
  const bool has_mask = request.inputs.size() > 3;
  std::shared_ptr<const LibraryAttention> library =
      library_attention(request.device, AttentionPass::forward,
                        library_shape(request.inputs[0].dtype, scores, has_mask));
  if (library == nullptr) return bind_composed_attention(request, scores);
  return bind_library<Forward>(request, scores, has_mask, std::move(library));
}

BoundKernel prepare_gradient(const KernelRequest& request) {
  const AttentionScores scores = scores_of(request, 6);
  if (scores.elements() * scores.size * scores.value_size == 0) return bind_empty(request);
  const bool has_mask = request.inputs.size() > 6;
  std::shared_ptr<const LibraryAttention> library =
      library_attention(request.device, AttentionPass::gradient,
                        library_shape(request.inputs[0].dtype, scores, has_mask));
  if (library == nullptr) return bind_composed_attention_gradient(request, scores);
  return bind_library<Backward>(request, scores, has_mask, std::move(library));
}

std::vector<Kernel> kernels(Prepare prepare) {
  Kernel kernel;
  kernel.device = DeviceType::gpu;
  kernel.types = {{"T", SixteenBits::list()}};
  kernel.prepare = std::move(prepare);
  return {kernel};
}

const OpKernels attention{"_Attention", kernels(prepare)};
const OpKernels attention_gradient{"_AttentionGrad", kernels(prepare_gradient)};

}  // namespace
}  // namespace leat
