// Optimizer updates on the GPU: one pass over the parameter, its slots and the gradient. Rates are
// read on the device, when the update runs.
#include "graph/op_def.h"
#include "kernels/cuda_launch.cuh"

namespace leat {
namespace {

template <class T>
LEAT_DEVICE ComputeType<T> scalar(const Pointers& p, int i) {
  return cuda::widened(*p.input<T>(i));
}

template <class T>
struct GradientDescent {
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    T* var = p.ref<T>(0);
    var[i] =
        static_cast<T>(cuda::widened(var[i]) - scalar<T>(p, 1) * cuda::widened(p.input<T>(2)[i]));
  }
};

template <class T>
struct Momentum {
  bool nesterov;

  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    using C = ComputeType<T>;
    const C rate = scalar<T>(p, 2);
    const C momentum = scalar<T>(p, 4);
    const C gradient = cuda::widened(p.input<T>(3)[i]);
    T* var = p.ref<T>(0);
    T* accum = p.ref<T>(1);
    const C velocity = cuda::widened(accum[i]) * momentum + gradient;
    accum[i] = static_cast<T>(velocity);
    var[i] =
        static_cast<T>(cuda::widened(var[i]) -
                       (nesterov ? gradient * rate + velocity * momentum * rate : velocity * rate));
  }
};

template <class T>
struct Adam {
  bool nesterov;

  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    using C = ComputeType<T>;
    const C beta1 = scalar<T>(p, 6);
    const C beta2 = scalar<T>(p, 7);
    const C alpha = scalar<T>(p, 5) * std::sqrt(C(1) - scalar<T>(p, 4)) / (C(1) - scalar<T>(p, 3));
    const C gradient = cuda::widened(p.input<T>(9)[i]);
    T* var = p.ref<T>(0);
    T* m = p.ref<T>(1);
    T* v = p.ref<T>(2);
    const C first = cuda::widened(m[i]) + (gradient - cuda::widened(m[i])) * (C(1) - beta1);
    const C second =
        cuda::widened(v[i]) + (gradient * gradient - cuda::widened(v[i])) * (C(1) - beta2);
    const C step = nesterov ? first * beta1 + (C(1) - beta1) * gradient : first;
    m[i] = static_cast<T>(first);
    v[i] = static_cast<T>(second);
    var[i] = static_cast<T>(cuda::widened(var[i]) -
                            step * alpha / (std::sqrt(second) + scalar<T>(p, 8)));
  }
};

template <class T, bool subtract>
struct AddInPlace {
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    T* ref = p.ref<T>(0);
    const auto value = cuda::widened(p.input<T>(1)[i]);
    ref[i] =
        static_cast<T>(subtract ? cuda::widened(ref[i]) - value : cuda::widened(ref[i]) + value);
  }
};

// Inputs that are not in `scalars` have the shape of var.
void check_shapes(const KernelRequest& request, std::initializer_list<int> scalars) {
  for (int i = 1; i < static_cast<int>(request.inputs.size()); ++i) {
    const bool is_scalar = std::find(scalars.begin(), scalars.end(), i) != scalars.end();
    const Shape expected = is_scalar ? Shape{} : request.inputs[0].shape;
    check(request.inputs[i].shape == expected, request.node.op, ": input ", i, " has shape ",
          request.inputs[i].shape, ", expected ", expected);
  }
}

BoundKernel prepare_gradient_descent(const KernelRequest& request) {
  check_shapes(request, {1});
  return visit_type(FloatTypes{}, request.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return bind_indexed(request, request.inputs[0].shape.elements(), 0, GradientDescent<T>{});
  });
}

BoundKernel prepare_momentum(const KernelRequest& request) {
  check_shapes(request, {2, 4});
  return visit_type(FloatTypes{}, request.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return bind_indexed(request, request.inputs[0].shape.elements(), 0,
                        Momentum<T>{request.attr<bool>("use_nesterov")});
  });
}

BoundKernel prepare_adam(const KernelRequest& request) {
  check_shapes(request, {3, 4, 5, 6, 7, 8});
  return visit_type(FloatTypes{}, request.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return bind_indexed(request, request.inputs[0].shape.elements(), 0,
                        Adam<T>{request.attr<bool>("use_nesterov")});
  });
}

template <bool subtract>
BoundKernel prepare_add_in_place(const KernelRequest& request) {
  check_shapes(request, {});
  return visit_type(NumberTypes{}, request.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return bind_indexed(request, request.inputs[0].shape.elements(), 0, AddInPlace<T, subtract>{});
  });
}

std::vector<Kernel> kernels(Prepare prepare, std::vector<DType> types = FloatTypes::list(),
                            const char* type_attr = "T") {
  Kernel kernel;
  kernel.device = DeviceType::gpu;
  kernel.types = {{type_attr, std::move(types)}};
  kernel.prepare = std::move(prepare);
  return {kernel};
}

const OpKernels add{"AssignAdd", kernels(prepare_add_in_place<false>, NumberTypes::list())};
const OpKernels subtract{"AssignSub", kernels(prepare_add_in_place<true>, NumberTypes::list())};
const OpKernels gradient_descent{"ApplyGradientDescent", kernels(prepare_gradient_descent)};
const OpKernels momentum{"ApplyMomentum", kernels(prepare_momentum)};
const OpKernels adam{"ApplyAdam", kernels(prepare_adam)};

// The same on resources.
const OpKernels add_variable{"AssignAddVariableOp",
                             kernels(prepare_add_in_place<false>, NumberTypes::list(), "dtype")};
const OpKernels subtract_variable{
    "AssignSubVariableOp", kernels(prepare_add_in_place<true>, NumberTypes::list(), "dtype")};
const OpKernels resource_gradient_descent{"ResourceApplyGradientDescent",
                                          kernels(prepare_gradient_descent)};
const OpKernels resource_momentum{"ResourceApplyMomentum", kernels(prepare_momentum)};
const OpKernels resource_adam{"ResourceApplyAdam", kernels(prepare_adam)};

}  // namespace
}  // namespace leat
