// The interface of all optimizers: compute_gradients() of a loss, and apply_gradients(), which adds
// the update ops to the graph. State that an update keeps (a slot) is a variable beside the one it
// belongs to, named and updated as TensorFlow's tf.train optimizers do.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "frontends/cpp/optimizers/loss_scale.h"
#include "frontends/cpp/optimizers/sparse_rows.h"
#include "frontends/cpp/variables.h"

namespace leat {

// The factor of an update: a number, or a scalar of the graph that each step computes again
// (schedules.h).
class Rate {
 public:
  Rate(double value, Location at = here());   // NOLINT: converts
  Rate(Output scalar, Location at = here());  // NOLINT
  // A scalar of the variable's dtype; a number becomes a constant of that name.
  Output like(const Output& variable, std::string_view name = "learning_rate") const;

 private:
  double value_;
  Output scalar_;
};

// Changes gradients before they are applied (gradient_clipping.h).
using GradientTransform =
    std::function<std::vector<GradientAndVariable>(std::vector<GradientAndVariable>)>;

struct MinimizeOptions {
  Output global_step = {};  // a variable that grows by 1 with each update
  // The variables to train; none: all of the collection "trainable_variables".
  std::vector<Output> variables = {};
  // Above 0: all gradients are scaled by one factor, so that their global norm is at most this, as
  // clip_by_global_norm() does. A gradient transform gets the clipped gradients. Strategies take a
  // transform instead.
  double clip_norm = 0;
  // What the update runs besides; none: the collection "update_ops".
  std::optional<std::vector<Output>> update_ops = {};
};

struct ApplyOptions {
  Output global_step = {};  // as above
  // What the update runs besides; none: the collection "update_ops".
  std::optional<std::vector<Output>> update_ops = {};
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Applies to every apply_gradients() from now on, also in strategies, where it gets the mean over
  // the replicas.
  void set_gradient_transform(GradientTransform transform) { transform_ = std::move(transform); }

  // For gradients in float16, also in strategies. INVALID_ARGUMENT if a number is out of range.
  void set_loss_scale(const LossScale& scale, Location at = here()) {
    check_loss_scale(scale, at);
    loss_scale_ = scale;
  }

  // d(loss)/d(variable) for `variables`, or for the collection "trainable_variables". If the loss
  // reads only rows of a table, the table's gradient has only these rows.
  std::vector<GradientAndVariable> compute_gradients(Output loss,
                                                     std::vector<Output> variables = {}) const;
  // One update of every variable; `global_step` is increased by 1 after them. The node runs the
  // collection "update_ops" too, such as the moving averages of nn::BatchNorm. INVALID_ARGUMENT if
  // there is no gradient at all.
  Node& apply_gradients(const std::vector<GradientAndVariable>& gradients_and_variables,
                        const ApplyOptions& options = {}, Location at = here()) const;
  // Of the result of gradients(), a gradient for each variable; empty ones are left out:
  //   auto [clipped, norm] = clip_by_global_norm(gradients({loss}, {w, b}), 5);
  //   Node& update = Adam{1e-3}.apply_gradients(clipped, {w, b});
  Node& apply_gradients(const std::vector<Output>& gradients, const std::vector<Output>& variables,
                        const ApplyOptions& options = {}, Location at = here()) const;
  // compute_gradients() and apply_gradients():
  //   optimizer.minimize(loss, {.global_step = global_step(g), .clip_norm = 5});
  Node& minimize(Output loss, const MinimizeOptions& options = {}, Location at = here()) const;

 protected:
  // Variables that all updates of one apply_gradients() share, such as Adam's beta powers.
  using Shared = std::vector<Output>;
  virtual Shared make_shared_state(Graph&, const std::vector<GradientAndVariable>&) const {
    return {};
  }
  // The update op for one variable, with its slots. The gradient may be rows, which may repeat:
  // update_op() accepts them; other ops need sum_repeated() or densify().
  virtual Output update(const GradientAndVariable& gradient, const Shared& shared,
                        Location at) const = 0;
  // Ops that change the shared state once all updates have read it.
  virtual std::vector<Output> finish(const Shared&) const { return {}; }

 private:
  GradientTransform transform_;
  std::optional<LossScale> loss_scale_;
};

}  // namespace leat
