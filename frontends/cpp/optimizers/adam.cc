#include "frontends/cpp/optimizers/adam.h"

#include <cmath>

#include "frontends/cpp/optimizers/powers.h"
#include "frontends/cpp/optimizers/update_op.h"

namespace leat {
Adam::Adam(Rate rate, const AdamOptions& options, Location at) : rate_(rate), options_(options) {
  check_option("Adam", "beta1", options.beta1, 0, 1, at);
  check_option("Adam", "beta2", options.beta2, 0, 1, at);
  check_not_negative("Adam", "epsilon", options.epsilon, at);
}

Adam::Shared Adam::make_shared_state(Graph& graph,
                                     const std::vector<GradientAndVariable>& gradients) const {
  const Output first = gradients.front().variable;
  return {make_power(graph, first, "beta1_power", options_.beta1),
          make_power(graph, first, "beta2_power", options_.beta2)};
}

Output Adam::update(const GradientAndVariable& gradient, const Shared& powers, Location at) const {
  const Output w = gradient.variable;
  const Output m = slot(w, "Adam"), v = slot(w, "Adam");
  if (gradient.indices && options_.lazy)
    return update_rows(sum_repeated(gradient, at), m, v, powers, at);
  return update_op("Adam", densify(gradient, at),
                   {{"m", m},
                    {"v", v},
                    {"beta1_power", in_dtype_of(w, powers[0])},
                    {"beta2_power", in_dtype_of(w, powers[1])},
                    {"lr", rate_.like(w)},
                    {"beta1", options_.beta1},
                    {"beta2", options_.beta2},
                    {"epsilon", options_.epsilon}},
                   {}, at);
}

Output Adam::update_rows(const GradientAndVariable& gradient, Output m, Output v,
                         const Shared& powers, Location at) const {
  const auto& [g, w] = gradient;
  const Output rows = gradient.indices;
  const double beta1 = options_.beta1, beta2 = options_.beta2;
  const Output new_m = beta1 * take(m, rows, 0, at) + (1 - beta1) * Operand(g, at);
  const Output new_v = beta2 * take(v, rows, 0, at) + (1 - beta2) * square(g, at);
  const Output correction =
      sqrt(1.0 - in_dtype_of(w, powers[1]), at) / (1.0 - in_dtype_of(w, powers[0]));
  const Output step = rate_.like(w) * correction * new_m / (sqrt(new_v, at) + options_.epsilon);
  return group(w.graph(),
               {scatter_update(m, rows, new_m, at), scatter_update(v, rows, new_v, at),
                scatter_sub(w, rows, step, at)},
               "update_rows", at)
      .output();
}

std::vector<Output> Adam::finish(const Shared& powers) const {
  return {next_power(powers[0], options_.beta1), next_power(powers[1], options_.beta2)};
}

AdamW::AdamW(Rate rate, const AdamWOptions& options, Location at)
    : Adam(rate,
           {.beta1 = options.beta1,
            .beta2 = options.beta2,
            .epsilon = options.epsilon,
            .lazy = options.lazy},
           at),
      weight_decay_(options.weight_decay) {
  check_not_negative("AdamW", "weight_decay", options.weight_decay, at);
}

Output AdamW::update(const GradientAndVariable& gradient, const Shared& powers, Location at) const {
  const GradientAndVariable used = sum_repeated(gradient, at);
  const Output w = used.variable;
  Output decayed;
  {
    // The gradient is that of the weights before they decay.
    const ControlScope after(w.graph(), {used.gradient});
    const Output share = rate().like(w) * weight_decay_;
    decayed = used.indices && options().lazy
                  ? scatter_sub(w, used.indices, take(w, used.indices, 0, at) * share, at)
                  : assign_sub(w, Operand(w, at) * share, at);
  }
  const ControlScope after(w.graph(), {decayed});
  return Adam::update(used, powers, at);
}

Adamax::Adamax(Rate rate, const AdamaxOptions& options, Location at)
    : rate_(rate), options_(options) {
  check_option("Adamax", "beta1", options.beta1, 0, 1, at);
  check_option("Adamax", "beta2", options.beta2, 0, 1, at);
  check_not_negative("Adamax", "epsilon", options.epsilon, at);
}

Adamax::Shared Adamax::make_shared_state(Graph& graph,
                                         const std::vector<GradientAndVariable>& gradients) const {
  return {make_power(graph, gradients.front().variable, "beta1_power", options_.beta1)};
}

Output Adamax::update(const GradientAndVariable& gradient, const Shared& powers,
                      Location at) const {
  const Output w = gradient.variable;
  const Output m = slot(w, "AdaMax"), v = slot(w, "AdaMax");
  return update_op("AdaMax", densify(gradient, at),
                   {{"m", m},
                    {"v", v},
                    {"beta1_power", in_dtype_of(w, powers[0])},
                    {"lr", rate_.like(w)},
                    {"beta1", options_.beta1},
                    {"beta2", options_.beta2},
                    {"epsilon", options_.epsilon}},
                   {}, at);
}

std::vector<Output> Adamax::finish(const Shared& powers) const {
  return {next_power(powers[0], options_.beta1)};
}

namespace {
// The base of Dozat's schedule: μ_t = beta1 · (1 - base^t / 2).
double schedule_base(const NadamOptions& options) { return std::pow(0.96, options.momentum_decay); }
}  // namespace

Nadam::Nadam(Rate rate, const NadamOptions& options, Location at) : rate_(rate), options_(options) {
  check_option("Nadam", "beta1", options.beta1, 0, 1, at);
  check_option("Nadam", "beta2", options.beta2, 0, 1, at);
  check_not_negative("Nadam", "epsilon", options.epsilon, at);
  check_not_negative("Nadam", "momentum_decay", options.momentum_decay, at);
}

Nadam::Shared Nadam::make_shared_state(Graph& graph,
                                       const std::vector<GradientAndVariable>& gradients) const {
  const Output first = gradients.front().variable;
  return {make_power(graph, first, "beta2_power", options_.beta2),
          make_power(graph, first, "momentum_decay_power", schedule_base(options_)),
          make_shared_number(graph, first, "momentum_product", 1)};
}

Output Nadam::update(const GradientAndVariable& gradient, const Shared& powers, Location at) const {
  const auto& [beta1, beta2, epsilon, decay] = options_;
  const GradientAndVariable dense = densify(gradient, at);
  const Output g = dense.gradient, w = dense.variable;
  const Output m = slot(w, "Nadam"), v = slot(w, "Nadam");
  const Output scheduled = in_dtype_of(w, powers[1]);
  const Output momentum = beta1 * (1 - 0.5 * scheduled);
  const Output next_momentum = beta1 * (1 - 0.5 * schedule_base(options_) * scheduled);
  const Output product = in_dtype_of(w, powers[2]) * momentum;
  const Output new_m = beta1 * Operand(m, at) + (1 - beta1) * Operand(g, at);
  const Output new_v = beta2 * Operand(v, at) + (1 - beta2) * square(g, at);
  const Output mean = next_momentum / (1 - product * next_momentum) * new_m +
                      (1 - momentum) / (1 - product) * Operand(g, at);
  const Output size = sqrt(new_v / (1 - in_dtype_of(w, powers[0])), at) + epsilon;
  return group(w.graph(),
               {assign(m, new_m, at), assign(v, new_v, at),
                assign_sub(w, rate_.like(w) * mean / size, at)},
               "update_nadam", at)
      .output();
}

std::vector<Output> Nadam::finish(const Shared& powers) const {
  const Output momentum = options_.beta1 * (1 - 0.5 * powers[1]);
  const Output product = next_power(powers[2], momentum);
  const ControlScope after(product.graph(), {product});
  return {product, next_power(powers[0], options_.beta2),
          next_power(powers[1], schedule_base(options_))};
}

}  // namespace leat
