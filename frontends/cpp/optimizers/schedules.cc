#include "frontends/cpp/optimizers/schedules.h"

#include <algorithm>
#include <numbers>

namespace leat::schedules {
namespace {

void check_step(std::string_view what, Output step, double steps, Location at) {
  check(static_cast<bool>(step), what, " (", at, "): the step is an empty Output");
  check(is_integer(step.dtype()), what, " (", at, "): the step must be of an integer type, but '",
        step.name(), "' is ", step.dtype());
  check(steps > 0, what, " (", at, "): the number of steps must be positive, got ", steps);
}

void check_decay(std::string_view what, Output step, const DecayOptions& options, Location at) {
  check_step(what, step, options.decay_steps, at);
  check(options.decay_rate >= 0, what, " (", at,
        "): decay_rate must be given and not negative, got ", options.decay_rate);
}

// step / steps
Output share(Output step, double steps, bool staircase, Location at) {
  const Output out = cast(step, f32, at) / steps;
  return staircase ? floor(out, at) : out;
}

// 0 … 1, and 1 from then on
Output progress(Output step, double steps, Location at) {
  return minimum(share(step, steps, false, at), 1.0);
}

}  // namespace

Output exponential_decay(double rate, Output step, const DecayOptions& options, Location at) {
  check_decay("exponential_decay", step, options, at);
  const NameScope scope(step.graph(), "exponential_decay");
  return rate * pow(options.decay_rate, share(step, options.decay_steps, options.staircase, at));
}

Output inverse_time_decay(double rate, Output step, const DecayOptions& options, Location at) {
  check_decay("inverse_time_decay", step, options, at);
  const NameScope scope(step.graph(), "inverse_time_decay");
  return rate /
         (1.0 + options.decay_rate * share(step, options.decay_steps, options.staircase, at));
}

Output polynomial_decay(double rate, Output step, const PolynomialDecayOptions& options,
                        Location at) {
  const auto& [steps, end, power] = options;
  check_step("polynomial_decay", step, steps, at);
  const NameScope scope(step.graph(), "polynomial_decay");
  return (rate - end) * pow(1.0 - progress(step, steps, at), power) + end;
}

Output cosine_decay(double rate, Output step, const CosineDecayOptions& options, Location at) {
  const auto& [steps, alpha] = options;
  check_step("cosine_decay", step, steps, at);
  const NameScope scope(step.graph(), "cosine_decay");
  const Output cosine = op("Cos", {progress(step, steps, at) * std::numbers::pi}, {}, at);
  return rate * ((1 - alpha) * 0.5 * (1.0 + cosine) + alpha);
}

Output piecewise_constant(Output step, const std::vector<int64_t>& boundaries,
                          const std::vector<double>& values, Location at) {
  check_step("piecewise_constant", step, 1, at);
  check(values.size() == boundaries.size() + 1, "piecewise_constant (", at,
        "): there must be one more value than boundaries, got ", boundaries.size(),
        " boundaries and ", values.size(), " values");
  check(std::is_sorted(boundaries.begin(), boundaries.end()), "piecewise_constant (", at,
        "): the boundaries must ascend");
  const NameScope scope(step.graph(), "piecewise_constant");
  Output out =
      constant(step.graph(), Tensor::scalar(static_cast<float>(values.back())), "value", at);
  for (size_t i = boundaries.size(); i-- > 0;)
    out = where(less_equal(cast(step, i64, at), boundaries[i]), values[i], out);
  return out;
}

Output linear_warm_up(const Operand& full_rate, Output step, double steps, Location at) {
  check_step("linear_warm_up", step, steps, at);
  const NameScope scope(step.graph(), "linear_warm_up");
  const Output rate = full_rate.as(step.graph(), f32);
  return rate * cast(minimum((cast(step, f32, at) + 1.0) / steps, 1.0), rate.dtype(), at);
}

Output linear_scaling(double rate, int replicas, Output step, const LinearScalingOptions& options,
                      Location at) {
  const bool warms_up = options.warmup_steps != 0;
  check_step("linear_scaling", step, warms_up ? options.warmup_steps : 1, at);
  check(replicas > 0, "linear_scaling (", at, "): there must be a replica, got ", replicas);
  const NameScope scope(step.graph(), "linear_scaling");
  if (!warms_up) return constant(step.graph(), rate * replicas, f32);
  return (progress(step, options.warmup_steps, at) * (replicas - 1) + 1) * rate;
}

}  // namespace leat::schedules
