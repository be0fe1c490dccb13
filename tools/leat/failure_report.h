// What the launcher says when something failed: the root cause first, what followed from it in one
// line each.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tools/leat/process.h"

namespace leat {

// One process that ended badly, or was ended because of another.
struct Failure {
  std::string label;  // "[worker:1]"
  std::string what;   // "program ./mnist", "task /job:ps/task:0 (127.0.0.1:41231)"
  bool is_task = false;
  Ending ending;
  std::chrono::duration<double> after{0};  // since the start
  bool was_stopped = false;                // by us, so it says nothing
  std::vector<std::string> last_lines;
  std::string log;          // path
  std::string log_problem;  // why not all is there
};

// Within it the order of two ends tells nothing: the kernel closes the sockets of a killed process,
// which others may hear, before its parent can reap it.
inline constexpr std::chrono::milliseconds close_in_time{250};

// Which one the others follow from: the first that was not stopped. Two within `close` of each
// other: a signal comes before an exit status, a task before a program, since programs report the
// death of a task.
size_t root_cause(const std::vector<Failure>& failures,
                  std::chrono::duration<double> close = close_in_time);

std::string format_failure_report(const std::vector<Failure>& failures);

}  // namespace leat
