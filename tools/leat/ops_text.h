// What `leat ops` says of the ops that this build knows.
#pragma once

#include <string>
#include <string_view>

namespace leat {

// A line per op: name, devices that have kernels, the first sentence of what it does. `filter`:
// only ops that have it in the name or the text, whatever the case; "" for all.
std::string list_of_ops(std::string_view filter);

// All that is known of one op: signature, formula, attributes, kernels, gradient, an example. Of an
// op that graphs may contain but no step may run: why. NOT_FOUND with near misses if nobody knows
// it.
std::string description_of_op(std::string_view name);

// A page in Markdown with every op that has a kernel. It does not depend on the machine.
std::string page_of_ops();

}  // namespace leat
