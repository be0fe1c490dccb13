// How the inputs, attributes and outputs of one node follow from its op's schema.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace leat {

// Which of a node's flat inputs (or outputs) an argument of the schema stands for.
struct ArgRange {
  const ArgDef* arg;
  int begin;
  int end;
};
// For complete attrs.
std::vector<ArgRange> arg_ranges(const std::vector<ArgDef>& args, const AttrMap& attrs);

// "a", or "values[1]" within a list; "#7" where that is not known (yet).
std::string input_name(const OpDef& op, const AttrMap& attrs, int input);

// Completes a node whose op, inputs and explicit attributes are set: types and list lengths from
// the inputs, defaults, then `outputs` with dtypes and unknown shapes. INVALID_ARGUMENT (without op
// and node: the caller adds them) if the inputs or attributes do not fit the schema.
void resolve_signature(Node& node);

// The attrs that resolve_signature would find by itself: those that inputs determine.
bool follows_from_inputs(const OpSchema& schema, std::string_view attr);

}  // namespace leat
