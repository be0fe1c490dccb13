#include "graph/passes/simplify/uniform_value.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace leat {
namespace {

template <class T>
std::optional<std::complex<double>> uniform(const Tensor& tensor) {
  const T* const first = tensor.data<T>();
  for (int64_t i = 1; i < tensor.elements(); ++i)
    if (std::memcmp(first, first + i, sizeof(T)) != 0) return {};
  if constexpr (ComplexNumber<T>) {
    return std::complex<double>(first->real(), first->imag());
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    const auto exact = static_cast<double>(*first);
    constexpr double limit = 9007199254740992;  // 2⁵³
    if (std::abs(exact) > limit) return {};
    return exact;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(*first);
  } else {
    return static_cast<double>(static_cast<float>(*first));
  }
}

}  // namespace

std::optional<std::complex<double>> uniform_value(const Output& output) {
  if (!output.node->is("Const")) return {};
  const auto& value = output.node->attr<Tensor>("value");
  if (value.elements() == 0) return {};
  // clang-format off
  switch (value.dtype()) {
    case DType::f32: return uniform<float>(value);
    case DType::f64: return uniform<double>(value);
    case DType::f16: return uniform<half>(value);
    case DType::bf16: return uniform<bfloat16>(value);
    case DType::i8: return uniform<int8_t>(value);
    case DType::i16: return uniform<int16_t>(value);
    case DType::i32: return uniform<int32_t>(value);
    case DType::i64: return uniform<int64_t>(value);
    case DType::u8: return uniform<uint8_t>(value);
    case DType::u16: return uniform<uint16_t>(value);
    case DType::u32: return uniform<uint32_t>(value);
    case DType::u64: return uniform<uint64_t>(value);
    case DType::boolean: return uniform<bool>(value);
    case DType::complex64: return uniform<std::complex<float>>(value);
    case DType::complex128: return uniform<std::complex<double>>(value);
    default: return {};
  }
  // clang-format on
}

bool is_uniform(const Output& output, double value) {
  const auto known = uniform_value(output);
  if (!known || *known != value) return false;
  if (value != 0 || is_integer(output.dtype())) return true;
  // -0.0 + x is x for each x, in each part of a complex number.
  return std::signbit(known->real()) == std::signbit(value) &&
         (!is_complex(output.dtype()) || std::signbit(known->imag()) == std::signbit(value));
}

bool keeps_shape(const Shape& x, const Shape& other) {
  if (!other.has_rank()) return false;
  if (other.rank() == 0) return true;
  if (!x.has_rank() || other.rank() > x.rank()) return false;
  for (int i = 1; i <= other.rank(); ++i) {
    const int64_t extent = other[other.rank() - i], own = x[x.rank() - i];
    if (extent != 1 && (extent == any || extent != own)) return false;
  }
  return true;
}

}  // namespace leat
