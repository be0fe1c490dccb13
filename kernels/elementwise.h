// Elementwise ops: the op's file has the scalar maths as a functor, this header has the rest. g++
// compiles the file for the CPU, and nvcc compiles it for the GPU plug-in (`// leat: cpu+cuda` in
// its first line). Only this header chooses the loop that a functor gets.
//
//   struct Relu {
//     template <class T> LEAT_DEVICE T operator()(T x) const { return x > T(0) ? x : T(0); }
//   };
//   const Op relu_op{{.name = "Relu", …, .kernels = elementwise<Relu>()}};
//
// A functor takes 1 or 2 values of a type, or a bool and 2 values, and lives in an unnamed
// namespace (the plug-in's copy must stay its own). It returns that type, or bool; 16-bit floats
// arrive and leave as float. A constructor `explicit F(const NodeView&)` may read attributes.
// `static constexpr int cost` is the time per element in tenths of a nanosecond, if that is more
// than 2. `static constexpr bool is_exact = true` tells that a result needs no more digits than the
// operands have, so that 16-bit floats are not rounded.
#pragma once

#ifdef __CUDACC__
#include "kernels/cuda_launch.cuh"
#else
#include "kernels/cpu_loops.h"
#endif

#include <cmath>
#include <limits>

#include "graph/gradient.h"
#include "graph/op_def.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/broadcast.h"
#include "kernels/broadcast_gradient.h"
#include "kernels/examples.h"
#include "kernels/types.h"

namespace leat {

// A real number is returned unchanged.
template <class T>
LEAT_DEVICE T conjugate(const T& x) {
  if constexpr (is_complex_type<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

template <class F>
F make_functor(const NodeView& node) {
  if constexpr (std::is_constructible_v<F, const NodeView&>) {
    return F(node);
  } else {
    return F{};
  }
}

// The output may take the place of an input that has its shape and element size.
inline BoundKernel share_where_equal(BoundKernel kernel, const KernelRequest& request) {
  const TensorSpec& output = request.outputs[0];
  for (int i = 0; i < static_cast<int>(request.inputs.size()); ++i) {
    const TensorSpec& input = request.inputs[i];
    if (input.shape == output.shape && dtype_size(input.dtype) == dtype_size(output.dtype)) {
      kernel.may_share.push_back({0, i});
    }
  }
  return kernel;
}

// Prepares out = F(in…) for elements of type T.
template <class F, class T>
BoundKernel prepare_elementwise(const KernelRequest& request) {
  using C = ComputeType<T>;
  const BroadcastPlan plan = plan_broadcast(request);
  F f = make_functor<F>(request.node);
  BoundKernel kernel;
  if constexpr (std::is_invocable_v<F, C>) {
    using Out = std::conditional_t<std::is_same_v<std::invoke_result_t<F, C>, bool>, bool, T>;
    kernel = bind_elementwise<F, Out, T>(f, plan);
  } else if constexpr (std::is_invocable_v<F, C, C>) {
    using Out = std::conditional_t<std::is_same_v<std::invoke_result_t<F, C, C>, bool>, bool, T>;
    kernel = bind_elementwise<F, Out, T, T>(f, plan);
  } else {
    kernel = bind_elementwise<F, T, bool, T, T>(f, plan);
  }
  return share_where_equal(std::move(kernel), request);
}

// A kernel for the device that this file is compiled for, whose prepare is a template over the type
// that attribute `attr` names:
//   typed_kernels("T", FloatTypes{}, []<class T>(TypeTag<T>, const KernelRequest& request) { … })
template <class Supported, class F>
std::vector<Kernel> typed_kernels(const std::string& attr, Supported, F prepare) {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{attr, Supported::list()}};
  kernel.prepare = [attr, prepare](const KernelRequest& request) {
    return visit_type(Supported{}, request.attr<DType>(attr),
                      [&](auto type) { return BoundKernel(prepare(type, request)); });
  };
  return {kernel};
}

// The kernels of an elementwise op whose type attribute is T (or that supports only bool).
template <class F, class Supported = NumberTypes>
std::vector<Kernel> elementwise() {
  Kernel kernel;
  kernel.device = kernel_device;
  if constexpr (!std::is_same_v<Supported, Types<bool>>) kernel.types = {{"T", Supported::list()}};
  kernel.prepare = [](const KernelRequest& request) {
    return visit_type(Supported{}, request.inputs.back().dtype, [&](auto tag) {
      return prepare_elementwise<F, typename decltype(tag)::type>(request);
    });
  };
  return {kernel};
}

// The same for strings, which live on the CPU only.
template <class F>
std::vector<Kernel> string_elementwise() {
  if constexpr (has_host_types) {
    return elementwise<F, Types<std::string>>();
  } else {
    return {};
  }
}

inline std::vector<Kernel> join(std::vector<Kernel> kernels, const std::vector<Kernel>& more) {
  kernels.insert(kernels.end(), more.begin(), more.end());
  return kernels;
}

// The kernels for `Supported`, plus those for complex numbers on the CPU.
template <class F, class Supported = NumberTypes>
std::vector<Kernel> elementwise_with_complex() {
  std::vector<Kernel> kernels = elementwise<F, Supported>();
  if constexpr (has_host_types) kernels = join(kernels, elementwise<F, ComplexTypes>());
  return kernels;
}

// The kernel of an op for variants; on the CPU only.
inline std::vector<Kernel> variant_kernels(Execute execute) {
  if constexpr (!has_host_types) return {};
  return {{.types = {{"T", {DType::variant}}}, .execute = std::move(execute)}};
}

}  // namespace leat
