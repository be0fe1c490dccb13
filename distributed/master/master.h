// The master of a task: makes sessions for clients, and runs the steps they ask for. Every task has
// one; a client's master is that of the task it dials. It reaches workers through WorkerClient and
// knows nothing of the wire.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/master/master_session.h"
#include "distributed/master/peers.h"

namespace leat {

// Thread-safe. Callbacks run on any thread, possibly before the call returns; a status other than
// OK is the answer to the client. An unknown session is ABORTED "Session H is not found. …".
class Master : public std::enable_shared_from_this<Master> {
 public:
  using Deadline = WorkerClient::Deadline;
  template <class... Results>
  using Done = std::function<void(const Status&, Results...)>;

  Master(uint64_t incarnation, ThreadPool& pool);

  // Before this, while the addresses of the other tasks are unknown, sessions are refused with
  // UNAVAILABLE.
  void start(std::shared_ptr<const Peers> peers);

  // Waits for the tasks that the graph needs (60 s at most, or the deadline). Passes on the
  // session's handle.
  void create_session(std::string graph_def, SessionOptions options, Deadline deadline,
                      Done<std::string> done);
  void extend_session(const std::string& handle, std::string graph_def, int64_t version,
                      Deadline deadline, Done<int64_t> done);
  void close_session(const std::string& handle, Done<> done);
  // Devices of a session, or of the whole cluster if `handle` is empty: of the tasks that answer at
  // once.
  void list_devices(const std::string& handle, Done<std::vector<DeviceDescription>> done);
  // Clears containers (none: the default one) on the tasks that pass the filters, and closes all
  // sessions of this master.
  void reset(std::vector<std::string> containers, const std::vector<std::string>& filters,
             Done<> done);

  // For steps and callables.
  std::shared_ptr<MasterSession> session(const std::string& handle) const;
  std::vector<std::shared_ptr<MasterSession>> all_sessions() const;

  // Membership has lost a task: steps with a part on it end.
  void task_lost(const TaskName& task, const std::string& why);
  // From now on answers all client requests for sessions or their state with `why`. Running steps
  // continue.
  void refuse(const Status& why);
  // Closes all sessions; their steps end with `why`.
  void close(const Status& why, std::function<void()> done);

  // UNAVAILABLE before start().
  std::shared_ptr<const Peers> peers() const;
  // Sessions that have been idle for `limit`: their clients may have vanished, and they hold
  // memory. For `leat top`.
  std::vector<StepActivity> idle_sessions(
      std::chrono::seconds limit = std::chrono::minutes(1)) const;
  // Gives back, here and on all tasks, programs and graphs that sessions have not used for `limit`;
  // sooner if they are quick to rebuild. State stays; what a step needs later is rebuilt.
  void drop_unused(std::chrono::seconds limit) const;
  size_t sessions() const;
  size_t running_steps() const;

 private:
  const uint64_t incarnation_;
  ThreadPool& pool_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Peers> peers_;
  Status refusal_;
  std::map<std::string, std::shared_ptr<MasterSession>> sessions_;
};

}  // namespace leat
