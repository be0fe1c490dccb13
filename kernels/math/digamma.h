// The logarithmic derivative of the gamma function, for elementwise kernels on both devices.
#pragma once

#include "kernels/elementwise.h"

namespace leat {
namespace {  // in each file, as for every elementwise functor

struct Digamma {
  static constexpr int cost = 100;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    constexpr T pi = T(3.14159265358979323846);
    T reflection = 0;  // ψ(x) = ψ(1 - x) - π / tan(π x)
    if (x <= T(0)) {
      const T below = std::floor(x);
      if (x == below) return std::numeric_limits<T>::quiet_NaN();
      T fraction = x - below;
      if (fraction > T(0.5)) fraction -= T(1);
      reflection = fraction == T(0.5) ? T(0) : pi / std::tan(pi * fraction);
      x = T(1) - x;
    }
    T shift = 0;  // ψ(x) = ψ(x + 1) - 1 / x
    for (; x < T(10); x += T(1)) shift += T(1) / x;
    T series = 0;
    if (x < T(1e17)) {
      const T z = T(1) / (x * x);
      series = T(8.33333333333333333333e-2);
      series = T(-2.10927960927960927961e-2) + z * series;
      series = T(7.57575757575757575758e-3) + z * series;
      series = T(-4.16666666666666666667e-3) + z * series;
      series = T(3.96825396825396825397e-3) + z * series;
      series = T(-8.33333333333333333333e-3) + z * series;
      series = z * (T(8.33333333333333333333e-2) + z * series);
    }
    return std::log(x) - T(0.5) / x - series - shift - reflection;
  }
};

}  // namespace
}  // namespace leat
