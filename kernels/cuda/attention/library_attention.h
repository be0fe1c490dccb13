// Attention on a GPU by a library that keeps no scores for the gradient, whoever it is: cuDNN in
// the plug-in (cudnn_attention.cu), loops where tests run the plug-in on the host
// (tests/support/cuda/host_attention.cc). Kernels see only this.
#pragma once

#include <cstdint>
#include <memory>

#include "core/device.h"
#include "core/dtype.h"

namespace leat {

// q[batch, heads, queries, size], k[batch, heads, keys, size], v[batch, heads, keys, value_size],
// all dense, become output[batch, heads, queries, value_size] and statistics[batch, heads,
// queries]. All extents are at least 1.
struct LibraryAttentionShape {
  DType dtype = DType::bf16;  // f16 or bf16, of all but the statistics, which are f32
  int64_t batch = 1, heads = 1;
  int64_t queries = 1, keys = 1;
  int64_t size = 8, value_size = 8;
  float scale = 1;      // of q kᵀ
  bool causal = false;  // row i sees the keys 0 to i
  // Added to the scaled scores: bias[bias_batch, bias_heads, queries, keys], where bias_batch is 1
  // or batch, and bias_heads 1 or heads; 0: there is none.
  int64_t bias_batch = 0, bias_heads = 0;

  bool has_bias() const { return bias_batch > 0; }
  bool operator==(const LibraryAttentionShape&) const = default;
};

// `bias` is null if there is none. The forward pass writes output and statistics; the gradient
// reads them, and the last four are its own.
struct AttentionOperands {
  const void* q;
  const void* k;
  const void* v;
  const void* bias;
  void* output;
  void* statistics;
  const void* doutput = nullptr;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
};

// All that is chosen once for a shape. Thread-safe.
class LibraryAttention {
 public:
  virtual ~LibraryAttention() = default;
  virtual size_t workspace_bytes() const = 0;
  // Only enqueues. Operands and workspace lie at multiples of 16 bytes.
  virtual void run(const AttentionOperands& operands, void* workspace, Stream& stream) const = 0;
};

enum class AttentionPass : uint8_t { forward, gradient };

// The same for all who use a shape: a library may take seconds to choose. Null if it does not
// compute this shape on this GPU. Thread-safe.
std::shared_ptr<const LibraryAttention> library_attention(Device& device, AttentionPass pass,
                                                          const LibraryAttentionShape& shape);

}  // namespace leat
