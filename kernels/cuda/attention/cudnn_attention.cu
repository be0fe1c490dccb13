// leat: cuda-library
// Attention by cuDNN. Before 9.21 its single operation for attention takes no causal mask, so the
// graph is written out: products, scale, bias, mask by generated indices, softmax. cuDNN finds the
// pattern in it and runs one kernel forward, and a few backward (NVIDIA cuDNN, "Graph Patterns",
// fused flash attention).
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/cuda/attention/library_attention.h"
#include "kernels/cuda/cudnn_graph.cuh"
#include "kernels/cuda/workspace.cuh"

namespace leat {
namespace {

using cuda::CudnnGraph;
using Tensor = CudnnGraph::Tensor;

constexpr size_t any_workspace = std::numeric_limits<size_t>::max();

// What either pass has in its graph, and how the tensors get their elements at a run.
class AttentionGraph {
 public:
  explicit AttentionGraph(const LibraryAttentionShape& shape)
      : shape_(shape),
        type_(shape.dtype == DType::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16),
        scale_value_(shape.scale) {}
  virtual ~AttentionGraph() = default;

  std::optional<cuda::CudnnPlan> plan(cudnnHandle_t handle, size_t most_workspace) const {
    return graph_.plan(handle, most_workspace);
  }
  // What the graph itself keeps in the workspace, before cuDNN's part.
  virtual size_t own_bytes() const { return 0; }
  virtual void bind(const AttentionOperands& operands, void* own, std::vector<int64_t>& ids,
                    std::vector<void*>& pointers) const = 0;

 protected:
  CudnnGraph::Extents rows(int64_t columns) const {
    return {shape_.batch, shape_.heads, shape_.queries, columns};
  }
  CudnnGraph::Extents pairs(int64_t columns) const {
    return {shape_.batch, shape_.heads, shape_.keys, columns};
  }
  // A [keys, columns] operand as its transpose, which is how products take it.
  Tensor transposed_pairs(int64_t columns) {
    const CudnnGraph::Extents strides = CudnnGraph::dense(pairs(columns));
    return graph_.add(type_, {shape_.batch, shape_.heads, columns, shape_.keys},
                      {strides[0], strides[1], strides[3], strides[2]},
                      CudnnGraph::Kind::on_device);
  }

  // scale q kᵀ + bias
  Tensor scores() {
    q_ = graph_.on_device(type_, rows(shape_.size));
    k_ = transposed_pairs(shape_.size);
    scale_ = graph_.number();
    const Tensor scores = graph_.map(CUDNN_POINTWISE_MUL, {graph_.product(q_, k_), scale_});
    if (!shape_.has_bias()) return scores;
    bias_ = graph_.on_device(type_,
                             {shape_.bias_batch, shape_.bias_heads, shape_.queries, shape_.keys});
    return graph_.map(CUDNN_POINTWISE_ADD, {scores, bias_});
  }
  // -∞ above the diagonal, if the mask is causal.
  Tensor masked(Tensor scores) {
    if (!shape_.causal) return scores;
    infinity_ = graph_.number();
    const Tensor row = graph_.indices(scores, 2), column = graph_.indices(scores, 3);
    const Tensor sees = graph_.map(CUDNN_POINTWISE_CMP_GE, {row, column}, CUDNN_DATA_BOOLEAN);
    return graph_.map(CUDNN_POINTWISE_BINARY_SELECT, {scores, infinity_, sees});
  }

  static void put(Tensor tensor, const void* pointer, std::vector<int64_t>& ids,
                  std::vector<void*>& pointers) {
    ids.push_back(tensor);
    pointers.push_back(const_cast<void*>(pointer));
  }
  void bind_scores(const AttentionOperands& operands, std::vector<int64_t>& ids,
                   std::vector<void*>& pointers) const {
    put(q_, operands.q, ids, pointers);
    put(k_, operands.k, ids, pointers);
    put(scale_, &scale_value_, ids, pointers);
    if (shape_.has_bias()) put(bias_, operands.bias, ids, pointers);
    if (shape_.causal) put(infinity_, &infinity_value_, ids, pointers);
  }

  CudnnGraph graph_;
  const LibraryAttentionShape shape_;
  const cudnnDataType_t type_;
  Tensor q_ = 0, k_ = 0, scale_ = 0;

