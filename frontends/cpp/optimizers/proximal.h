// Optimizers that make weights exactly zero: each update is followed by the proximal step of an L1
// and an L2 penalty.
#pragma once

#include "frontends/cpp/optimizers/optimizer.h"

namespace leat {

struct FtrlOptions {
  double learning_rate_power =
      -0.5;  // of the accumulator in the rate; at most 0, and 0 is a fixed rate
  double initial_accumulator_value = 0.1;  // of a; not negative
  double l1 = 0, l2 = 0;                   // strengths of the penalties, not negative
  double l2_shrinkage = 0;  // adds 2 · l2_shrinkage · w to the gradient, but not to a
};

// Follow the regularised leader. b = a + g²;
//   z += g - (b^-power - a^-power) / rate · w;  a = b;
//   w = |z| > l1 ? (sign(z) · l1 - z) / (b^-power / rate + 2 · l2) : 0.
// McMahan et al., KDD 2013. Slots "<w>/Ftrl" (a) and "<w>/Ftrl_1" (z). Rows: slots and w change
// where the step read w.
class Ftrl : public Optimizer {
 public:
  explicit Ftrl(Rate rate, const FtrlOptions& options = {}, Location at = here());

 protected:
  Output update(const GradientAndVariable& gradient, const Shared&, Location at) const override;

 private:
  Rate rate_;
  FtrlOptions options_;
};

struct ProximalOptions {
  double l1 = 0, l2 = 0;  // strengths of the penalties, not negative
};

// p = w - rate · g;  w = sign(p) · max(|p| - rate · l1, 0) / (1 + rate · l2). Duchi and Singer,
// JMLR 2009. Rows: w changes where the step read it.
class ProximalGradientDescent : public Optimizer {
 public:
  explicit ProximalGradientDescent(Rate rate, const ProximalOptions& options = {},
                                   Location at = here());

 protected:
  Output update(const GradientAndVariable& gradient, const Shared&, Location at) const override;

 private:
  Rate rate_;
  ProximalOptions options_;
};

struct ProximalAdagradOptions {
  double initial_accumulator_value = 0.1;  // of a; positive
  double l1 = 0, l2 = 0;                   // strengths of the penalties, not negative
};

// a += g²;  r = rate / √a;  then as above with r in place of the rate. Slot "<w>/ProximalAdagrad".
// Rows: a and w change where the step read w.
class ProximalAdagrad : public Optimizer {
 public:
  explicit ProximalAdagrad(Rate rate, const ProximalAdagradOptions& options = {},
                           Location at = here());

 protected:
  Output update(const GradientAndVariable& gradient, const Shared&, Location at) const override;

 private:
  Rate rate_;
  ProximalAdagradOptions options_;
};

}  // namespace leat
