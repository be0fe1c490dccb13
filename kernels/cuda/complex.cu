// Complex numbers on the GPU: their parts, and arithmetic.
//
// Not of std::complex, whose operators libstdc++ writes with GCC's __complex__: nvcc 13 compiles
// them for a GPU without a warning, and leaves the operation out (x + y is x).
#include <cmath>
#include <limits>

#include "kernels/elementwise.h"

namespace leat {
namespace {

// As a std::complex<T> lies in memory.
template <class T>
struct Parts {
  T re, im;
};

template <class T>
LEAT_DEVICE Parts<T> conjugate(const Parts<T>& x) {
  return {x.re, -x.im};
}

// Without a check for infinite parts, as on the CPU (kernels/math/complex_math.h).
template <class T>
LEAT_DEVICE Parts<T> product(const Parts<T>& x, const Parts<T>& y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

// (a + ib) / (c + id). A quotient that is no number, or infinite, is that of C (ISO C99, annex
// G.5.1), as on the CPU.
LEAT_DEVICE Parts<double> finite_quotient(const Parts<double>& x, const Parts<double>& y) {
  // Smith, "Algorithm 116: complex division", 1962: the squares of the parts might overflow.
  if (std::abs(y.re) >= std::abs(y.im)) {
    const double ratio = y.im / y.re, scale = y.re + y.im * ratio;
    return {(x.re + x.im * ratio) / scale, (x.im - x.re * ratio) / scale};
  }
  const double ratio = y.re / y.im, scale = y.re * ratio + y.im;
  return {(x.re * ratio + x.im) / scale, (x.im * ratio - x.re) / scale};
}
LEAT_DEVICE double one_if_infinite(double x) { return std::copysign(std::isinf(x) ? 1.0 : 0.0, x); }
LEAT_DEVICE Parts<double> quotient_of_doubles(Parts<double> x, Parts<double> y) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Parts<double> z = finite_quotient(x, y);
  if (!std::isnan(z.re) || !std::isnan(z.im)) return z;
  if (y.re == 0 && y.im == 0 && (!std::isnan(x.re) || !std::isnan(x.im))) {
    const double signed_infinity = std::copysign(infinity, y.re);
    return {signed_infinity * x.re, signed_infinity * x.im};
  }
  double factor = 0;
  if ((std::isinf(x.re) || std::isinf(x.im)) && std::isfinite(y.re) && std::isfinite(y.im)) {
    x = {one_if_infinite(x.re), one_if_infinite(x.im)};
    factor = infinity;
  } else if ((std::isinf(y.re) || std::isinf(y.im)) && std::isfinite(x.re) && std::isfinite(x.im)) {
    y = {one_if_infinite(y.re), one_if_infinite(y.im)};
  } else {
    return z;
  }
  return {factor * (x.re * y.re + x.im * y.im), factor * (x.im * y.re - x.re * y.im)};
}
template <class T>
LEAT_DEVICE Parts<T> quotient(const Parts<T>& x, const Parts<T>& y) {
  const Parts<double> z = quotient_of_doubles(Parts<double>{x.re, x.im}, Parts<double>{y.re, y.im});
  return {static_cast<T>(z.re), static_cast<T>(z.im)};
}

// ---- Numbers and their parts

struct Combine {
  template <class T>
  LEAT_DEVICE Parts<T> operator()(T re, T im) const {
    return {re, im};
  }
};
struct RealPart {
  template <class T>
  LEAT_DEVICE T operator()(const Parts<T>& x) const {
    return x.re;
  }
};
struct ImaginaryPart {
  template <class T>
  LEAT_DEVICE T operator()(const Parts<T>& x) const {
    return x.im;
  }
};
struct Absolute {
  template <class T>
  LEAT_DEVICE T operator()(const Parts<T>& x) const {
    return std::hypot(x.re, x.im);
  }
};
struct Argument {
  template <class T>
  LEAT_DEVICE T operator()(const Parts<T>& x) const {
    return std::atan2(x.im, x.re);
  }
};

template <class T>
std::vector<TypeConstraint> types_of_parts(const char* parts, const char* numbers) {
  return {{parts, {dtype_of<T>}}, {numbers, {dtype_of<std::complex<T>>}}};
}

template <class F, class T>
Kernel part_kernel() {
  return {.device = DeviceType::gpu,
          .types = types_of_parts<T>("Tout", "T"),
          .prepare = [](const KernelRequest& r) {
            return bind_elementwise<F, T, Parts<T>>(F{}, plan_broadcast(r));
          }};
}
template <class T>
Kernel combining_kernel() {
  return {.device = DeviceType::gpu,
          .types = types_of_parts<T>("T", "Tout"),
          .prepare = [](const KernelRequest& r) {
            return bind_elementwise<Combine, Parts<T>, T, T>(Combine{}, plan_broadcast(r));
          }};
}

template <class F>
std::vector<Kernel> part_kernels() {
  return {part_kernel<F, float>(), part_kernel<F, double>()};
}

const OpKernels complex_op{"Complex", {combining_kernel<float>(), combining_kernel<double>()}};
const OpKernels real_op{"Real", part_kernels<RealPart>()};
const OpKernels imag_op{"Imag", part_kernels<ImaginaryPart>()};
const OpKernels abs_op{"ComplexAbs", part_kernels<Absolute>()};
const OpKernels angle_op{"Angle", part_kernels<Argument>()};

// ---- Arithmetic

struct Conjugate {
  template <class T>
  LEAT_DEVICE Parts<T> operator()(const Parts<T>& x) const {
    return conjugate(x);
  }
};
struct Add {
  template <class T>
  LEAT_DEVICE Parts<T> operator()(const Parts<T>& x, const Parts<T>& y) const {
    return {x.re + y.re, x.im + y.im};
  }
};
struct Sub {
  template <class T>
  LEAT_DEVICE Parts<T> operator()(const Parts<T>& x, const Parts<T>& y) const {
    return {x.re - y.re, x.im - y.im};
  }
};
struct Mul {
  template <class T>
  LEAT_DEVICE Parts<T> operator()(const Parts<T>& x, const Parts<T>& y) const {
    return product(x, y);
  }
};
struct Div {
  template <class T>
  LEAT_DEVICE Parts<T> operator()(const Parts<T>& x, const Parts<T>& y) const {
    return quotient(x, y);
  }
};
struct DivNoNan {
  template <class T>
  LEAT_DEVICE Parts<T> operator()(const Parts<T>& x, const Parts<T>& y) const {
    if (y.re == T(0) && y.im == T(0)) return {T(0), T(0)};
    return quotient(x, y);
  }
};
struct SquaredDifference {
  template <class T>
  LEAT_DEVICE Parts<T> operator()(const Parts<T>& x, const Parts<T>& y) const {
    const Parts<T> difference = Sub{}(x, y);
    return product(difference, conjugate(difference));
  }
};
struct Neg {
  template <class T>
  LEAT_DEVICE Parts<T> operator()(const Parts<T>& x) const {
    return {-x.re, -x.im};
  }
};
struct Square {
  template <class T>
  LEAT_DEVICE Parts<T> operator()(const Parts<T>& x) const {
    return product(x, x);
  }
};
struct Reciprocal {
  template <class T>
  LEAT_DEVICE Parts<T> operator()(const Parts<T>& x) const {
    return quotient(Parts<T>{T(1), T(0)}, x);
  }
};
struct Zero {
  template <class T>
  LEAT_DEVICE Parts<T> operator()(const Parts<T>&) const {
    return {T(0), T(0)};
  }
};
struct One {
  template <class T>
  LEAT_DEVICE Parts<T> operator()(const Parts<T>&) const {
    return {T(1), T(0)};
  }
};

// prepare(TypeTag<Parts<T>>, request) for either type.
template <class F>
std::vector<Kernel> kernels(F prepare) {
  return {{.device = DeviceType::gpu,
           .types = {{"T", ComplexTypes::list()}},
           .prepare = [prepare](const KernelRequest& r) {
             return r.outputs[0].dtype == DType::complex64 ? prepare(TypeTag<Parts<float>>{}, r)
                                                           : prepare(TypeTag<Parts<double>>{}, r);
           }}};
}

template <class F>
std::vector<Kernel> arithmetic() {
  return kernels([]<class P>(TypeTag<P>, const KernelRequest& r) {
    const BroadcastPlan plan = plan_broadcast(r);
    if constexpr (std::is_invocable_v<F, P>) {
      return share_where_equal(bind_elementwise<F, P, P>(F{}, plan), r);
    } else {
      return share_where_equal(bind_elementwise<F, P, P, P>(F{}, plan), r);
    }
  });
}

std::vector<Kernel> sums() {
  return kernels([]<class P>(TypeTag<P>, const KernelRequest& r) {
    const int count = static_cast<int>(r.inputs.size());
    if (count == 1) return BoundKernel::view();
    return bind_fold<Add, P>(count, r.outputs[0].shape.elements()).sharing(0, 0).sharing(0, 1);
  });
}

const OpKernels conj_op{"Conj", arithmetic<Conjugate>()};
const OpKernels add{"Add", arithmetic<Add>()};
const OpKernels add_v2{"AddV2", arithmetic<Add>()};
const OpKernels add_n{"AddN", sums()};
const OpKernels sub{"Sub", arithmetic<Sub>()};
const OpKernels mul{"Mul", arithmetic<Mul>()};
const OpKernels div{"Div", arithmetic<Div>()};
const OpKernels real_div{"RealDiv", arithmetic<Div>()};
const OpKernels div_no_nan{"DivNoNan", arithmetic<DivNoNan>()};
const OpKernels squared_difference{"SquaredDifference", arithmetic<SquaredDifference>()};
const OpKernels neg{"Neg", arithmetic<Neg>()};
const OpKernels square{"Square", arithmetic<Square>()};
const OpKernels reciprocal{"Reciprocal", arithmetic<Reciprocal>()};
const OpKernels zeros_like{"ZerosLike", arithmetic<Zero>()};
const OpKernels ones_like{"OnesLike", arithmetic<One>()};

}  // namespace
}  // namespace leat