 private:
  Tensor bias_ = 0, infinity_ = 0;
  const float scale_value_, infinity_value_ = -std::numeric_limits<float>::infinity();
};

class ForwardGraph : public AttentionGraph {
 public:
  explicit ForwardGraph(const LibraryAttentionShape& shape) : AttentionGraph(shape) {
    const Tensor scores = masked(this->scores());
    const Tensor max = graph_.reduce(CUDNN_REDUCE_TENSOR_MAX, scores);
    const Tensor powers =
        graph_.map(CUDNN_POINTWISE_EXP, {graph_.map(CUDNN_POINTWISE_SUB, {scores, max})});
    const Tensor sum = graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, powers);
    statistics_ = graph_.on_device(CUDNN_DATA_FLOAT, rows(1));
    graph_.map_into(CUDNN_POINTWISE_ADD, {max, graph_.map(CUDNN_POINTWISE_LOG, {sum})},
                    statistics_);
    const Tensor weights = graph_.map(CUDNN_POINTWISE_DIV, {powers, sum}, type_);
    v_ = graph_.on_device(type_, pairs(shape_.value_size));
    output_ = graph_.on_device(type_, rows(shape_.value_size));
    graph_.product_into(weights, v_, output_);
  }

  void bind(const AttentionOperands& operands, void*, std::vector<int64_t>& ids,
            std::vector<void*>& pointers) const override {
    bind_scores(operands, ids, pointers);
    put(v_, operands.v, ids, pointers);
    put(output_, operands.output, ids, pointers);
    put(statistics_, operands.statistics, ids, pointers);
  }

 private:
  Tensor v_ = 0, output_ = 0, statistics_ = 0;
};

// dq is a product of its own, so that cuDNN adds it up in one order: with sums in memory, from
// blocks that race, a step would not be reproducible. For it cuDNN 9.19 keeps one 16-bit number per
// pair of a query and a key in the workspace.
class GradientGraph : public AttentionGraph {
 public:
  explicit GradientGraph(const LibraryAttentionShape& shape) : AttentionGraph(shape) {
    add_inner();
    const Tensor weights = add_weights();
    dv_ = graph_.on_device(type_, pairs(shape_.value_size));
    graph_.product_into(graph_.transposed(weights, type_), doutput_, dv_);
    add_gradients_of_scores(weights);
  }

  size_t own_bytes() const override {
    return cuda::aligned(static_cast<size_t>(shape_.batch * shape_.heads * shape_.queries) *
                         sizeof(float));
  }
  void bind(const AttentionOperands& operands, void* own, std::vector<int64_t>& ids,
            std::vector<void*>& pointers) const override {
    bind_scores(operands, ids, pointers);
    put(v_, operands.v, ids, pointers);
    put(output_, operands.output, ids, pointers);
    put(statistics_, operands.statistics, ids, pointers);
    put(doutput_, operands.doutput, ids, pointers);
    put(inner_, own, ids, pointers);
    put(one_, &one_value_, ids, pointers);
    put(dq_, operands.dq, ids, pointers);
    put(dk_, operands.dk, ids, pointers);
    put(dv_, operands.dv, ids, pointers);
  }

 private:
  // The sum of doutput output over each row. cuDNN expects a factor, that of a dropout.
  void add_inner() {
    doutput_ = graph_.on_device(type_, rows(shape_.value_size));
    output_ = graph_.on_device(type_, rows(shape_.value_size));
    one_ = graph_.number();
    inner_ = graph_.on_device(CUDNN_DATA_FLOAT, rows(1));
    const Tensor terms = graph_.map(CUDNN_POINTWISE_MUL, {doutput_, output_});
    graph_.map_into(CUDNN_POINTWISE_MUL, {graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, terms), one_},
                    inner_);
  }

  Tensor add_weights() {
    const Tensor scores = this->scores();
    statistics_ = graph_.on_device(CUDNN_DATA_FLOAT, rows(1));
    const Tensor logarithms = graph_.map(CUDNN_POINTWISE_SUB, {scores, statistics_});
    return graph_.map(CUDNN_POINTWISE_EXP, {masked(logarithms)});
  }

