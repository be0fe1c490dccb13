#include "frontends/cpp/optimizers/adam.h"

#include "frontends/cpp/optimizers/update_op.h"

namespace leat {
namespace {

// beta^t for the t-th update: a variable called `name`, without prefix as TensorFlow's, beside the
// first variable.
Output make_power(Graph& graph, Output first, std::string_view name, double beta) {
  const ColocationScope with(graph, {first});
  const NameScope absolute(graph, copy_root_of(graph, variable_name(first)));
  return variable(graph, name, {}, initializers::constant(beta), first.dtype(),
                  {.trainable = false, .use_resource = is_resource_variable(first)});
}

Output next_power(Output power, double beta) {
  const ColocationScope with(power.graph(), {power});
  return {&update_variable("Assign", {power, power * beta}, {{"use_locking", false}}), 0};
}

Output in_dtype_of(Output variable, Output power) {
  return power.dtype() == variable.dtype() ? power : cast(power, variable.dtype());
}

}  // namespace

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

}  // namespace leat
