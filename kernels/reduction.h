// Reductions over axes: shared shape function and gradient parts, and the kernels, chosen by
// compiler as in elementwise.h. A reducer is a struct in an unnamed namespace:
//
//   struct SumReducer : Reducer {
//     template <class T> LEAT_DEVICE static T identity() { return T(0); }
//     // Associative and commutative.
//     template <class T> LEAT_DEVICE static T combine(T a, T b) { return a + b; }
//   };
// 16-bit floats are reduced as float.
#pragma once

#include "graph/shape_inference.h"
#include "kernels/elementwise.h"

#ifdef __CUDACC__
#include "kernels/cuda_reduce.cuh"
#else
#include "kernels/cpu_reduce.h"
#endif

namespace leat {

// Maps an element before the reduction, and the total of n elements after it.
struct Reducer {
  template <class T>
  LEAT_DEVICE static T map(T x) {
    return x;
  }
  template <class T>
  LEAT_DEVICE static T finish(T total, int64_t /*n*/) {
    return total;
  }
};

// Shape of input 0 without the axes that input 1 names (or with extent 1 there, if keep_dims).
void infer_reduction(ShapeContext& c);

// The axes as flags; negative ones count from the end. INVALID_ARGUMENT if one is out of range.
std::vector<bool> reduced_axes(const Tensor& indices, int rank);

// For gradients: reshapes `reduced` (dy, or y), which lacks the reduced axes of x, so that it
// broadcasts to x's shape again.
Output with_reduced_axes(Gradient& g, Output reduced);

// Prepares output 0 = reduction of input 0 over the axes in input 1.
template <class R, class T>
BoundKernel prepare_reduction(const KernelRequest& request) {
  return bind_reduction<R, T>(plan_reduction(request));
}

template <class R, class Supported = NumberTypes>
std::vector<Kernel> reduction() {
  Kernel kernel;
  kernel.device = kernel_device;
  if constexpr (!std::is_same_v<Supported, Types<bool>>) kernel.types = {{"T", Supported::list()}};
  kernel.host_inputs = {1};
  kernel.prepare = [](const KernelRequest& request) {
    return visit_type(Supported{}, request.inputs[0].dtype, [&](auto tag) {
      return prepare_reduction<R, typename decltype(tag)::type>(request);
    });
  };
  return {kernel};
}

// The kernels for `Supported`, plus those for complex numbers on the CPU.
template <class R, class Supported = NumberTypes>
std::vector<Kernel> reduction_with_complex() {
  std::vector<Kernel> kernels = reduction<R, Supported>();
  if constexpr (has_host_types) kernels = join(kernels, reduction<R, ComplexTypes>());
  return kernels;
}

}  // namespace leat
