// leat: cpu+cuda
// leat: fast-math-loops
// Optimizers that scale each element's step by its past gradients: centered RMSProp, Adadelta,
// AdaMax, AMSGrad, Adagrad with epsilon; AddSign, PowerSign; Keras's momentum.
#include <cmath>

#include "kernels/state/update_rule.h"

namespace leat {
namespace {

template <class C>
LEAT_DEVICE C sign_of(C x) {
  return x > C(0) ? C(1) : x < C(0) ? C(-1) : x;  // NaN stays NaN
}

template <class C>
struct CenteredRmsProp {
  static constexpr int variables = 4;  // var, mg, ms, mom
  C rate, rho, momentum, epsilon;
  LEAT_DEVICE CenteredRmsProp(const C* s, bool)
      : rate(s[0]), rho(s[1]), momentum(s[2]), epsilon(s[3]) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    v[2] += (g * g - v[2]) * (C(1) - rho);
    v[1] += (g - v[1]) * (C(1) - rho);
    v[3] = v[3] * momentum + rate * g / std::sqrt(v[2] - v[1] * v[1] + epsilon);
    v[0] -= v[3];
  }
};

template <class C>
struct Adadelta {
  static constexpr int variables = 3;  // var, accum, accum_update
  C rate, rho, epsilon;
  LEAT_DEVICE Adadelta(const C* s, bool) : rate(s[0]), rho(s[1]), epsilon(s[2]) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    v[1] = v[1] * rho + g * g * (C(1) - rho);
    const C update = std::sqrt(v[2] + epsilon) / std::sqrt(v[1] + epsilon) * g;
    v[0] -= update * rate;
    v[2] = v[2] * rho + update * update * (C(1) - rho);
  }
};

template <class C>
struct AdaMax {
  static constexpr int variables = 3;  // var, m, v
  C rate, beta1, beta2, epsilon;
  LEAT_DEVICE AdaMax(const C* s, bool)
      : rate(s[1] / (C(1) - s[0])), beta1(s[2]), beta2(s[3]), epsilon(s[4]) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    const C size = g < C(0) ? -g : g, decayed = beta2 * v[2];
    v[1] += (g - v[1]) * (C(1) - beta1);
    v[2] = decayed < size ? size : decayed;
    v[0] -= rate * v[1] / (v[2] + epsilon);
  }
};

template <class C>
struct Amsgrad {
  static constexpr int variables = 4;  // var, m, v, vhat
  C rate, beta1, beta2, epsilon;
  LEAT_DEVICE Amsgrad(const C* s, bool)
      : rate(s[2] * std::sqrt(C(1) - s[1]) / (C(1) - s[0])),
        beta1(s[3]),
        beta2(s[4]),
        epsilon(s[5]) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    v[1] += (g - v[1]) * (C(1) - beta1);
    v[2] += (g * g - v[2]) * (C(1) - beta2);
    v[3] = v[3] < v[2] ? v[2] : v[3];
    v[0] -= v[1] * rate / (std::sqrt(v[3]) + epsilon);
  }
};

template <class C>
struct AdagradV2 {
  static constexpr int variables = 2;  // var, accum
  C rate, epsilon;
  bool update_slots;
  LEAT_DEVICE AdagradV2(const C* s, bool slots) : rate(s[0]), epsilon(s[1]), update_slots(slots) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    if (update_slots) v[1] += g * g;
    v[0] -= g * rate / (std::sqrt(v[1]) + epsilon);
  }
};

template <class C>
struct AddSign {
  static constexpr int variables = 2;  // var, m
  C rate, alpha, decay, beta;
  LEAT_DEVICE AddSign(const C* s, bool) : rate(s[0]), alpha(s[1]), decay(s[2]), beta(s[3]) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    v[1] = v[1] * beta + g * (C(1) - beta);
    v[0] -= rate * (alpha + decay * sign_of(g) * sign_of(v[1])) * g;
  }
};

template <class C>
struct PowerSign {
  static constexpr int variables = 2;  // var, m
  C rate, logbase, decay, beta;
  LEAT_DEVICE PowerSign(const C* s, bool) : rate(s[0]), logbase(s[1]), decay(s[2]), beta(s[3]) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    v[1] = v[1] * beta + g * (C(1) - beta);
    v[0] -= rate * std::exp(logbase * decay * sign_of(g) * sign_of(v[1])) * g;
  }
};

