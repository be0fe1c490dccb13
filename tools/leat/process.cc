#include "tools/leat/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "tools/leat/commands.h"

extern char** environ;

namespace leat {
namespace {

[[noreturn]] void fail_errno(const std::string& what) {
  fail(Code::resource_exhausted, what, ": ", std::strerror(errno));
}

constexpr int first_high = 16;

// Standard descriptors and the link's number are set by dup2 in the child: keep ours out of their
// way.
Fd high(int fd) {
  if (fd < 0) fail_errno("cannot make a pipe for a child process");
  Fd low(fd);
  Fd moved(fcntl(fd, F_DUPFD_CLOEXEC, first_high));
  if (!moved && errno == EINVAL) {  // there are no such numbers
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    fail(Code::resource_exhausted, "too few file descriptors for a child process (ulimit -n ",
         limit.rlim_cur, ")");
  }
  if (!moved) fail_errno("cannot make a pipe for a child process");
  return moved;
}

void set_non_blocking(const Fd& fd) {
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

std::pair<Fd, Fd> make_pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) fail_errno("cannot make a pipe for a child process");
  return {high(fds[0]), high(fds[1])};
}

// A pseudo-terminal in raw mode: what is written arrives as it was written.
std::pair<Fd, Fd> make_terminal(int columns) {
  Fd ours = high(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  char name[128];
  if (grantpt(ours.get()) != 0 || unlockpt(ours.get()) != 0 ||
      ptsname_r(ours.get(), name, sizeof name) != 0) {
    fail_errno("cannot make a pseudo-terminal");
  }
  Fd theirs = high(open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios mode{};
  tcgetattr(theirs.get(), &mode);
  cfmakeraw(&mode);
  tcsetattr(theirs.get(), TCSANOW, &mode);
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = 24;
  ioctl(theirs.get(), TIOCSWINSZ, &size);
  return {std::move(ours), std::move(theirs)};
}

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& changes) {
  std::map<std::string, std::string> merged;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string entry = *at;
    const size_t equals = entry.find('=');
    if (equals != std::string::npos) merged[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  for (const auto& [name, value] : changes) merged[name] = value;
  std::vector<std::string> out;
  for (const auto& [name, value] : merged) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& string : strings) out.push_back(string.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? concat("signal ", signal) : concat("SIG", name);
}

std::string Ending::describe() const {
  if (signal == 0) return concat("exit status ", exit_status);
  return concat("killed by signal ", signal, " (", signal_name(signal), ")");
}

Process spawn(const SpawnOptions& options) {
  Process process;
  auto [output, their_output] =
      options.has_terminal ? make_terminal(options.terminal_columns) : make_pipe();
  Fd their_link;
  if (options.has_link) {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
      fail_errno("cannot make a socket pair");
    process.link = high(fds[0]);
    their_link = high(fds[1]);
    set_non_blocking(process.link);
  }
  process.output = std::move(output);
  set_non_blocking(process.output);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, their_output.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, their_output.get(), STDERR_FILENO);
  if (their_link) posix_spawn_file_actions_adddup2(&files, their_link.get(), link_fd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  const std::string self = own_path();
  std::vector<std::string> arguments{self, "exec-child", std::to_string(getpid())};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment = environment_with(options.environment);
  const int error = posix_spawn(&process.pid, self.c_str(), &files, &attributes,
                                pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    fail(Code::resource_exhausted, "cannot start ", options.arguments[0], ": ",
         std::strerror(error));
  }
  return process;
}

bool send_line(const Fd& link, std::string_view line, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!line.empty()) {
    const ssize_t sent = send(link.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      line.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (errno != EAGAIN || left.count() <= 0) return false;
    pollfd polled{link.get(), POLLOUT, 0};
    poll(&polled, 1, static_cast<int>(left.count()));
  }
  return true;
}

std::optional<Ending> reap(pid_t pid) {
  siginfo_t ended{};
  if (waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      ended.si_pid == 0) {
    return std::nullopt;
  }
  kill(-pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) return Ending{.signal = WTERMSIG(status)};
  return Ending{.exit_status = WEXITSTATUS(status)};
}

void signal_group(pid_t pid, int signal) { kill(-pid, signal); }

void survive_failed_writes() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

bool is_ignored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

namespace {

// Of a script, if it is not there: the kernel then says of the script that it is not.
std::string missing_interpreter(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char first[256] = {};
  file.read(first, sizeof first - 1);
  std::istringstream line{first};
  std::string name;
  std::getline(line, name);
  if (!name.starts_with("#!")) return "";
  const size_t from = name.find_first_not_of(" \t", 2);
  if (from == std::string::npos) return "";
  name = name.substr(from, name.find_first_of(" \t", from) - from);
  return access(name.c_str(), F_OK) == 0 ? "" : name;
}

}  // namespace

std::string find_program(const std::string& name) {
  const auto checked = [&](const std::string& path) {
    const std::string interpreter = missing_interpreter(path);
    if (interpreter.empty()) return path;
    // As text: a script written on Windows has \r there.
    const std::string shown =
        nlohmann::json(interpreter).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    fail(Code::failed_precondition, "cannot run ", path, ": its first line asks for ", shown,
         ", which does not exist");
  };
  const auto is_runnable = [](const std::string& path, bool& exists) {
    struct stat found {};
    if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
    exists = true;
    return access(path.c_str(), X_OK) == 0;
  };
  bool exists = false;
  if (name.find('/') != std::string::npos) {
    if (is_runnable(name, exists)) return checked(name);
    struct stat found {};
    if (stat(name.c_str(), &found) == 0 && S_ISDIR(found.st_mode))
      fail(Code::failed_precondition, "cannot run ", name, ": it is a directory");
    if (exists)
      fail(Code::permission_denied, "cannot run ", name, ": it is not executable (chmod +x ", name,
           ")");
    fail(Code::not_found, "cannot run ", name, ": there is no such program");
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders{path == nullptr ? "/usr/bin:/bin" : path};
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (is_runnable(candidate, exists)) return checked(candidate);
  }
  if (access(name.c_str(), F_OK) == 0) {
    fail(Code::not_found, "cannot run ", name, ": it is not in PATH; did you mean ./", name, "?");
  }
  fail(Code::not_found, "cannot run ", name, ": there is no such program in PATH");
}

void exec_child(const std::vector<std::string>& arguments) {
  const pid_t parent =
      arguments.empty() ? 0 : static_cast<pid_t>(std::strtol(arguments[0].c_str(), nullptr, 10));
  if (arguments.size() < 2 || parent <= 0) {
    std::cerr << "leat: exec-child is for the launcher's own use\n";
    std::_Exit(2);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) std::_Exit(128 + SIGKILL);  // it died before we could ask
  std::vector<std::string> program(arguments.begin() + 1, arguments.end());
  execvp(program[0].c_str(), pointers(program).data());
  const int error = errno;
  std::cerr << "leat: cannot run " << program[0] << ": " << std::strerror(error) << "\n";
  std::_Exit(error == ENOENT ? 127 : 126);
}

void end_with_parent() { prctl(PR_SET_PDEATHSIG, SIGTERM); }

void exec_sibling(const std::string& name, const std::vector<std::string>& arguments) {
  const std::string self = own_path();
  const std::string path = self.substr(0, self.rfind('/') + 1) + "leat-" + name;
  std::vector<std::string> program{path};
  program.insert(program.end(), arguments.begin(), arguments.end());
  execv(path.c_str(), pointers(program).data());
  std::cerr << "leat: cannot run " << path << ": " << std::strerror(errno) << "\n";
  std::_Exit(errno == ENOENT ? 127 : 126);
}

std::string own_path() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) fail_errno("cannot read /proc/self/exe");
  return std::string(path, static_cast<size_t>(length));
}

}  // namespace leat
