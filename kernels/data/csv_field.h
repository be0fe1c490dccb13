// Fields of comma separated values as numbers and strings.
#pragma once

#include <string>

#include "core/error.h"
#include "core/tensor.h"
#include "kernels/text/number_text.h"
#include "kernels/types.h"

namespace leat {

// The default of a field: at most one element. Without one, the field is required.
inline void check_field_default(const Shape& shape) {
  check(shape.rank() <= 1, "Each record default should be at most rank 1, got ", shape);
  check(shape.elements() <= 1, "There should only be 1 default per field but a record default has ",
        shape.elements());
}

// A field's text as a T: float, double, int32, int64 or string. An empty text, or `missing`, stands
// for the default. INVALID_ARGUMENT, with field and record, if the text is not a T, or is missing
// while the field is required (`otherwise` is null).
template <class T>
void read_field(const std::string& text, const std::string& missing, const T* otherwise,
                size_t field, int64_t record, T& to) {
  if (text.empty() || text == missing) {
    check(otherwise != nullptr, "Field ", field, " is required but missing in record ", record,
          "!");
    to = *otherwise;
  } else if constexpr (std::is_same_v<T, std::string>) {
    to = text;
  } else {
    check(parse_number(text, to), "Field ", field, " in record ", record, " is not a valid ",
          dtype_of<T>, ": ", text);
  }
}

using FieldTypes = Types<float, double, int32_t, int64_t, std::string>;

}  // namespace leat
