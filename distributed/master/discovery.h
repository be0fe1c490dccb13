// Asks tasks who they are: which devices they have, and their incarnation. What a session needs to
// know before it can place a graph.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "distributed/master/peers.h"

namespace leat {

// Asks all of `tasks`, those that do not answer again and again until the deadline. Then
// UNAVAILABLE with a line for each that is missing, and why: "connection refused", or another
// task's identity. Another task that answers in the place of one of them, and goes on doing so, is
// that as well, after a second or two: it has the port; and so is, within 10 s, one that was there
// and neither answers nor refuses: it is frozen, or its network is cut. With `partial` every task
// is asked once, and those that answered are returned. `done` may be called on any thread, possibly
// before the return.
void discover(std::shared_ptr<const Peers> peers, const std::set<TaskName>& tasks,
              std::chrono::steady_clock::time_point deadline, bool partial,
              std::function<void(const Status&, TaskStatuses)> done);

// The tasks that a session waits for: the dialled one, the ps job, and those that `devices` (the
// device strings of the graph) name; of them those that pass `filters` (the dialled one always
// does). A device without a task index means the dialled task if it fits, else the first task of
// that job.
std::set<TaskName> tasks_needed(const Peers& peers, const std::set<std::string>& devices,
                                const std::vector<std::string>& filters);

// True if one of the filters fits, or there is none. INVALID_ARGUMENT if one is malformed.
bool passes_filters(const TaskName& task, const std::vector<std::string>& filters);

}  // namespace leat
