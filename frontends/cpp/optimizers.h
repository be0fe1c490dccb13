// Optimizers: they add the update ops to the graph. State that an update keeps (slots) is a
// variable beside the one it belongs to, named and updated as TensorFlow's tf.train optimizers do.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "frontends/cpp/variables.h"
#include "graph/gradient.h"

namespace leat {

// What an update multiplies its gradient with: a number, or a scalar of the graph that each step
// computes anew (schedules.h).
class Rate {
 public:
  Rate(double value) : value_(value) {}               // NOLINT: converts
  Rate(Output scalar) : value_(0), scalar_(scalar) {  // NOLINT
    check(bool{scalar}, "a learning rate is an empty Output: it was never set to a result of the ",
          "graph");
  }
  // A scalar of that dtype.
  Output in(Graph& graph, DType dtype) const;

 private:
  double value_;
  Output scalar_;
};

struct GradientAndVariable {
  Output gradient;  // none: nothing depends on the variable; it is left alone
  Output variable;
};

// What becomes of gradients before they are applied (gradient_clipping.h).
using GradientTransform =
    std::function<std::vector<GradientAndVariable>(std::vector<GradientAndVariable>)>;

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // For every apply() from now on, also those of strategies, where it sees the mean over the
  // replicas.
  void set_gradient_transform(GradientTransform transform) { transform_ = std::move(transform); }

  // d(loss)/d(variable) for `variables`, or for the collection "trainable_variables".
  std::vector<GradientAndVariable> gradients(Output loss, std::vector<Output> variables = {}) const;
  // One update of every variable; `global_step` (a variable, or none) is increased by 1 after them.
  // The node runs the collection "update_ops" too, such as the moving averages of nn::BatchNorm.
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

 private:
  GradientTransform transform_;
};

// w -= rate · g
class GradientDescent : public Optimizer {
 public:
  explicit GradientDescent(Rate rate) : rate_(rate) {}

 protected:
  Output update(Output variable, Output gradient, const Shared&) const override;

 private:
  Rate rate_;
};

// m = momentum · m + g;  w -= rate · m, or with Nesterov w -= rate · (g + momentum · m). Slot
// "<w>/Momentum".
class Momentum : public Optimizer {
 public:
  Momentum(Rate rate, double momentum, bool use_nesterov = false)
      : rate_(rate), momentum_(momentum), use_nesterov_(use_nesterov) {}

 protected:
  Output update(Output variable, Output gradient, const Shared&) const override;

 private:
  Rate rate_;
  double momentum_;
  bool use_nesterov_;
};

// a += g²;  w -= rate · g / √a. Duchi, Hazan and Singer, JMLR 2011. Slot "<w>/Adagrad", which
// begins with `initial` everywhere.
class Adagrad : public Optimizer {
 public:
  explicit Adagrad(Rate rate, double initial = 0.1) : rate_(rate), initial_(initial) {}

 protected:
  Output update(Output variable, Output gradient, const Shared&) const override;

 private:
  Rate rate_;
  double initial_;
};

// s = decay · s + (1 - decay) · g²;  m = momentum · m + rate · g / √(s + epsilon);  w -= m.
// Tieleman and Hinton, Coursera lecture 6.5, 2012. With is_centered it is √(s - mean(g)² +
// epsilon), as in Graves, arXiv:1308.0850. Slots, called "<w>/RMSProp", "<w>/RMSProp_1" and so on:
// s (ones at first), mean(g) if it is centered, m.
class RmsProp : public Optimizer {
 public:
  struct Options {
    double decay = 0.9, momentum = 0, epsilon = 1e-10;
    bool is_centered = false;
  };
  explicit RmsProp(Rate rate) : RmsProp(rate, Options{}) {}
  RmsProp(Rate rate, Options options) : rate_(rate), options_(options) {}

 protected:
  Output update(Output variable, Output gradient, const Shared&) const override;

 private:
  Rate rate_;
  Options options_;
};

// Kingma and Ba, ICLR 2015, in TensorFlow's form (epsilon outside the bias correction): slots
// "<w>/Adam" (m), "<w>/Adam_1" (v), variables "beta1_power", "beta2_power".
class Adam : public Optimizer {
 public:
  struct Options {
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  };
  explicit Adam(Rate rate = 1e-3) : Adam(rate, Options{}) {}
  Adam(Rate rate, Options options) : rate_(rate), options_(options) {}

 protected:
  Shared make_shared_state(Graph& graph,
                           const std::vector<GradientAndVariable>& gradients) const override;
  Output update(Output variable, Output gradient, const Shared& shared) const override;
  std::vector<Output> finish(const Shared& shared) const override;

 private:
  Rate rate_;
  Options options_;
};

}  // namespace leat
