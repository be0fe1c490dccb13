// Lines of comma-separated values (RFC 4180), as they come from datasets::text_files.
#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "graph/ops.h"

namespace leat {

// A column: its dtype if each line must have a value, else the default for empty fields. float32,
// float64, int32, int64 or string.
class CsvColumn {
 public:
  CsvColumn(DType dtype) : dtype_(dtype) {}  // NOLINT: converts
  template <class T>
  requires(std::convertible_to<T, Literal>) CsvColumn(T value)  // NOLINT
      : default_(Literal(std::move(value)).tensor()) {}

  DType dtype() const { return default_.is_valid() ? default_.dtype() : dtype_; }
  // One element, or none where a value is required.
  Tensor default_value() const { return default_.is_valid() ? default_ : Tensor(dtype_, {0}); }

 private:
  DType dtype_ = DType::invalid;
  Tensor default_;
};

struct DecodeCsvOptions {
  char delimiter = ',';
  bool quotes = true;                 // "a,b" is one field
  std::string na_value = "";          // counts as an empty field
  std::vector<int64_t> columns = {};  // which to read, increasing; none: all
};

// An Output for each column, of the shape of `lines`, which are strings. A line with the wrong
// number of fields, or a field of the wrong type, fails the step with INVALID_ARGUMENT, which names
// line and field.
//   std::vector<Output> columns = decode_csv(line, {f32, f32, 0, "unknown"});
std::vector<Output> decode_csv(Output lines, const std::vector<CsvColumn>& columns,
                               const DecodeCsvOptions& options = {}, Location at = here());

}  // namespace leat
