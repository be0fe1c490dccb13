// Optimizers: they add the update ops to the graph. State that an update keeps (slots) is a
// variable beside the one it belongs to, named and updated as TensorFlow's tf.train optimizers do.
#pragma once

#include <utility>
#include <vector>

#include "frontends/cpp/variables.h"
#include "graph/gradient.h"

namespace leat {

struct GradientAndVariable {
  Output gradient;  // none: nothing depends on the variable; it is left alone
  Output variable;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // d(loss)/d(variable) for `variables`, or for the collection "trainable_variables".
  std::vector<GradientAndVariable> gradients(Output loss, std::vector<Output> variables = {}) const;
  // One update of every variable; `global_step` (a variable, or none) is increased by 1 after them.
  // INVALID_ARGUMENT if there is no gradient at all.
  Node& apply(const std::vector<GradientAndVariable>& gradients, Output global_step = {},
              Location at = here()) const;
  // gradients() and apply().
  Node& minimize(Output loss, Output global_step = {}, Location at = here()) const;

 protected:
  // Variables that all updates of one apply() share, such as Adam's beta powers.
  using Shared = std::vector<Output>;
  virtual Shared make_shared_state(Graph&, const std::vector<GradientAndVariable>&) const {
    return {};
  }
  // The update op for one variable, with its slots.
  virtual Output update(Output variable, Output gradient, const Shared& shared) const = 0;
  // Ops that change the shared state once all updates have read it.
  virtual std::vector<Output> finish(const Shared&) const { return {}; }
};

// w -= rate · g
class GradientDescent : public Optimizer {
 public:
  explicit GradientDescent(double rate) : rate_(rate) {}

 protected:
  Output update(Output variable, Output gradient, const Shared&) const override;

 private:
  double rate_;
};

// m = momentum · m + g;  w -= rate · m, or with Nesterov w -= rate · (g + momentum · m). Slot
// "<w>/Momentum".
class Momentum : public Optimizer {
 public:
  Momentum(double rate, double momentum, bool use_nesterov = false)
      : rate_(rate), momentum_(momentum), use_nesterov_(use_nesterov) {}

 protected:
  Output update(Output variable, Output gradient, const Shared&) const override;

 private:
  double rate_, momentum_;
  bool use_nesterov_;
};

// Kingma and Ba, ICLR 2015, in TensorFlow's form (epsilon outside the bias correction): slots
// "<w>/Adam" (m),
// "<w>/Adam_1" (v), variables "beta1_power", "beta2_power".
class Adam : public Optimizer {
 public:
  struct Options {
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  };
  explicit Adam(double rate = 1e-3) : Adam(rate, Options{}) {}
  Adam(double rate, Options options) : rate_(rate), options_(options) {}

 protected:
  Shared make_shared_state(Graph& graph,
                           const std::vector<GradientAndVariable>& gradients) const override;
  Output update(Output variable, Output gradient, const Shared& shared) const override;
  std::vector<Output> finish(const Shared& shared) const override;

 private:
  double rate_;
  Options options_;
};

}  // namespace leat
