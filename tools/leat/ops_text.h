// What `leat ops` prints about the ops in this build.
#pragma once

#include <string>
#include <string_view>

namespace leat {

// One line per op: name, devices that have kernels, the first sentence of its doc. `filter`: only
// ops with it in the name or the text, ignoring case; "" for all.
std::string list_of_ops(std::string_view filter);

// All that is known about one op: signature, formula, attributes, kernels, gradient, an example.
// For an op that graphs may contain but no step can run: the reason. NOT_FOUND with near misses for
// an unknown op.
std::string description_of_op(std::string_view name);

// A page in Markdown with every op that has a kernel. It does not depend on the machine.
std::string page_of_ops();

}  // namespace leat
