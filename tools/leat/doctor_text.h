// What `leat doctor` says of this machine, this build and a cluster.
#pragma once

#include <string>
#include <vector>

#include "distributed/cluster_view.h"

namespace leat {

// The program and its libraries with their paths, processor, memory, GPU and why there is none,
// devices, the environment that Leat reads.
std::string description_of_this_machine();

// What one task of a cluster says of all of them, or why it was not asked.
struct Reach {
  TaskName from;
  std::string address;
  std::string problem;  // why it does not answer; then `view` is empty
  ClusterView view;
};

// Asks every task of the cluster which tasks it reaches; the one at `target` for the list of them.
// UNAVAILABLE if that one does not answer.
std::vector<Reach> who_reaches_whom(const std::string& target);
// A line per task. `all` is false if somebody does not reach somebody.
std::string to_text(const std::vector<Reach>& reaches, bool& all);

}  // namespace leat
