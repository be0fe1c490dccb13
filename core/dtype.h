// Element types. The numbers are TensorFlow's DataType, so files and wires need no table.
#pragma once

#include <complex>
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
using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

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
template <> struct DTypeOf<complex64>   { static constexpr DType value = DType::complex64; };
template <> struct DTypeOf<complex128>  { static constexpr DType value = DType::complex128; };
template <> struct DTypeOf<std::string> { static constexpr DType value = DType::string; };
// clang-format on
template <class T>
inline constexpr DType dtype_of = DTypeOf<std::remove_cv_t<T>>::value;

template <class T>
inline constexpr bool is_complex_type =
    std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;

template <class T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<T>{}) with the C++ type of a dtype; returns false if it has none (resource,
// variant, invalid).
template <class F>
bool visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      f(TypeTag<float>{});
      return true;
    case DType::f64:
      f(TypeTag<double>{});
      return true;
    case DType::f16:
      f(TypeTag<half>{});
      return true;
    case DType::bf16:
      f(TypeTag<bfloat16>{});
      return true;
    case DType::i8:
      f(TypeTag<int8_t>{});
      return true;
    case DType::i16:
      f(TypeTag<int16_t>{});
      return true;
    case DType::i32:
      f(TypeTag<int32_t>{});
      return true;
    case DType::i64:
      f(TypeTag<int64_t>{});
      return true;
    case DType::u8:
      f(TypeTag<uint8_t>{});
      return true;
    case DType::u16:
      f(TypeTag<uint16_t>{});
      return true;
    case DType::u32:
      f(TypeTag<uint32_t>{});
      return true;
    case DType::u64:
      f(TypeTag<uint64_t>{});
      return true;
    case DType::boolean:
      f(TypeTag<bool>{});
      return true;
    case DType::complex64:
      f(TypeTag<complex64>{});
      return true;
    case DType::complex128:
      f(TypeTag<complex128>{});
      return true;
    case DType::string:
      f(TypeTag<std::string>{});
      return true;
    default:
      return false;
  }
}

}  // namespace leat
