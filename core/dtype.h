// Element types. The numbers are TensorFlow's DataType, so files and wires need no table.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/half.h"

namespace leat {

enum class DType : uint8_t {
  invalid = 0,
  f32 = 1,
  f64 = 2,
  i32 = 3,
  u8 = 4,
  i16 = 5,
  i8 = 6,
  string = 7,
  complex64 = 8,  // two floats
  i64 = 9,
  boolean = 10,
  bf16 = 14,
  u16 = 17,
  complex128 = 18,  // two doubles
  f16 = 19,
  resource = 20,  // a handle on state; a kernel gets the state, or the handle itself
  variant = 21,   // an object of the runtime (variant.h)
  u32 = 22,
  u64 = 23,
};

inline constexpr DType f32 = DType::f32, f64 = DType::f64, f16 = DType::f16, bf16 = DType::bf16;
inline constexpr DType i8 = DType::i8, i16 = DType::i16, i32 = DType::i32, i64 = DType::i64;
// `bool` and `string` are C++'s own words.
inline constexpr DType boolean = DType::boolean, str = DType::string;
inline constexpr DType u8 = DType::u8, u16 = DType::u16, u32 = DType::u32, u64 = DType::u64;

std::string_view dtype_name(DType dtype);      // TensorFlow's: "float", "int32", "bfloat16", …
DType dtype_from_name(std::string_view name);  // the inverse; also accepts "float32", "f32";
                                               // INVALID_ARGUMENT otherwise
// bytes of one element; sizeof(std::string) for string, 0 for resource and variant
size_t dtype_size(DType dtype);
bool is_floating(DType dtype);  // f16 bf16 f32 f64
bool is_integer(DType dtype);   // signed and unsigned integers, not bool
bool is_complex(DType dtype);   // complex64 complex128
std::ostream& operator<<(std::ostream& out, DType dtype);

// The dtype lists that OpDefs name: "type", "numbertype", "realnumbertype", "floating", "integer",
// … INVALID_ARGUMENT for other names.
std::span<const DType> dtype_list(std::string_view name);

// clang-format off
template <class T> struct DTypeOf;
template <> struct DTypeOf<float>       { static constexpr DType value = DType::f32; };
template <> struct DTypeOf<double>      { static constexpr DType value = DType::f64; };
template <> struct DTypeOf<half>        { static constexpr DType value = DType::f16; };
template <> struct DTypeOf<bfloat16>    { static constexpr DType value = DType::bf16; };
template <> struct DTypeOf<int8_t>      { static constexpr DType value = DType::i8; };
template <> struct DTypeOf<int16_t>     { static constexpr DType value = DType::i16; };
template <> struct DTypeOf<int32_t>     { static constexpr DType value = DType::i32; };
template <> struct DTypeOf<int64_t>     { static constexpr DType value = DType::i64; };
template <> struct DTypeOf<uint8_t>     { static constexpr DType value = DType::u8; };
template <> struct DTypeOf<uint16_t>    { static constexpr DType value = DType::u16; };
template <> struct DTypeOf<uint32_t>    { static constexpr DType value = DType::u32; };
template <> struct DTypeOf<uint64_t>    { static constexpr DType value = DType::u64; };
template <> struct DTypeOf<bool>        { static constexpr DType value = DType::boolean; };
template <> struct DTypeOf<std::string> { static constexpr DType value = DType::string; };
// clang-format on

// std::complex<float> and std::complex<double>, without the cost of <complex> in every program.
template <class T>
concept ComplexNumber = requires(const T& x) {
  { x.imag() } -> std::same_as<typename T::value_type>;
  requires std::same_as<typename T::value_type, float> ||
      std::same_as<typename T::value_type, double>;
};
template <ComplexNumber T>
struct DTypeOf<T> {
  static constexpr DType value =
      std::is_same_v<typename T::value_type, float> ? DType::complex64 : DType::complex128;
};

template <class T>
inline constexpr DType dtype_of = DTypeOf<std::remove_cv_t<T>>::value;

}  // namespace leat
