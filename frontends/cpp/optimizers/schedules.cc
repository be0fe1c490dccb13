#include "frontends/cpp/optimizers/schedules.h"

#include <algorithm>
#include <numbers>

#include "frontends/cpp/variables.h"

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

namespace {

// A factor that goes to `replicas`, and has begun to when that number was new.
Output following(const Output& replicas, const Output& at_step, double warmup_steps, Location at) {
  Graph& graph = at_step.graph();
  const ColocationScope with(graph, {at_step});
  const auto kept = [&](const char* name, double first, DType dtype) {
    return variable(graph, name, {}, initializers::constant(first), dtype, {.trainable = false},
                    at);
  };
  const Output seen = kept("replicas", 1, f32), factor = kept("factor", 1, f32),
               changed_at = kept("changed_at", 0, i64);
  const Output step = cast(at_step, i64, at);
  const auto moving = [&](const Output& from, const Output& to, const Output& since) {
    if (warmup_steps == 0) return to;
    return from + (to - from) * progress(step - since, warmup_steps, at);
  };
  const Output before = read_variable(seen, at), from = read_variable(factor, at),
               since = read_variable(changed_at, at);
  const Output is_new = before != replicas;
  const Output start = where(is_new, moving(from, before, since), from),
               begun = where(is_new, step, since);
  const Output is_kept = [&] {
    const ControlScope after(graph, {start, begun});
    return group(graph,
                 {assign(seen, replicas, at), assign(factor, start, at),
                  assign(changed_at, begun, at)},
                 "keep", at)
        .output();
  }();
  const ControlScope after(graph, {is_kept});
  return identity(moving(start, replicas, begun), at);
}

}  // namespace

Output linear_scaling(double rate, int replicas, Output step, const LinearScalingOptions& options,
                      Location at) {
  check(replicas > 0, "linear_scaling (", at, "): there must be a replica, got ", replicas);
  check(bool{step}, "linear_scaling (", at, "): the step is an empty Output");
  return linear_scaling(rate, constant(step.graph(), replicas), step, options, at);
}

Output linear_scaling(double rate, Output replicas, Output step,
                      const LinearScalingOptions& options, Location at) {
  const bool warms_up = options.warmup_steps != 0;
  check_step("linear_scaling", step, warms_up ? options.warmup_steps : 1, at);
  check(bool{replicas} && is_integer(replicas.dtype()), "linear_scaling (", at,
        "): the number of replicas must be an integer, got ",
        replicas ? concat(replicas.name(), " ", replicas.dtype()) : "none");
  const NameScope scope(step.graph(), "linear_scaling");
  const Output count = cast(replicas, f32, at);
  if (options.follows_changes) return following(count, step, options.warmup_steps, at) * rate;
  if (!warms_up) return count * rate;
  return (progress(step, options.warmup_steps, at) * (count - 1) + 1) * rate;
}

}  // namespace leat::schedules
