// Marks what an exchange between replicas computes as a whole, so that GPUs can leave it to a
// library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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

// Members that are separate programs: the graph of each has the marks of its own rank alone. The
// programs also send each other messages, others where the library runs the collectives than where
// it does not. A step keeps the nodes of one of the two ways (collective_signal).
struct CollectivePrograms {
  std::string name;                // unique in the graph; the library runs all its marks or none
  std::vector<std::string> tasks;  // of the members, by rank: "/job:worker/task:0"
};

struct CollectiveMark {
  CollectiveKind kind = CollectiveKind::all_reduce;
  bool is_mean = false;
  std::string group;  // unique in the graph; of all members' marks
  int64_t rank = 0, members = 1;
  CollectivePrograms programs = {};  // no name: the graph has the marks of all members
  // Of a program of another rank than 0: what program 0 has of collective_ticket().
  Output ticket = {};
};

// `by_messages`, which plain ops and transfers compute of all members' values. `own` is the value
// of this member, and lies where `by_messages` does. Where all members are GPUs that a library
// connects, the pass lower_collectives puts the library's result here; otherwise nothing is left
// of the mark.
Output collective_result(Output by_messages, Output own, const CollectiveMark& mark,
                         Location at = here());

// Of program 0: a string scalar that it sends to the others.
Output collective_ticket(Graph& graph, const std::string& programs, Location at = here());

// A node for one of the two ways: the library runs these collectives (`by_library`), or it does
// not. If that way is taken, the node waits for the nodes of the control scope. Otherwise it waits
// for nothing, and they do not run.
Node& collective_signal(Graph& graph, const std::string& programs, bool by_library,
                        Location at = here());

}  // namespace leat