  void add_gradients_of_scores(Tensor weights) {
    v_ = transposed_pairs(shape_.value_size);
    const Tensor dweights = graph_.product(doutput_, v_);
    const Tensor centred = graph_.map(CUDNN_POINTWISE_SUB, {dweights, inner_});
    const Tensor dscores = graph_.map(
        CUDNN_POINTWISE_MUL, {graph_.map(CUDNN_POINTWISE_MUL, {centred, weights}), scale_});
    dk_ = graph_.on_device(type_, pairs(shape_.size));
    graph_.product_into(graph_.transposed(dscores, type_), q_, dk_);
    dq_ = graph_.on_device(type_, rows(shape_.size));
    graph_.product_into(dscores, graph_.transposed(k_, type_), dq_);
  }

  static constexpr float one_value_ = 1;
  Tensor v_ = 0, output_ = 0, statistics_ = 0, doutput_ = 0, inner_ = 0, one_ = 0;
  Tensor dq_ = 0, dk_ = 0, dv_ = 0;
};

class CudnnAttention : public LibraryAttention {
 public:
  CudnnAttention(cuda::CudnnHandle& handle, std::unique_ptr<const AttentionGraph> graph,
                 cuda::CudnnPlan plan)
      : handle_(handle), graph_(std::move(graph)), plan_(std::move(plan)) {}

  size_t workspace_bytes() const override { return graph_->own_bytes() + plan_.workspace_bytes(); }

  void run(const AttentionOperands& operands, void* workspace, Stream& stream) const override {
    std::vector<int64_t> ids;
    std::vector<void*> pointers;
    graph_->bind(operands, workspace, ids, pointers);
    const cudaStream_t present = cuda_stream(stream);
    const std::lock_guard lock(handle_.mutex);
    cuda::check_cudnn(cudnnSetStream(handle_.cudnn, present), "cudnnSetStream");
    plan_.run(handle_.cudnn, ids, pointers, static_cast<char*>(workspace) + graph_->own_bytes());
  }

 private:
  cuda::CudnnHandle& handle_;
  const std::unique_ptr<const AttentionGraph> graph_;
  const cuda::CudnnPlan plan_;
};

std::unique_ptr<const AttentionGraph> make_graph(AttentionPass pass,
                                                 const LibraryAttentionShape& shape) {
  if (pass == AttentionPass::forward) return std::make_unique<ForwardGraph>(shape);
  return std::make_unique<GradientGraph>(shape);
}

// Null if cuDNN has no way for it.
std::shared_ptr<const LibraryAttention> make_attention(cuda::CudnnHandle& handle,
                                                       AttentionPass pass,
                                                       const LibraryAttentionShape& shape) {
  try {
    auto graph = make_graph(pass, shape);
    auto plan = graph->plan(handle.cudnn, any_workspace);
    if (!plan) return nullptr;
    return std::make_shared<const CudnnAttention>(handle, std::move(graph), std::move(*plan));
  } catch (const Error& error) {
    // It does not know this graph on this GPU.
    if (error.code() == Code::resource_exhausted) throw;
    return nullptr;
  }
}

// What was made and is in use: layers of a model are alike.
struct Made {
  const cuda::CudnnHandle* handle;  // of the GPU
  AttentionPass pass;
  LibraryAttentionShape shape;
  std::weak_ptr<const LibraryAttention> attention;
};

}  // namespace

std::shared_ptr<const LibraryAttention> library_attention(Device& device, AttentionPass pass,
                                                          const LibraryAttentionShape& shape) {
  // cuDNN takes no single score (cudnn-frontend, "s_q = s_kv = 1 is not supported").
  if (shape.queries * shape.keys == 1) return nullptr;
  cuda::CudnnHandle& handle = cuda::cudnn_handle_of(device);
  static std::mutex mutex;
  static std::vector<Made> all;
  const std::lock_guard lock(mutex);
  std::erase_if(all, [](const Made& made) { return made.attention.expired(); });
  for (const Made& made : all) {
    if (made.handle != &handle || made.pass != pass || made.shape != shape) continue;
    if (auto attention = made.attention.lock()) return attention;
  }
  const std::lock_guard use(handle.mutex);
  auto attention = make_attention(handle, pass, shape);
  if (attention != nullptr) all.push_back({&handle, pass, shape, attention});
  return attention;
}

}  // namespace leat
