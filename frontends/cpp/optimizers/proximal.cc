#include "frontends/cpp/optimizers/proximal.h"

#include <cmath>

#include "frontends/cpp/optimizers/update_op.h"

namespace leat {
namespace {

void check_penalties(std::string_view optimizer, double l1, double l2, Location at) {
  check_not_negative(optimizer, "l1", l1, at);
  check_not_negative(optimizer, "l2", l2, at);
}

}  // namespace

Ftrl::Ftrl(Rate rate, const FtrlOptions& options, Location at) : rate_(rate), options_(options) {
  check(options.learning_rate_power <= 0 && std::isfinite(options.learning_rate_power), "Ftrl (",
        at, "): learning_rate_power must be finite and not positive, got ",
        options.learning_rate_power);
  check_not_negative("Ftrl", "initial_accumulator_value", options.initial_accumulator_value, at);
  check_penalties("Ftrl", options.l1, options.l2, at);
  check_not_negative("Ftrl", "l2_shrinkage", options.l2_shrinkage, at);
}

Output Ftrl::update(const GradientAndVariable& gradient, const Shared&, Location at) const {
  const Output w = gradient.variable;
  const Output squares =
      slot(w, "Ftrl", initializers::constant(options_.initial_accumulator_value));
  const Output linear = slot(w, "Ftrl");
  std::vector<UpdateInput> inputs = {
      {"accum", squares},  {"linear", linear},  {"lr", rate_.like(w)},
      {"l1", options_.l1}, {"l2", options_.l2}, {"lr_power", options_.learning_rate_power}};
  if (options_.l2_shrinkage == 0) return update_op("Ftrl", gradient, inputs, {}, at);
  inputs.push_back({"l2_shrinkage", options_.l2_shrinkage});
  return update_op("FtrlV2", gradient, inputs, {}, at);
}

ProximalGradientDescent::ProximalGradientDescent(Rate rate, const ProximalOptions& options,
                                                 Location at)
    : rate_(rate), options_(options) {
  check_penalties("ProximalGradientDescent", options.l1, options.l2, at);
}

Output ProximalGradientDescent::update(const GradientAndVariable& gradient, const Shared&,
                                       Location at) const {
  const Output w = gradient.variable;
  return update_op("ProximalGradientDescent", gradient,
                   {{"alpha", rate_.like(w)}, {"l1", options_.l1}, {"l2", options_.l2}}, {}, at);
}

ProximalAdagrad::ProximalAdagrad(Rate rate, const ProximalAdagradOptions& options, Location at)
    : rate_(rate), options_(options) {
  check(options.initial_accumulator_value > 0, "ProximalAdagrad (", at,
        "): initial_accumulator_value must be positive, got ", options.initial_accumulator_value);
  check_penalties("ProximalAdagrad", options.l1, options.l2, at);
}

Output ProximalAdagrad::update(const GradientAndVariable& gradient, const Shared&,
                               Location at) const {
  const Output w = gradient.variable;
  return update_op("ProximalAdagrad", gradient,
                   {{"accum", slot(w, "ProximalAdagrad",
                                   initializers::constant(options_.initial_accumulator_value))},
                    {"lr", rate_.like(w)},
                    {"l1", options_.l1},
                    {"l2", options_.l2}},
                   {}, at);
}

}  // namespace leat
