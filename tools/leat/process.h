// Child processes of the launcher: each its own process group, ended when the launcher ends,
// however that happens.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {

// How a process ended.
struct Ending {
  int exit_status = 0;
  int signal = 0;  // not 0: ended by it

  bool is_success() const { return exit_status == 0 && signal == 0; }
  int shell_status() const { return signal != 0 ? 128 + signal : exit_status; }
  std::string describe() const;  // "exit status 3", "killed by signal 9 (SIGKILL)"
};

std::string signal_name(int signal);  // "SIGKILL", or "signal 99"

// A file descriptor that closes itself. Every one made here is close-on-exec.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { close(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

struct SpawnOptions {
  std::vector<std::string> arguments;  // [0]: a path, or a name to be found in PATH
  std::vector<std::pair<std::string, std::string>> environment;  // set on top of ours
  bool has_terminal = false;  // output is a pseudo-terminal, so that it draws progress
  int terminal_columns = 80;
  bool has_link = false;  // fd 3 of the child is one end of a socket pair
};

struct Process {
  pid_t pid = 0;
  Fd output;  // standard output and error, in order; non-blocking
  Fd link;    // non-blocking
};

inline constexpr int link_fd = 3;  // in the child

// Starts a process by way of `leat exec-child`, with standard input from /dev/null. The calling
// thread must be the main thread: the child dies with it. RESOURCE_EXHAUSTED if the system has no
// process or descriptor left.
Process spawn(const SpawnOptions& options);

// A reader of our output that leaves, and a file that may not grow (ulimit -f), become errors of
// the write, and end nobody. Children do not inherit it.
void survive_failed_writes();

// Whether this process ignores the signal: `nohup` says so of SIGHUP, before it starts us.
bool is_ignored(int signal);

// Whether the process has ended. Ends what is left of its group before its id can be used again.
std::optional<Ending> reap(pid_t pid);

// Writes a line to a process that reads it soon: a long one does not fit into the socket at once.
// False if it has gone, or has not taken it all within `limit`.
bool send_line(const Fd& link, std::string_view line, std::chrono::milliseconds limit);

// Sends a signal to the process and all its descendants that stayed in its group.
void signal_group(pid_t pid, int signal);

// Where PATH has the program; NOT_FOUND with what was looked for, another code if it is there and
// cannot be run.
std::string find_program(const std::string& name);

}  // namespace leat
