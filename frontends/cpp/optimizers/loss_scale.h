// A scale for the loss, for gradients in float16.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frontends/cpp/optimizers/sparse_rows.h"

namespace leat {

// float16 cannot hold numbers below 6e-8, where many gradients lie. So the loss is multiplied by a
// scale and the gradients, in float32, are divided by it (Micikevicius et al.: Mixed Precision
// Training, arXiv:1710.03740, section 3.2):
//
//   Adam optimizer{1e-3};
//   optimizer.set_loss_scale({});
//   Node& train = optimizer.minimize(loss);
//   Session session(g, {.mixed_precision = MixedPrecision::float16});
//
// A step whose gradients are not all finite changes no variable, no slot and no global step; it
// divides the scale by `factor`, down to 1. After `growth_steps` finite steps in a row the scale is
// multiplied by `factor`, as TensorFlow's DynamicLossScale does it.
struct LossScale {
  double initial = 32768;       // at least 1
  int64_t growth_steps = 2000;  // 0: the scale stays as it is
  double factor = 2;            // above 1

  static LossScale fixed(double scale) { return {.initial = scale, .growth_steps = 0}; }
};

// INVALID_ARGUMENT unless each number is in its range.
void check_loss_scale(const LossScale& options, Location at);

// The scale of a graph: a float32 variable "loss_scale" (a constant if it is fixed), and what it
// does to gradients. All optimizers of a graph share it. For optimizers and strategies.
class LossScaling {
 public:
  LossScaling(Graph& graph, const LossScale& options, Location at);

  // A scalar.
  Output scale() const { return scale_; }
  Output scaled(Output loss) const;
  // Where the gradients are, those that are there.
  std::vector<GradientAndVariable> unscaled(std::vector<GradientAndVariable> gradients) const;

  // A scalar bool: are all elements of all gradients finite?
  Output are_finite(const std::vector<GradientAndVariable>& gradients) const;
  // What waits for it, and what waits for that, does not run in a step where the condition is
  // false.
  Output runs_if(Output condition) const;
  // Waits for the updates, if they run, and adjusts the scale.
  std::vector<Output> finish(Output are_finite, const std::vector<Output>& updates) const;

 private:
  Graph& graph_;
  const LossScale options_;
  const Location at_;
  Output scale_, finite_steps_;  // the latter is none if the scale is fixed
};

}  // namespace leat
