#include "frontends/cpp/optimizers/loss_scale.h"

#include <cmath>

#include "frontends/cpp/variables.h"

namespace leat {
namespace {

// Made at the root, where a second optimizer finds it.
Output state(Graph& graph, std::string_view name, double initial, DType dtype, Location at) {
  for (const Output& known : graph.collection("loss_scale")) {
    if (variable_name(known) == name) return known;
  }
  const NameScope root(graph, "");
  const Output made = variable(graph, name, Shape{}, initializers::constant(initial), dtype,
                               {.trainable = false}, at);
  graph.add_to_collection("loss_scale", made);
  return made;
}

}  // namespace

void check_loss_scale(const LossScale& options, Location at) {
  check(options.initial >= 1 && std::isfinite(options.initial), "loss scale (", at,
        "): initial must be finite and at least 1, got ", options.initial);
  check(options.growth_steps >= 0, "loss scale (", at, "): growth_steps must not be negative, got ",
        options.growth_steps);
  check(options.factor > 1 && std::isfinite(options.factor), "loss scale (", at,
        "): factor must be finite and above 1, got ", options.factor);
}

LossScaling::LossScaling(Graph& graph, const LossScale& options, Location at)
    : graph_(graph), options_(options), at_(at) {
  if (options.growth_steps == 0) {
    const NameScope root(graph, "");
    scale_ = constant(graph, options.initial, f32, "loss_scale", at);
    return;
  }
  scale_ = state(graph, "loss_scale", options.initial, f32, at);
  finite_steps_ = state(graph, "loss_scale_finite_steps", 0, i64, at);
}

Output LossScaling::scaled(Output loss) const {
  return loss * (loss.dtype() == f32 ? scale_ : cast(scale_, loss.dtype(), at_));
}

std::vector<GradientAndVariable> LossScaling::unscaled(
    std::vector<GradientAndVariable> gradients) const {
  const Output factor = Operand(1.0f) / scale_;
  for (GradientAndVariable& each : gradients) {
    if (!each.gradient) continue;
    const ColocationScope with(graph_, {each.gradient});
    const DType dtype = each.gradient.dtype();
    each.gradient = each.gradient * (dtype == f32 ? factor : cast(factor, dtype, at_));
  }
  return gradients;
}

Output LossScaling::are_finite(const std::vector<GradientAndVariable>& gradients) const {
  std::vector<Output> each;
  for (const GradientAndVariable& pair : gradients) {
    const ColocationScope with(graph_, {pair.gradient});
    each.push_back(all(op("IsFinite", {pair.gradient}, {}, at_)));
  }
  return each.size() == 1 ? each[0] : all(stack(each));
}

Output LossScaling::runs_if(Output condition) const {
  const Output branch = op("Switch", {condition, condition}, {}, at_);
  return op("Identity", {Output(branch.node, 1)}, {}, at_);
}

std::vector<Output> LossScaling::finish(Output are_finite,
                                        const std::vector<Output>& updates) const {
  const Output branch = op("Switch", {are_finite, are_finite}, {}, at_);
  Output updated;
  {
    const ControlScope after(graph_, updates);
    updated = op("Identity", {Output(branch.node, 1)}, {}, at_);
  }
  std::vector<Output> out = {op("Merge", {branch, updated}, {}, at_)};
  if (!finite_steps_) return out;
  const ColocationScope with(graph_, {scale_});
  const Output steps = finite_steps_ + 1;
  const Output waits = steps < options_.growth_steps;
  const Output grown = where(waits, scale_, scale_ * options_.factor);
  // It cannot grow beyond what float32 holds.
  const Output next = where(op("IsFinite", {grown}, {}, at_), grown, scale_);
  const Output lower = maximum(scale_ / options_.factor, 1.0f);
  out.push_back(assign(scale_, where(are_finite, next, lower), at_));
  out.push_back(assign(finite_steps_, where(are_finite & waits, steps, 0), at_));
  return out;
}

}  // namespace leat
