// Optimizers that compare the sign of the gradient with that of its moving average. Bello, Zoph,
// Vasudevan and Le, ICML 2017 (arXiv:1709.07417).
#pragma once

#include <numbers>

#include "frontends/cpp/optimizers/optimizer.h"

namespace leat {

struct AddSignOptions {
  double alpha = 1;   // not negative
  double beta = 0.9;  // of the moving average; in [0, 1)
  Rate sign_decay = 1;
};

// m = beta · m + (1 - beta) · g;  w -= rate · (alpha + sign_decay · sign(g) · sign(m)) · g. Slot
// "<w>/AddSign". Rows: m decays and w stays elsewhere, at the cost of the whole variable.
class AddSign : public Optimizer {
 public:
  explicit AddSign(Rate rate = 0.1, const AddSignOptions& options = {}, Location at = here());

 protected:
  Output update(const GradientAndVariable& gradient, const Shared&, Location at) const override;

 private:
  Rate rate_;
  AddSignOptions options_;
};

struct PowerSignOptions {
  double base = std::numbers::e;  // positive
  double beta = 0.9;              // of the moving average; in [0, 1)
  Rate sign_decay = 1;
};

// m = beta · m + (1 - beta) · g;  w -= rate · base ^ (sign_decay · sign(g) · sign(m)) · g. Slot
// "<w>/PowerSign". Rows: as above.
class PowerSign : public Optimizer {
 public:
  explicit PowerSign(Rate rate = 0.1, const PowerSignOptions& options = {}, Location at = here());

 protected:
  Output update(const GradientAndVariable& gradient, const Shared&, Location at) const override;

 private:
  Rate rate_;
  PowerSignOptions options_;
};

}  // namespace leat
