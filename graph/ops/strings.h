// Strings: bytes, which are UTF-8 where letters matter. `a + b` joins two.
#pragma once

#include "graph/ops/sparse.h"

namespace leat {

struct AsStringOptions {
  int precision = -1;       // digits after the point; -1: as printf has them
  bool scientific = false;  // 1.5e+00
  bool shortest = false;    // whichever is shorter, as %g
  int width = -1;           // the least number of characters …
  std::string fill = "";    // … padded with: "", " " (as default), "0", "+" (a sign), "-" (left)
};
// Numbers and bools as text, as printf writes them.
Output as_string(Output x, const AsStringOptions& options = {}, Location at = here());
// Parses numbers; INVALID_ARGUMENT in the step for text that is not a number. f32, f64, i32 or i64.
Output string_to_number(Output x, DType dtype = f32, Location at = here());

// The parts of each string between separators, or between white space if the separator is "": a
// sparse matrix with a row per string.
SparseTensor string_split(Output x, const TensorLike& separator = "", int64_t maximum_cuts = -1,
                          Location at = here());
// Element by element; scalars go with every element.
Output string_join(const std::vector<Output>& inputs, std::string_view separator = "",
                   Location at = here());
// A number in [0, buckets) of each string, int64, the same on all machines: ids of words or of
// features for which there is no table. Different strings may get one number.
Output string_to_hash_bucket(Output x, int64_t buckets, Location at = here());
Output string_strip(Output x, Location at = here());  // without white space at both ends
Output string_lower(Output x, Location at = here());  // ASCII letters
Output string_upper(Output x, Location at = here());
Output string_length(Output x, Location at = here());  // in bytes, int32
// `length` bytes from `position` on, fewer at the end; a negative position counts from the end.
Output substr(Output x, const TensorLike& position, const TensorLike& length, Location at = here());
// Each match of the pattern, in RE2's syntax, becomes `rewrite`, where \1 is the first group.
Output regex_replace(Output x, const TensorLike& pattern, const TensorLike& rewrite,
                     Location at = here());
// The bytes of each string as numbers in memory: a last axis of them.
Output decode_raw(Output x, DType dtype, Location at = here());

}  // namespace leat
