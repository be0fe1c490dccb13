// Optimizers that scale each element by its past gradients.
#pragma once

#include "frontends/cpp/optimizers/optimizer.h"

namespace leat {

struct AdagradOptions {
  double initial_accumulator_value = 0.1;  // of a; not negative
};

// a += g²;  w -= rate · g / √a. Duchi, Hazan and Singer, JMLR 2011. Slot "<w>/Adagrad". Rows: the
// same as if the gradient were 0 elsewhere, at the cost of the rows.
class Adagrad : public Optimizer {
 public:
  explicit Adagrad(Rate rate, const AdagradOptions& options = {}, Location at = here());

 protected:
  Output update(const GradientAndVariable& gradient, const Shared&, Location at) const override;

 private:
  Rate rate_;
  AdagradOptions options_;
};

struct AdagradDAOptions {
  double initial_accumulator_value = 0.1;  // of a; positive
  double l1 = 0, l2 = 0;                   // strengths of the regularisation, not negative
};

// Adagrad with dual averaging, for sparse linear models. s += g;  a += g²;  with t updates made
//   w = -rate · sign(s) · max(|s| - l1 · t, 0) / (√a + l2 · t · rate).
// Duchi, Hazan and Singer, JMLR 2011. `global_step`, an integer variable, counts the updates: give
// it to minimize() as well. w does not keep its first value. Slots "<w>/AdagradDA" (s) and
// "<w>/AdagradDA_1" (a). Rows: those that are not read change only when they are next read.
class AdagradDA : public Optimizer {
 public:
  AdagradDA(Rate rate, Output global_step, const AdagradDAOptions& options = {},
            Location at = here());

 protected:
  Output update(const GradientAndVariable& gradient, const Shared&, Location at) const override;

 private:
  Rate rate_;
  Output global_step_;
  AdagradDAOptions options_;
};

struct AdadeltaOptions {
  double rho = 0.95;  // in [0, 1)
  double epsilon = 1e-8;
};

// a = rho · a + (1 - rho) · g²;  d = g · √(u + epsilon) / √(a + epsilon);
// u = rho · u + (1 - rho) · d²;  w -= rate · d. Zeiler, arXiv:1212.5701, whose rate is 1. Slots
// "<w>/Adadelta" (a) and "<w>/Adadelta_1" (u). Rows: slots and w change where the step read w.
class Adadelta : public Optimizer {
 public:
  explicit Adadelta(Rate rate, const AdadeltaOptions& options = {}, Location at = here());

 protected:
  Output update(const GradientAndVariable& gradient, const Shared&, Location at) const override;

 private:
  Rate rate_;
  AdadeltaOptions options_;
};

struct RmsPropOptions {
  double decay = 0.9;   // in [0, 1)
  double momentum = 0;  // in [0, 1)
  double epsilon = 1e-10;
  bool centered = false;
};

// s = decay · s + (1 - decay) · g²;  m = momentum · m + rate · g / √(s + epsilon);  w -= m.
// Tieleman and Hinton, Coursera lecture 6.5, 2012. Centered it is √(s - mean(g)² + epsilon), as in
// Graves, arXiv:1308.0850. Slots, called "<w>/RMSProp", "<w>/RMSProp_1" and so on: s (ones at
// first), mean(g) if it is centered, m. Rows: slots and w change where the step read w.
class RmsProp : public Optimizer {
 public:
  explicit RmsProp(Rate rate, const RmsPropOptions& options = {}, Location at = here());

 protected:
  Output update(const GradientAndVariable& gradient, const Shared&, Location at) const override;

 private:
  Rate rate_;
  RmsPropOptions options_;
};

}  // namespace leat
