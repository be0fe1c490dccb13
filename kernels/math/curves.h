// tanh, erf and exp of floats, without a call or a branch: a loop over them becomes vector
// instructions on every processor.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/elementwise.h"

namespace leat {
namespace curves {

// c[0] + c[1] x + c[2] x² + …
template <size_t n>
LEAT_DEVICE float polynomial(const float (&c)[n], float x) {
  float sum = c[n - 1];
  for (size_t i = n - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// x P(x²) / Q(x²), and from x = `end` on, where the curve rounds to 1, exactly 1. P and Q fit the
// curve with the least relative error, so that small numbers keep their digits; what remains is
// some roundings. NaN stays NaN, and zeros keep their signs.
template <size_t p, size_t q>
LEAT_DEVICE float odd_fraction(const float (&above)[p], const float (&below)[q], float end,
                               float x) {
  const float size = std::abs(x), limited = end < size ? end : size, square = limited * limited;
  const float y = limited * polynomial(above, square) / polynomial(below, square);
  // Not one condition of two: g++ would jump.
  const float least = limited < end ? 0.0F : 1.0F, raised = y < least ? least : y;
  return std::copysign(raised > 1.0F ? 1.0F : raised, x);
}

}  // namespace curves

template <class T>
LEAT_DEVICE T tanh_of(const T& x) {
  if constexpr (has_host_types && std::is_same_v<T, float>) {
    constexpr float above[] = {1.0F,           0.13679938F,  0.0038683563F,
                               2.8008018e-05F, 3.05863e-08F, -1.2204339e-11F};
    constexpr float below[] = {1.0F, 0.4701327F, 0.027245944F, 0.0003938681F, 1.2874048e-06F};
    return curves::odd_fraction(above, below, 9.011F, x);
  } else {
    return std::tanh(x);
  }
}

// exp(x) for x of at most 0, or NaN; 0 below -87, where floats end. Half the time of glibc's, which
// takes any x. exp(n ln 2 + r) is 2^n times a polynomial of r (Cephes's): within one last place.
template <class T>
LEAT_DEVICE T exp_of_negative(T x) {
  if constexpr (std::is_same_v<T, float>) {
    constexpr float coefficients[] = {0.50000001201F,   0.16666665459F,   0.041665795894F,
                                      0.0083334519073F, 0.0013981999507F, 0.00019875691500F};
    constexpr float least = -87.0F, ln2 = 0.693359375F, rest_of_ln2 = -2.12194440e-4F;
    constexpr float rounding = 0x1.8p23F;  // a sum with it is an integer, in the lowest bits
    const float limited = x < least ? least : x, sum = limited * 1.44269504F + rounding;
    const float n = sum - rounding, r = (limited - n * ln2) - n * rest_of_ln2;
    const float fraction = curves::polynomial(coefficients, r) * r * r + r + 1.0F;
    const float y = std::bit_cast<float>((std::bit_cast<uint32_t>(sum) << 23) +
                                         std::bit_cast<uint32_t>(fraction));
    return x < least ? 0.0F : y;
  } else {
    return std::exp(x);
  }
}

template <class T>
LEAT_DEVICE T erf_of(T x) {
  if constexpr (has_host_types && std::is_same_v<T, float>) {
    constexpr float above[] = {1.1283791F,    0.19153155F,    0.05287298F,
                               0.0038073706F, 0.00028467207F, 2.0260718e-06F};
    constexpr float below[] = {1.0F,         0.5030731F,    0.11455189F,
                               0.015053492F, 0.0011705387F, 3.78327e-05F};
    return curves::odd_fraction(above, below, 3.92F, x);
  } else {
    return std::erf(x);
  }
}

}  // namespace leat
