// Optimizers for large batches: the length of each variable's step follows the length of the
// variable itself. Of a variable in parts, each part has a length of its own.
#pragma once

#include <string>
#include <vector>

#include "frontends/cpp/optimizers/optimizer.h"

namespace leat {

struct LambOptions {
  double weight_decay = 0.01;         // not negative
  double beta1 = 0.9, beta2 = 0.999;  // in [0, 1)
  double epsilon = 1e-6;
  // Variables whose name contains one of these neither decay nor follow their length:
  // {"bias", "gamma", "beta"}.
  std::vector<std::string> exclude = {};
};

// m = beta1 · m + (1 - beta1) · g;  v = beta2 · v + (1 - beta2) · g²;
// u = m / (1 - beta1^t) / (√(v / (1 - beta2^t)) + epsilon) + weight_decay · w, t from 1;
// w -= rate · |w| / |u| · u, with a ratio of 1 where |w| or |u| is 0. You et al., "Large batch
// optimization for deep learning: training BERT in 76 minutes", ICLR 2020. Slots "<w>/Lamb" (m),
// "<w>/Lamb_1" (v), variables "beta1_power", "beta2_power". Rows: as if the gradient were 0
// elsewhere, at the cost of the whole variable.
class Lamb : public Optimizer {
 public:
  explicit Lamb(Rate rate = 1e-3, const LambOptions& options = {}, Location at = here());

 protected:
  Shared make_shared_state(Graph& graph,
                           const std::vector<GradientAndVariable>& gradients) const override;
  Output update(const GradientAndVariable& gradient, const Shared& powers,
                Location at) const override;
  std::vector<Output> finish(const Shared& powers) const override;

 private:
  Rate rate_;
  LambOptions options_;
};

struct LarsOptions {
  double momentum = 0.9;                  // in [0, 1)
  double weight_decay = 1e-4;             // not negative
  double trust_coefficient = 1e-3;        // positive
  std::vector<std::string> exclude = {};  // as for Lamb
};

// ratio = trust_coefficient · |w| / (|g| + weight_decay · |w|), 1 where |w| or |g| is 0;
// m = momentum · m + rate · ratio · (g + weight_decay · w);  w -= m. You, Gitman and Ginsburg,
// "Large batch training of convolutional networks", arXiv:1708.03888. Slot "<w>/Lars". Rows: as if
// the gradient were 0 elsewhere, at the cost of the whole variable.
class Lars : public Optimizer {
 public:
  explicit Lars(Rate rate, const LarsOptions& options = {}, Location at = here());

 protected:
  Output update(const GradientAndVariable& gradient, const Shared&, Location at) const override;

 private:
  Rate rate_;
  LarsOptions options_;
};

}  // namespace leat
