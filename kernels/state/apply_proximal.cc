// leat: cpu+cuda
// leat: fast-math-loops
// Optimizers that shrink weights towards 0 (l1, l2): FTRL, the proximal ones, dual averaging.
#include <bit>
#include <cmath>

#include "kernels/state/update_rule.h"

namespace leat {
namespace {

template <class C>
void check_regularization(C l1, C l2) {
  check(l1 >= C(0), "l1 regularization strength is not a non-negative scalar: ", l1);
  check(l2 >= C(0), "l2 regularization strength is not a non-negative scalar: ", l2);
}

// x moved towards 0 by `limit`, or 0 where x is nearer to 0 than that.
template <class C>
LEAT_DEVICE C shrunk(C x, C limit) {
  if (!(limit > C(0))) return x;
  const C size = (x < C(0) ? -x : x) - limit;
  const C kept = size < C(0) ? C(0) : size;  // NaN stays NaN
  return x < C(0) ? -kept : kept;
}

// With `scaled` (multiply_linear_by_lr), `linear` holds its usual value times lr. As in TensorFlow,
// only sparse updates check the rates and keep NaN. `takes_root`: lr_power is -0.5.
template <class C, bool has_shrinkage, bool is_sparse, bool takes_root = false>
struct FtrlRule {
  static constexpr int variables = 3;  // var, accum, linear
  C rate, l1, l2, shrinkage, power;
  bool scaled;
  LEAT_DEVICE FtrlRule(const C* s, bool option)
      : rate(s[0]),
        l1(s[1]),
        l2(s[2]),
        shrinkage(has_shrinkage ? s[3] : C(0)),
        power(-s[has_shrinkage ? 4 : 3]),
        scaled(option) {}
  void check_rates() const requires is_sparse {
    check(rate > C(0) || (scaled && rate == C(0)), "lr is not a positive scalar: ", rate);
    check_regularization(l1, l2);
    check(shrinkage >= C(0),
          "l2 shrinkage regularization strength is not a non-negative scalar: ", shrinkage);
    check(power >= C(0), "lr_power is not a non-positive scalar: ", -power);
  }
  LEAT_DEVICE C root(C x) const { return takes_root ? std::sqrt(x) : std::pow(x, power); }
  template <class Run>
  void for_rates(const Run& run) const {
    if (power == C(0.5)) {
      run(std::bit_cast<FtrlRule<C, has_shrinkage, is_sparse, true>>(*this));
    } else {
      run(*this);
    }
  }
  LEAT_DEVICE void operator()(C* v, C g) const {
    const C shrinking = has_shrinkage ? g + C(2) * shrinkage * v[0] : g;
    const C accum = v[1] + g * g, before = root(v[1]), after = root(accum);
    const C limit = scaled ? l1 * rate : l1;
    v[2] += scaled ? shrinking * rate - (after - before) * v[0]
                   : shrinking - (after - before) / rate * v[0];
    const C curvature = scaled ? after + C(2) * l2 * rate : after / rate + C(2) * l2;
    if (is_sparse) {
      v[0] = ((v[2] < -limit ? -limit : v[2] > limit ? limit : v[2]) - v[2]) / curvature;
    } else {
      const C size = v[2] < C(0) ? -v[2] : v[2];
      v[0] = size > limit ? ((v[2] < C(0) ? -limit : limit) - v[2]) / curvature : C(0);
    }
    v[1] = accum;
  }
};
template <class C>
using Ftrl = FtrlRule<C, false, false>;
template <class C>
using FtrlV2 = FtrlRule<C, true, false>;
template <class C>
using SparseFtrl = FtrlRule<C, false, true>;
template <class C>
using SparseFtrlV2 = FtrlRule<C, true, true>;

template <class C>
struct ProximalGradientDescent {
  static constexpr int variables = 1;
  C rate, l1, l2;
  LEAT_DEVICE ProximalGradientDescent(const C* s, bool) : rate(s[0]), l1(s[1]), l2(s[2]) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    v[0] = shrunk(v[0] - g * rate, rate * l1) / (C(1) + l2 * rate);
  }
};

template <class C>
struct ProximalAdagrad {
  static constexpr int variables = 2;  // var, accum
  C rate, l1, l2;
  LEAT_DEVICE ProximalAdagrad(const C* s, bool) : rate(s[0]), l1(s[1]), l2(s[2]) {}
  void check_rates() const {
    check(rate > C(0), "lr is not a positive scalar: ", rate);
    check_regularization(l1, l2);
  }
  LEAT_DEVICE void operator()(C* v, C g) const {
    v[1] += g * g;
    const C step = rate / std::sqrt(v[1]);
    v[0] = shrunk(v[0] - g * step, step * l1) / (C(1) + l2 * step);
  }
};

template <class C>
struct AdagradDualAveraging {
  static constexpr int variables = 3;  // var, the sums of gradients and of their squares
  C rate, l1, l2, step;
  LEAT_DEVICE AdagradDualAveraging(const C* s, bool) : rate(s[0]), l1(s[1]), l2(s[2]), step(s[3]) {}
  LEAT_DEVICE void operator()(C* v, C g) const {
    v[1] += g;
    v[2] += g * g;
    v[0] = -rate * shrunk(v[1], l1 * step) / (l2 * step * rate + std::sqrt(v[2]));
  }
};

Tensor number(float value) { return Tensor::scalar(value); }
const char* const multiply_linear_by_lr = "multiply_linear_by_lr: bool = false";

const OpDef ftrl = update_op<Ftrl>(
    "ApplyFtrl",
    "new = accum + grad^2; linear = linear + grad - (new^-lr_power - accum^-lr_power) / lr * var; "
    "accum = new; var = (sign(linear) * l1 - linear) / (accum^-lr_power / lr + 2 * l2) where "
    "|linear| > l1, else 0. With multiply_linear_by_lr, linear holds lr times that.",
    {"var: Ref(T)", "accum: Ref(T)", "linear: Ref(T)", "grad: T", "lr: T", "l1: T", "l2: T",
     "lr_power: T"},
    multiply_linear_by_lr,
    // linear = 3 - (5 - 4) / 0.5 and 3; the divisor is 5 / 0.5 + 2
    {{.inputs = {floats({1, 0}), floats({16, 16}), floats({0, 0}), floats({3, 3}), number(0.5f),
                 number(1), number(1), number(-0.5f)},
      .attrs = {},
      .outputs = {floats({0, -0.16666667f})}}});
const Op ftrl_op(ftrl), resource_ftrl_op(resource_form(ftrl));
const OpDef sparse_ftrl = sparse_update_op<SparseFtrl>(ftrl, multiply_linear_by_lr);
const Op sparse_ftrl_op(sparse_ftrl), resource_sparse_ftrl_op(resource_form(sparse_ftrl));

const OpDef ftrl_v2 = update_op<FtrlV2>(
    "ApplyFtrlV2", "ApplyFtrl with grad + 2 * l2_shrinkage * var where linear takes up grad.",
    {"var: Ref(T)", "accum: Ref(T)", "linear: Ref(T)", "grad: T", "lr: T", "l1: T", "l2: T",
     "l2_shrinkage: T", "lr_power: T"},
    multiply_linear_by_lr,
    // linear = 3 + 2 - (5 - 4) / 0.5 and 3
    {{.inputs = {floats({1, 0}), floats({16, 16}), floats({0, 0}), floats({3, 3}), number(0.5f),
                 number(1), number(1), number(1), number(-0.5f)},
      .attrs = {},
      .outputs = {floats({-0.16666667f, -0.16666667f})}}});
const Op ftrl_v2_op(ftrl_v2), resource_ftrl_v2_op(resource_form(ftrl_v2));
const OpDef sparse_ftrl_v2 = sparse_update_op<SparseFtrlV2>(ftrl_v2, multiply_linear_by_lr);
const Op sparse_ftrl_v2_op(sparse_ftrl_v2),
    resource_sparse_ftrl_v2_op(resource_form(sparse_ftrl_v2));

const OpDef proximal_gradient_descent = update_op<ProximalGradientDescent>(
    "ApplyProximalGradientDescent",
    "near = var - alpha * delta; var = sign(near) * max(|near| - alpha * l1, 0) / (1 + alpha * "
    "l2).",
    {"var: Ref(T)", "alpha: T", "l1: T", "l2: T", "delta: T"}, "",
    {{.inputs = {floats({1, 4}), number(0.5f), number(2), number(2), floats({1, 2})},
      .attrs = {},
      .outputs = {floats({0, 1})}}});
const Op proximal_gradient_descent_op(proximal_gradient_descent),
    resource_proximal_gradient_descent_op(resource_form(proximal_gradient_descent));
const OpDef sparse_proximal_gradient_descent =
    sparse_update_op<ProximalGradientDescent>(proximal_gradient_descent, "");
const Op sparse_proximal_gradient_descent_op(sparse_proximal_gradient_descent),
    resource_sparse_proximal_gradient_descent_op(resource_form(sparse_proximal_gradient_descent));

const OpDef proximal_adagrad = update_op<ProximalAdagrad>(
    "ApplyProximalAdagrad",
    "accum = accum + grad^2; rate = lr / sqrt(accum); near = var - rate * grad; var = sign(near) "
    "* max(|near| - rate * l1, 0) / (1 + rate * l2).",
    {"var: Ref(T)", "accum: Ref(T)", "lr: T", "l1: T", "l2: T", "grad: T"}, "",
    // the rate is 0.5
    {{.inputs = {floats({1, 4}), floats({15, 12}), number(2), number(2), number(2), floats({1, 2})},
      .attrs = {},
      .outputs = {floats({0, 1})}}});
const Op proximal_adagrad_op(proximal_adagrad),
    resource_proximal_adagrad_op(resource_form(proximal_adagrad));
const OpDef sparse_proximal_adagrad = sparse_update_op<ProximalAdagrad>(proximal_adagrad, "");
const Op sparse_proximal_adagrad_op(sparse_proximal_adagrad),
    resource_sparse_proximal_adagrad_op(resource_form(sparse_proximal_adagrad));

const OpDef adagrad_da = update_op<AdagradDualAveraging>(
    "ApplyAdagradDA",
    "gradient_accumulator += grad; gradient_squared_accumulator += grad^2; var = -lr * "
    "sign(gradient_accumulator) * max(|gradient_accumulator| - l1 * global_step, 0) / (l2 * "
    "global_step * lr + sqrt(gradient_squared_accumulator)).",
    {"var: Ref(T)", "gradient_accumulator: Ref(T)", "gradient_squared_accumulator: Ref(T)",
     "grad: T", "lr: T", "l1: T", "l2: T", "global_step: int64"},
    "",
    // -0.5 * (7 - 2) / (2 + 3)
    {{.inputs = {floats({1, 1}), floats({5, 0}), floats({5, 5}), floats({2, -2}), number(0.5f),
                 number(1), number(2), Tensor::scalar<int64_t>(2)},
      .attrs = {},
      .outputs = {floats({-0.5f, 0})}}});
const Op adagrad_da_op(adagrad_da), resource_adagrad_da_op(resource_form(adagrad_da));
const OpDef sparse_adagrad_da = sparse_update_op<AdagradDualAveraging>(adagrad_da, "");
const Op sparse_adagrad_da_op(sparse_adagrad_da),
    resource_sparse_adagrad_da_op(resource_form(sparse_adagrad_da));

}  // namespace
}  // namespace leat
