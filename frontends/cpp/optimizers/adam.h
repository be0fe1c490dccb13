// Adam and its kin: optimizers with moving averages of the gradient and of its size.
#pragma once

#include "frontends/cpp/optimizers/optimizer.h"

namespace leat {

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999;  // in [0, 1)
  double epsilon = 1e-8;
  // For gradients of rows: leave rows alone that the step did not read. Else m, v and w change
  // everywhere, as if the gradient were 0 elsewhere, as in TensorFlow, at the cost of the whole
  // variable.
  bool lazy = false;
};

// m = beta1 · m + (1 - beta1) · g;  v = beta2 · v + (1 - beta2) · g²;
// w -= rate · √(1 - beta2^t) / (1 - beta1^t) · m / (√v + epsilon), t from 1. Kingma and Ba, ICLR
// 2015, with epsilon outside the bias correction, as in TensorFlow. Slots "<w>/Adam" (m),
// "<w>/Adam_1" (v), variables "beta1_power", "beta2_power".
class Adam : public Optimizer {
 public:
  explicit Adam(Rate rate = 1e-3, const AdamOptions& options = {}, Location at = here());

 protected:
  Shared make_shared_state(Graph& graph,
                           const std::vector<GradientAndVariable>& gradients) const override;
  Output update(const GradientAndVariable& gradient, const Shared& powers,
                Location at) const override;
  std::vector<Output> finish(const Shared& powers) const override;

  const Rate& rate() const { return rate_; }
  const AdamOptions& options() const { return options_; }

 private:
  Output update_rows(const GradientAndVariable& gradient, Output m, Output v, const Shared& powers,
                     Location at) const;

  Rate rate_;
  AdamOptions options_;
};

struct AdamWOptions {
  double weight_decay = 0.01;  // not negative
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  bool lazy = false;  // as for Adam; weights that the step did not read do not decay either
};

// w -= rate · weight_decay · w;  then Adam's update, with a gradient that excludes the decay.
// Loshchilov and Hutter, ICLR 2019 (arXiv:1711.05101), with the rate on both, as in PyTorch.
class AdamW : public Adam {
 public:
  explicit AdamW(Rate rate = 1e-3, const AdamWOptions& options = {}, Location at = here());

 protected:
  Output update(const GradientAndVariable& gradient, const Shared& powers,
                Location at) const override;

 private:
  double weight_decay_;
};

struct AdamaxOptions {
  double beta1 = 0.9, beta2 = 0.999;  // in [0, 1)
  double epsilon = 1e-8;
};

// m = beta1 · m + (1 - beta1) · g;  u = max(beta2 · u, |g|);
// w -= rate / (1 - beta1^t) · m / (u + epsilon), t from 1. Kingma and Ba, ICLR 2015, section 7.1.
// Slots "<w>/AdaMax" (m), "<w>/AdaMax_1" (u), variable "beta1_power". Rows: as if the gradient were
// 0 elsewhere, at the cost of the whole variable.
class Adamax : public Optimizer {
 public:
  explicit Adamax(Rate rate = 1e-3, const AdamaxOptions& options = {}, Location at = here());

 protected:
  Shared make_shared_state(Graph& graph,
                           const std::vector<GradientAndVariable>& gradients) const override;
  Output update(const GradientAndVariable& gradient, const Shared& powers,
                Location at) const override;
  std::vector<Output> finish(const Shared& powers) const override;

 private:
  Rate rate_;
  AdamaxOptions options_;
};

struct NadamOptions {
  double beta1 = 0.9, beta2 = 0.999;  // in [0, 1)
  double epsilon = 1e-8;
  double momentum_decay = 0.004;  // how fast μ_t approaches beta1; not negative
};

// Adam with Nesterov's momentum: μ_t = beta1 · (1 - 0.96^(t · momentum_decay) / 2);
// m = beta1 · m + (1 - beta1) · g;  v = beta2 · v + (1 - beta2) · g²;
// w -= rate · (μ_{t+1} · m / (1 - μ_1 ⋯ μ_{t+1}) + (1 - μ_t) · g / (1 - μ_1 ⋯ μ_t))
//      / (√(v / (1 - beta2^t)) + epsilon), t from 1.
// Dozat, "Incorporating Nesterov momentum into Adam", ICLR 2016 workshop, as PyTorch has it; Keras
// 3 has momentum_decay = 1. Slots "<w>/Nadam" (m), "<w>/Nadam_1" (v), variables "beta2_power",
// "momentum_decay_power", "momentum_product". Rows: as if the gradient were 0 elsewhere, at the
// cost of the whole variable.
class Nadam : public Optimizer {
 public:
  explicit Nadam(Rate rate = 1e-3, const NadamOptions& options = {}, Location at = here());

 protected:
  Shared make_shared_state(Graph& graph,
                           const std::vector<GradientAndVariable>& gradients) const override;
  Output update(const GradientAndVariable& gradient, const Shared& powers,
                Location at) const override;
  std::vector<Output> finish(const Shared& powers) const override;

 private:
  Rate rate_;
  NadamOptions options_;
};

}  // namespace leat
