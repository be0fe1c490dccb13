// Losses: one value per example, as in Keras; minimise mean(loss). Predictions and targets have one
// shape and dtype; means are taken over the last axis.
#pragma once

#include "graph/ops.h"

namespace leat::nn {

struct CrossEntropyOptions {
  // s: the true class counts 1 - s, and s is shared by all (Szegedy et al., CVPR 2016).
  double label_smoothing = 0;
};
// -Σ p log softmax(logits). logits: [batch, ..., classes]; labels: [batch, ...] of class numbers
// (int32, int64), or of logits' shape, probabilities p. Result: [batch, ...].
Output softmax_cross_entropy(Output logits, Output labels, const CrossEntropyOptions& options = {},
                             Location at = here());
// The same of class numbers only, as TensorFlow and Keras call it: one-hot rows of integers, which
// softmax_cross_entropy would take for class numbers, are INVALID_ARGUMENT.
Output sparse_softmax_cross_entropy(Output logits, Output labels,
                                    const CrossEntropyOptions& options = {}, Location at = here());
// -p log σ(logits) - (1 - p) log(1 - σ(logits)), the mean over the last axis. labels: p, of logits'
// shape.
Output sigmoid_cross_entropy(Output logits, Output labels, const CrossEntropyOptions& options = {},
                             Location at = here());

// Of probabilities: p, the targets, and q, the predictions. binary_cross_entropy is the mean of
// -p log q - (1 - p) log(1 - q) over the last axis, categorical_cross_entropy is -Σ p log(q / Σ q)
// along it. As in Keras, q is clipped to [ε, 1 - ε] with ε = 1e-7. The losses of logits, above,
// are more exact.
Output binary_cross_entropy(Output predictions, Output targets,
                            const CrossEntropyOptions& options = {}, Location at = here());
Output categorical_cross_entropy(Output predictions, Output targets, Location at = here());

Output mean_squared_error(Output predictions, Output targets, Location at = here());
Output mean_absolute_error(Output predictions, Output targets, Location at = here());
// For d = predictions - targets: d² / 2 where |d| <= delta, else delta (|d| - delta / 2). Huber,
// 1964.
Output huber(Output predictions, Output targets, double delta = 1, Location at = here());
Output log_cosh(Output predictions, Output targets, Location at = here());
// max(1 - t · prediction, 0); targets t are -1 or 1.
Output hinge(Output predictions, Output targets, Location at = here());
// Σ t log(t / p), of probabilities; 0 where t is 0.
Output kl_divergence(Output predictions, Output targets, Location at = here());
// Of vectors along the last axis: their cosine, from -1 to 1.
Output cosine_similarity(Output x, Output y, Location at = here());

}  // namespace leat::nn
