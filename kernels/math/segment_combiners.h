// How the rows of a segment are combined, on both devices (constexpr: nvcc compiles it for the GPU,
// too).
#pragma once

#include <limits>
#include <type_traits>

#include "kernels/types.h"
#include "kernels/wrapping.h"

namespace leat::segment {

// `gap` is the value for an id between others that no row has; `empty<T>()` is that
// value for unsorted ids.

template <class T>
constexpr double largest() {
  if constexpr (std::is_same_v<T, half>) return 65504;
  if constexpr (std::is_same_v<T, bfloat16>) return 3.38953138925153547590e38;
  return static_cast<double>(std::numeric_limits<ComputeType<T>>::max());
}

struct Sum {
  static constexpr int gap = 0;
  template <class T>
  static constexpr T empty() {
    return T(0);
  }
  template <class C>
  static constexpr C combine(C a, C b) {
    return static_cast<C>(Wrapping<C>(a) + Wrapping<C>(b));
  }
};

struct Mean : Sum {};

struct Prod {
  static constexpr int gap = 1;
  template <class T>
  static constexpr T empty() {
    return T(1);
  }
  template <class C>
  static constexpr C combine(C a, C b) {
    return static_cast<C>(Wrapping<C>(a) * Wrapping<C>(b));
  }
};

struct Min {
  static constexpr int gap = 0;
  template <class T>
  static constexpr T empty() {
    if constexpr (std::is_integral_v<T>) {
      return std::numeric_limits<T>::max();
    } else {
      return T(largest<T>());
    }
  }
  template <class C>
  static constexpr C combine(C a, C b) {
    return b < a ? b : a;
  }
};

struct Max {
  static constexpr int gap = 0;
  template <class T>
  static constexpr T empty() {
    if constexpr (std::is_integral_v<T>) {
      return std::numeric_limits<T>::lowest();
    } else {
      return T(-largest<T>());
    }
  }
  template <class C>
  static constexpr C combine(C a, C b) {
    return a < b ? b : a;
  }
};

// Min and Max for unsorted ids, where the last row decides about NaN: a NaN stays until a number
// follows.
struct UnsortedMin : Min {
  template <class C>
  static constexpr C combine(C a, C b) {
    return a < b ? a : b;
  }
};

struct UnsortedMax : Max {
  template <class C>
  static constexpr C combine(C a, C b) {
    return b < a ? a : b;
  }
};

}  // namespace leat::segment
