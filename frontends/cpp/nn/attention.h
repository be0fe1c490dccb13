// Attention.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontends/cpp/nn/dense.h"

namespace leat::nn {

struct AttentionOptions {
  int64_t heads = 1;    // the last axes of q, k and v are cut into as many parts
  bool causal = false;  // position i sees positions up to i
  // bool, where it is false, nothing is seen: [batch, queries, keys] for all heads alike, or what
  // is broadcast to [batch, heads, queries, keys].
  Output mask = {};
  std::string name = "attention";
};

// softmax(q·kᵀ / √size + mask)·v for each head, the results side by side (Vaswani et al., NeurIPS
// 2017). q: [batch, queries, heads · size], k: [batch, keys, heads · size], v: [batch, keys, heads
// · n]; result: [batch, queries, heads · n]. Last extents must be known. No variables: project with
// dense() before and after.
Output attention(Output q, Output k, Output v, const AttentionOptions& options = {},
                 Location at = here());

struct MultiHeadAttentionOptions {
  int64_t heads = 8;
  int64_t size = 0;  // of the projections and the result; 0: as the queries
  bool causal = false;
  Output mask = {};
  bool use_bias = true;
  std::string name = "multi_head_attention";
};
// attention() between projections of its own: query, key, value and output, each a Dense of `size`
// units under `name`, made by the first call. Copies are the same layer.
class MultiHeadAttention {
 public:
  explicit MultiHeadAttention(Graph& graph, MultiHeadAttentionOptions options = {});
  Output operator()(Output queries, Output keys, Output values, Location at = here()) const;

 private:
  MultiHeadAttentionOptions options_;
  std::string scope_;  // where its variables are, and its nodes go: "outer/name_1/"
  std::shared_ptr<std::vector<Dense>> projections_ = std::make_shared<std::vector<Dense>>();
};

// The layer used once; of one sequence: multi_head_attention(x, x, x, {.heads = 8}).
Output multi_head_attention(Output queries, Output keys, Output values,
                            const MultiHeadAttentionOptions& options = {}, Location at = here());

}  // namespace leat::nn
