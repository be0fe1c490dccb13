// Reads and writes the signature grammar of OpDef (op_def.h has the forms).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op_def.h"

namespace leat {

// INVALID_ARGUMENT quotes the string that is wrong and says what was expected.
OpSchema parse_schema(const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs,
                      const std::vector<std::string>& attrs);

// A value in the grammar of attributes: what follows '=' in a schema and in graph text. `kind` as
// AttrValue::kind(). Reads from the front of `text`, and removes what it has read. Lists are
// written [1, 2] or {1, 2}; strings in either quotes; types by name (also DT_FLOAT); shapes [2,?]
// or <unknown>; tensors float[2] [1, 2].
AttrValue parse_attr_value(std::string_view kind, std::string_view& text);
// The inverse. Prints at most `elements` elements of a tensor, then "…", which cannot be read back.
std::string print_attr_value(const AttrValue& value, int64_t elements = INT64_MAX);

// "int16 is not one of {float, double}", "0 is less than 1": why the value breaks the attr's rules
// (kind excepted), or "".
std::string violation(const AttrDef& attr, const AttrValue& value);

}  // namespace leat
