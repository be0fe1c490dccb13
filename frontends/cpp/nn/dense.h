// Fully connected layers, and the dropout and flattening between them.
#pragma once

#include <memory>

#include "frontends/cpp/nn/activation.h"
#include "frontends/cpp/nn/training_flag.h"
#include "frontends/cpp/variables.h"

namespace leat::nn {

struct DenseOptions {
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = initializers::glorot_uniform();
  Initializer bias_initializer = initializers::zeros();
  DType dtype = f32;  // of a Dense; dense() takes that of x
  std::string name = "dense";
};

// A fully connected layer: its variables `name`/kernel [inputs, units] and `name`/bias [units] are
// made once, and every call adds y = activation(x·kernel + bias), x: [..., inputs], y: [...,
// units], under the scopes of the call. Several replicas of a model share the layer that way.
// Copies are the same layer.
class Dense {
 public:
  Dense(Graph& graph, int64_t inputs, int64_t units, DenseOptions options = {},
        Location at = here());
  // The first call makes the variables, for as many inputs as its x has.
  Dense(Graph& graph, int64_t units, DenseOptions options = {}, Location at = here());
  Output operator()(Output x, Location at = here()) const;

  Output kernel() const { return made_->kernel; }  // none before they are made
  Output bias() const { return made_->bias; }      // and without use_bias

 private:
  struct Variables {
    Output kernel, bias;
  };
  void make(Graph& graph, int64_t inputs, Location at) const;

  DenseOptions options_;
  int64_t units_;
  std::string scope_;  // where its variables are, and its nodes go: "outer/name_1/"
  std::shared_ptr<Variables> made_ = std::make_shared<Variables>();
};

// The layer used once: the last extent of x must be known.
Output dense(Output x, int64_t units, const DenseOptions& options = {}, Location at = here());

struct DropoutOptions {
  TrainingFlag training = true;  // else the result is x
  int64_t seed = 0;              // 0: other masks in each run
  // If given (an integer, such as the global step), seed and step determine the mask, so that
  // training resumed from a checkpoint has the same masks. Layers of one size then need different
  // seeds.
  Output step = {};
};
// For training: an element of x is 0 with that probability, else x / (1 - rate) (Srivastava et al.,
// JMLR 2014). 0 <= rate < 1. Without `step` the session has a stream of random numbers, which
// starts again after a restart.
Output dropout(Output x, double rate, const DropoutOptions& options = {}, Location at = here());

// [batch, …] as [batch, n]; all extents but the batch's must be known.
Output flatten(Output x, Location at = here());

}  // namespace leat::nn
