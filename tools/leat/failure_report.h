// What the launcher prints after a failure: the root cause first, then one line for each
// consequence.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tools/leat/process.h"

namespace leat {

// A process that failed, or was ended because of another.
struct Failure {
  std::string label;  // "[worker:1]"
  std::string what;   // "program ./mnist", "task /job:ps/task:0 (127.0.0.1:41231)"
  bool is_task = false;
  Ending ending;
  std::chrono::duration<double> after{0};  // since the start
  bool was_stopped = false;                // by us, so it is no cause
  std::vector<std::string> last_lines;
  std::string log;          // path
  std::string log_problem;  // why the log is incomplete
};

// Within this time the order of two ends means nothing: the kernel closes a killed process's
// sockets, which others may notice, before its parent can reap it.
inline constexpr std::chrono::milliseconds close_in_time{250};

// The failure that caused the others: the first one that was not stopped. Of two within `close` of
// each other, a signal precedes an exit status, and a task precedes a program, since programs
// report the death of a task.
size_t root_cause(const std::vector<Failure>& failures,
                  std::chrono::duration<double> close = close_in_time);

std::string format_failure_report(const std::vector<Failure>& failures);

}  // namespace leat
