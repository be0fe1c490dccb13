// Asks tasks for their identity, devices and incarnation. A session needs them before it can place
// a graph.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "distributed/master/peers.h"

namespace leat {

// Asks all of `tasks`, and repeats for those that do not answer until the deadline. Then
// UNAVAILABLE with a line for each missing task, and why: "connection refused", or another task's
// identity. The error comes after a second or two if another task keeps answering in a task's place
// (it has the port), and within 10 s if a task that was there neither answers nor refuses (it is
// frozen, or its network is cut). With `partial`, asks every task once and returns those that
// answered. `done` may be called on any thread, possibly before the return.
void discover(std::shared_ptr<const Peers> peers, const std::set<TaskName>& tasks,
              std::chrono::steady_clock::time_point deadline, bool partial,
              std::function<void(const Status&, TaskStatuses)> done);

// The tasks that a session waits for: the dialled one, the ps job, and those that `devices` (the
// device strings of the graph) name; only those that pass `filters` (the dialled one always does).
// A device without a task index means the dialled task if it fits, else the first task of that job.
std::set<TaskName> tasks_needed(const Peers& peers, const std::set<std::string>& devices,
                                const std::vector<std::string>& filters);

// True if one of the filters matches, or there is none. INVALID_ARGUMENT if one is malformed.
bool passes_filters(const TaskName& task, const std::vector<std::string>& filters);

}  // namespace leat