template <class C>
struct KerasMomentum {
  static constexpr int variables = 2;  // var, accum
  C rate, momentum;
  bool nesterov;
  LEAT_DEVICE KerasMomentum(const C* s, bool option)
      : rate(s[0]), momentum(s[1]), nesterov(option) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    v[1] = v[1] * momentum - rate * g;
    v[0] += nesterov ? v[1] * momentum - rate * g : v[1];
  }
};

Tensor number(float value) { return Tensor::scalar(value); }

const OpDef centered_rms_prop = update_op<CenteredRmsProp>(
    "ApplyCenteredRMSProp",
    "mg = rho * mg + (1 - rho) * grad; ms = rho * ms + (1 - rho) * grad^2; mom = momentum * mom + "
    "lr * grad / sqrt(ms - mg^2 + epsilon); var = var - mom.",
    {"var: Ref(T)", "mg: Ref(T)", "ms: Ref(T)", "mom: Ref(T)", "lr: T", "rho: T", "momentum: T",
     "epsilon: T", "grad: T"},
    "",
    // mg = 2, ms = 20, mom = 0.5 + 2 / 4
    {{.inputs = {floats({1}), floats({0}), floats({24}), floats({1}), number(0.5f), number(0.5f),
                 number(0.5f), number(0), floats({4})},
      .attrs = {},
      .outputs = {floats({0})}}});
const Op centered_rms_prop_op(centered_rms_prop),
    resource_centered_rms_prop_op(resource_form(centered_rms_prop));
const OpDef sparse_centered_rms_prop = sparse_update_op<CenteredRmsProp>(centered_rms_prop, "");
const Op sparse_centered_rms_prop_op(sparse_centered_rms_prop),
    resource_sparse_centered_rms_prop_op(resource_form(sparse_centered_rms_prop));

const OpDef adadelta = update_op<Adadelta>(
    "ApplyAdadelta",
    "accum = rho * accum + (1 - rho) * grad^2; update = grad * sqrt(accum_update + epsilon) / "
    "sqrt(accum + epsilon); accum_update = rho * accum_update + (1 - rho) * update^2; var = var - "
    "lr * update.",
    {"var: Ref(T)", "accum: Ref(T)", "accum_update: Ref(T)", "lr: T", "rho: T", "epsilon: T",
     "grad: T"},
    "",
    // accum = 16, update = 4 * 2 / 4
    {{.inputs = {floats({1}), floats({16}), floats({4}), number(0.5f), number(0.5f), number(0),
                 floats({4})},
      .attrs = {},
      .outputs = {floats({0})}}});
const Op adadelta_op(adadelta), resource_adadelta_op(resource_form(adadelta));
const OpDef sparse_adadelta = sparse_update_op<Adadelta>(adadelta, "");
const Op sparse_adadelta_op(sparse_adadelta),
    resource_sparse_adadelta_op(resource_form(sparse_adadelta));

const OpDef ada_max = update_op<AdaMax>(
    "ApplyAdaMax",
    "m = beta1 * m + (1 - beta1) * grad; v = max(beta2 * v, |grad|); var = var - lr / (1 - "
    "beta1_power) * m / (v + epsilon).",
    {"var: Ref(T)", "m: Ref(T)", "v: Ref(T)", "beta1_power: T", "lr: T", "beta1: T", "beta2: T",
     "epsilon: T", "grad: T"},
    "",
    {{.inputs = {floats({1, 1}), floats({0, 0}), floats({0, 16}), number(0.5f), number(0.5f),
                 number(0.5f), number(0.5f), number(0), floats({-2, 4})},
      .attrs = {},
      .outputs = {floats({1.5, 0.75})}}});
const Op ada_max_op(ada_max), resource_ada_max_op(resource_form(ada_max));

