// Layers, losses and metrics: functions and objects that add ops and variables to the graph of
// their input. What needs no variables (relu, conv2d of a given filter) is in graph/ops/neural.h.
#pragma once

#include "frontends/cpp/nn/attention.h"
#include "frontends/cpp/nn/convolution.h"
#include "frontends/cpp/nn/dense.h"
#include "frontends/cpp/nn/embedding.h"
#include "frontends/cpp/nn/losses.h"
#include "frontends/cpp/nn/metrics.h"
#include "frontends/cpp/nn/normalization.h"
#include "frontends/cpp/nn/recurrent.h"
