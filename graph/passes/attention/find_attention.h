// What the pass fuse_attention looks for: attention, written as products and a softmax.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "graph/passes/dead_together.h"
#include "graph/passes/simplify/simplify.h"

namespace leat {

// softmax(scale q kᵀ) v, and if a step differentiates it, the gradient.
struct AttentionParts {
  Output q, k, v;
  Output mask;          // none: there is none, or it is causal
  bool causal = false;  // row i sees the keys 0 to i
  float scale = 1;
  Node* result = nullptr;  // the product with v
  // The products that make the gradients, null where the step needs none; without any, there is no
  // backward part.
  Output doutput;
  Node *dq = nullptr, *dk = nullptr, *dv = nullptr;
  std::vector<Node*> nodes;  // all of them, the last four included

  std::vector<Node*> gradients() const;  // those that are there, in the order of the graph
};

// The attention around a softmax, with casts between float formats in between. None if there is no
// such thing; if it is not of 16 bits, if a shape is not known, or if its heads are not of a
// multiple of 8 elements, at most 128 (NVIDIA cuDNN, "Scaled Dot Product Attention"); if other
// nodes, or the step, read what would not be there any more.
std::optional<AttentionParts> find_attention(Node& softmax, const Consumers& consumers,
                                             const KeptNames& kept, const DeadTogether& together);

}  // namespace leat
