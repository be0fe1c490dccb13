// Integers that wrap on overflow, as TensorFlow's do: in C++, overflow of a signed one is
// undefined.
#pragma once

#include <type_traits>

namespace leat {

template <class T>
struct WrappingType {
  using Type = T;
};
template <class T>
requires std::is_integral_v<T>
struct WrappingType<T> {
  using Type = std::make_unsigned_t<std::common_type_t<T, int>>;  // not promoted to int
};

// The type in which sums, differences and products of T are computed before they are cast back: an
// unsigned type no smaller than int for an integer, T itself for all others.
template <class T>
using Wrapping = typename WrappingType<T>::Type;

}  // namespace leat
