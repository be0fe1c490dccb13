// leat: fast-math-loops
// Optimizer updates: each is one pass over the parameter, its slots and the gradient. Rates are
// read when it runs.
#include <cmath>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/resource_form.h"

namespace leat {
namespace {

constexpr int64_t grain = 16384;

// var, slots and gradient must agree, the rest are scalars.
void check_shapes(const KernelRequest& request, std::initializer_list<int> scalars) {
  const Shape& var = request.inputs[0].shape;
  for (int i = 1; i < static_cast<int>(request.inputs.size()); ++i) {
    const Shape& shape = request.inputs[i].shape;
    const bool scalar = std::find(scalars.begin(), scalars.end(), i) != scalars.end();
    check(shape == (scalar ? Shape{} : var), request.node.op, ": input ", i, " has shape ", shape,
          ", expected ", scalar ? Shape{} : var);
  }
}

// Runs loop(a, begin, end) over the elements of var.
template <class T, class Loop>
BoundKernel update(const KernelRequest& request, Loop loop) {
  return BoundKernel::of([n = request.inputs[0].shape.elements(), loop](const Arguments& a) {
    a.stream->parallel_for(n, grain, [&](int64_t begin, int64_t end) { loop(a, begin, end); });
  });
}

// Of the forms on references and on resources; these have no output.
void infer(ShapeContext& c, std::initializer_list<int> scalars) {
  Shape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (std::find(scalars.begin(), scalars.end(), i) != scalars.end()) {
      c.with_rank(i, 0);
    } else {
      shape = shape.merged(c.input(i));
    }
  }
  if (c.num_outputs() > 0) c.set_output(0, shape);
}

const char* const types = "T: numbertype";
const char* const use_locking = "use_locking: bool = false";
const char* const use_nesterov = "use_nesterov: bool = false";

template <class T>
BoundKernel prepare_gradient_descent(TypeTag<T>, const KernelRequest& request) {
  check_shapes(request, {1});
  return update<T>(request, [](const Arguments& a, int64_t begin, int64_t end) {
    using C = ComputeType<T>;
    const C alpha = *a.input<T>(1);
    T* var = a.ref<T>(0);
    const T* delta = a.input<T>(2);
    vectorized([=]() LEAT_INLINE {
      for (int64_t i = begin; i < end; ++i) var[i] = T(C(var[i]) - alpha * C(delta[i]));
    });
  });
}

const OpDef apply_gradient_descent{
    .name = "ApplyGradientDescent",
    .doc = "var = var - alpha * delta.",
    .inputs = {"var: Ref(T)", "alpha: T", "delta: T"},
    .outputs = {"out: Ref(T)"},
    .attrs = {types, use_locking},
    .shape = [](ShapeContext& c) { infer(c, {1}); },
    .kernels = {cpu_kernel("T", FloatTypes{},
                           []<class T>(TypeTag<T> t, const KernelRequest& r) {
                             return prepare_gradient_descent(t, r);
                           })},
    .examples = {{.inputs = {floats({1, 2}), Tensor::scalar(0.5f), floats({2, 4})},
                  .outputs = {floats({0, 0})}}},
    .is_not_differentiable = true,
};
const Op gradient_descent_op(apply_gradient_descent),
    resource_gradient_descent_op(resource_form(apply_gradient_descent));

template <class T, bool nesterov>
BoundKernel prepare_momentum(const KernelRequest& request) {
  check_shapes(request, {2, 4});
  return update<T>(request, [](const Arguments& a, int64_t begin, int64_t end) {
    using C = ComputeType<T>;
    const C rate = *a.input<T>(2), momentum = *a.input<T>(4);
    T *var = a.ref<T>(0), *accum = a.ref<T>(1);
    const T* grad = a.input<T>(3);
    vectorized([=]() LEAT_INLINE {
      for (int64_t i = begin; i < end; ++i) {
        const C g = grad[i];
        const C velocity = C(accum[i]) * momentum + g;
        accum[i] = T(velocity);
        var[i] =
            T(C(var[i]) - (nesterov ? g * rate + velocity * momentum * rate : velocity * rate));
      }
    });
  });
}

const OpDef apply_momentum{
    .name = "ApplyMomentum",
    .doc =
        "accum = momentum * accum + grad; var = var - lr * accum. With use_nesterov: "
        "var = var - lr * (grad + momentum * accum), accum being the new one.",
    .inputs = {"var: Ref(T)", "accum: Ref(T)", "lr: T", "grad: T", "momentum: T"},
    .outputs = {"out: Ref(T)"},
    .attrs = {types, use_locking, use_nesterov},
    .shape =
        [](ShapeContext& c) {
          infer(c, {2, 4});
        },
    .kernels = {cpu_kernel("T", FloatTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return r.attr<bool>("use_nesterov") ? prepare_momentum<T, true>(r)
                                                                 : prepare_momentum<T, false>(r);
                           })},
    .examples = {{.inputs = {floats({1, 2}), floats({2, 0}), Tensor::scalar(0.5f), floats({1, 4}),
                             Tensor::scalar(0.5f)},
                  .outputs = {floats({0, 0})}},
                 {.inputs = {floats({1, 2}), floats({2, 0}), Tensor::scalar(0.5f), floats({1, 4}),
                             Tensor::scalar(0.5f)},
                  .attrs = {{"use_nesterov", true}},
                  .outputs = {floats({0, -1})}}},
    .is_not_differentiable = true,
};
const Op momentum_op(apply_momentum), resource_momentum_op(resource_form(apply_momentum));

