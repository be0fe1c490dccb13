// Which node holds a variable: by a reference (VariableV2, Variable) or by a handle (VarHandleOp, a
// resource variable). OpDef::is_variable says it, not the name of the op.
#pragma once

#include "graph/graph.h"

namespace leat {

// The op makes a resource variable: its output is a handle.
bool is_resource_variable(const OpDef& op);

// The node of the variable that `output` is a reference to or a handle on, directly or passed on by
// Assign, Identity and the like; also if `output` is a value that ReadVariableOp read. Null if it
// is none of these.
Node* variable_node(const Output& output);

// What an op that changes the variable takes: the handle of a resource variable; anything else as
// it is.
Output variable_handle(const Output& output);

}  // namespace leat
