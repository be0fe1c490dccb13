// Child processes of the launcher: each has its own process group, and ends when the launcher ends,
// for whatever reason.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fd.h"

namespace leat {

// How a process ended.
struct Ending {
  int exit_status = 0;
  int signal = 0;  // the signal that ended it, or 0

  bool is_success() const { return exit_status == 0 && signal == 0; }
  int shell_status() const { return signal != 0 ? 128 + signal : exit_status; }
  std::string describe() const;  // "exit status 3", "killed by signal 9 (SIGKILL)"
};

std::string signal_name(int signal);  // "SIGKILL", or "signal 99"

struct SpawnOptions {
  std::vector<std::string> arguments;  // [0]: a path, or a name to find in PATH
  std::vector<std::pair<std::string, std::string>> environment;  // set on top of ours
  bool has_terminal = false;  // output is a pseudo-terminal, so that the program draws progress
  int terminal_columns = 80;
  bool has_link = false;  // fd 3 of the child is one end of a socket pair
};

struct Process {
  pid_t pid = 0;
  Fd output;  // standard output and error, in order; non-blocking
  Fd link;    // non-blocking
};

inline constexpr int link_fd = 3;  // in the child

// Starts a process through `leat exec-child`, with standard input from /dev/null. Call it from the
// main thread: the child dies with the calling thread. RESOURCE_EXHAUSTED if the system has no
// process or descriptor left.
Process spawn(const SpawnOptions& options);

// After this call, a closed reader of our output or a file at its size limit (ulimit -f) is an
// error of the write and ends no process. Children do not inherit it.
void survive_failed_writes();

// Whether this process ignores the signal: `nohup` sets that for SIGHUP before it starts us.
bool is_ignored(int signal);

// Whether the process has ended. Ends the rest of its group before its id can be reused.
std::optional<Ending> reap(pid_t pid);

// Writes a line to a process that reads it soon: a long one does not fit into the socket at once.
// False if the process is gone, or has not read all of it within `limit`.
bool send_line(const Fd& link, std::string_view line, std::chrono::milliseconds limit);

// Sends a signal to the process and all its descendants that stayed in its group.
void signal_group(pid_t pid, int signal);

// The program's path in PATH; NOT_FOUND with the name, another code if it is there but cannot be
// run.
std::string find_program(const std::string& name);

}  // namespace leat
