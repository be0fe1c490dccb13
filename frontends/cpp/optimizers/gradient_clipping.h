// Limits the size of gradients. For a strategy, or minimize(), set one as a transform:
//   optimizer.set_gradient_transform([](auto gradients) {
//     return clip_by_global_norm(std::move(gradients), 5);
//   });
// Gradients of rows stay rows: rows of equal index are added up first, and norms are those of the
// sums.
#pragma once

#include <vector>

#include "frontends/cpp/optimizers/optimizer.h"

namespace leat {

// √(sum of the squares of all elements of all gradients), a scalar; empty ones are left out.
// INVALID_ARGUMENT if all are empty.
Output global_norm(const std::vector<GradientAndVariable>& gradients, Location at = here());
Output global_norm(const std::vector<Output>& gradients, Location at = here());

// Scales all by one factor, so that their global norm is at most `norm` (> 0). If it is not finite,
// all become NaN. Pascanu, Mikolov and Bengio, ICML 2013.
std::vector<GradientAndVariable> clip_by_global_norm(std::vector<GradientAndVariable> gradients,
                                                     double norm, Location at = here());

// Scales each by itself, so that √(sum of the squares of its elements) is at most `norm` (> 0).
std::vector<GradientAndVariable> clip_by_norm(std::vector<GradientAndVariable> gradients,
                                              double norm, Location at = here());

// The same for the result of gradients(); empty Outputs stay empty. The norm is that before:
//   auto [clipped, norm] = clip_by_global_norm(gradients({loss}, {w, b}), 5);
//   std::vector<Output> changed = clip_by_global_norm(gradients({loss}, {w, b}), 5);
struct ClippedGradients {
  std::vector<Output> gradients;
  Output norm;
  operator std::vector<Output>() const { return gradients; }  // NOLINT: converts
};
ClippedGradients clip_by_global_norm(std::vector<Output> gradients, double norm,
                                     Location at = here());
Output clip_by_norm(Output x, double norm, Location at = here());

// Clips each element to [low, high]; of rows, only the elements that are there.
std::vector<GradientAndVariable> clip_by_value(std::vector<GradientAndVariable> gradients,
                                               double low, double high, Location at = here());

}  // namespace leat
