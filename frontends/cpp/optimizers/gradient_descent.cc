#include "frontends/cpp/optimizers/gradient_descent.h"

#include "frontends/cpp/optimizers/update_op.h"

namespace leat {

Output GradientDescent::update(const GradientAndVariable& gradient, const Shared&,
                               Location at) const {
  const auto& [delta, variable, indices] = gradient;
  const Output rate = rate_.in(variable.graph(), variable.dtype());
  if (!indices) return op("ApplyGradientDescent", {variable, rate, delta}, {}, at);
  // Rows that repeat add up here by themselves.
  return op("ScatterSub", {variable, indices, Operand(delta, at) * rate}, {}, at);
}

Momentum::Momentum(Rate rate, const MomentumOptions& options, Location at)
    : rate_(rate), options_(options) {
  check_option("Momentum", "momentum", options.momentum, 0, 1, at);
}

Output Momentum::update(const GradientAndVariable& gradient, const Shared&, Location at) const {
  const Output w = gradient.variable;
  return update_op("Momentum", gradient,
                   {{"accum", slot(w, "Momentum")},
                    {"lr", rate_.in(w.graph(), w.dtype())},
                    {"momentum", scalar_like(w, options_.momentum, "momentum")}},
                   {{"use_nesterov", options_.nesterov}}, at);
}

}  // namespace leat
