// Updates have two forms, for a reference and for a resource, which differ only in their
// signatures.
#pragma once

#include <string>
#include <string_view>

#include "graph/op_def.h"

namespace leat {

// ApplyAdam(var: Ref(T), …) -> (out: Ref(T))  becomes  ResourceApplyAdam(var: resource, …). The
// shape function must support a node without outputs.
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

// INVALID_ARGUMENT unless the variable behind input 0 has the dtype that the attribute names: a
// resource does not show its dtype.
inline void check_variable_dtype(const KernelRequest& request, std::string_view type_attr) {
  const DType held = request.inputs[0].dtype, wanted = request.attr<DType>(type_attr);
  check(held == wanted, "the variable holds ", held, ", not ", wanted);
}

}  // namespace leat
