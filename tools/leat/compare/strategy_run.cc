#include "tools/leat/compare/strategy_run.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "core/error.h"
#include "tools/leat/console.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Short trainings are looked at more often: what they sent after the last look is not seen.
constexpr milliseconds least_look_interval{20}, look_interval{150}, poll_interval{100};
constexpr int looks_so_far = 20;  // about, at the start
constexpr milliseconds answer_limit{2'000};
// For `leat run` to end its processes after SIGTERM, its own grace included; it is killed then.
constexpr std::chrono::seconds end_limit{30};
constexpr size_t kept_lines = 200, shown_lines = 20;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Looks at the cluster whose description appears in a file, on a thread of its own.
class Watcher {
 public:
  explicit Watcher(std::filesystem::path cluster_file)
      : file_(std::move(cluster_file)), thread_([this] { watch(); }) {}
  ~Watcher() { stop(); }

  double bytes() const {
    const std::lock_guard lock(mutex_);
    return samples_.is_empty() ? 0 : samples_.bytes().back().second;
  }
  // What was seen. The thread has ended then.
  ClusterSamples stop() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    return std::move(samples_);
  }

 private:
  void watch() {
    const Clock::time_point start = Clock::now();
    const auto interval = [&] {
      const auto age = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
      return std::clamp(age / looks_so_far, least_look_interval, look_interval);
    };
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, interval(), [&] { return is_stopping_; })) {
      lock.unlock();
      look();
      lock.lock();
    }
  }
  void look() {
    try {
      if (target_.empty()) {
        if (!std::filesystem::exists(file_)) return;
        target_ = "grpc://" + ClusterSpec::read(file_.string()).address({"worker", 0});
      }
      const double before = now();
      const ClusterView view = view_cluster(target_, answer_limit);
      const std::lock_guard lock(mutex_);
      samples_.add((before + now()) / 2, view);
    } catch (const Error&) {
      // Not ready yet, or at its end already.
    }
  }

  const std::filesystem::path file_;
  std::string target_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  ClusterSamples samples_;
  std::thread thread_;
};

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(Code::permission_denied, "cannot make ", path.string(), ": ", error.message());
}

void remove_old(const StrategyRun& run) {
  make_folder(run.records);
  make_folder(run.logs);
  for (const auto& entry : std::filesystem::directory_iterator(run.records)) {
    if (entry.path().extension() == ".jsonl") std::filesystem::remove(entry.path());
  }
  std::filesystem::remove(run.logs / "cluster.json");
}

// The report of the first failure that `leat run` ends with, else just the end.
std::vector<std::string> end_of(const std::deque<std::string>& lines) {
  size_t begin = lines.size() - std::min(lines.size(), shown_lines);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("leat: [")) begin = i;
  }
  return {lines.begin() + static_cast<std::ptrdiff_t>(begin), lines.end()};
}

}  // namespace

StopSignals::StopSignals() {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&handled, signal);
  if (!is_ignored(SIGHUP)) sigaddset(&handled, SIGHUP);
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  fd_ = Fd(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
}

int StopSignals::take() {
  signalfd_siginfo received{};
  if (read(fd_.get(), &received, sizeof received) != sizeof received) return 0;
  return static_cast<int>(received.ssi_signo);
}

StrategyOutcome run_strategy(const StrategyRun& run, StopSignals& signals) {
  remove_old(run);
  StrategyOutcome out;
  Process process = spawn(
      {.arguments = run.command,
       .environment = {{"LEAT_TRAINING_RECORD", std::filesystem::absolute(run.records).string()}}});
  Watcher watcher(run.logs / "cluster.json");
  const Clock::time_point start = Clock::now();
  Clock::time_point kill_at = Clock::time_point::max();
  std::deque<std::string> lines;
  LineReader reader;
  const auto keep = [&](const std::string& line) {
    lines.push_back(line);
    if (lines.size() > kept_lines) lines.pop_front();
  };
  const auto read_output = [&] {
    char buffer[65536];
    while (process.output) {
      const ssize_t got = read(process.output.get(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) return process.output.close();
      reader.feed({buffer, static_cast<size_t>(got)}, keep, [](const std::string&) {});
    }
  };
  const auto end_it = [&] {
    signal_group(process.pid, SIGTERM);
    kill_at = Clock::now() + end_limit;
  };
  for (std::optional<Ending> ending; !ending;) {
    pollfd polled[] = {{signals.fd(), POLLIN, 0},
                       {process.output ? process.output.get() : -1, POLLIN, 0}};
    poll(polled, 2, static_cast<int>(poll_interval.count()));
    read_output();
    while (const int signal = signals.take()) {
      if (out.stop_signal != 0) kill_at = Clock::now();
      out.stop_signal = signal;
      if (kill_at == Clock::time_point::max()) end_it();
    }
    if (run.timeout.count() > 0 && Clock::now() - start > run.timeout &&
        kill_at == Clock::time_point::max()) {
      out.is_late = true;
      end_it();
    }
    if (Clock::now() >= kill_at) signal_group(process.pid, SIGKILL);
    if (run.on_look) run.on_look(Clock::now() - start, watcher.bytes());
    ending = reap(process.pid);
    if (ending) out.ending = *ending;
  }
  read_output();
  reader.finish(keep);
  out.samples = watcher.stop();
  out.last_lines = end_of(lines);
  return out;
}

}  // namespace leat
