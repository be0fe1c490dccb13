// Updates come in two forms, of a reference and of a resource, which differ in their signatures
// only.
#pragma once

#include <string_view>

#include "graph/op_def.h"

namespace leat {

// ApplyAdam(var: Ref(T), …) -> (out: Ref(T))  becomes  ResourceApplyAdam(var: resource, …). The
// shape function must allow that there are no outputs.
inline OpDef resource_form(OpDef op) {
  constexpr std::string_view ref = ": Ref(";
  op.name = "Resource" + op.name;
  for (std::string& input : op.inputs) {
    if (const size_t at = input.find(ref); at != input.npos)
      input = input.substr(0, at) + ": resource";
  }
  op.outputs.clear();
  op.is_stateful = true;
  return op;
}

}  // namespace leat
