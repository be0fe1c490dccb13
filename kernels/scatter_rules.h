// How a scatter combines an element with its update: for the ops on variables and on tensors, on
// both devices (constexpr: nvcc compiles them for the GPU, too).
#pragma once

#include <type_traits>

#include "kernels/types.h"
#include "kernels/wrapping.h"

namespace leat::scatter {

// Signed sums and products that overflow wrap.
template <class T, class F>
constexpr T wrapping(T x, T y, F f) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(f(Wrapping<T>(x), Wrapping<T>(y)));
  } else {
    using C = ComputeType<T>;
    return T(f(static_cast<C>(x), static_cast<C>(y)));
  }
}

struct Replace {
  template <class T>
  constexpr void operator()(T& to, const T& from) const {
    to = from;
  }
};

struct Add {
  template <class T>
  constexpr void operator()(T& to, const T& from) const {
    if constexpr (std::is_same_v<T, bool>) {
      to = to || from;
    } else {
      to = wrapping(to, from, [](auto x, auto y) { return x + y; });
    }
  }
};

// For bools: whether they differ, because 0 - 1 is -1, which is true.
struct Subtract {
  template <class T>
  constexpr void operator()(T& to, const T& from) const {
    if constexpr (std::is_same_v<T, bool>) {
      to = to != from;
    } else {
      to = wrapping(to, from, [](auto x, auto y) { return x - y; });
    }
  }
};

struct Multiply {
  template <class T>
  constexpr void operator()(T& to, const T& from) const {
    to = wrapping(to, from, [](auto x, auto y) { return x * y; });
  }
};

// Rounds towards zero. On the CPU the caller has checked that no integer is divided by zero; the
// GPU, which cannot report it, gets zero.
struct Divide {
  template <class T>
  constexpr void operator()(T& to, const T& from) const {
    if constexpr (std::is_integral_v<T>) {
      if (std::is_signed_v<T> && from == static_cast<T>(-1)) {
        to = wrapping(T{}, to, [](auto x, auto y) { return x - y; });
      } else {
        to = from == 0 ? T(0) : static_cast<T>(to / from);
      }
    } else {
      to = T(ComputeType<T>(to) / ComputeType<T>(from));
    }
  }
};

// An existing NaN stays, a NaN update is ignored.
struct Least {
  template <class T>
  constexpr void operator()(T& to, const T& from) const {
    if (ComputeType<T>(from) < ComputeType<T>(to)) to = from;
  }
};

struct Greatest {
  template <class T>
  constexpr void operator()(T& to, const T& from) const {
    if (ComputeType<T>(to) < ComputeType<T>(from)) to = from;
  }
};

// Complex numbers have no order.
template <class Rule>
inline constexpr bool is_ordering = std::is_same_v<Rule, Least> || std::is_same_v<Rule, Greatest>;
template <class Rule>
using TypesOf = std::conditional_t<is_ordering<Rule>, NumberTypes, NumberAndComplexTypes>;

}  // namespace leat::scatter
