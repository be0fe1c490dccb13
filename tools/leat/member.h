// One process of a launch: what it is, what it writes, what it reports, and how it ended.
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
  bool is_done = false;       // a program that is a task: it only serves the others now
  bool has_terminal = false;  // its progress line is the console's redrawn one
  Process process;
  std::ofstream log;
  std::string log_path;
  std::string log_problem;  // why not all of it is there
  std::deque<std::string> last_lines;
  std::optional<Ending> ending;
  Clock::time_point ended;
  bool was_stopped = false;
  bool is_handled = false;  // its ending

  bool is_running() const { return process.pid != 0 && !ending; }
  bool is_busy() const { return is_program && is_running() && !is_done; }

  // Passes what has been written on to the console and the log: one turn, which is short even if
  // it writes without an end.
  void read_output(Console& console);
  // What an ended process left in the pipe, as far as no descendant keeps that open.
  void read_last_output(Console& console);
  // What has been reported since the last call. INTERNAL if it does not speak as a task does.
  std::vector<TaskReport> read_reports();

  void keep_line(const std::string& line, Console& console);
  void end_output(Console& console);
  void write_log(std::string_view bytes);

  // What has been read of a line so far.
  LineReader lines;
  Clock::time_point redrawn;
  std::string link_text;
};

}  // namespace leat
