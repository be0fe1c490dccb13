#include "distributed/master/master.h"

#include <atomic>
#include <iomanip>

#include "core/execution/thread_pool.h"
#include "distributed/random_id.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto list_limit = std::chrono::seconds(5);
constexpr auto reset_limit = std::chrono::seconds(10);

// 16 hex digits, as TensorFlow's.
std::string new_handle() {
  std::ostringstream out;
  out << std::hex << std::setfill('0') << std::setw(16) << random_id();
  return out.str();
}

// TensorFlow's text first: clients know it.
Status no_session(const std::shared_ptr<const Peers>& peers, const std::string& handle) {
  const std::string self = peers != nullptr ? peers->describe(peers->self) : "This task";
  return {Code::aborted,
          concat("Session ", handle, " is not found. ", self,
                 " does not know it: it may have restarted; make a new session"),
          false};
}

// Calls `done` when `count` more calls have come, with the first error.
class Countdown {
 public:
  Countdown(size_t count, std::function<void(const Status&)> done)
      : left_(count), done_(std::move(done)) {}

  void arrive(const Status& status) {
    {
      std::lock_guard lock(mutex_);
      if (first_error_.is_ok()) first_error_ = status;
      if (--left_ > 0) return;
    }
    done_(first_error_);
  }

 private:
  std::mutex mutex_;
  size_t left_;
  Status first_error_;
  const std::function<void(const Status&)> done_;
};

}  // namespace

Master::Master(uint64_t incarnation, ThreadPool& pool) : incarnation_(incarnation), pool_(pool) {}

void Master::start(std::shared_ptr<const Peers> peers) {
  std::lock_guard lock(mutex_);
  peers_ = std::move(peers);
}

std::shared_ptr<const Peers> Master::peers() const {
  std::lock_guard lock(mutex_);
  if (peers_ == nullptr) {
    fail(Code::unavailable,
         "this task is starting: it does not know the addresses of the other tasks yet");
  }
  return peers_;
}

std::shared_ptr<MasterSession> Master::session(const std::string& handle) const {
  std::lock_guard lock(mutex_);
  throw_if_error(refusal_);
  const auto found = sessions_.find(handle);
  if (found == sessions_.end()) throw Error(no_session(peers_, handle));
  return found->second;
}

std::vector<std::shared_ptr<MasterSession>> Master::all_sessions() const {
  std::vector<std::shared_ptr<MasterSession>> out;
  std::lock_guard lock(mutex_);
  for (const auto& [handle, session] : sessions_) out.push_back(session);
  return out;
}

void Master::create_session(std::string graph_def, SessionOptions options, Deadline deadline,
                            Done<std::string> done) {
  // A client that was killed and comes again: its new session takes the place of the old one's
  // memory.
  for (const auto& old : all_sessions()) old->sleep_if_left();
  std::shared_ptr<MasterSession> session;
  try {
    {
      std::lock_guard lock(mutex_);
      throw_if_error(refusal_);
    }
    for (const std::string& filter : options.device_filters) DeviceName::parse(filter);
    session = std::make_shared<MasterSession>(peers(), incarnation_, pool_, new_handle(),
                                              std::move(options));
  } catch (...) {
    return done(status_of_current_exception(), "");
  }
  session->extend(
      std::move(graph_def), -1, deadline,
      [self = shared_from_this(), session, done = std::move(done)](const Status& status, int64_t) {
        Status outcome = status;
        if (outcome.is_ok()) {
          std::lock_guard lock(self->mutex_);
          outcome = self->refusal_;
          if (outcome.is_ok()) self->sessions_[session->handle()] = session;
        }
        done(outcome, session->handle());
      });
}

void Master::extend_session(const std::string& handle, std::string graph_def, int64_t version,
                            Deadline deadline, Done<int64_t> done) {
  std::shared_ptr<MasterSession> session;
  try {
    session = this->session(handle);
  } catch (...) {
    return done(status_of_current_exception(), 0);
  }
  session->extend(std::move(graph_def), version, deadline, std::move(done));
}

