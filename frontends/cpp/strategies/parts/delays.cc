#include "frontends/cpp/strategies/parts/delays.h"

#include <map>

namespace leat {
namespace {

using Kind = DelayCorrection::Kind;

// 1 / (β + √z).
Output rate_of(const Output& z, double beta) { return 1 / (sqrt(z) + beta); }

Output revised(const Output& gradient, const Output& variable, const Output& sum,
               const Output& sum_of_weights, double beta, std::vector<Output>& updates,
               Location at) {
  Graph& graph = variable.graph();
  const Output z = slot(variable, "z", initializers::zeros(), at),
               largest = slot(variable, "largest_z", initializers::zeros(), at);
  const Output since = read_variable(sum, at) - sum_of_weights;
  const Output before = read_variable(largest, at);
  const Output now = maximum(
      before, read_variable(assign_add(z, square(gradient) + 2 * (gradient * since), at), at));
  updates.push_back(assign(largest, now, at));
  {
    const ControlScope after(graph, {since});
    updates.push_back(assign_add(sum, gradient, at));
  }
  const Output rate = rate_of(now, beta);
  return gradient * rate - since * (rate_of(before, beta) - rate);
}

}  // namespace

DelayCorrection::Kind delay_correction_named(std::string_view name) {
  static const std::map<std::string_view, Kind> known = {
      {"none", Kind::none},
      {"adadelay", Kind::adadelay},
      {"dc_asgd", Kind::dc_asgd},
      {"adaptive_revision", Kind::adaptive_revision}};
  const auto found = known.find(name);
  check(found != known.end(), "there is no delay correction '", name,
        "'; there are: none, adadelay, dc_asgd, adaptive_revision");
  return found->second;
}

std::vector<GradientAndVariable> corrected(std::vector<GradientAndVariable> gradients,
                                           CopiedModel& copied, const Output& step_of_weights,
                                           const DelayCorrection& correction,
                                           std::vector<Output>& updates, Location at) {
  check(correction.beta > 0 && correction.lambda >= 0,
        "a delay correction needs a positive beta and a lambda that is not negative, got ",
        correction.beta, " and ", correction.lambda);
  if (correction.kind == Kind::none) return gradients;
  Graph& graph = copied.step().graph();
  const NameScope scope(graph, "delay");
  Output factor;
  if (correction.kind == Kind::adadelay) {
    const ColocationScope with(graph, {copied.step()});
    const Output now = cast(read_variable(copied.step(), at), f32),
                 then = cast(read_variable(step_of_weights, at), f32);
    factor = rate_of(now + (now - then), correction.beta);
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].gradient) continue;
    const Output variable = gradients[i].variable;
    if (factor) {
      const ColocationScope with(graph, {variable});
      gradients[i].gradient = gradients[i].gradient * cast(factor, variable.dtype());
      continue;
    }
    gradients[i] = densify(gradients[i], at);
    Output& gradient = gradients[i].gradient;
    if (correction.kind == Kind::dc_asgd) {
      const Output of_gradient = read_variable(copied.trainable_copies()[i], at);
      const ColocationScope with(graph, {variable});
      const Output moved = read_variable(variable, at) - of_gradient;
      gradient = gradient + square(gradient) * moved * correction.lambda;
    } else {
      const Output sum = slot(variable, "sum_of_gradients", initializers::zeros(), at);
      const Output of_weights = read_variable(copied.fetch_also(sum, at), at);
      const ColocationScope with(graph, {variable});
      gradient = revised(gradient, variable, sum, of_weights, correction.beta, updates, at);
    }
  }
  return gradients;
}

}  // namespace leat
