// Layers, losses and metrics: functions that add ops and variables to the graph of their input.
#pragma once

#include "frontends/cpp/variables.h"

namespace leat::nn {

using Activation = std::function<Output(Output)>;

struct DenseOptions {
  bool use_bias = true;
  // e.g. [](Output x) { return relu(x); }
  Activation activation = nullptr;
  Initializer kernel_initializer = initializers::glorot_uniform();
  Initializer bias_initializer = initializers::zeros();
};

// A fully connected layer: its variables `name`/kernel [inputs, units] and `name`/bias [units] are
// made once, and every call adds y = activation(x·kernel + bias), x: [batch, inputs], y: [batch,
// units], under the scopes of the call. Several replicas of a model share the layer that way.
class Dense {
 public:
  Dense(Graph& graph, int64_t inputs, int64_t units, std::string_view name = "dense",
        DenseOptions options = {}, DType dtype = f32, Location at = here());
  Output operator()(Output x, Location at = here()) const;

  Output kernel() const { return kernel_; }
  Output bias() const { return bias_; }  // none without use_bias

 private:
  std::string name_;
  std::string scope_;  // where its variables are, and its nodes go: "outer/name_1/"
  DenseOptions options_;
  Output kernel_, bias_;
};

// The layer used once: x must be [batch, n] with n known.
Output dense(Output x, int64_t units, std::string_view name = "dense",
             const DenseOptions& options = {}, Location at = here());

struct Conv2dOptions {
  int64_t stride = 1;
  std::string padding = "SAME";  // or "VALID": no border
  bool use_bias = true;
  Activation activation = nullptr;
  Initializer kernel_initializer = initializers::glorot_uniform();
  Initializer bias_initializer = initializers::zeros();
};

// A convolution of images, y = activation(x * kernel + bias), with variables `name`/kernel [size,
// size, channels, filters] and `name`/bias [filters], made once like those of Dense. x: [batch,
// height, width, channels], y: [batch, height', width', filters].
class Conv2d {
 public:
  Conv2d(Graph& graph, int64_t channels, int64_t filters, int64_t size,
         std::string_view name = "conv2d", Conv2dOptions options = {}, DType dtype = f32,
         Location at = here());
  Output operator()(Output x, Location at = here()) const;

  Output kernel() const { return kernel_; }
  Output bias() const { return bias_; }  // none without use_bias

 private:
  std::string name_;
  std::string scope_;  // where its variables are, and its nodes go: "outer/name_1/"
  Conv2dOptions options_;
  Output kernel_, bias_;
};

// The layer used once: the channels of x must be known.
Output conv2d(Output x, int64_t filters, int64_t size, std::string_view name = "conv2d",
              const Conv2dOptions& options = {}, Location at = here());

// The largest (the mean) of each window of size * size pixels; windows are `stride` apart.
Output max_pool(Output x, int64_t size, int64_t stride, std::string_view padding = "VALID",
                Location at = here());
Output avg_pool(Output x, int64_t size, int64_t stride, std::string_view padding = "VALID",
                Location at = here());

struct BatchNormOptions {
  // Of the moving averages: average = momentum · average + (1 - momentum) · batch.
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool use_scale = true, use_offset = true;
};

// Batch normalisation, y = (x - mean) / √(variance + epsilon) · gamma + beta, over all axes but the
// last (Ioffe and Szegedy, ICML 2015). x: [batch, channels] or [batch, height, width, channels],
// f32. Variables `name`/gamma, beta, moving_mean and moving_variance [channels], made once like
// those of Dense.
class BatchNorm {
 public:
  BatchNorm(Graph& graph, int64_t channels, std::string_view name = "batch_norm",
            BatchNormOptions options = {}, Location at = here());
  // is_training: with the mean and the variance of the batch, and the moving averages follow it, by
  // ops in the collection "update_ops", which Optimizer::apply() runs. Else with the averages.
  Output operator()(Output x, bool is_training, Location at = here()) const;

  Output moving_mean() const { return moving_mean_; }
  Output moving_variance() const { return moving_variance_; }

 private:
  void follow(Output average, Output of_batch, Location at) const;

  std::string name_;
  std::string scope_;  // where its variables are, and its nodes go: "outer/name_1/"
  BatchNormOptions options_;
  Output gamma_, beta_;  // none without use_scale, use_offset
  Output moving_mean_, moving_variance_;
};

// For training: an element of x is 0 with that probability, else x / (1 - rate) (Srivastava et al.,
// JMLR 2014). 0 <= rate < 1. The numbers are a stream of the session: after a restart it begins
// anew, so a training that goes on from a checkpoint has other masks than one that was not
// disturbed.
Output dropout(Output x, double rate, int64_t seed = 0, Location at = here());
// The same, with a mask that `seed` and `step` (a number of an integer type, such as the global
// step) determine: a training that goes on has the same ones. Layers of one size need different
// seeds.
Output dropout(Output x, double rate, int64_t seed, Output step, Location at = here());

// A row of the variable `name`/embeddings [rows, size] for each id. ids: int32 or int64 of any
// shape, each in [0, rows); y: their shape and [size]. The gradient is as large as the table. For a
// table in parts: embedding_lookup.h.
class Embedding {
 public:
  Embedding(Graph& graph, int64_t rows, int64_t size, std::string_view name = "embedding",
            Initializer initializer = initializers::random_uniform(-0.05, 0.05), DType dtype = f32,
            Location at = here());
  Output operator()(Output ids, Location at = here()) const;

  Output embeddings() const { return embeddings_; }

 private:
  std::string name_;
  std::string scope_;  // where its variables are, and its nodes go: "outer/name_1/"
  Output embeddings_;
};

// [batch, …] as [batch, n]; all extents but the batch's must be known.
Output flatten(Output x, Location at = here());

// Cross-entropy of softmax(logits) with the true class. logits: [batch, classes]; labels: [batch]
// of class numbers (int32, int64), or [batch, classes] of probabilities (logits' dtype). Result:
// [batch].
Output softmax_cross_entropy(Output logits, Output labels, Location at = here());

// The share of rows whose largest logit is at the label. logits: [batch, classes]; labels: [batch]
// integers. A scalar.
Output accuracy(Output logits, Output labels, Location at = here());

}  // namespace leat::nn
