// Metrics: of one batch, and collected over many.
#pragma once

#include <string>
#include <vector>

#include "frontends/cpp/variables.h"

namespace leat::nn {

// The share of rows whose largest logit is at the label. logits: [batch, classes]; labels: [batch]
// integers, or one-hot rows [batch, classes]. A scalar.
Output accuracy(Output logits, Output labels, Location at = here());
// The share of rows whose label is among the k largest logits.
Output top_k_accuracy(Output logits, Output labels, int k, Location at = here());
// matrix[i, j]: how many examples of class i were taken for class j; int32 [classes, classes].
// labels, predictions: class numbers of one shape, int32 or int64, in [0, classes), else the step
// fails with INVALID_ARGUMENT. tf.math.confusion_matrix.
Output confusion_matrix(Output labels, Output predictions, int64_t classes, Location at = here());
// exp(mean(losses)), of cross entropies.
Output perplexity(Output losses, Location at = here());

}  // namespace leat::nn

// Metrics over many steps. A step that runs update() adds its batch, value() is that of all so far,
// reset() starts again. Their variables, `name`/…, are not trainable; the collection
// "metric_variables" has them.
namespace leat::metrics {

struct MetricOptions {
  std::string name = "";  // "": the metric's own
};

class Metric {
 public:
  Output value() const { return value_; }  // a scalar, f32
  Node& update() const { return *update_; }
  Node& reset() const { return *reset_; }

 protected:
  Output value_;
  Node* update_ = nullptr;
  Node* reset_ = nullptr;
};

// The mean of all elements.
class Mean : public Metric {
 public:
  explicit Mean(Output values, const MetricOptions& options = {}, Location at = here());
};
// The share of rows whose largest logit is at the label.
class Accuracy : public Metric {
 public:
  Accuracy(Output logits, Output labels, const MetricOptions& options = {}, Location at = here());
};
// Of predictions in [0, 1] and labels 0 or 1 (or bool): of those above the threshold, how many are
// 1; of those that are 1, how many are above it.
struct ThresholdOptions {
  double threshold = 0.5;
  std::string name = "";
};
class Precision : public Metric {
 public:
  Precision(Output predictions, Output labels, const ThresholdOptions& options = {},
            Location at = here());
};
class Recall : public Metric {
 public:
  Recall(Output predictions, Output labels, const ThresholdOptions& options = {},
         Location at = here());
};
// The area under the ROC curve, by trapezoids between `num_thresholds` points, as tf.metrics.auc.
struct AucOptions {
  int num_thresholds = 200;
  std::string name = "";
};
class Auc : public Metric {
 public:
  Auc(Output predictions, Output labels, const AucOptions& options = {}, Location at = here());
};

}  // namespace leat::metrics
