// The scalar maths of ops that go element by element: what their kernels apply to one element, and
// what a GPU's kernel for `_Fused` applies to many of them in turn (kernels/cuda/fused/fused.cu).
// See kernels/elementwise.h for what a functor is.
#pragma once

#include "kernels/elementwise_ops.h"
#include "kernels/math/complex_math.h"
#include "kernels/math/curves.h"
#include "kernels/math/reciprocal_root.h"
#include "kernels/powers.h"
#include "kernels/wrapping.h"

namespace leat {
namespace {

// ---- Sums and products

struct Add {
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    return static_cast<T>(Wrapping<T>(x) + Wrapping<T>(y));
  }
};

struct Sub {
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    return static_cast<T>(Wrapping<T>(x) - Wrapping<T>(y));
  }
};

struct Mul {
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    return static_cast<T>(product(Wrapping<T>(x), Wrapping<T>(y)));
  }
};

struct Neg {
  static constexpr bool is_exact = true;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return static_cast<T>(-Wrapping<T>(x));
  }
};

struct Square {
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return Mul{}(x, x);
  }
};

struct SquaredDifference {
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    const T difference = static_cast<T>(Wrapping<T>(x) - Wrapping<T>(y));
    return Mul{}(difference, conjugate(difference));
  }
};

// For functors of integers: the CPU reports a divisor of 0 as an error.
struct IntegerDivision {
  static constexpr const char* invalid = "Integer division by zero";
  template <class T>
  requires std::is_integral_v<T> LEAT_DEVICE static bool is_invalid(T, T y) { return y == T(0); }
};

// x / y towards zero. The one quotient that overflows wraps, as its negation does; x / 0 is x. CPUs
// divide integers one by one, and doubles, which hold the quotients of 32 bits, in vectors.
template <class T>
LEAT_DEVICE T truncated_quotient(T x, T y) {
  constexpr bool is_signed = std::is_signed_v<T>;
  const bool is_negation = is_signed && y == static_cast<T>(-1);
  const T divisor = y == T(0) || is_negation ? T(1) : y;
  T quotient;
  if constexpr (has_host_types && sizeof(T) < 8) {
    quotient = static_cast<T>(static_cast<double>(x) / static_cast<double>(divisor));
  } else {
    quotient = static_cast<T>(x / divisor);
  }
  return is_negation ? static_cast<T>(-static_cast<std::make_unsigned_t<T>>(x)) : quotient;
}

struct Div : IntegerDivision {
  static constexpr int cost = 5;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return truncated_quotient(x, y);
    } else {
      return x / y;
    }
  }
};

struct DivNoNan {
  static constexpr int cost = 5;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    return y == T(0) ? T(0) : x / y;
  }
};

// Products and quotients that are 0 if a factor is 0, whatever the other one is.
struct MulNoNan {
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    return y == T(0) ? T(0) : x * y;
  }
};

struct Xdivy {
  static constexpr int cost = 5;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    return x == T(0) ? T(0) : x / y;
  }
};

struct Xlogy {
  static constexpr bool has_versions = false;
  static constexpr int cost = 50;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    return x == T(0) ? T(0) : x * std::log(y);
  }
};

struct Xlog1py {
  static constexpr bool has_versions = false;
  static constexpr int cost = 50;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    return x == T(0) ? T(0) : x * log1p_of(y);
  }
};

// ---- Sizes, bounds and rounding

struct Abs {
  static constexpr bool is_exact = true;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x < T(0) ? static_cast<T>(-Wrapping<T>(x)) : x;
    } else {
      return std::abs(x);
    }
  }
};

struct Sign {
  static constexpr bool is_exact = true;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    if constexpr (is_complex_type<T>) {
      return x == T(0) ? x : x / std::abs(x);
    } else {
      return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;  // NaN and zeros stay as they are
    }
  }
};

struct Maximum {
  static constexpr bool is_exact = true;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    return x >= y || x != x ? x : y;
  }
};

struct Minimum {
  static constexpr bool is_exact = true;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    return x <= y || x != x ? x : y;
  }
};

// NaN stays NaN; as a bound it has no effect.
struct Clip {
  static constexpr bool is_exact = true;
  template <class T>
  LEAT_DEVICE T operator()(const T& x, const T& low, const T& high) const {
    const T below = high < x ? high : x;
    return below < low ? low : below;
  }
};

struct Floor {
  static constexpr bool is_exact = true;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::floor(x);
  }
};

struct Ceil {
  static constexpr bool is_exact = true;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::ceil(x);
  }
};

struct Round {
  static constexpr bool is_exact = true;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x;
    } else {
      return std::rint(x);
    }
  }
};

