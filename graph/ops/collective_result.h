// Marks what an exchange between replicas computes as a whole, so that GPUs can leave it to a
// library.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace leat {

// What a member of a group gets from a collective, by the group's size N.
enum class CollectiveKind : uint8_t {
  all_reduce,      // the sum or mean of the members' values
  reduce_scatter,  // its own of N equal parts, along axis 0, of their sum or mean
  all_gather,      // their values, one after the other along axis 0
};
std::string_view collective_kind_name(CollectiveKind kind);       // "all_reduce"
CollectiveKind collective_kind_from_name(std::string_view name);  // INVALID_ARGUMENT otherwise

struct CollectiveMark {
  CollectiveKind kind = CollectiveKind::all_reduce;
  bool is_mean = false;
  std::string group;  // unique in the graph; of all members' marks
  int64_t rank = 0, members = 1;
};

// `by_messages`, which plain ops and transfers compute of all members' values. `own` is the value
// of this member, and lies where `by_messages` does. Where all members are GPUs that a library
// connects, the pass lower_collectives puts the library's result here; otherwise nothing is left
// of the mark.
Output collective_result(Output by_messages, Output own, const CollectiveMark& mark,
                         Location at = here());

}  // namespace leat
