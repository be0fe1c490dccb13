#include "tools/leat/slow_tasks.h"

#include <signal.h>

#include <charconv>

#include "core/error.h"
#include "tools/leat/process.h"

namespace leat {
namespace {

using std::chrono::milliseconds;

// One turn of a task: it runs, then it is stopped. Short against a step, so that it looks slow, and
// long against the cost of a signal.
constexpr milliseconds turn{20};

template <class T>
bool read_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void SlowTasks::add(std::string_view text) {
  const size_t colon = text.find(':'), equal = text.find('=');
  TaskName task;
  double factor = 0;
  const bool is_read = colon != text.npos && equal != text.npos && colon < equal && colon > 0 &&
                       read_number(text.substr(colon + 1, equal - colon - 1), task.index) &&
                       read_number(text.substr(equal + 1), factor) && factor > 1 && factor <= 100;
  check(is_read, "--slow \"", text,
        "\" must be JOB:TASK=FACTOR with a factor above 1 and not above ",
        "100, such as worker:1=10");
  task.job = text.substr(0, colon);
  check(tasks_.emplace(task, Slow{.factor = factor}).second, "--slow names ", task, " twice");
}

void SlowTasks::check_exist(const ClusterSpec& cluster) const {
  for (const auto& [task, slow] : tasks_)
    check(cluster.contains(task), "--slow: the cluster has no ", task, ": ", cluster.to_json());
}

SlowTasks::Clock::time_point SlowTasks::next() const {
  auto out = Clock::time_point::max();
  for (const auto& [task, slow] : tasks_) out = std::min(out, slow.next);
  return out;
}

void SlowTasks::signal(const MemberGroup& members, const TaskName& task, int signal) {
  for (const auto& member : members.all()) {
    if (member->task == task && member->is_running()) signal_group(member->process.pid, signal);
  }
}

void SlowTasks::update(const MemberGroup& members) {
  const auto now = Clock::now();
  for (auto& [task, slow] : tasks_) {
    if (now < slow.next) continue;
    const auto runs = std::chrono::duration_cast<Clock::duration>(turn / slow.factor);
    slow.is_stopped = !slow.is_stopped;
    slow.next = now + (slow.is_stopped ? turn - runs : runs);
    signal(members, task, slow.is_stopped ? SIGSTOP : SIGCONT);
  }
}

void SlowTasks::end(const MemberGroup& members) {
  for (const auto& [task, slow] : tasks_) signal(members, task, SIGCONT);
  tasks_.clear();
}

}  // namespace leat
