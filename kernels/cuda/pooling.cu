// Poolings of images and volumes on the GPU. A thread computes one element: of the output, or of
// the gradient of the input, to which it adds what the windows around it give, in their order.
#include <limits>

#include "graph/op_def.h"
#include "kernels/cuda_launch.cuh"
#include "kernels/neural/functors.h"
#include "kernels/neural/pool_by_values.h"
#include "kernels/neural/pool_extents.h"

namespace leat {
namespace {

template <class T>
constexpr T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return T(std::numeric_limits<float>::lowest());
  }
}

// One element of the output.
struct Place {
  int64_t row, column, channel;
};
LEAT_DEVICE Place place_of(const Pool& p, int64_t i) {
  const int64_t pixel = i / p.channels;
  return {pixel / p.width.out, pixel % p.width.out, i % p.channels};
}

// The first of the largest inputs of an output element; -1 if its window is empty.
template <class T>
LEAT_DEVICE int64_t largest_of(const Pool& p, int64_t i, const T* x) {
  const Place at = place_of(p, i);
  ComputeType<T> best{};
  int64_t where = -1;
  p.for_each_tap(at.row, at.column, [&](int64_t pixel) {
    const ComputeType<T> value = cuda::widened(x[pixel * p.channels + at.channel]);
    const bool is_better = where < 0 || best < value;
    best = is_better ? value : best;
    where = is_better ? pixel * p.channels + at.channel : where;
  });
  return where;
}

// Calls f(output element, row, column) for every window that contains element i of the input.
template <class F>
LEAT_DEVICE void for_each_window(const Pool& p, int64_t i, F f) {
  const int64_t channel = i % p.channels;
  int64_t rest = i / p.channels;
  const int64_t x = rest % p.width.in;
  rest /= p.width.in;
  const int64_t y = rest % p.height.in;
  rest /= p.height.in;
  const int64_t z = rest % p.planes.in, image = rest / p.planes.in;
  const auto first = [](const Window& w, int64_t in) {
    const int64_t distance = in + w.before - w.size;  // of a window's start; the first is behind it
    return distance < 0 ? int64_t{0} : distance / w.stride + 1;
  };
  const auto end = [](const Window& w, int64_t in) {
    const int64_t last = (in + w.before) / w.stride;
    return last + 1 < w.out ? last + 1 : w.out;
  };
  for (int64_t oz = first(p.planes, z); oz < end(p.planes, z); ++oz) {
    for (int64_t oy = first(p.height, y); oy < end(p.height, y); ++oy) {
      const int64_t row = (image * p.planes.out + oz) * p.height.out + oy;
      for (int64_t ox = first(p.width, x); ox < end(p.width, x); ++ox)
        f((row * p.width.out + ox) * p.channels + channel, row, ox);
    }
  }
}

// ---- Largest values

template <class T>
struct MaxPool {
  Pool p;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& pointers) const {
    const Place at = place_of(p, i);
    const T* x = pointers.input<T>(0);
    ComputeType<T> best = cuda::widened(lowest<T>());
    p.for_each_tap(at.row, at.column, [&](int64_t pixel) {
      const ComputeType<T> value = cuda::widened(x[pixel * p.channels + at.channel]);
      best = best < value ? value : best;
    });
    pointers.output<T>()[i] = static_cast<T>(best);
  }
};

// `masks`: times Relu's slope at x; windows do not overlap.
template <class T, bool masks>
struct GradientOfMaxPool {
  Pool p;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& pointers) const {
    const T *x = pointers.input<T>(0), *dy = pointers.input<T>(2);
    T total = static_cast<T>(ComputeType<T>(0));
    for_each_window(p, i, [&](int64_t y, int64_t, int64_t) {
      if (largest_of(p, y, x) == i)
        total = static_cast<T>(cuda::widened(total) + cuda::widened(dy[y]));
    });
    if (masks) total = ReluGrad{}(total, x[i]);
    pointers.output<T>()[i] = total;
  }
};
template <class T>
using MaxPoolGrad = GradientOfMaxPool<T, false>;
template <class T>
using MaxPoolReluGrad = GradientOfMaxPool<T, true>;

template <class T>
struct MaxPoolGradGrad {
  Pool p;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& pointers) const {
    const int64_t at = largest_of(p, i, pointers.input<T>(0));
    pointers.output<T>()[i] = at < 0 ? static_cast<T>(ComputeType<T>(0)) : pointers.input<T>(2)[at];
  }
};

// The places are counted in an image, or in the whole batch.
template <class T, class Index>
struct MaxPoolWithArgmax {
  Pool p;
  int64_t counted;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& pointers) const {
    const int64_t at = largest_of(p, i, pointers.input<T>(0));
    pointers.output<T>(0)[i] = pointers.input<T>(0)[at < 0 ? 0 : at];
    pointers.output<Index>(1)[i] = static_cast<Index>(at < 0 ? 0 : at % counted);
  }
};

// A place outside the window of its output gets nothing: a kernel cannot report it.
template <class T, class Index>
struct MaxPoolGradWithArgmax {
  Pool p;
  int64_t counted;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& pointers) const {
    const T* dy = pointers.input<T>(1);
    T total = static_cast<T>(ComputeType<T>(0));
    for_each_window(p, i, [&](int64_t y, int64_t, int64_t) {
      if (static_cast<int64_t>(pointers.input<Index>(2)[y]) == i % counted)
        total = static_cast<T>(cuda::widened(total) + cuda::widened(dy[y]));
    });
    pointers.output<T>()[i] = total;
  }
};

