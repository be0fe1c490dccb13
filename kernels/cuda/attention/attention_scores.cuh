// The matrices of scores of one call of attention: their extents, and which of them count. What the
// kernels of attention.cu and composed_attention.cu share.
#pragma once

#include <array>
#include <cstdint>

#include "core/kernel.h"
#include "kernels/cuda_launch.cuh"

namespace leat {

// q[batch, heads, queries, size], k[batch, heads, keys, size], v[batch, heads, keys, value_size]:
// batch · heads matrices of [queries, keys] scores.
struct AttentionScores {
  int64_t batch = 1, heads = 1, queries = 1, keys = 1, size = 1, value_size = 1;
  float scale = 1;
  bool causal = false;
  // Elements of the mask from one batch entry, head, query and key to the next; 0: it is repeated.
  std::array<int64_t, 4> mask_strides = {};

  int64_t matrices() const { return batch * heads; }
  int64_t rows() const { return matrices() * queries; }
  int64_t elements() const { return rows() * keys; }

  // `mask` is null if there is none.
  LEAT_DEVICE bool sees(const bool* mask, int64_t matrix, int64_t query, int64_t key) const {
    if (causal && key > query) return false;
    return mask == nullptr ||
           mask[matrix / heads * mask_strides[0] + matrix % heads * mask_strides[1] +
                query * mask_strides[2] + key * mask_strides[3]];
  }
};

}  // namespace leat
