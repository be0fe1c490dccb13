#include "frontends/cpp/optimizers/adaptive.h"

#include "frontends/cpp/optimizers/update_op.h"

namespace leat {

Adagrad::Adagrad(Rate rate, const AdagradOptions& options, Location at)
    : rate_(rate), options_(options) {
  check_not_negative("Adagrad", "initial_accumulator_value", options.initial_accumulator_value, at);
}

Output Adagrad::update(const GradientAndVariable& gradient, const Shared&, Location at) const {
  const Output w = gradient.variable;
  return update_op(
      "Adagrad", gradient,
      {{"accum", slot(w, "Adagrad", initializers::constant(options_.initial_accumulator_value))},
       {"lr", rate_.like(w)}},
      {}, at);
}

AdagradDA::AdagradDA(Rate rate, Output global_step, const AdagradDAOptions& options, Location at)
    : rate_(rate), global_step_(global_step), options_(options) {
  check(global_step && is_integer(global_step.dtype()), "AdagradDA (", at,
        "): global_step must be the int32 or int64 variable that counts updates, got ",
        global_step ? concat(global_step.name(), " ", global_step.dtype()) : "none");
  check(options.initial_accumulator_value > 0, "AdagradDA (", at,
        "): initial_accumulator_value must be positive, got ", options.initial_accumulator_value);
  check_not_negative("AdagradDA", "l1", options.l1, at);
  check_not_negative("AdagradDA", "l2", options.l2, at);
}

Output AdagradDA::update(const GradientAndVariable& gradient, const Shared&, Location at) const {
  const Output w = gradient.variable;
  const Output sum = slot(w, "AdagradDA");
  const Output squares =
      slot(w, "AdagradDA", initializers::constant(options_.initial_accumulator_value));
  // This update is the one after those counted.
  const Output update = Operand(cast(global_step_, i64, at), at) + 1;
  return update_op("AdagradDA", gradient,
                   {{"gradient_accumulator", sum},
                    {"gradient_squared_accumulator", squares},
                    {"lr", rate_.like(w)},
                    {"l1", options_.l1},
                    {"l2", options_.l2},
                    {"global_step", update}},
                   {}, at);
}

Adadelta::Adadelta(Rate rate, const AdadeltaOptions& options, Location at)
    : rate_(rate), options_(options) {
  check_option("Adadelta", "rho", options.rho, 0, 1, at);
  check_not_negative("Adadelta", "epsilon", options.epsilon, at);
}

Output Adadelta::update(const GradientAndVariable& gradient, const Shared&, Location at) const {
  const Output w = gradient.variable;
  const Output squares = slot(w, "Adadelta"), updates = slot(w, "Adadelta");
  return update_op("Adadelta", gradient,
                   {{"accum", squares},
                    {"accum_update", updates},
                    {"lr", rate_.like(w)},
                    {"rho", options_.rho},
                    {"epsilon", options_.epsilon}},
                   {}, at);
}

RmsProp::RmsProp(Rate rate, const RmsPropOptions& options, Location at)
    : rate_(rate), options_(options) {
  check_option("RmsProp", "decay", options.decay, 0, 1, at);
  check_option("RmsProp", "momentum", options.momentum, 0, 1, at);
  check_not_negative("RmsProp", "epsilon", options.epsilon, at);
}

Output RmsProp::update(const GradientAndVariable& gradient, const Shared&, Location at) const {
  const Output w = gradient.variable;
  const Output squares = slot(w, "RMSProp", initializers::ones());
  const Output mean = options_.centered ? slot(w, "RMSProp") : Output{};
  const Output momentum = slot(w, "RMSProp");
  return update_op(options_.centered ? "CenteredRMSProp" : "RMSProp", gradient,
                   {{"mg", mean},
                    {"ms", squares},
                    {"mom", momentum},
                    {"lr", rate_.like(w)},
                    {"rho", options_.decay},
                    {"momentum", options_.momentum},
                    {"epsilon", options_.epsilon}},
                   {}, at);
}

}  // namespace leat
