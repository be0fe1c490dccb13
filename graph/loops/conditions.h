// Conditions as cond() builds them (frontends/cpp/control_flow/cond.h): the nodes of a branch wait
// for its pivot by a control edge. The pivot of the branch that is not taken is dead, and so are
// its nodes. Values of the surrounding graph need no Switch of their own in a branch.
#pragma once

#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace leat {

// The pivot is an Identity of one side of a Switch. This attribute names the other pivot.
inline constexpr std::string_view pivot_attr = "_leat_pivot";

struct Pivots {
  Node* if_true;
  Node* if_false;
};
// Under the current scopes; `predicate` is a scalar bool.
Pivots add_pivots(Output predicate, Location at = here());

bool is_pivot(const Node& node);
Node& other_pivot(const Node& pivot);
Output predicate_of(const Node& pivot);
bool is_of_true_side(const Node& pivot);

// The branches that a node lies in, outermost first.
std::vector<Node*> pivots_of(const Node& node);
// Those of `inner` that are not in `outer`.
std::vector<Node*> pivots_beyond(const std::vector<Node*>& inner, const std::vector<Node*>& outer);

}  // namespace leat
