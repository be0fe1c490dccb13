// Gradients that are late: what is done if the weights have changed since a worker read those of
// its gradient.
#pragma once

#include <string_view>
#include <vector>

#include "frontends/cpp/strategies/parts/copies.h"

namespace leat {

// w are the weights now and w' those of the gradient g; t is the global step, τ how much it has
// grown since w' was read.
struct DelayCorrection {
  enum class Kind {
    none,
    // g / (β + √(t + τ)). Sra et al., "AdaDelay", AISTATS 2016, in dmlc/wormhole's form.
    adadelay,
    // g + λ g² (w - w'). Sends w', too: 2S bytes up. Zheng et al., "Asynchronous SGD with delay
    // compensation", ICML 2017.
    dc_asgd,
    // A rate for each number, as Adagrad's, that also counts what has been added to w since w', and
    // once it shrinks corrects what was added at the old one. With G the sum of all gradients, G'
    // what it was with w', b = G - G':
    //   z += g² + 2gb; r' = 1 / (β + √max z); r = 1 / (β + √max z), now with this z;
    //   the gradient r g - (r' - r) b.
    // G' is fetched with w' and sent with g: 2S bytes down and 2S up; w, G, z and max z on the
    // servers. Updates that meet may read w and G of which only one is new. McMahan and Streeter,
    // "Delay-tolerant algorithms for asynchronous distributed online learning", NIPS 2014.
    adaptive_revision,
  };
  Kind kind = Kind::none;
  double beta = 1;       // β
  double lambda = 0.04;  // λ
};
// "none", "adadelay", "dc_asgd", "adaptive_revision". INVALID_ARGUMENT lists them.
DelayCorrection::Kind delay_correction_named(std::string_view name);

// The gradients as they are to be applied, where their variables are, those of
// copied.trainable(). Rows stay rows with adadelay, and become dense otherwise. An Sgd with the
// rate a then makes the steps of adadelay and adaptive_revision. `step_of_weights`: a variable
// with the global step when the copies were fetched, which adadelay reads. `updates` receives nodes
// that a step must run; later fetches bring what the correction needs.
std::vector<GradientAndVariable> corrected(std::vector<GradientAndVariable> gradients,
                                           CopiedModel& copied, const Output& step_of_weights,
                                           const DelayCorrection& correction,
                                           std::vector<Output>& updates, Location at = here());

}  // namespace leat
