// leat: cpu+cuda
// leat: fast-math-loops
// The optimizers of most programs: gradient descent, Momentum, Adam, Adagrad, RMSProp.
#include <cmath>

#include "kernels/state/update_rule.h"

namespace leat {
namespace {

template <class C>
struct GradientDescent {
  static constexpr int variables = 1;
  C rate;
  LEAT_DEVICE GradientDescent(const C* s, bool) : rate(s[0]) {}
  LEAT_DEVICE void operator()(C* v, C g) const { v[0] -= rate * g; }
};

template <class C>
struct Momentum {
  static constexpr int variables = 2;  // var, accum
  C rate, momentum;
  bool nesterov;
  LEAT_DEVICE Momentum(const C* s, bool option) : rate(s[0]), momentum(s[1]), nesterov(option) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    v[1] = v[1] * momentum + g;
    v[0] -= nesterov ? g * rate + v[1] * momentum * rate : v[1] * rate;
  }
};

template <class C>
struct Adam {
  static constexpr int variables = 3;  // var, m, v
  C rate, beta1, beta2, epsilon;
  bool nesterov;
  LEAT_DEVICE Adam(const C* s, bool option)
      : rate(s[2] * std::sqrt(C(1) - s[1]) / (C(1) - s[0])),
        beta1(s[3]),
        beta2(s[4]),
        epsilon(s[5]),
        nesterov(option) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    v[1] += (g - v[1]) * (C(1) - beta1);
    v[2] += (g * g - v[2]) * (C(1) - beta2);
    const C step = nesterov ? v[1] * beta1 + (C(1) - beta1) * g : v[1];
    v[0] -= step * rate / (std::sqrt(v[2]) + epsilon);
  }
};

template <class C>
struct Adagrad {
  static constexpr int variables = 2;  // var, accum
  C rate;
  bool update_slots;
  LEAT_DEVICE Adagrad(const C* s, bool slots) : rate(s[0]), update_slots(slots) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    if (update_slots) v[1] += g * g;
    v[0] -= g * rate / std::sqrt(v[1]);
  }
};

template <class C>
struct RmsProp {
  static constexpr int variables = 3;  // var, ms, mom
  C rate, rho, momentum, epsilon;
  LEAT_DEVICE RmsProp(const C* s, bool) : rate(s[0]), rho(s[1]), momentum(s[2]), epsilon(s[3]) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    v[1] += (g * g - v[1]) * (C(1) - rho);
    v[2] = v[2] * momentum + rate * g / std::sqrt(v[1] + epsilon);
    v[0] -= v[2];
  }
};

Tensor number(float value) { return Tensor::scalar(value); }
const char* const use_nesterov = "use_nesterov: bool = false";
const char* const update_slots = "update_slots: bool = true";

const OpDef gradient_descent =
    update_op<GradientDescent>("ApplyGradientDescent", "var = var - alpha * delta.",
                               {"var: Ref(T)", "alpha: T", "delta: T"}, "",
                               {{.inputs = {floats({1, 2}), number(0.5f), floats({2, 4})},
                                 .attrs = {},
                                 .outputs = {floats({0, 0})}}});
const Op gradient_descent_op(gradient_descent),
    resource_gradient_descent_op(resource_form(gradient_descent));

const OpDef momentum = update_op<Momentum>(
    "ApplyMomentum",
    "accum = momentum * accum + grad; var = var - lr * accum. With use_nesterov: var = var - lr * "
    "(grad + momentum * accum), accum being the new one.",
    {"var: Ref(T)", "accum: Ref(T)", "lr: T", "grad: T", "momentum: T"}, use_nesterov,
    {{.inputs = {floats({1, 2}), floats({2, 0}), number(0.5f), floats({1, 4}), number(0.5f)},
      .attrs = {},
      .outputs = {floats({0, 0})}},
     {.inputs = {floats({1, 2}), floats({2, 0}), number(0.5f), floats({1, 4}), number(0.5f)},
      .attrs = {{"use_nesterov", true}},
      .outputs = {floats({0, -1})}}});
const Op momentum_op(momentum), resource_momentum_op(resource_form(momentum));
const OpDef sparse_momentum = sparse_update_op<Momentum>(momentum, use_nesterov);
const Op sparse_momentum_op(sparse_momentum),
    resource_sparse_momentum_op(resource_form(sparse_momentum));

const OpDef adam = update_op<Adam>(
    "ApplyAdam",
    "m = beta1 * m + (1 - beta1) * grad; v = beta2 * v + (1 - beta2) * grad^2; var = var - lr * "
    "sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon). With use_nesterov, beta1 "
    "* m + (1 - beta1) * grad stands in place of the new m.",
    {"var: Ref(T)", "m: Ref(T)", "v: Ref(T)", "beta1_power: T", "beta2_power: T", "lr: T",
     "beta1: T", "beta2: T", "epsilon: T", "grad: T"},
    use_nesterov,
    // m = 1, v = 1, and the rate is 0.5 * sqrt(0.75) / 0.5
    {{.inputs = {floats({1}), floats({0}), floats({0}), number(0.5f), number(0.25f), number(0.5f),
                 number(0.5f), number(0.75f), number(0), floats({2})},
      .attrs = {},
      .outputs = {floats({0.13397460f})}}});
const Op adam_op(adam), resource_adam_op(resource_form(adam));

const OpDef adagrad = update_op<Adagrad>(
    "ApplyAdagrad",
    "accum = accum + grad^2 (unless update_slots is false); var = var - lr * grad / sqrt(accum).",
    {"var: Ref(T)", "accum: Ref(T)", "lr: T", "grad: T"}, update_slots,
    {{.inputs = {floats({1, 2}), floats({0, 9}), number(0.5f), floats({2, 4})},
      .attrs = {},
      .outputs = {floats({0.5f, 1.6f})}}});
const Op adagrad_op(adagrad), resource_adagrad_op(resource_form(adagrad));
const OpDef sparse_adagrad = sparse_update_op<Adagrad>(adagrad, update_slots);
const Op sparse_adagrad_op(sparse_adagrad),
    resource_sparse_adagrad_op(resource_form(sparse_adagrad));

const OpDef rms_prop = update_op<RmsProp>(
    "ApplyRMSProp",
    "ms = rho * ms + (1 - rho) * grad^2; mom = momentum * mom + lr * grad / sqrt(ms + epsilon); "
    "var = var - mom.",
    {"var: Ref(T)", "ms: Ref(T)", "mom: Ref(T)", "lr: T", "rho: T", "momentum: T", "epsilon: T",
     "grad: T"},
    "",
    {{.inputs = {floats({1}), floats({2}), floats({1}), number(0.5f), number(0.5f), number(0.5f),
                 number(0), floats({4})},
      .attrs = {},
      .outputs = {floats({-0.16666667f})}}});
const Op rms_prop_op(rms_prop), resource_rms_prop_op(resource_form(rms_prop));
const OpDef sparse_rms_prop = sparse_update_op<RmsProp>(rms_prop, "");
const Op sparse_rms_prop_op(sparse_rms_prop),
    resource_sparse_rms_prop_op(resource_form(sparse_rms_prop));

}  // namespace
}  // namespace leat
