// Elements of tensors as text: for Print, Assert and StringFormat.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "core/visit_dtype.h"

namespace leat {

// The shortest of two precisions that reads back as the same number.
template <class T>
std::string number_text(T value, int digits, int more_digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(value));
  if (static_cast<T>(std::strtod(text, nullptr)) != value)
    std::snprintf(text, sizeof text, "%.*g", more_digits, static_cast<double>(value));
  return text;
}

// A string is returned unchanged.
template <class T>
std::string element_text(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "1" : "0";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else if constexpr (is_complex_type<T>) {
    return "(" + element_text(value.real()) + "," + element_text(value.imag()) + ")";
  } else if constexpr (std::is_same_v<T, double>) {
    return number_text(value, 15, 17);
  } else {
    return number_text(static_cast<float>(value), 6, 9);
  }
}

}  // namespace leat
