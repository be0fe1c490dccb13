// leat: cpu+cuda
// Division and its relatives. Integer division by zero is an error on the CPU.
#include "kernels/math/functors.h"

namespace leat {
namespace {

// What is left of x when y was taken away `quotient` times.
template <class T>
LEAT_DEVICE T remainder_of(T x, T y, T quotient) {
  return static_cast<T>(Wrapping<T>(x) - Wrapping<T>(quotient) * Wrapping<T>(y));
}

struct FloorDiv : IntegerDivision {
  static constexpr int cost = 10;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      const T quotient = truncated_quotient(x, y);
      if constexpr (std::is_signed_v<T>) {
        const bool rounds_up =
            ((x < T(0)) != (y < T(0))) & (y != T(-1)) & (remainder_of(x, y, quotient) != T(0));
        return rounds_up ? static_cast<T>(quotient - 1) : quotient;
      } else {
        return quotient;
      }
    } else {
      return std::floor(x / y);
    }
  }
};

// x as a 16-bit float of type T keeps it.
template <class T>
LEAT_DEVICE float rounded_to(float x) {
  return static_cast<float>(T(x));
}
// For halves, without their bits: g++ makes no vector instructions of those. Multiples of 2^-24
// cannot be rounded by adding to the bits; adding 0.5 rounds to them.
template <>
LEAT_DEVICE float rounded_to<half>(float x) {
  constexpr uint32_t dropped = 0x1fff;
  const float size = std::abs(x);
  const uint32_t word = std::bit_cast<uint32_t>(size);
  const float normal = std::bit_cast<float>((word + (dropped >> 1) + (word >> 13 & 1)) & ~dropped);
  const float finite = size < 0x1p-14F ? (size + 0.5F) - 0.5F : normal;
  const float rounded = finite > 65504.0F ? std::numeric_limits<float>::infinity() : finite;
  return std::copysign(x != x ? x : rounded, x);
}

// FloorDiv and TruncateDiv of 16-bit floats: the quotient is rounded to 16 bits before it is
// rounded to an integer.
template <class Rounding, class T>
struct RoundedQuotient {
  static constexpr int cost = 10;
  LEAT_DEVICE float operator()(float x, float y) const {
    return Rounding{}(rounded_to<T>(x / y), 1.0F);
  }
};

template <class Rounding>
std::vector<Kernel> rounded_quotient_kernels() {
  using Wide = Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                     uint64_t>;
  using Narrow = Types<half, bfloat16>;
  Kernel narrow;
  narrow.device = kernel_device;
  narrow.types = {{"T", Narrow::list()}};
  narrow.prepare = [](const KernelRequest& request) {
    return visit_type(Narrow{}, request.inputs[0].dtype, [&]<class T>(TypeTag<T>) {
      return prepare_elementwise<RoundedQuotient<Rounding, T>, T>(request);
    });
  };
  return join(elementwise<Rounding, Wide>(), {narrow});
}

// The remainder of FloorDiv: it has the sign of y.
struct FloorMod : IntegerDivision {
  static constexpr int cost = 20;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      const T rest = remainder_of(x, y, truncated_quotient(x, y));
      if constexpr (std::is_signed_v<T>) {
        return (rest != T(0)) & ((rest < T(0)) != (y < T(0))) ? static_cast<T>(rest + y) : rest;
      } else {
        return rest;
      }
    } else {
      const T rest = std::fmod(x, y);
      return rest != T(0) && (rest < T(0)) != (y < T(0)) ? rest + y : rest;
    }
  }
};

struct TruncateDiv : IntegerDivision {
  static constexpr bool has_versions = false;
  static constexpr int cost = 5;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return truncated_quotient(x, y);
    } else {
      return std::trunc(x / y);
    }
  }
};

// The remainder of TruncateDiv: it has the sign of x.
struct TruncateMod : IntegerDivision {
  static constexpr bool has_versions = false;
  static constexpr int cost = 20;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return remainder_of(x, y, truncated_quotient(x, y));
    } else {
      return std::fmod(x, y);
    }
  }
};

void quotient_gradient(Gradient& g) {
  const Output dx = g.dy() / g.x(1);
  set_broadcast_gradients(g, dx, -(dx * g.y()));
}