template <class T, bool nesterov>
BoundKernel prepare_adam(const KernelRequest& request) {
  check_shapes(request, {3, 4, 5, 6, 7, 8});
  return update<T>(request, [](const Arguments& a, int64_t begin, int64_t end) {
    using C = ComputeType<T>;
    const C beta1_power = *a.input<T>(3), beta2_power = *a.input<T>(4), rate = *a.input<T>(5),
            beta1 = *a.input<T>(6), beta2 = *a.input<T>(7), epsilon = *a.input<T>(8);
    const C alpha = rate * std::sqrt(C(1) - beta2_power) / (C(1) - beta1_power);
    T *var = a.ref<T>(0), *m = a.ref<T>(1), *v = a.ref<T>(2);
    const T* grad = a.input<T>(9);
    vectorized([=]() LEAT_INLINE {
      for (int64_t i = begin; i < end; ++i) {
        const C g = grad[i];
        const C first = C(m[i]) + (g - C(m[i])) * (C(1) - beta1);
        const C second = C(v[i]) + (g * g - C(v[i])) * (C(1) - beta2);
        const C step = nesterov ? first * beta1 + (C(1) - beta1) * g : first;
        m[i] = T(first);
        v[i] = T(second);
        var[i] = T(C(var[i]) - step * alpha / (std::sqrt(second) + epsilon));
      }
    });
  });
}

const OpDef apply_adam{
    .name = "ApplyAdam",
    .doc =
        "m = beta1 * m + (1 - beta1) * grad; v = beta2 * v + (1 - beta2) * grad^2; "
        "var = var - lr * sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon). "
        "With use_nesterov, "
        "beta1 * m + (1 - beta1) * grad stands in place of the new m.",
    .inputs = {"var: Ref(T)", "m: Ref(T)", "v: Ref(T)", "beta1_power: T", "beta2_power: T", "lr: T",
               "beta1: T", "beta2: T", "epsilon: T", "grad: T"},
    .outputs = {"out: Ref(T)"},
    .attrs = {types, use_locking, use_nesterov},
    .shape =
        [](ShapeContext& c) {
          infer(c, {3, 4, 5, 6, 7, 8});
        },
    .kernels = {cpu_kernel("T", FloatTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return r.attr<bool>("use_nesterov") ? prepare_adam<T, true>(r)
                                                                 : prepare_adam<T, false>(r);
                           })},
    // m = 0.5, v = 1 and alpha = 0.5 * sqrt(0.75) / 0.5.
    .examples = {{.inputs = {floats({1}), floats({0}), floats({0}), Tensor::scalar(0.5f),
                             Tensor::scalar(0.25f), Tensor::scalar(0.5f), Tensor::scalar(0.5f),
                             Tensor::scalar(0.75f), Tensor::scalar(0.0f), floats({2})},
                  .outputs = {floats({0.13397460f})}}},
    .is_not_differentiable = true,
};
const Op adam_op(apply_adam), resource_adam_op(resource_form(apply_adam));

