// The protocol between a launcher (`leat up`, `leat run`) and the task processes that it starts,
// over an inherited socket (`leat task … --launcher-fd N`; LEAT_LAUNCHER_FD=N of a program that is
// its own task): one JSON object per line.
//   task → launcher   {"state": "bound", "address": "127.0.0.1:41231"}
//                     {"state": "waiting", "missing": [{"task": …, "address": …, "reason": …,
//                                                      "refused": true}]}
//                     {"state": "ready", "detail": "16 cores"}
//                     {"state": "left", "missing": [{"task": "/job:worker/task:0", …}]}
//                     {"state": "done"}              a program: it only serves the others now
//                     {"state": "failed", "detail": "cannot listen on 127.0.0.1:2222: …"}
//   launcher → task   {"cluster": {…}}  every port filled in; when all tasks of this host are bound
// At end of file, a task knows that its launcher has ended.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/cluster/cluster_spec.h"

namespace leat {

// An environment variable for a program that is its own task: the number of the inherited socket.
inline constexpr const char* launcher_fd_variable = "LEAT_LAUNCHER_FD";

// The same for its start timeout: the seconds to wait for the other tasks.
inline constexpr const char* start_timeout_variable = "LEAT_START_TIMEOUT";

struct MissingPeer {
  TaskName task;
  std::string address;
  std::string reason;       // "connection refused"
  bool is_refused = false;  // nobody listens at the address
};

// A line from a task, parsed.
struct TaskReport {
  enum class State { bound, waiting, ready, left, done, failed };
  State state = State::bound;
  std::string address;
  std::string detail;
  std::vector<MissingPeer> missing;

  std::string to_line() const;                     // with the newline
  static TaskReport parse(std::string_view line);  // INVALID_ARGUMENT
};

// The task's end. Without a launcher (fd -1) reports go nowhere. Not thread-safe, except that fd()
// may be polled anywhere.
class LauncherLink {
 public:
  explicit LauncherLink(int fd);  // owned by the process: closed when it ends

  // Reports this task's address and returns the spec with every port filled in: the launcher's
  // answer, or without a launcher `spec` with this address. DEADLINE_EXCEEDED if the launcher does
  // not answer within `limit` (0: none), CANCELLED if it has ended, INVALID_ARGUMENT if another
  // task's port is open and there is no launcher to provide it.
  ClusterSpec bound(const ClusterSpec& spec, const TaskName& task, const std::string& address,
                    std::chrono::milliseconds limit);
  void waiting(std::vector<MissingPeer> missing);
  void ready(std::string detail);
  void left(std::vector<MissingPeer> peers);  // lost peers; sent when they change
  void done();
  void failed(std::string detail);

  // Readable at end of file: poll it to end with the launcher. -1 without one.
  int fd() const { return fd_; }

 private:
  void send(const TaskReport& report);

  int fd_;
  std::vector<TaskName> told_left_;
};

}  // namespace leat
