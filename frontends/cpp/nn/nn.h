// Layers, losses and metrics: functions and objects that add ops and variables to the graph of
// their input. Functions without variables (relu, conv2d of a given filter) are in
// graph/ops/neural.h.
#pragma once

#include "frontends/cpp/nn/attention.h"
#include "frontends/cpp/nn/convolution.h"
#include "frontends/cpp/nn/dense.h"
#include "frontends/cpp/nn/embedding.h"
#include "frontends/cpp/nn/losses.h"
#include "frontends/cpp/nn/metrics.h"
#include "frontends/cpp/nn/normalization.h"
#include "frontends/cpp/nn/recurrent.h"
#include "frontends/cpp/nn/sampled_losses.h"
#include "frontends/cpp/nn/volumes.h"

namespace leat::nn {

// Network functions without variables are in leat; nn has them as well, as Keras does.
using leat::avg_pool;
using leat::bias_add;
using leat::elu;
using leat::gelu;
using leat::in_top_k;
using leat::l2_loss;
using leat::leaky_relu;
using leat::log_softmax;
using leat::max_pool;
using leat::relu;
using leat::relu6;
using leat::selu;
using leat::sigmoid;
using leat::silu;
using leat::softmax;
using leat::softplus;
using leat::softsign;
using leat::tanh;

}  // namespace leat::nn
