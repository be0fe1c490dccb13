#include "frontends/cpp/optimizers/gradient_descent.h"

#include "frontends/cpp/optimizers/update_op.h"

namespace leat {

Output Sgd::update(const GradientAndVariable& gradient, const Shared&, Location at) const {
  const auto& [delta, variable] = gradient;
  const Output rate = rate_.like(variable);
  if (!gradient.indices) return update_op("GradientDescent", gradient, {{"alpha", rate}}, {}, at);
  // Rows that repeat add up here by themselves.
  const Output change = Operand(delta, at) * rate;
  return {&update_variable("ScatterSub", {variable, gradient.indices, change}, {}, at), 0};
}

Momentum::Momentum(Rate rate, const MomentumOptions& options, Location at)
    : rate_(rate), options_(options) {
  check_option("Momentum", "momentum", options.momentum, 0, 1, at);
}

Output Momentum::update(const GradientAndVariable& gradient, const Shared&, Location at) const {
  const Output w = gradient.variable;
  return update_op(
      "Momentum", gradient,
      {{"accum", slot(w, "Momentum")}, {"lr", rate_.like(w)}, {"momentum", options_.momentum}},
      {{"use_nesterov", options_.nesterov}}, at);
}

}  // namespace leat