// ---- Roots and reciprocals, with their gradients

struct Sqrt {
  static constexpr int cost = 4;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::sqrt(x);
  }
};

// Where no gradient arrives, none leaves, as TensorFlow has it: the root of 0 has no finite one.
// The products are in its order, too, so that they round and overflow alike.
struct SqrtGrad {
  static constexpr int cost = 4;
  template <class T>
  LEAT_DEVICE T operator()(T y, T dy) const {
    return dy == T(0) ? T(0) : T(0.5) / conjugate(y) * dy;
  }
};

struct Rsqrt {
  static constexpr int cost = 5;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return reciprocal_root(x);
  }
};

struct RsqrtGrad {
  template <class T>
  LEAT_DEVICE T operator()(T y, T dy) const {
    const T root = conjugate(y);
    return dy == T(0) ? T(0) : T(-0.5) * (root * root) * (root * dy);
  }
};

struct Reciprocal {
  static constexpr int cost = 4;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      if (x == T(0)) {
        report_invalid("Integer division by zero");
        return T(0);
      }
    }
    return static_cast<T>(T(1) / x);
  }
};

struct ReciprocalGrad {
  template <class T>
  LEAT_DEVICE T operator()(T y, T dy) const {
    const T value = conjugate(y);
    return dy == T(0) ? T(0) : -(value * value) * dy;
  }
};

// ---- Exponentials and waves

struct Exp {
  static constexpr int cost = 4;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::exp(x);
  }
};

struct Log {
  static constexpr int cost = 4;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::log(x);
  }
};

struct Expm1 {
  static constexpr int cost = 10;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return expm1_of(x);
  }
};

struct Log1p {
  static constexpr int cost = 10;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return log1p_of(x);
  }
};

struct Erf {
  static constexpr int cost = 5;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return erf_of(x);
  }
};

struct Erfc {
  static constexpr int cost = 20;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::erfc(x);
  }
};

struct Pow {
  static constexpr int cost = 10;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      if (y < T(0)) {
        report_invalid("Integers to negative integer powers are not allowed");
        return T(0);
      }
      uint64_t power = 1;  // unsigned, so that overflow wraps
      for (uint64_t base = static_cast<uint64_t>(x), n = static_cast<uint64_t>(y); n > 0;
           n /= 2, base *= base) {
        if (n % 2 == 1) power *= base;
      }
      return static_cast<T>(power);
    } else {
      return std::pow(x, y);
    }
  }
  template <class T, class Loop>
  requires std::is_floating_point_v<T> LEAT_DEVICE static bool for_repeated(T y, const Loop& loop) {
    return for_usual_exponent(y, loop);
  }
};

struct Sin {
  static constexpr int cost = 10;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::sin(x);
  }
};

struct Cos {
  static constexpr int cost = 10;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::cos(x);
  }
};

// ---- Bools, and what they choose

// clang-format off
struct Equal        { template <class T> LEAT_DEVICE bool operator()(const T& x, const T& y) const { return x == y; } };
struct NotEqual     { template <class T> LEAT_DEVICE bool operator()(const T& x, const T& y) const { return x != y; } };
struct Less         { template <class T> LEAT_DEVICE bool operator()(T x, T y) const { return x < y; } };
struct LessEqual    { template <class T> LEAT_DEVICE bool operator()(T x, T y) const { return x <= y; } };
struct Greater      { template <class T> LEAT_DEVICE bool operator()(T x, T y) const { return x > y; } };
struct GreaterEqual { template <class T> LEAT_DEVICE bool operator()(T x, T y) const { return x >= y; } };
struct IsFinite { template <class T> LEAT_DEVICE bool operator()(T x) const { return x - x == T(0); } };
struct IsInf    { template <class T> LEAT_DEVICE bool operator()(T x) const { return x == std::numeric_limits<T>::infinity() || x == -std::numeric_limits<T>::infinity(); } };
struct IsNan    { template <class T> LEAT_DEVICE bool operator()(T x) const { return x != x; } };
// clang-format on

struct Not {
  LEAT_DEVICE bool operator()(bool x) const { return !x; }
};

struct And {
  LEAT_DEVICE bool operator()(bool x, bool y) const { return x & y; }
};

struct Or {
  LEAT_DEVICE bool operator()(bool x, bool y) const { return x | y; }
};

struct Choose {
  static constexpr bool is_exact = true;
  template <class T>
  LEAT_DEVICE T operator()(bool condition, const T& t, const T& e) const {
    return condition ? t : e;
  }
};

}  // namespace
}  // namespace leat