template <class T, bool update_slots>
BoundKernel prepare_adagrad(const KernelRequest& request) {
  check_shapes(request, {2});
  return update<T>(request, [](const Arguments& a, int64_t begin, int64_t end) {
    using C = ComputeType<T>;
    const C rate = *a.input<T>(2);
    T *var = a.ref<T>(0), *accum = a.ref<T>(1);
    const T* grad = a.input<T>(3);
    vectorized([=]() LEAT_INLINE {
      for (int64_t i = begin; i < end; ++i) {
        const C g = grad[i];
        const C sum = update_slots ? C(accum[i]) + g * g : C(accum[i]);
        if (update_slots) accum[i] = T(sum);
        var[i] = T(C(var[i]) - g * rate / std::sqrt(sum));
      }
    });
  });
}

const OpDef apply_adagrad{
    .name = "ApplyAdagrad",
    .doc =
        "accum = accum + grad^2 (unless update_slots is false); var = var - lr * grad / "
        "sqrt(accum).",
    .inputs = {"var: Ref(T)", "accum: Ref(T)", "lr: T", "grad: T"},
    .outputs = {"out: Ref(T)"},
    .attrs = {types, use_locking, "update_slots: bool = true"},
    .shape = [](ShapeContext& c) { infer(c, {2}); },
    .kernels = {cpu_kernel("T", FloatTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return r.attr<bool>("update_slots") ? prepare_adagrad<T, true>(r)
                                                                 : prepare_adagrad<T, false>(r);
                           })},
    .examples = {{.inputs = {floats({1, 2}), floats({0, 9}), Tensor::scalar(0.5f), floats({2, 4})},
                  .outputs = {floats({0.5f, 1.6f})}}},
    .is_not_differentiable = true,
};
const Op adagrad_op(apply_adagrad), resource_adagrad_op(resource_form(apply_adagrad));

template <class T>
BoundKernel prepare_rms_prop(TypeTag<T>, const KernelRequest& request) {
  check_shapes(request, {3, 4, 5, 6});
  return update<T>(request, [](const Arguments& a, int64_t begin, int64_t end) {
    using C = ComputeType<T>;
    const C rate = *a.input<T>(3), rho = *a.input<T>(4), momentum = *a.input<T>(5),
            epsilon = *a.input<T>(6);
    T *var = a.ref<T>(0), *ms = a.ref<T>(1), *mom = a.ref<T>(2);
    const T* grad = a.input<T>(7);
    vectorized([=]() LEAT_INLINE {
      for (int64_t i = begin; i < end; ++i) {
        const C g = grad[i];
        const C square = C(ms[i]) + (g * g - C(ms[i])) * (C(1) - rho);
        const C velocity = C(mom[i]) * momentum + rate * g / std::sqrt(square + epsilon);
        ms[i] = T(square);
        mom[i] = T(velocity);
        var[i] = T(C(var[i]) - velocity);
      }
    });
  });
}

const OpDef apply_rms_prop{
    .name = "ApplyRMSProp",
    .doc =
        "ms = rho * ms + (1 - rho) * grad^2; mom = momentum * mom + lr * grad / sqrt(ms + "
        "epsilon); var = var - mom.",
    .inputs = {"var: Ref(T)", "ms: Ref(T)", "mom: Ref(T)", "lr: T", "rho: T", "momentum: T",
               "epsilon: T", "grad: T"},
    .outputs = {"out: Ref(T)"},
    .attrs = {types, use_locking},
    .shape =
        [](ShapeContext& c) {
          infer(c, {3, 4, 5, 6});
        },
    .kernels = {cpu_kernel(
        "T", FloatTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_rms_prop(t, r); })},
    .examples = {{.inputs = {floats({1}), floats({2}), floats({1}), Tensor::scalar(0.5f),
                             Tensor::scalar(0.5f), Tensor::scalar(0.5f), Tensor::scalar(0.0f),
                             floats({4})},
                  .outputs = {floats({-0.16666667f})}}},
    .is_not_differentiable = true,
};
const Op rms_prop_op(apply_rms_prop), resource_rms_prop_op(resource_form(apply_rms_prop));

}  // namespace
}  // namespace leat
