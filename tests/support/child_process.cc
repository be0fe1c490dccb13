#include "tests/support/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>

extern char** environ;

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

// Readable when the process has ended.
int open_process(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

bool poll_until(int fd, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait{fd, POLLIN, 0};
    const int polled = poll(&wait, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (polled > 0) return true;
    if (polled == 0) return false;
    if (errno != EINTR) throw std::runtime_error(std::string("poll: ") + std::strerror(errno));
  }
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> arguments, Environment environment) {
  std::map<std::string, std::string> merged;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string entry = *at;
    merged[entry.substr(0, entry.find('='))] =
        entry.substr(std::min(entry.size(), entry.find('=') + 1));
  }
  for (const auto& [name, value] : environment) merged[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : merged) entries.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  for (std::string& entry : entries) envp.push_back(entry.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, fds[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, fds[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int error = posix_spawnp(&pid_, argv[0], &files, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  close(fds[1]);
  if (error != 0) {
    close(fds[0]);
    throw std::runtime_error("cannot start " + arguments[0] + ": " + std::strerror(error));
  }
  reader_ = std::thread([this, fd = fds[0]] { read_output(fd); });
}

ChildProcess::~ChildProcess() {
  if (!is_reaped_) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  reader_.join();
}

void ChildProcess::read_output(int fd) {
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(fd, buffer, sizeof buffer)) > 0) {
    const std::lock_guard lock(mutex_);
    output_.append(buffer, static_cast<size_t>(got));
    changed_.notify_all();
  }
  close(fd);
  const std::lock_guard lock(mutex_);
  is_at_end_ = true;
  changed_.notify_all();
}

void ChildProcess::send_signal(int signal) const {
  if (is_reaped_ || kill(pid_, signal) != 0 || (signal != SIGSTOP && signal != SIGKILL)) return;
  siginfo_t ignored{};
  waitid(P_PID, static_cast<id_t>(pid_), &ignored,
         WEXITED | (signal == SIGSTOP ? WSTOPPED : 0) | WNOWAIT);
}

std::string ChildProcess::wait_for(const std::string& text, std::chrono::milliseconds deadline) {
  std::unique_lock lock(mutex_);
  const auto is_there = [&] { return output_.find(text) != std::string::npos; };
  changed_.wait_for(lock, deadline, [&] { return is_at_end_ || is_there(); });
  if (!is_there()) {
    throw std::runtime_error(
        (is_at_end_ ? "the program ended without \"" : "the deadline passed without \"") + text +
        "\" in its output:\n" + output_);
  }
  return output_;
}

int ChildProcess::wait(std::chrono::milliseconds deadline) {
  if (is_reaped_) return status_;
  const int process = open_process(pid_);
  const bool has_ended = poll_until(process, Clock::now() + deadline);
  close(process);
  if (!has_ended)
    throw std::runtime_error("the program still runs after the deadline; its output:\n" + output());
  int status = 0;
  waitpid(pid_, &status, 0);
  is_reaped_ = true;
  status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  // The rest of its output in the pipe. A surviving descendant keeps the pipe open; do not wait for
  // it.
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::seconds(5), [&] { return is_at_end_; });
  if (!is_at_end_) kill(-pid_, SIGKILL);
  return status_;
}

std::string ChildProcess::output() const {
  const std::lock_guard lock(mutex_);
  return output_;
}

bool is_alive(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return false;
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text[name_end + 2] != 'Z';
}

bool wait_until_gone(pid_t pid, std::chrono::milliseconds deadline) {
  const int process = open_process(pid);
  if (process < 0) return !is_alive(pid);
  const bool has_gone = poll_until(process, Clock::now() + deadline);
  close(process);
  return has_gone;
}

void expect_gone(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids)
    EXPECT_TRUE(wait_until_gone(pid)) << "process " << pid << " was left behind";
}

}  // namespace leat
