#include "distributed/master/discovery.h"

#include <algorithm>
#include <mutex>
#include <optional>

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

// The limit of one attempt. After two attempts, a task that has been frozen since the first is
// reported.
constexpr auto answer_limit = std::chrono::seconds(4);
constexpr auto pause = std::chrono::milliseconds(200);  // between attempts
// A task that is starting late is waited for. Who answers in its place has its port, and it cannot
// start there: only one that is just ending is worth some patience.
constexpr auto patience_with_strangers = std::chrono::milliseconds(1'500);

class Discovery : public std::enable_shared_from_this<Discovery> {
 public:
  Discovery(std::shared_ptr<const Peers> peers, Clock::time_point deadline, bool partial,
            std::function<void(const Status&, TaskStatuses)> done)
      : peers_(std::move(peers)),
        start_(Clock::now()),
        deadline_(deadline),
        partial_(partial),
        done_(std::move(done)) {}

  void start(const std::set<TaskName>& tasks) {
    for (const TaskName& task : tasks) missing_[task] = {"no answer yet", {}};
    if (tasks.empty()) return finish();
    {
      std::lock_guard lock(mutex_);
      if (peers_->waits != nullptr) {
        listed_ = peers_->waits->add([weak = weak_from_this()] {
          const auto self = weak.lock();
          return self != nullptr ? self->activity() : std::vector<StepActivity>();
        });
      }
      timeout_ = peers_->timer->at(deadline_, [self = shared_from_this()] { self->finish(); });
    }
    for (const TaskName& task : tasks) ask(task);
  }

 private:
  struct Missing {
    std::string why;
    std::optional<Clock::time_point> stranger_since;  // another one answers in its place
  };

  void ask(const TaskName& task) {
    const auto worker = peers_->worker(task);
    worker->status(
        std::min(deadline_, Clock::now() + answer_limit),
        [self = shared_from_this(), task](const Status& status, const WorkerStatus& answer) {
          self->answered(task, status, answer);
        });
  }

  void answered(const TaskName& task, const Status& status, const WorkerStatus& answer) {
    const std::string why = status.is_ok() ? peers_->stranger(task, answer) : status.message;
    bool is_last = false;
    {
      std::lock_guard lock(mutex_);
      if (is_finished_) return;
      Missing& missing = missing_[task];
      missing.why = why;
      // A server of another make knows no such question.
      if (!status.is_ok() && status.code != Code::unimplemented) {
        missing.stranger_since.reset();
      } else if (!missing.stranger_since) {
        missing.stranger_since = Clock::now();
      }
      const bool is_taken = missing.stranger_since && !why.empty() &&
                            Clock::now() - *missing.stranger_since >= patience_with_strangers;
      const bool is_frozen =
          status.code == Code::deadline_exceeded && peers_->is_lost && peers_->is_lost(task);
      if (why.empty()) found_[task] = answer;
      if (why.empty() || partial_) missing_.erase(task);
      is_last = missing_.empty() || (!partial_ && (is_taken || is_frozen));
    }
    if (is_last) return finish();
    if (why.empty() || partial_) return;
    peers_->timer->after(pause, [self = shared_from_this(), task] {
      {
        std::lock_guard lock(self->mutex_);
        if (self->is_finished_) return;
      }
      self->ask(task);
    });
  }

  std::vector<StepActivity> activity() const {
    std::vector<StepActivity> out;
    const int64_t ns = std::chrono::nanoseconds(Clock::now() - start_).count();
    std::lock_guard lock(mutex_);
    for (const auto& [task, missing] : missing_) {
      out.push_back({concat("waits for the identity of a task (", missing.why, ")"),
                     peers_->describe(task), ns});
    }
    return out;
  }

  void finish() {
    Status status;
    std::shared_ptr<const void> listed;  // goes outside the lock
    {
      std::lock_guard lock(mutex_);
      if (is_finished_) return;
      listed.swap(listed_);
      is_finished_ = true;
      peers_->timer->cancel(timeout_);
      if (!missing_.empty() && !partial_) status = who_is_missing();
    }
    done_(status, std::move(found_));
  }

  Status who_is_missing() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    std::ostringstream text;
    text.precision(2);
    text << missing_.size() << " of " << missing_.size() + found_.size()
         << " tasks did not answer within " << seconds << " s:";
    for (const auto& [task, missing] : missing_) {
      const std::string& why = missing.why;
      const std::string label = peers_->describe(task);
      text << "\n  " << (why.starts_with(label) ? why : label + ": " + why);
      const std::string heard = peers_->last_heard ? peers_->last_heard(task) : std::string();
      if (!heard.empty()) text << ", " << heard;
    }
    text << "\nStart them with `leat up` or `leat task`, or leave them out with device_filters.";
    return {Code::unavailable, text.str()};
  }

  const std::shared_ptr<const Peers> peers_;
  const Clock::time_point start_, deadline_;
  const bool partial_;
  const std::function<void(const Status&, TaskStatuses)> done_;
  mutable std::mutex mutex_;
  std::map<TaskName, Missing> missing_;
  TaskStatuses found_;
  bool is_finished_ = false;
  Timer::Id timeout_ = 0;
  std::shared_ptr<const void> listed_;
};

}  // namespace

void discover(std::shared_ptr<const Peers> peers, const std::set<TaskName>& tasks,
              Clock::time_point deadline, bool partial,
              std::function<void(const Status&, TaskStatuses)> done) {
  std::make_shared<Discovery>(std::move(peers), deadline, partial, std::move(done))->start(tasks);
}

bool passes_filters(const TaskName& task, const std::vector<std::string>& filters) {
  bool passes = filters.empty();
  for (const std::string& filter : filters) {
    const DeviceName constraint = DeviceName::parse(filter);
    passes |= (!constraint.job || *constraint.job == task.job) &&
              (!constraint.task || *constraint.task == task.index);
  }
  return passes;
}

std::set<TaskName> tasks_needed(const Peers& peers, const std::set<std::string>& devices,
                                const std::vector<std::string>& filters) {
  std::set<TaskName> out = {peers.self};
  const auto need = [&](const TaskName& task) {
    if (peers.spec.contains(task) && passes_filters(task, filters)) out.insert(task);
  };
  if (const auto ps = peers.spec.jobs().find("ps"); ps != peers.spec.jobs().end()) {
    for (const auto& [index, address] : ps->second) need({"ps", index});
  }
  for (const std::string& text : devices) {
    const DeviceName device = DeviceName::parse(text);
    const std::string job = device.job.value_or(peers.self.job);
    const auto tasks = peers.spec.jobs().find(job);
    if (tasks == peers.spec.jobs().end()) continue;  // the placer complains, and knows the node
    if (device.task) {
      need({job, *device.task});
    } else if (job != peers.self.job) {
      for (const auto& [index, address] : tasks->second) {
        if (!passes_filters({job, index}, filters)) continue;
        need({job, index});
        break;
      }
    }
  }
  return out;
}

}  // namespace leat
