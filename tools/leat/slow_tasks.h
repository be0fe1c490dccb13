// Tasks that are made slower, to see what a strategy does about it: their processes are stopped and
// continued in turn (SIGSTOP, SIGCONT), so that they run for a part of the time.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "distributed/cluster/cluster_spec.h"
#include "tools/leat/member_group.h"

namespace leat {

inline constexpr const char* slow_help =
    "JOB:TASK=FACTOR, such as worker:1=10: pause this task and its program so often that they run "
    "a tenth of the time, to see what the others do; may be repeated";

class SlowTasks {
 public:
  using Clock = std::chrono::steady_clock;

  // "worker:1=10": the tenth part of the time. INVALID_ARGUMENT for anything else, or a factor that
  // is not in (1, 100].
  void add(std::string_view text);
  // INVALID_ARGUMENT if there is no such task.
  void check_exist(const ClusterSpec& cluster) const;

  // The next moment when update() changes something; far away if there is none.
  Clock::time_point next() const;
  // Stops or continues what is due: each task's processes, also its program.
  void update(const MemberGroup& members);
  // Continues all, for good.
  void end(const MemberGroup& members);

 private:
  struct Slow {
    double factor;
    bool is_stopped = false;
    Clock::time_point next = {};  // when that changes
  };
  static void signal(const MemberGroup& members, const TaskName& task, int signal);

  std::map<TaskName, Slow> tasks_;
};

}  // namespace leat
