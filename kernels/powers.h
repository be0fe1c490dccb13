// Powers whose exponent is known before a loop: the usual exponents need no logarithm. Include
// after elementwise.h or cpu_loops.h.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

namespace leat {
namespace powers {

struct First {
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return x;
  }
};
struct Second {
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return x * x;
  }
};
struct Third {
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    const double wide = x;
    return static_cast<T>(wide * wide * wide);
  }
};
struct Inverse {
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return T(1) / x;
  }
};
// Unlike std::sqrt, std::pow gives +0 for -0, and infinity for -infinity.
struct Root {
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    return x == -infinity ? infinity : std::sqrt(x + T(0));
  }
};
struct InverseRoot {
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return T(1) / Root{}(x);
  }
};

}  // namespace powers

// For an exponent y of 1, 2, 3, -1, 0.5 or -0.5: calls loop(f) with a functor f(x) = x^y and
// returns true. f agrees with std::pow in NaN, infinities and signed zeros, and differs by at most
// one rounding elsewhere.
template <class T, class Loop>
LEAT_DEVICE bool for_usual_exponent(T y, const Loop& loop) {
  if (y == T(1)) {
    loop(powers::First{});
  } else if (y == T(2)) {
    loop(powers::Second{});
  } else if (y == T(3)) {
    loop(powers::Third{});
  } else if (y == T(-1)) {
    loop(powers::Inverse{});
  } else if (y == T(0.5)) {
    loop(powers::Root{});
  } else if (y == T(-0.5)) {
    loop(powers::InverseRoot{});
  } else {
    return false;
  }
  return true;
}

}  // namespace leat