const Op resource_amsgrad_op(resource_form(update_op<Amsgrad>(
    "ApplyAdamWithAmsgrad", "ApplyAdam with the largest v so far, vhat, in place of v.",
    {"var: Ref(T)", "m: Ref(T)", "v: Ref(T)", "vhat: Ref(T)", "beta1_power: T", "beta2_power: T",
     "lr: T", "beta1: T", "beta2: T", "epsilon: T", "grad: T"},
    "",
    // m = 1, v = 1, vhat = 4; the rate is 0.5 * 0.5 / 0.5
    {{.inputs = {floats({1}), floats({0}), floats({0}), floats({4}), number(0.5f), number(0.75f),
                 number(0.5f), number(0.5f), number(0.75f), number(0), floats({2})},
      .attrs = {},
      .outputs = {floats({0.75})}}})));

const OpDef adagrad_v2 = update_op<AdagradV2>(
    "ApplyAdagradV2",
    "accum = accum + grad^2 (unless update_slots is false); var = var - lr * grad / (sqrt(accum) "
    "+ epsilon).",
    {"var: Ref(T)", "accum: Ref(T)", "lr: T", "epsilon: T", "grad: T"}, "update_slots: bool = true",
    {{.inputs = {floats({1, 2}), floats({0, 9}), number(0.5f), number(3), floats({2, 4})},
      .attrs = {},
      .outputs = {floats({0.8f, 1.75f})}}});
const Op adagrad_v2_op(adagrad_v2), resource_adagrad_v2_op(resource_form(adagrad_v2));
const OpDef sparse_adagrad_v2 =
    sparse_update_op<AdagradV2>(adagrad_v2, "update_slots: bool = true");
const Op sparse_adagrad_v2_op(sparse_adagrad_v2),
    resource_sparse_adagrad_v2_op(resource_form(sparse_adagrad_v2));

const OpDef add_sign = update_op<AddSign>(
    "ApplyAddSign",
    "m = beta * m + (1 - beta) * grad; var = var - lr * (alpha + sign_decay * sign(grad) * "
    "sign(m)) * grad.",
    {"var: Ref(T)", "m: Ref(T)", "lr: T", "alpha: T", "sign_decay: T", "beta: T", "grad: T"}, "",
    {{.inputs = {floats({1, 1}), floats({0, 8}), number(0.5f), number(1), number(0.5f),
                 number(0.5f), floats({2, -4})},
      .attrs = {},
      .outputs = {floats({-0.5f, 2})}}});
const Op add_sign_op(add_sign), resource_add_sign_op(resource_form(add_sign));

const OpDef power_sign = update_op<PowerSign>(
    "ApplyPowerSign",
    "m = beta * m + (1 - beta) * grad; var = var - lr * exp(logbase * sign_decay * sign(grad) * "
    "sign(m)) * grad.",
    {"var: Ref(T)", "m: Ref(T)", "lr: T", "logbase: T", "sign_decay: T", "beta: T", "grad: T"}, "",
    {{.inputs = {floats({1, 1}), floats({0, 8}), number(0.5f), number(2), number(0.5f),
                 number(0.5f), floats({2, -4})},
      .attrs = {},
      .outputs = {floats({-1.7182818f, 1.7357589f})}}});
const Op power_sign_op(power_sign), resource_power_sign_op(resource_form(power_sign));

const OpDef keras_momentum = update_op<KerasMomentum>(
    "ApplyKerasMomentum",
    "accum = momentum * accum - lr * grad; var = var + accum. With use_nesterov: var = var + "
    "momentum * accum - lr * grad, accum being the new one.",
    {"var: Ref(T)", "accum: Ref(T)", "lr: T", "grad: T", "momentum: T"},
    "use_nesterov: bool = false",
    {{.inputs = {floats({1, 2}), floats({2, 0}), number(0.5f), floats({1, 4}), number(0.5f)},
      .attrs = {},
      .outputs = {floats({1.5, 0})}},
     {.inputs = {floats({1, 2}), floats({2, 0}), number(0.5f), floats({1, 4}), number(0.5f)},
      .attrs = {{"use_nesterov", true}},
      .outputs = {floats({0.75, -1})}}});
const Op resource_keras_momentum_op(resource_form(keras_momentum)),
    resource_sparse_keras_momentum_op(resource_form(
        sparse_update_op<KerasMomentum>(keras_momentum, "use_nesterov: bool = false")));

}  // namespace
}  // namespace leat
