// What `leat doctor` reports about this machine, this build and a cluster.
#pragma once

#include <string>
#include <vector>

#include "distributed/cluster_view.h"

namespace leat {

// The program and its libraries with their paths, processor, memory, GPU or why there is none,
// devices, the environment variables that Leat reads.
std::string description_of_this_machine();

// What one task of a cluster reports about all of them, or why it was not asked.
struct Reach {
  TaskName from;
  std::string address;
  std::string problem;  // why it does not answer; `view` is then empty
  ClusterView view;
};

// Gets the list of tasks from the task at `target`, and asks each of them which tasks it reaches.
// UNAVAILABLE if `target` does not answer.
std::vector<Reach> who_reaches_whom(const std::string& target);
// One line per task, and one for each way that its tensors and steps take, with the tasks at the
// other end. Sets `all` to false if any task does not reach another.
std::string to_text(const std::vector<Reach>& reaches, bool& all);

}  // namespace leat
