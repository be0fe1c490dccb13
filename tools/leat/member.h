// One process of a launch: its role, its output, its reports, and how it ended.
#pragma once

#include <chrono>
#include <deque>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/cluster/launcher_link.h"
#include "tools/leat/console.h"
#include "tools/leat/process.h"

namespace leat {

struct Member {
  using Clock = std::chrono::steady_clock;

  std::string prefix;  // "[worker:1]"
  TaskName task;
  bool is_program = false;
  bool is_task = true;        // a program may be both
  bool is_done = false;       // a program that is a task: now it only serves the others
  bool has_terminal = false;  // its progress line is the console's redrawn one
  Process process;
  std::ofstream log;
  std::string log_path;
  std::string log_problem;  // why the log is incomplete
  std::deque<std::string> last_lines;
  std::optional<Ending> ending;
  Clock::time_point ended;
  bool was_stopped = false;
  bool is_handled = false;  // its end has been handled

  bool is_running() const { return process.pid != 0 && !ending; }
  bool is_busy() const { return is_program && is_running() && !is_done; }

  // Passes new output on to the console and the log: one turn, which is short even if it writes
  // endlessly.
  void read_output(Console& console);
  // Reads the output left in the pipe of an ended process, unless a descendant keeps the pipe open.
  void read_last_output(Console& console);
  // Reports since the last call. INTERNAL if it does not follow the task's protocol.
  std::vector<TaskReport> read_reports();

  void keep_line(const std::string& line, Console& console);
  void end_output(Console& console);
  void write_log(std::string_view bytes);

  // The part of a line read so far.
  LineReader lines;
  Clock::time_point redrawn;
  std::string link_text;
};

}  // namespace leat
