#include "frontends/cpp/optimizers/layerwise.h"

#include <algorithm>

#include "frontends/cpp/optimizers/powers.h"
#include "frontends/cpp/optimizers/update_op.h"

namespace leat {
namespace {

bool is_excluded(const Output& w, const std::vector<std::string>& exclude) {
  const std::string& name = variable_name(w);
  return std::any_of(exclude.begin(), exclude.end(),
                     [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

// √(Σ x²), in float32 for shorter types, whose squares overflow.
Output length(Output x, Location at) {
  const bool is_short = x.dtype() != f32 && x.dtype() != f64;
  return norm(is_short ? cast(x, f32, at) : x, {}, {}, at);
}

// The ratio, or 1 where one of the lengths is 0.
Output where_both(Output w_length, Output step_length, Output ratio, DType dtype, Location at) {
  const Output both = logical_and(w_length > 0, step_length > 0, at);
  const Output used = where(both, ratio, 1, at);
  return used.dtype() == dtype ? used : cast(used, dtype, at);
}

}  // namespace

Lamb::Lamb(Rate rate, const LambOptions& options, Location at) : rate_(rate), options_(options) {
  check_not_negative("Lamb", "weight_decay", options.weight_decay, at);
  check_option("Lamb", "beta1", options.beta1, 0, 1, at);
  check_option("Lamb", "beta2", options.beta2, 0, 1, at);
  check_not_negative("Lamb", "epsilon", options.epsilon, at);
}

Lamb::Shared Lamb::make_shared_state(Graph& graph,
                                     const std::vector<GradientAndVariable>& gradients) const {
  const Output first = gradients.front().variable;
  return {make_power(graph, first, "beta1_power", options_.beta1),
          make_power(graph, first, "beta2_power", options_.beta2)};
}

Output Lamb::update(const GradientAndVariable& gradient, const Shared& powers, Location at) const {
  const double beta1 = options_.beta1, beta2 = options_.beta2;
  const GradientAndVariable dense = densify(gradient, at);
  const Output g = dense.gradient, w = dense.variable;
  const Output m = slot(w, "Lamb"), v = slot(w, "Lamb");
  const Output new_m = beta1 * Operand(m, at) + (1 - beta1) * Operand(g, at);
  const Output new_v = beta2 * Operand(v, at) + (1 - beta2) * square(g, at);
  const Output mean = new_m / (1 - in_dtype_of(w, powers[0]));
  const Output size = sqrt(new_v / (1 - in_dtype_of(w, powers[1])), at) + options_.epsilon;
  Output step = mean / size;
  if (!is_excluded(w, options_.exclude)) {
    if (options_.weight_decay > 0) step = step + options_.weight_decay * Operand(w, at);
    const Output of_w = length(w, at), of_step = length(step, at);
    step = step * where_both(of_w, of_step, of_w / of_step, w.dtype(), at);
  }
  return group(
             w.graph(),
             {assign(m, new_m, at), assign(v, new_v, at), assign_sub(w, rate_.like(w) * step, at)},
             "update_lamb", at)
      .output();
}

std::vector<Output> Lamb::finish(const Shared& powers) const {
  return {next_power(powers[0], options_.beta1), next_power(powers[1], options_.beta2)};
}

Lars::Lars(Rate rate, const LarsOptions& options, Location at) : rate_(rate), options_(options) {
  check_option("Lars", "momentum", options.momentum, 0, 1, at);
  check_not_negative("Lars", "weight_decay", options.weight_decay, at);
  check(options.trust_coefficient > 0, "Lars (", at, "): trust_coefficient must be positive, got ",
        options.trust_coefficient);
}

Output Lars::update(const GradientAndVariable& gradient, const Shared&, Location at) const {
  const GradientAndVariable dense = densify(gradient, at);
  const Output w = dense.variable, m = slot(w, "Lars");
  Output step = dense.gradient;
  if (!is_excluded(w, options_.exclude)) {
    const double decay = options_.weight_decay;
    const Output of_w = length(w, at), of_g = length(step, at);
    const Output ratio = options_.trust_coefficient * of_w / (of_g + decay * of_w);
    if (decay > 0) step = step + decay * Operand(w, at);
    step = step * where_both(of_w, of_g, ratio, w.dtype(), at);
  }
  const Output new_m = options_.momentum * Operand(m, at) + rate_.like(w) * step;
  return group(w.graph(), {assign(m, new_m, at), assign_sub(w, new_m, at)}, "update_lars", at)
      .output();
}

}  // namespace leat
