// A real process in a test: reads its output, waits for its end, and leaves nothing behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat {

// Started by posix_spawn in a process group of its own. Reads both output streams, merged. The
// destructor kills the group.
class ChildProcess {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;
  explicit ChildProcess(std::vector<std::string> arguments, Environment environment = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Returns once SIGSTOP or SIGKILL has taken effect: after kill(2) the process may run for a
  // while.
  void send_signal(int signal) const;

  // Waits until the output contains `text`, and returns all output so far. Throws
  // std::runtime_error with the output if the program ends without it, or at the deadline.
  std::string wait_for(const std::string& text,
                       std::chrono::milliseconds deadline = std::chrono::seconds(60));
  // Waits for the end: exit status, or 128 + signal. Throws as above.
  int wait(std::chrono::milliseconds deadline = std::chrono::seconds(60));
  std::string output() const;

 private:
  void read_output(int fd);

  pid_t pid_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string output_;
  bool is_at_end_ = false;  // end of its output
  bool is_reaped_ = false;
  int status_ = 0;
  std::thread reader_;
};

bool is_alive(pid_t pid);  // and not a zombie
// True if the process ends within the deadline.
bool wait_until_gone(pid_t pid, std::chrono::milliseconds deadline = std::chrono::seconds(10));
// Fails the test once for each process that has not ended by then.
void expect_gone(const std::vector<pid_t>& pids);

}  // namespace leat
