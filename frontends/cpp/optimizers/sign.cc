#include "frontends/cpp/optimizers/sign.h"

#include <cmath>

#include "frontends/cpp/optimizers/update_op.h"

namespace leat {

AddSign::AddSign(Rate rate, const AddSignOptions& options, Location at)
    : rate_(rate), options_(options) {
  check_not_negative("AddSign", "alpha", options.alpha, at);
  check_option("AddSign", "beta", options.beta, 0, 1, at);
}

Output AddSign::update(const GradientAndVariable& gradient, const Shared&, Location at) const {
  const Output w = gradient.variable;
  return update_op("AddSign", densify(gradient, at),
                   {{"m", slot(w, "AddSign")},
                    {"lr", rate_.like(w)},
                    {"alpha", options_.alpha},
                    {"sign_decay", options_.sign_decay.like(w, "sign_decay")},
                    {"beta", options_.beta}},
                   {}, at);
}

PowerSign::PowerSign(Rate rate, const PowerSignOptions& options, Location at)
    : rate_(rate), options_(options) {
  check(options.base > 0 && std::isfinite(options.base), "PowerSign (", at,
        "): base must be finite and positive, got ", options.base);
  check_option("PowerSign", "beta", options.beta, 0, 1, at);
}

Output PowerSign::update(const GradientAndVariable& gradient, const Shared&, Location at) const {
  const Output w = gradient.variable;
  return update_op("PowerSign", densify(gradient, at),
                   {{"m", slot(w, "PowerSign")},
                    {"lr", rate_.like(w)},
                    {"logbase", std::log(options_.base)},
                    {"sign_decay", options_.sign_decay.like(w, "sign_decay")},
                    {"beta", options_.beta}},
                   {}, at);
}

}  // namespace leat
