// Losses over very many classes, of which each step computes a few that are drawn at random. For
// training: to evaluate, compute all logits and their softmax_cross_entropy.
#pragma once

#include "graph/ops.h"

namespace leat::nn {

struct SampledLossOptions {
  int64_t num_sampled = 64;  // classes drawn in each step, for all examples together
  int64_t num_classes = 0;   // 0: the rows of the weights, which must be known then
  int64_t seed = 0;          // 0: other classes in each run
};

// Noise-contrastive estimation: for each example the logistic loss of its class against the drawn
// ones (Gutmann and Hyvärinen, AISTATS 2010; Mnih and Teh, ICML 2012). weights: [classes, size],
// biases: [classes], labels: int64 [batch] or [batch, 1], inputs: [batch, size]; result: [batch].
// Classes are drawn by LogUniformCandidateSampler, so number them by falling frequency. As
// tf.nn.nce_loss, with its order of the arguments.
Output nce_loss(Output weights, Output biases, Output labels, Output inputs,
                const SampledLossOptions& options = {}, Location at = here());
// The cross entropy of a softmax over the class and the drawn ones, without drawn ones that happen
// to be the class itself (Jean et al., ACL 2015). The same arguments; tf.nn.sampled_softmax_loss.
Output sampled_softmax_loss(Output weights, Output biases, Output labels, Output inputs,
                            const SampledLossOptions& options = {}, Location at = here());

}  // namespace leat::nn
