// Parses numbers as TensorFlow does: StringToNumber, DecodeCSV.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>

namespace leat {

// Parses the whole text except surrounding white space; false if it is not a number, or T cannot
// hold it.
template <class T>
bool parse_number(const std::string& text, T& value) {
  const size_t begin = text.find_first_not_of(" \t\n\r\f\v");
  if (begin == std::string::npos) return false;
  const std::string number = text.substr(begin, text.find_last_not_of(" \t\n\r\f\v") + 1 - begin);
  char* end = nullptr;
  errno = 0;
  if constexpr (std::is_floating_point_v<T>) {
    value = std::is_same_v<T, float> ? T(std::strtof(number.c_str(), &end))
                                     : T(std::strtod(number.c_str(), &end));
  } else {
    if (std::is_unsigned_v<T> && number[0] == '-') return false;
    if (std::is_signed_v<T> || sizeof(T) < 8) {
      const int64_t wide = std::strtoll(number.c_str(), &end, 10);
      value = static_cast<T>(wide);
      if (wide != static_cast<int64_t>(value)) return false;
    } else {
      value = static_cast<T>(std::strtoull(number.c_str(), &end, 10));
    }
    if (errno != 0) return false;
  }
  return end == number.c_str() + number.size();
}

}  // namespace leat
