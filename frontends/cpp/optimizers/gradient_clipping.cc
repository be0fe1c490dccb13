#include "frontends/cpp/optimizers/gradient_clipping.h"

namespace leat {
namespace {

void check_norm(std::string_view what, double norm, Location at) {
  check(norm > 0, what, " (", at, "): the norm must be positive, got ", norm);
}

// In the dtype and on the device of the gradient.
Output in_dtype_of(Output scalar, Output gradient, Location at) {
  return scalar.dtype() == gradient.dtype() ? scalar : cast(scalar, gradient.dtype(), at);
}

std::vector<GradientAndVariable> summed(std::vector<GradientAndVariable> gradients, Location at) {
  for (GradientAndVariable& each : gradients) {
    if (each.gradient) each = sum_repeated(each, at);
  }
  return gradients;
}

// Each is placed where it is itself.
std::vector<GradientAndVariable> with_themselves(const std::vector<Output>& gradients) {
  std::vector<GradientAndVariable> pairs;
  for (const Output& each : gradients) pairs.push_back({each, each});
  return pairs;
}

// Applied to each that is there, where its variable is.
template <class Change>
std::vector<GradientAndVariable> changed(std::vector<GradientAndVariable> gradients, Location at,
                                         Change change) {
  gradients = summed(std::move(gradients), at);
  for (GradientAndVariable& each : gradients) {
    if (!each.gradient) continue;
    const ColocationScope with(each.variable.graph(), {each.variable});
    each.gradient = change(each.gradient);
  }
  return gradients;
}

// `all` is their global norm; rows are added up.
std::vector<GradientAndVariable> clipped_by(Output all, double norm,
                                            std::vector<GradientAndVariable> gradients,
                                            Location at) {
  const NameScope scope(all.graph(), "clip_by_global_norm");
  // What is infinite or no number is to be seen in the variables.
  const Output is_finite = op("IsFinite", {all}, {}, at);
  const Output factor =
      where(is_finite, minimum(norm * reciprocal(all, at), 1.0), Operand(all - all, at));
  return changed(std::move(gradients), at, [&](Output gradient) {
    return Operand(gradient, at) * in_dtype_of(factor, gradient, at);
  });
}

}  // namespace

Output global_norm(const std::vector<GradientAndVariable>& gradients, Location at) {
  std::vector<Output> halves;
  for (const GradientAndVariable& each : gradients) {
    if (!each.gradient) continue;
    Graph& graph = each.variable.graph();
    const NameScope scope(graph, "global_norm");
    const ColocationScope with(graph, {each.variable});
    halves.push_back(l2_loss(sum_repeated(each, at).gradient, at));
    if (halves.back().dtype() != halves.front().dtype())
      halves.back() = cast(halves.back(), halves.front().dtype(), at);
  }
  check(!halves.empty(), "global_norm (", at, "): none of the ", gradients.size(),
        " variables has a gradient");
  const NameScope scope(halves.front().graph(), "global_norm");
  return sqrt(add_n(halves, at) * 2.0, at);
}

Output global_norm(const std::vector<Output>& gradients, Location at) {
  return global_norm(with_themselves(gradients), at);
}

std::vector<GradientAndVariable> clip_by_global_norm(std::vector<GradientAndVariable> gradients,
                                                     double norm, Location at) {
  check_norm("clip_by_global_norm", norm, at);
  gradients = summed(std::move(gradients), at);
  const Output all = global_norm(gradients, at);
  return clipped_by(all, norm, std::move(gradients), at);
}

std::vector<GradientAndVariable> clip_by_norm(std::vector<GradientAndVariable> gradients,
                                              double norm, Location at) {
  check_norm("clip_by_norm", norm, at);
  return changed(std::move(gradients), at,
                 [&](Output gradient) { return clip_by_norm(gradient, norm, at); });
}

Output clip_by_norm(Output x, double norm, Location at) {
  check_norm("clip_by_norm", norm, at);
  check(bool{x}, "clip_by_norm (", at, "): x is an empty Output");
  const NameScope scope(x.graph(), "clip_by_norm");
  const Output own = sqrt(l2_loss(x, at) * 2.0, at);
  // A gradient of nothing but zeros has no direction to keep.
  return Operand(x, at) * (norm / maximum(own, norm));
}

ClippedGradients clip_by_global_norm(std::vector<Output> gradients, double norm, Location at) {
  check_norm("clip_by_global_norm", norm, at);
  const Output all = global_norm(gradients, at);
  const auto pairs = clipped_by(all, norm, with_themselves(gradients), at);
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = pairs[i].gradient;
  return {std::move(gradients), all};
}

std::vector<GradientAndVariable> clip_by_value(std::vector<GradientAndVariable> gradients,
                                               double low, double high, Location at) {
  check(low <= high, "clip_by_value (", at, "): the lower bound ", low, " is above the upper one, ",
        high);
  return changed(std::move(gradients), at, [&](Output gradient) {
    const NameScope scope(gradient.graph(), "clip_by_value");
    return maximum(minimum({gradient, at}, high), low);
  });
}

}  // namespace leat
