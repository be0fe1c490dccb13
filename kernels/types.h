// Lists of element types that kernels are compiled for, and the dispatch from a run-time dtype to a
// C++ type.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/visit_dtype.h"

namespace leat {

template <class... Ts>
struct Types {
  static std::vector<DType> list() { return {dtype_of<Ts>...}; }
};
using FloatTypes = Types<float, double, half, bfloat16>;
using IntegerTypes =
    Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using SignedTypes = Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t>;
using NumberTypes = Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                          uint16_t, uint32_t, uint64_t>;
using NumberAndBoolTypes = Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t,
                                 uint8_t, uint16_t, uint32_t, uint64_t, bool>;
using AllTypes = Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                       uint16_t, uint32_t, uint64_t, complex64, complex128, bool, std::string>;
using AllButComplexTypes = Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t,
                                 uint8_t, uint16_t, uint32_t, uint64_t, bool, std::string>;
// As std::complex on the CPU only.
using ComplexTypes = Types<complex64, complex128>;
using FloatAndComplexTypes = Types<float, double, half, bfloat16, complex64, complex128>;
using NumberAndComplexTypes =
    Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
          uint32_t, uint64_t, complex64, complex128>;
using NumberComplexAndBoolTypes =
    Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
          uint32_t, uint64_t, complex64, complex128, bool>;

// The type for arithmetic on T: float for the 16-bit floats.
template <class T>
using ComputeType =
    std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float, T>;

// Calls f(TypeTag<T>{}) for the T of `types` with this dtype. find_kernel() has checked that there
// is one.
template <class... Ts, class F>
auto visit_type(Types<Ts...>, DType dtype, F&& f) {
  using Result = std::common_type_t<decltype(f(TypeTag<Ts>{}))...>;
  Result result{};
  const bool found = ((dtype == dtype_of<Ts> ? (result = f(TypeTag<Ts>{}), true) : false) || ...);
  check_internal(found, "a kernel does not support dtype ", dtype);
  return result;
}

}  // namespace leat
