// Functions of real and of complex numbers. Include after elementwise.h.
#pragma once

#include <cmath>

#include "core/visit_dtype.h"

namespace leat {

// Complex products do not check for infinite parts, as in TensorFlow.
template <class T>
LEAT_DEVICE T product(const T& a, const T& b) {
  if constexpr (is_complex_type<T>) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else {
    return static_cast<T>(a * b);
  }
}

// log(1 + x), with all digits for small x.
template <class T>
LEAT_DEVICE T log1p_of(const T& x) {
  if constexpr (is_complex_type<T>) {
    const auto re = x.real(), im = x.imag();
    return {std::log1p(re * (2 + re) + im * im) / 2, std::atan2(im, 1 + re)};
  } else {
    return std::log1p(x);
  }
}

// exp(x) - 1, with all digits for small x.
template <class T>
LEAT_DEVICE T expm1_of(const T& x) {
  if constexpr (is_complex_type<T>) {
    // cos y - 1 = -2 sin²(y / 2)
    const auto sine = std::sin(x.imag() / 2), less = std::expm1(x.real());
    return {less - 2 * sine * sine * (less + 1), (less + 1) * std::sin(x.imag())};
  } else {
    return std::expm1(x);
  }
}

}  // namespace leat
