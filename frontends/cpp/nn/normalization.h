// Normalisation: over a batch, or within each example.
#pragma once

#include <memory>
#include <string>

#include "frontends/cpp/nn/training_flag.h"
#include "frontends/cpp/variables.h"

namespace leat::nn {

struct BatchNormOptions {
  TrainingFlag training = true;  // of batch_norm(); a BatchNorm gets it with each call
  // Of the moving averages: average = momentum · average + (1 - momentum) · batch.
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool use_scale = true, use_offset = true;
  DType dtype = f32;  // of a BatchNorm's variables, f32 or f64; batch_norm() takes f64 if x has it
  std::string name = "batch_norm";
};

// Batch normalisation, y = (x - mean) / √(variance + epsilon) · gamma + beta, over all axes but the
// last (Ioffe and Szegedy, ICML 2015). x: [batch, channels] or [batch, height, width, channels],
// f32, or f16 or bf16, whose means and variances are f32, too; f64 with variables of f64. The
// result has x's dtype. Variables `name`/gamma, beta, moving_mean and moving_variance [channels],
// made once like those of Dense.
class BatchNorm {
 public:
  BatchNorm(Graph& graph, int64_t channels, BatchNormOptions options = {}, Location at = here());
  // If `training`, uses the mean and variance of the batch, and adds ops that move the averages
  // towards them to the collection "update_ops". Optimizer::minimize() and apply_gradients() run
  // this collection, also in strategies. A program that updates its variables in another way runs
  // it itself: group(g, g.collection("update_ops")). Else uses the averages.
  Output operator()(Output x, TrainingFlag training, Location at = here()) const;

  Output moving_mean() const { return moving_mean_; }
  Output moving_variance() const { return moving_variance_; }

 private:
  std::vector<Output> normalised(Output image, bool is_training, Location at) const;
  void follow(Output average, Output of_batch, const TrainingFlag& training, Location at) const;

  BatchNormOptions options_;
  std::string scope_;    // where its variables are, and its nodes go: "outer/name_1/"
  Output gamma_, beta_;  // none without use_scale, use_offset
  Output moving_mean_, moving_variance_;
};

// The layer used once: the channels of x must be known.
Output batch_norm(Output x, const BatchNormOptions& options, Location at = here());
// The same; whether it trains is an argument of its own.
template <class T>
requires(std::convertible_to<T, TrainingFlag>) Output
    batch_norm(Output x, const T& training, BatchNormOptions options = {}, Location at = here()) {
  options.training = TrainingFlag(training);
  return batch_norm(x, options, at);
}

struct LayerNormOptions {
  double epsilon = 1e-3;
  bool use_scale = true, use_offset = true;
  std::string name = "layer_norm";
};
// y = (x - mean) / √(variance + epsilon) · gamma + beta, over the last axis of x, whose extent must
// be known (Ba, Kiros and Hinton, arXiv:1607.06450). Variables `name`/gamma and beta [extent], made
// by the first call; copies are the same layer.
class LayerNorm {
 public:
  explicit LayerNorm(Graph& graph, LayerNormOptions options = {});
  Output operator()(Output x, Location at = here()) const;

  Output gamma() const { return made_->gamma; }  // none before they are made
  Output beta() const { return made_->beta; }    // and without use_scale, use_offset

 private:
  struct Variables {
    int64_t extent = 0;
    Output gamma, beta;
  };

  LayerNormOptions options_;
  std::string scope_;  // where its variables are, and its nodes go: "outer/name_1/"
  std::shared_ptr<Variables> made_ = std::make_shared<Variables>();
};

// The layer used once.
Output layer_norm(Output x, const LayerNormOptions& options = {}, Location at = here());

struct GroupNormOptions {
  double epsilon = 1e-3;
  bool use_scale = true, use_offset = true;
  std::string name = "group_norm";
};
// y = (x - mean) / √(variance + epsilon) · gamma + beta, mean and variance over all positions and
// one group of channels of each example (Wu and He, "Group normalization", ECCV 2018). x: [batch,
// …, channels], its rank and channels known, the latter a multiple of `groups`. Variables
// `name`/gamma and beta [channels]. Keras' GroupNormalization.
Output group_norm(Output x, int64_t groups, const GroupNormOptions& options = {},
                  Location at = here());
// The same with a group for each channel (Ulyanov et al., arXiv:1607.08022).
Output instance_norm(Output x, const GroupNormOptions& options = {.name = "instance_norm"},
                     Location at = here());

// x / √max(Σ x², epsilon), the sum over the axes: vectors of length 1. tf.nn.l2_normalize.
//   Output directions = nn::l2_normalize(x, -1);
Output l2_normalize(Output x, const Axes& axes, double epsilon = 1e-12, Location at = here());

struct LrnOptions {
  int64_t depth_radius = 5;  // channels on each side that count
  double bias = 1, alpha = 1, beta = 0.5;
};
// Local response normalisation: x / (bias + alpha · Σ x²)^beta, the sum over the channel and
// depth_radius others on each side (Krizhevsky, Sutskever and Hinton, NIPS 2012). x: [batch,
// height, width, channels]. tf.nn.lrn.
Output local_response_normalization(Output x, const LrnOptions& options = {}, Location at = here());

}  // namespace leat::nn
