// Gradient descent, plain and with momentum.
#pragma once

#include "frontends/cpp/optimizers/optimizer.h"

namespace leat {

// Stochastic gradient descent: w -= rate · g; of rows, only these change.
class Sgd : public Optimizer {
 public:
  explicit Sgd(Rate rate) : rate_(rate) {}

 protected:
  Output update(const GradientAndVariable& gradient, const Shared&, Location at) const override;

 private:
  Rate rate_;
};

struct MomentumOptions {
  double momentum = 0.9;  // in [0, 1)
  bool nesterov = false;
};

// m = momentum · m + g;  w -= rate · m, or with Nesterov w -= rate · (g + momentum · m). Polyak,
// USSR Comput. Math. Math. Phys. 1964; Sutskever et al., ICML 2013. Slot "<w>/Momentum". Rows: m
// and w change where the step read w.
class Momentum : public Optimizer {
 public:
  explicit Momentum(Rate rate, const MomentumOptions& options = {}, Location at = here());
  Momentum(Rate rate, double momentum, Location at = here())
      : Momentum(rate, MomentumOptions{.momentum = momentum}, at) {}

 protected:
  Output update(const GradientAndVariable& gradient, const Shared&, Location at) const override;

 private:
  Rate rate_;
  MomentumOptions options_;
};

}  // namespace leat
