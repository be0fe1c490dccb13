// From a dtype to the C++ type of its elements.
#pragma once

#include <complex>
#include <type_traits>

#include "core/dtype.h"

namespace leat {

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

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