void Master::close_session(const std::string& handle, Done<> done) {
  std::shared_ptr<MasterSession> session;
  std::shared_ptr<const Peers> peers;
  {
    std::lock_guard lock(mutex_);
    peers = peers_;
    const auto found = sessions_.find(handle);
    if (found != sessions_.end()) {
      session = std::move(found->second);
      sessions_.erase(found);
    }
  }
  if (session == nullptr) return done(no_session(peers, handle));
  session->close([done = std::move(done)] { done({}); });
}

void Master::list_devices(const std::string& handle, Done<std::vector<DeviceDescription>> done) {
  std::shared_ptr<const Peers> peers;
  std::set<TaskName> tasks;
  try {
    peers = this->peers();
    std::vector<std::string> filters;
    if (!handle.empty()) filters = session(handle)->options().device_filters;
    tasks.insert(peers->self);
    for (const TaskName& task : peers->spec.tasks()) {
      if (passes_filters(task, filters)) tasks.insert(task);
    }
  } catch (const Error& error) {
    const bool is_unknown =
        error.code() == Code::aborted;  // as TensorFlow has it, for this method alone
    return done({is_unknown ? Code::invalid_argument : error.code(), error.message(), false}, {});
  }
  discover(peers, tasks, Clock::now() + list_limit, /*partial=*/true,
           [done = std::move(done), self = peers->self](const Status& status,
                                                        const TaskStatuses& found) {
             std::vector<DeviceDescription> devices;  // the own ones first
             for (const auto& [task, answer] : found) {
               devices.insert(task == self ? devices.begin() : devices.end(),
                              answer.devices.begin(), answer.devices.end());
             }
             done(status, std::move(devices));
           });
}

void Master::reset(std::vector<std::string> containers, const std::vector<std::string>& filters,
                   Done<> done) {
  std::shared_ptr<const Peers> peers;
  std::vector<TaskName> tasks;
  try {
    peers = this->peers();
    for (const TaskName& task : peers->spec.tasks()) {
      if (passes_filters(task, filters) || task == peers->self) tasks.push_back(task);
    }
  } catch (...) {
    return done(status_of_current_exception());
  }
  const Status why{Code::cancelled,
                   concat("Step was cancelled: a client's Reset of ", peers->describe(peers->self),
                          " ended its session."),
                   false};
  close(why, [peers, tasks, containers = std::move(containers), done = std::move(done)] {
    const auto countdown = std::make_shared<Countdown>(tasks.size(), done);
    for (const TaskName& task : tasks) {
      peers->worker(task)->reset(containers, Clock::now() + reset_limit,
                                 [countdown](const Status& status) { countdown->arrive(status); });
    }
  });
}

void Master::task_lost(const TaskName& task, const std::string& why) {
  for (const auto& session : all_sessions()) session->task_lost(task, why);
}

void Master::refuse(const Status& why) {
  std::lock_guard lock(mutex_);
  refusal_ = why;
}

void Master::close(const Status& why, std::function<void()> done) {
  std::map<std::string, std::shared_ptr<MasterSession>> sessions;
  {
    std::lock_guard lock(mutex_);
    sessions.swap(sessions_);
  }
  if (sessions.empty()) return done();
  const auto countdown = std::make_shared<Countdown>(
      sessions.size(), [done = std::move(done)](const Status&) { done(); });
  for (const auto& [handle, session] : sessions)
    session->close(why, [countdown] { countdown->arrive({}); });
}

std::vector<StepActivity> Master::idle_sessions(std::chrono::seconds limit) const {
  std::vector<StepActivity> out;
  std::lock_guard lock(mutex_);
  for (const auto& [handle, session] : sessions_) {
    const std::chrono::nanoseconds idle = session->idle();
    if (idle >= limit)
      out.push_back({concat("keeps session ", handle, " for a client that sends no requests"), "",
                     idle.count()});
  }
  return out;
}

void Master::drop_unused(std::chrono::seconds limit) const {
  for (const auto& session : all_sessions()) session->drop_unused(limit);
}

size_t Master::sessions() const {
  std::lock_guard lock(mutex_);
  return sessions_.size();
}

size_t Master::running_steps() const {
  std::lock_guard lock(mutex_);
  size_t out = 0;
  for (const auto& [handle, session] : sessions_) out += session->running_steps();
  return out;
}

}  // namespace leat
