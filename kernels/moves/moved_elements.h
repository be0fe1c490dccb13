// Elements that are only moved: one kernel instance per element size, and one for strings.
#pragma once

#include <string>

#include "core/visit_dtype.h"

namespace leat {

// Calls f(TypeTag<T>{}) with a T of the size of the dtype's elements: uint8_t, uint16_t, uint32_t,
// uint64_t or complex128.
template <class F>
auto visit_size(DType dtype, F&& f) {
  switch (dtype_size(dtype)) {
    case 1:
      return f(TypeTag<uint8_t>{});
    case 2:
      return f(TypeTag<uint16_t>{});
    case 4:
      return f(TypeTag<uint32_t>{});
    case 16:
      return f(TypeTag<complex128>{});
    default:
      return f(TypeTag<uint64_t>{});
  }
}

// The same, or with std::string.
template <class F>
auto visit_moved(DType dtype, F&& f) {
  if (dtype == DType::string) return f(TypeTag<std::string>{});
  return visit_size(dtype, f);
}

}  // namespace leat
