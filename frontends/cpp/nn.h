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