// ---- Means

template <class T>
struct AveragePool {
  Pool p;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& pointers) const {
    const Place at = place_of(p, i);
    const T* x = pointers.input<T>(0);
    ComputeType<T> total = 0;
    const int64_t count = p.for_each_tap(at.row, at.column, [&](int64_t pixel) {
      total += cuda::widened(x[pixel * p.channels + at.channel]);
    });
    pointers.output<T>()[i] = static_cast<T>(total / static_cast<ComputeType<T>>(count));
  }
};

template <class T>
struct AveragePoolGrad {
  Pool p;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& pointers) const {
    using C = ComputeType<T>;
    const T* dy = pointers.input<T>(1);
    T total = static_cast<T>(C(0));
    for_each_window(p, i, [&](int64_t y, int64_t row, int64_t column) {
      const C share = C(1) / static_cast<C>(p.count_taps(row, column));
      total = static_cast<T>(cuda::widened(total) + cuda::widened(dy[y]) * share);
    });
    pointers.output<T>()[i] = total;
  }
};

// ---- Registration

// F<T>{pool} for every element of the output; the pool's image is input 0 or, for `of_output`,
// output 0.
template <template <class> class F, class Supported>
std::vector<Kernel> pool_kernels(bool of_output = false) {
  return {{.device = DeviceType::gpu,
           .types = {{"T", Supported::list()}},
           .prepare = [of_output](const KernelRequest& r) {
             const Pool p = pool_of(r.node, (of_output ? r.outputs[0] : r.inputs[0]).shape);
             const int64_t n = r.outputs[0].shape.elements();
             const DType given = r.inputs[of_output ? 1 : 0].dtype, made = r.outputs[0].dtype;
             check(given == made, r.node.op, " of ", given, " for ", made,
                   " is not supported on a GPU: both must have one type");
             return visit_type(Supported{}, r.outputs[0].dtype, [&](auto tag) {
               return bind_indexed(r, n, 0, F<typename decltype(tag)::type>{p});
             });
           }}};
}

template <template <class, class> class F>
std::vector<Kernel> argmax_kernels() {
  return {{.device = DeviceType::gpu,
           .types = {{"T", NumberTypes::list()}},
           .prepare = [](const KernelRequest& r) {
             const Shape& x = r.inputs[0].shape;
             check(x.elements() > 0 || r.inputs.size() > 1,
                   "tensor_in must not be empty, got shape ", x);
             const Pool p = pool_of(r.node, x);
             const int64_t n = r.outputs[0].shape.elements();
             const int64_t counted = r.attr<bool>("include_batch_in_index") || x[0] == 0
                                         ? x.elements()
                                         : x.elements() / x[0];
             return visit_type(NumberTypes{}, r.outputs[0].dtype, [&](auto tag) {
               using T = typename decltype(tag)::type;
               return r.attr<DType>("Targmax") == DType::i64
                          ? bind_indexed(r, n, 0, F<T, int64_t>{p, counted})
                          : bind_indexed(r, n, 0, F<T, int32_t>{p, counted});
             });
           }}};
}

using MaxPoolTypes =
    Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>;

const OpKernels max_pool{"MaxPool", pool_kernels<MaxPool, MaxPoolTypes>()};
const OpKernels max_pool_grad{"MaxPoolGrad", pool_kernels<MaxPoolGrad, NumberTypes>()};
const OpKernels max_pool_relu_grad{"_MaxPoolReluGrad",
                                   pool_kernels<MaxPoolReluGrad, NumberTypes>()};
const OpKernels max_pool_grad_grad{"MaxPoolGradGrad", pool_kernels<MaxPoolGradGrad, NumberTypes>()};
const OpKernels average_pool{"AvgPool", pool_kernels<AveragePool, FloatTypes>()};
const OpKernels average_pool_grad{"AvgPoolGrad", pool_kernels<AveragePoolGrad, FloatTypes>(true)};
const OpKernels max_pool_with_argmax{"MaxPoolWithArgmax", argmax_kernels<MaxPoolWithArgmax>()};
const OpKernels max_pool_grad_with_argmax{"MaxPoolGradWithArgmax",
                                          argmax_kernels<MaxPoolGradWithArgmax>()};

const OpKernels max_pool_v2{"MaxPoolV2", by_values(pool_kernels<MaxPool, MaxPoolTypes>())};
const OpKernels max_pool_grad_v2{"MaxPoolGradV2",
                                 by_values(pool_kernels<MaxPoolGrad, NumberTypes>())};
const OpKernels max_pool_grad_grad_v2{"MaxPoolGradGradV2",
                                      by_values(pool_kernels<MaxPoolGradGrad, NumberTypes>())};

const OpKernels max_pool_3d{"MaxPool3D", pool_kernels<MaxPool, Types<float, half, bfloat16>>()};
const OpKernels max_pool_3d_grad{"MaxPool3DGrad",
                                 pool_kernels<MaxPoolGrad, Types<float, half, bfloat16>>()};
const OpKernels average_pool_3d{"AvgPool3D", pool_kernels<AveragePool, FloatTypes>()};
const OpKernels average_pool_3d_grad{"AvgPool3DGrad",
                                     pool_kernels<AveragePoolGrad, FloatTypes>(true)};

}  // namespace
}  // namespace leat
