// Learning rates that change during training: scalars (float) of the graph, for an optimizer's
// Rate.
//   const Output rate = schedules::exponential_decay(0.1, step, {.decay_steps = 1000, .decay_rate =
//   0.96}); Sgd{rate}.minimize(loss, {.global_step = step});
// `step` is a scalar of any integer type, such as the variable that minimize() increases; a
// training step sees its value from before the update. Formulas are those of TensorFlow's tf.train
// functions. All fail with INVALID_ARGUMENT if the number of steps is not positive.
#pragma once

#include <vector>

#include "graph/ops.h"

namespace leat::schedules {

struct DecayOptions {
  double decay_steps = 0;  // must be given
  double decay_rate = -1;  // must be given
  bool staircase = false;  // takes the whole part of step / steps
};

// rate · decay_rate ^ (step / decay_steps).
Output exponential_decay(double rate, Output step, const DecayOptions& options,
                         Location at = here());

// The same: exponential_decay(0.1, step, 1000, 0.96).
inline Output exponential_decay(double rate, Output step, double decay_steps, double decay_rate,
                                Location at = here()) {
  return exponential_decay(rate, step, {.decay_steps = decay_steps, .decay_rate = decay_rate}, at);
}

// rate / (1 + decay_rate · step / decay_steps).
Output inverse_time_decay(double rate, Output step, const DecayOptions& options,
                          Location at = here());
inline Output inverse_time_decay(double rate, Output step, double decay_steps, double decay_rate,
                                 Location at = here()) {
  return inverse_time_decay(rate, step, {.decay_steps = decay_steps, .decay_rate = decay_rate}, at);
}

struct PolynomialDecayOptions {
  double decay_steps = 0;  // must be given
  double end_learning_rate = 1e-4;
  double power = 1;
};

// From `rate` to `end_learning_rate` in `decay_steps` steps:
// (rate - end_learning_rate) · (1 - min(step, decay_steps) / decay_steps) ^ power +
// end_learning_rate.
Output polynomial_decay(double rate, Output step, const PolynomialDecayOptions& options,
                        Location at = here());
inline Output polynomial_decay(double rate, Output step, double decay_steps, Location at = here()) {
  return polynomial_decay(rate, step, PolynomialDecayOptions{.decay_steps = decay_steps}, at);
}

struct CosineDecayOptions {
  double decay_steps = 0;  // must be given
  double alpha = 0;        // the share of the rate that is left at the end
};

// rate · ((1 - alpha) · (1 + cos(π · min(step, decay_steps) / decay_steps)) / 2 + alpha).
// Loshchilov and Hutter, ICLR 2017.
Output cosine_decay(double rate, Output step, const CosineDecayOptions& options,
                    Location at = here());
// The same: cosine_decay(0.1, step, 1000).
inline Output cosine_decay(double rate, Output step, double decay_steps, Location at = here()) {
  return cosine_decay(rate, step, CosineDecayOptions{.decay_steps = decay_steps}, at);
}

// values[i] as long as step <= boundaries[i], then values.back(): one value more than boundaries,
// which ascend.
Output piecewise_constant(Output step, const std::vector<int64_t>& boundaries,
                          const std::vector<double>& values, Location at = here());

// rate · min(1, (step + 1) / steps): for the beginning of training. Goyal et al., arXiv:1706.02677.
Output linear_warm_up(const Operand& rate, Output step, double steps, Location at = here());

struct LinearScalingOptions {
  double warmup_steps = 0;  // until the whole rate is reached
  // For trainings that go on with another number of replicas, after a restart from a checkpoint or
  // within a session that feeds the number: the factor then moves in warmup_steps from what it was
  // to the new number, and does not jump. It is kept in the variables "linear_scaling/replicas",
  // ".../factor" and ".../changed_at", beside the step, which checkpoints have.
  bool follows_changes = false;
};

// For k replicas whose mean gradient makes one step, `rate` being that of a single one: k · rate,
// reached in equal steps from `rate` on: rate · (1 + (k - 1) · min(step / warmup_steps, 1)).
// INVALID_ARGUMENT unless k is positive and warmup_steps not negative; 0: no warm-up.
// Goyal et al., "Accurate, large minibatch SGD", 2017, who take five epochs to warm up.
Output linear_scaling(double rate, int replicas, Output step,
                      const LinearScalingOptions& options = {}, Location at = here());
// The same for a number of replicas that is computed or fed: a scalar of any integer type. Without
// follows_changes, a new number counts at once.
Output linear_scaling(double rate, Output replicas, Output step,
                      const LinearScalingOptions& options = {}, Location at = here());

}  // namespace leat::schedules