const Op real_div_op{binary({
    .name = "RealDiv",
    .doc = "z = x / y with broadcasting.",
    .attrs = {number_or_complex_attr},
    .gradient = quotient_gradient,
    .kernels = elementwise_with_complex<Div, FloatTypes>(),
    .examples = {{.inputs = {floats({1, 6}), floats({2, 3})}, .outputs = {floats({0.5, 2})}}},
})};

const Op div_op{binary({
    .name = "Div",
    .doc = "z = x / y with broadcasting; integers are divided towards zero.",
    .attrs = {number_or_complex_attr},
    .gradient = quotient_gradient,
    .kernels = elementwise_with_complex<Div>(),
    .examples = {{.inputs = {ints({-7, 7}), ints({2, -2})}, .outputs = {ints({-3, -3})}},
                 {.inputs = {floats({1, 6}), floats({2, 3})}, .outputs = {floats({0.5, 2})}}},
})};

const Op div_no_nan_op{binary({
    .name = "DivNoNan",
    .doc = "z = x / y with broadcasting, and 0 where y is 0.",
    .attrs = {"T: {half, float, bfloat16, double, complex64, complex128}"},
    .gradient =
        [](Gradient& g) {
          const Output dx = div_no_nan(g.dy(), g.x(1));
          set_broadcast_gradients(g, dx, -(dx * g.y()));
        },
    .kernels = elementwise_with_complex<DivNoNan, FloatTypes>(),
    .examples = {{.inputs = {floats({1, 6}), floats({0, 3})}, .outputs = {floats({0, 2})}}},
})};

const Op floor_div_op{binary({
    .name = "FloorDiv",
    .doc = "z = floor(x / y) with broadcasting.",
    .attrs = {number_or_complex_attr},
    .kernels = rounded_quotient_kernels<FloorDiv>(),
    .examples = {{.inputs = {ints({-7, 7, 6}), ints({2, 2, -4})}, .outputs = {ints({-4, 3, -2})}},
                 {.inputs = {floats({-7}), floats({2})}, .outputs = {floats({-4})}}},
    .is_not_differentiable = true,
})};

const Op floor_mod_op{binary({
    .name = "FloorMod",
    .doc = "z = x - floor(x / y) y with broadcasting: the sign of y.",
    .attrs = {"T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, "
              "float, double}"},
    .gradient =
        [](Gradient& g) {
          set_broadcast_gradients(g, g.dy(), -(g.dy() * floor_div(g.x(0), g.x(1))));
        },
    .kernels = elementwise<FloorMod>(),
    .examples = {{.inputs = {ints({-7, 7, 6}), ints({2, 2, -4})}, .outputs = {ints({1, 1, -2})}},
                 {.inputs = {floats({-7}), floats({2})}, .outputs = {floats({1})}}},
})};

const Op truncate_div_op{binary({
    .name = "TruncateDiv",
    .doc = "z = x / y, rounded towards zero, with broadcasting.",
    .attrs = {number_or_complex_attr},
    .kernels = rounded_quotient_kernels<TruncateDiv>(),
    .examples = {{.inputs = {ints({-7, 7, 6}), ints({2, 2, -4})}, .outputs = {ints({-3, 3, -1})}},
                 {.inputs = {floats({-7}), floats({2})}, .outputs = {floats({-3})}}},
    .is_not_differentiable = true,
})};

OpDef truncate_mod(std::string name, std::string types) {
  return binary({
      .name = std::move(name),
      .doc = "z = x - trunc(x / y) y with broadcasting: the sign of x, as % in C.",
      .attrs = {"T: {" + types + ", float, double}"},
      .kernels = elementwise<TruncateMod, Types<float, double, half, bfloat16, int32_t, int64_t>>(),
      .examples = {{.inputs = {ints({-7, 7, 6}), ints({2, 2, -4})}, .outputs = {ints({-1, 1, 2})}},
                   {.inputs = {floats({-7}), floats({2})}, .outputs = {floats({-1})}}},
  });
}
const Op truncate_mod_op{truncate_mod("TruncateMod", "int32, int64, bfloat16, half")};
const Op mod_op{truncate_mod("Mod", "int32, int64, half, half, bfloat16")};

}  // namespace
}  // namespace leat
