#include "tools/leat/launcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/error.h"
#include "distributed/host_owner.h"
#include "distributed/launcher_link.h"
#include "graph/formats/file.h"
#include "tools/leat/cluster_source.h"
#include "tools/leat/commands.h"
#include "tools/leat/console.h"
#include "tools/leat/failure_report.h"
#include "tools/leat/member.h"
#include "tools/leat/process.h"
#include "tools/leat/startup_table.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds waiting_interval{10'000};  // between two lines on who is still missing
constexpr milliseconds name_interval{500};        // between two questions for a host's address

// In the log folder: the cluster as it was asked for, with ports that are still open, which every
// task reads (what the user named may be a pipe, or change); and as it is.
constexpr const char* asked_file = "cluster.asked.json";
constexpr const char* cluster_file = "cluster.json";

enum class Phase { starting, running, failing, stopping, killing };

class Launcher {
 public:
  explicit Launcher(LaunchOptions options);
  int run();

 private:
  bool find_own_tasks();
  void prepare();
  void start_task(size_t row);
  void start_programs();
  void start_program(StartupRow& row, bool has_terminal);
  bool has_program(const TaskName& task) const;
  Member& start(const SpawnOptions& spawn_options, Member member);
  std::string task_config(const TaskName& task) const;
  std::string start_timeout_text() const {  // seconds
    return fmt::format("{:.3f}", std::chrono::duration<double>(options_.start_timeout).count());
  }

  milliseconds until_next_deadline() const;
  void wait_for_events();
  void tell_of_logs();
  void check_deadlines();
  void handle_signals();
  void read_link(Member& member);
  void handle_report(Member& member, const TaskReport& report);
  void reap_all();
  void handle_ending(Member& member);

  void write_cluster(const char* name) const;
  void tell_cluster_when_bound();
  void run_when_ready();
  void note_missing();
  void print_table(std::ostream& out);
  void stop_when_done();
  TaskName chief() const {
    return cluster_.contains({"chief", 0}) ? TaskName{"chief", 0} : TaskName{"worker", 0};
  }
  void fail_start(const std::string& why);
  void stop(Phase phase);
  void kill_late();
  int finish();
  std::string describe(const Member& member) const;

  bool is_any_busy() const {
    return std::any_of(members_.begin(), members_.end(),
                       [](const auto& member) { return member->is_busy(); });
  }
  StartupRow& row_of(const TaskName& task);
  void set_state(StartupRow& row, const std::string& state, const std::string& detail);
  std::chrono::duration<double> since_start(Clock::time_point time) const { return time - start_; }
  void say(const std::string& text) { console_.line("leat:", text); }

  LaunchOptions options_;
  ClusterSpec cluster_;  // with the ports that were bound
  Console& console_ = Console::standard();
  Clock::time_point start_ = Clock::now();
  Clock::time_point phase_end_;  // deadline of this phase; not used while running
  Clock::time_point next_note_;
  Phase phase_ = Phase::starting;
  bool is_cluster_known_ = false;
  int stop_signal_ = 0;  // that asked us to end
  bool has_failed_start_ = false;
  bool has_told_of_logs_ = false;
  Fd signals_;
  std::vector<StartupRow> rows_;  // of every task of the cluster
  std::set<TaskName> left_;       // tasks elsewhere that were there and are not any more
  std::vector<std::unique_ptr<Member>> members_;
};

Launcher::Launcher(LaunchOptions options)
    : options_(std::move(options)), cluster_(options_.cluster) {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&handled, signal);
  if (!is_ignored(SIGHUP)) sigaddset(&handled, SIGHUP);  // blocked, it would come all the same
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  signals_ = Fd(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  survive_failed_writes();
}

// Makes the rows; those of our tasks are "starting". A name that cannot be resolved is asked for
// again until the start's deadline: a host may get its name after its processes. False if that
// passed, or a signal came.
bool Launcher::find_own_tasks() {
  const std::string unresolved = "unresolved";
  for (const TaskName& task : cluster_.tasks()) {
    const bool is_named = !options_.only || task == *options_.only;
    rows_.push_back({.task = task,
                     .address = cluster_.address(task),
                     .state = !is_named       ? ""
                              : options_.only ? "starting"
                                              : unresolved});
  }
  for (bool is_first = true;; is_first = false) {
    bool is_any_unknown = false;
    for (StartupRow& row : rows_) {
      if (row.state != unresolved) continue;
      const std::string host = HostPort::parse(row.address).host;
      const HostOwner owner = owner_of_host(host);
      if (owner == HostOwner::unknown) {
        is_any_unknown = true;
        set_state(row, unresolved, host + " cannot be resolved");
      } else {
        set_state(row, owner == HostOwner::ours ? "starting" : "", "");
      }
    }
    if (!is_any_unknown) return true;
    if (is_first) print_table(std::cout);
    pollfd signals{signals_.get(), POLLIN, 0};
    if (poll(&signals, 1, static_cast<int>(name_interval.count())) > 0) handle_signals();
    check_deadlines();
    if (phase_ != Phase::starting) return false;
  }
}

void Launcher::prepare() {
  bool is_any_ours = false, is_any_elsewhere = false;
  for (const StartupRow& row : rows_)
    (row.state == "starting" ? is_any_ours : is_any_elsewhere) = true;
  check(is_any_ours || options_.only, "no task of ", options_.source,
        " belongs on this host: none of the addresses is its own (", cluster_.to_json(), ")");
  check(!is_any_elsewhere || !cluster_.has_open_ports(), options_.source,
        " has tasks on several hosts, so every port must be given: other hosts cannot know one "
        "that is chosen here");
  if (options_.log_directory.empty()) {
    const char* given = std::getenv("TMPDIR");
    const std::filesystem::path parent = given == nullptr || *given == 0 ? "/tmp" : given;
    std::string name = (parent / "leat-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      const std::string reason = std::strerror(errno);
      fail(Code::permission_denied, "cannot make a log folder in ", parent.string(), ": ", reason,
           " (TMPDIR names another place, --log-dir the folder itself)");
    }
    options_.log_directory = name;
  }
  std::error_code error;
  std::filesystem::create_directories(options_.log_directory, error);
  if (error)
    fail(Code::permission_denied, "cannot make ", options_.log_directory.string(), ": ",
         error.message());
  write_cluster(asked_file);
}

Member& Launcher::start(const SpawnOptions& spawn_options, Member member) {
  const std::string name = fmt::format("{}-{}{}.log", member.task.job, member.task.index,
                                       member.is_program ? ".program" : "");
  member.log_path = (options_.log_directory / name).string();
  member.log.open(member.log_path, std::ios::binary | std::ios::trunc);
  if (!member.log)
    fail(Code::permission_denied, "cannot write ", member.log_path, ": ", std::strerror(errno));
  member.started = Clock::now();
  member.process = spawn(spawn_options);
  members_.push_back(std::make_unique<Member>(std::move(member)));
  return *members_.back();
}

void Launcher::start_task(size_t row) {
  const TaskName task = rows_[row].task;
  SpawnOptions spawn_options{.has_link = true};
  spawn_options.arguments = {options_.task_program.empty() ? own_path() : options_.task_program,
                             "task",
                             (options_.log_directory / asked_file).string(),
                             "--job",
                             task.job,
                             "--task",
                             std::to_string(task.index),
                             "--launcher-fd",
                             std::to_string(link_fd),
                             "--start-timeout",
                             start_timeout_text()};
  // Where a program of the same name runs, the plain prefix is the program's.
  const std::string prefix =
      fmt::format("[{}:{}{}]", task.job, task.index, has_program(task) ? " task" : "");
  rows_[row].pid = start(spawn_options, {.prefix = prefix, .task = task}).process.pid;
}

bool Launcher::has_program(const TaskName& task) const {
  return !options_.program.empty() && (task.job == "worker" || task.job == "chief");
}

std::string Launcher::task_config(const TaskName& task) const {
  nlohmann::json config = nlohmann::json::parse(cluster_.to_json());
  config["task"] = {{"type", task.job}, {"index", task.index}};
  config["rpc_layer"] = "grpc";
  return config.dump();
}

// Of the tasks of this host; the chief's first.
void Launcher::start_programs() {
  std::vector<StartupRow*> rows;
  for (StartupRow& row : rows_) {
    const bool is_ours = options_.embed ? row.state == "starting" : row.pid != 0;
    if (is_ours && has_program(row.task)) rows.push_back(&row);
  }
  std::stable_partition(rows.begin(), rows.end(),
                        [](const StartupRow* row) { return row->task.job == "chief"; });
  for (StartupRow* row : rows) start_program(*row, /*has_terminal=*/row == rows.front());
  if (rows.empty() && !options_.only)
    say("this host has no worker, so no program runs here; its tasks run until they are told to "
        "stop");
}

void Launcher::start_program(StartupRow& row, bool has_terminal) {
  SpawnOptions spawn_options{.arguments = options_.program,
                             .environment = {{"TF_CONFIG", task_config(row.task)}}};
  const std::string prefix = fmt::format("[{}:{}]", row.task.job, row.task.index);
  spawn_options.has_terminal = has_terminal && console_.is_terminal();
  spawn_options.terminal_columns =
      std::max(40, console_.columns() - static_cast<int>(prefix.size()) - 2);
  if (options_.embed) {
    spawn_options.has_link = true;
    spawn_options.environment.emplace_back(launcher_fd_variable, std::to_string(link_fd));
    spawn_options.environment.emplace_back(start_timeout_variable, start_timeout_text());
  }
  const Member& member = start(spawn_options, {.prefix = prefix,
                                               .task = row.task,
                                               .is_program = true,
                                               .is_task = options_.embed,
                                               .has_terminal = has_terminal});
  if (!options_.embed) return;
  row.pid = member.process.pid;
  row.detail = "its program has not called leat::join_cluster()";
}

int Launcher::run() {
  phase_end_ = start_ + options_.start_timeout;
  next_note_ = start_ + waiting_interval / 2;
  if (!find_own_tasks()) return finish();
  prepare();
  say(fmt::format("starting {} of {}; logs in {}", rows_.size() == 1 ? "the task" : "the tasks",
                  options_.source, options_.log_directory.string()));
  try {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const bool is_embedded = options_.embed && has_program(rows_[i].task);
      if (rows_[i].state == "starting" && !is_embedded) start_task(i);
    }
    if (options_.embed) start_programs();
    while (std::any_of(members_.begin(), members_.end(),
                       [](const auto& member) { return member->is_running(); })) {
      wait_for_events();
      check_deadlines();
    }
  } catch (...) {
    for (const auto& member : members_) {
      if (member->is_running()) signal_group(member->process.pid, SIGKILL);
    }
    throw;
  }
  return finish();
}

milliseconds Launcher::until_next_deadline() const {
  Clock::time_point next = Clock::now() + std::chrono::hours(1);
  if (phase_ != Phase::running && phase_ != Phase::killing) next = std::min(next, phase_end_);
  if (phase_ == Phase::starting) next = std::min(next, next_note_);
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(next - Clock::now()));
}

void Launcher::wait_for_events() {
  std::vector<pollfd> polled{{signals_.get(), POLLIN, 0}};
  std::vector<std::pair<Member*, bool>> of;  // and whether it is its link
  for (const auto& member : members_) {
    if (member->process.output) {
      polled.push_back({member->process.output.get(), POLLIN, 0});
      of.emplace_back(member.get(), false);
    }
    if (member->process.link) {
      polled.push_back({member->process.link.get(), POLLIN, 0});
      of.emplace_back(member.get(), true);
    }
  }
  if (poll(polled.data(), polled.size(), static_cast<int>(until_next_deadline().count())) < 0 &&
      errno != EINTR) {
    fail(Code::internal, "poll: ", std::strerror(errno));
  }
  // Output before endings, so that the last words are read when the ending is told.
  for (size_t i = 0; i < of.size(); ++i) {
    if (polled[i + 1].revents == 0) continue;
    if (of[i].second) {
      read_link(*of[i].first);
    } else {
      of[i].first->read_output(console_);
    }
  }
  if (polled[0].revents != 0) handle_signals();
  tell_of_logs();
}

// Once: what fills one log's disk soon fails the others.
void Launcher::tell_of_logs() {
  if (has_told_of_logs_) return;
  for (const auto& member : members_) {
    if (member->log_problem.empty()) continue;
    has_told_of_logs_ = true;
    return say(fmt::format("cannot write the log {}: {}; more is shown here, but not kept",
                           member->log_path, member->log_problem));
  }
}

void Launcher::check_deadlines() {
  const auto now = Clock::now();
  switch (phase_) {
    case Phase::starting:
      if (now >= phase_end_) {
        fail_start(fmt::format("the cluster was not ready within {:.0f} s (--start-timeout)",
                               std::chrono::duration<double>(options_.start_timeout).count()));
      } else if (now >= next_note_) {
        note_missing();
        next_note_ = now + waiting_interval;
      }
      break;
    case Phase::failing:
      if (now >= phase_end_) stop(Phase::stopping);
      break;
    case Phase::stopping:
      if (now >= phase_end_) kill_late();
      break;
    case Phase::running:
    case Phase::killing:
      break;
  }
}

void Launcher::handle_signals() {
  signalfd_siginfo received{};
  while (read(signals_.get(), &received, sizeof received) == sizeof received) {
    const int signal = static_cast<int>(received.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (stop_signal_ != 0) {
      say("killing what is left");
      stop(Phase::killing);
      continue;
    }
    stop_signal_ = signal;
    say(fmt::format("{}: stopping; once more to kill at once", signal_name(signal)));
    reap_all();
    if (phase_ != Phase::stopping && phase_ != Phase::killing) stop(Phase::stopping);
  }
  reap_all();
}

void Launcher::read_link(Member& member) {
  for (const TaskReport& report : member.read_reports()) handle_report(member, report);
}

void Launcher::handle_report(Member& member, const TaskReport& report) {
  StartupRow& row = row_of(member.task);
  switch (report.state) {
    case TaskReport::State::bound:
      cluster_.set_address(member.task, report.address);
      row.address = report.address;
      set_state(row, "listening", "");
      tell_cluster_when_bound();
      break;
    case TaskReport::State::waiting: {
      std::string names;
      for (const MissingPeer& peer : report.missing) {
        names += (names.empty() ? "for " : ", ") + peer.task.to_string();
        if (!cluster_.contains(peer.task)) continue;
        StartupRow& missing = row_of(peer.task);
        if (missing.pid != 0) continue;
        const bool is_refused = peer.reason.find("refused") != std::string::npos;
        set_state(missing, "no answer",
                  is_refused ? fmt::format("{}: is `leat up` running on {}?", peer.reason,
                                           HostPort::parse(missing.address).host)
                             : peer.reason);
      }
      set_state(row, "waiting", names);
      break;
    }
    case TaskReport::State::ready:
      set_state(row, "ready", report.detail);
      run_when_ready();
      break;
    case TaskReport::State::left:
      left_.clear();
      for (const MissingPeer& peer : report.missing) left_.insert(peer.task);
      stop_when_done();
      break;
    case TaskReport::State::done:
      member.is_done = true;
      stop_when_done();
      break;
    case TaskReport::State::failed:
      set_state(row, "failed", report.detail);
      break;
  }
}

// At once: launchers of other ranks may write the same, and their tasks read it.
void Launcher::write_cluster(const char* name) const {
  replace_file((options_.log_directory / name).string(), cluster_.to_json() + "\n");
}

void Launcher::tell_cluster_when_bound() {
  if (is_cluster_known_) return;
  for (const StartupRow& row : rows_) {
    if (row.pid != 0 && row.state != "listening") return;
  }
  is_cluster_known_ = true;
  try {
    write_cluster(cluster_file);
  } catch (const Error& error) {
    return fail_start(error.message());
  }
  const std::string line = cluster_.to_json() + "\n";
  for (const auto& member : members_) {
    if (member->process.link)
      send(member->process.link.get(), line.data(), line.size(), MSG_NOSIGNAL);
  }
}

void Launcher::run_when_ready() {
  if (phase_ != Phase::starting) return;
  for (const StartupRow& row : rows_) {
    if (row.pid != 0 && row.state != "ready") return;
  }
  for (StartupRow& row : rows_) {
    if (row.pid == 0) set_state(row, "ready", options_.only ? "another rank" : "on another host");
  }
  phase_ = Phase::running;
  if (!options_.only || *options_.only == chief()) print_table(std::cout);
  if (!options_.program.empty()) {
    if (!options_.embed) start_programs();
    stop_when_done();  // an embedded program may have been done before the last task was ready
    return;
  }
  const auto asked = std::find_if(rows_.begin(), rows_.end(), [](const StartupRow& row) {
    return row.task.job == "worker" || row.task.job == "chief";
  });
  const std::string& dialled = asked == rows_.end() ? rows_.front().address : asked->address;
  say(fmt::format("ready; programs connect to grpc://{}; the addresses are in {}; Ctrl-C ends it",
                  dialled, (options_.log_directory / cluster_file).string()));
}

void Launcher::note_missing() {
  for (const StartupRow& row : rows_) {
    if (row.state != "ready" && !row.state.empty()) {
      say(fmt::format("after {:.0f} s, {} ({}): {}{}{}", since_start(Clock::now()).count(),
                      row.task.to_string(), row.address, row.state, row.detail.empty() ? "" : ", ",
                      row.detail));
    }
  }
}

void Launcher::reap_all() {
  for (const auto& member : members_) {
    if (!member->is_running()) continue;
    member->ending = reap(member->process.pid);
    if (member->ending) member->ended = Clock::now();
  }
  for (size_t i = 0; i < members_.size(); ++i) {  // start_programs appends
    Member& member = *members_[i];
    if (!member.ending || member.is_handled) continue;
    member.is_handled = true;
    if (member.process.link) read_link(member);
    member.read_last_output(console_);
    handle_ending(member);
  }
}

void Launcher::handle_ending(Member& member) {
  StartupRow& row = row_of(member.task);
  if (member.is_task && row.state != "failed") set_state(row, "ended", member.ending->describe());
  if (phase_ == Phase::stopping || phase_ == Phase::killing || member.was_stopped) return;
  if (phase_ == Phase::starting && member.is_program && member.ending->is_success()) {
    return fail_start(fmt::format(
        "{} ended without having joined the cluster: with --embed a program is its worker's task, "
        "and has to call leat::join_cluster()",
        member.prefix));
  }
  if (member.is_program && member.ending->is_success()) {
    stop_when_done();
    return;
  }
  if (phase_ == Phase::starting) {
    fail_start(fmt::format("{} ended while the cluster was starting", member.task.to_string()));
  } else if (phase_ == Phase::running) {
    // The programs may say in their own words what they lost; tasks alone have nothing to add. A
    // program may hear of a killed task before its parent does: the kernel closes the sockets
    // first.
    phase_ = Phase::failing;
    const bool is_awaited = member.is_task && is_any_busy();
    console_.end_redraw();
    say(fmt::format("{} {} ({}){}", member.prefix,
                    member.is_program ? "the program ended" : "the task ended",
                    member.ending->describe(),
                    is_awaited ? "; waiting for the programs to notice" : "; stopping the rest"));
    if (!is_awaited && member.is_task) return stop(Phase::stopping);
    phase_end_ = Clock::now() + (is_awaited ? options_.linger : close_in_time);
  } else if (phase_ == Phase::failing) {
    if (!is_any_busy()) phase_end_ = std::min(phase_end_, Clock::now() + close_in_time);
  }
}

// The programs of this host have ended, and (if others have launchers of their own) nobody needs
// its task any more.
void Launcher::stop_when_done() {
  if (phase_ != Phase::running || options_.program.empty()) return;
  if (is_any_busy()) return;
  if (options_.only) {
    const bool is_worker = options_.only->job == "worker" || options_.only->job == "chief";
    for (const TaskName& task : cluster_.tasks()) {
      const bool is_needed_by =
          is_worker ? task == chief() : task.job == "worker" || task.job == "chief";
      if (task != *options_.only && is_needed_by && !left_.contains(task)) return;
    }
  }
  stop(Phase::stopping);
}

void Launcher::fail_start(const std::string& why) {
  has_failed_start_ = true;
  console_.end_redraw();
  std::cerr << "leat: " << why << "\n";
  print_table(std::cerr);
  stop(Phase::stopping);
}

void Launcher::kill_late() {
  for (const auto& member : members_) {
    if (!member->is_running()) continue;
    say(fmt::format("{} did not end within {:.1f} s of SIGTERM; killing it", member->prefix,
                    std::chrono::duration<double>(options_.grace).count()));
  }
  stop(Phase::killing);
}

void Launcher::stop(Phase phase) {
  phase_ = phase;
  phase_end_ = Clock::now() + options_.grace;
  for (const auto& member : members_) {
    if (!member->is_running()) continue;
    member->process.link.close();  // wakes a task that still waits for our answer
    // A program that is done ends by itself now, and its status is its own.
    if (member->is_done && phase != Phase::killing) continue;
    member->was_stopped = true;
    signal_group(member->process.pid, phase == Phase::killing ? SIGKILL : SIGTERM);
  }
}

std::string Launcher::describe(const Member& member) const {
  const std::string task =
      fmt::format("{} ({}", member.task.to_string(), cluster_.address(member.task));
  if (!member.is_program) return fmt::format("task {}, pid {})", task, member.process.pid);
  const std::string& program = options_.program[0];
  if (!member.is_task) return fmt::format("program {} (pid {})", program, member.process.pid);
  return fmt::format("program {}, which is task {}, pid {})", program, task, member.process.pid);
}

int Launcher::finish() {
  console_.end_redraw();
  std::vector<Failure> failures;
  for (const auto& member : members_) {
    if (!member->ending) continue;
    if (member->is_program && member->ending->is_success()) continue;
    failures.push_back({.label = member->prefix,
                        .what = describe(*member),
                        .is_task = member->is_task,
                        .ending = *member->ending,
                        .after = since_start(member->ended),
                        .was_stopped = member->was_stopped,
                        .last_lines = {member->last_lines.begin(), member->last_lines.end()},
                        .log = member->log_path,
                        .log_problem = member->log_problem});
  }
  const bool has_failed = std::any_of(failures.begin(), failures.end(),
                                      [](const Failure& f) { return !f.was_stopped; });
  if (has_failed) {
    std::cerr << format_failure_report(failures) << std::flush;
    const Failure& cause = failures[root_cause(failures)];
    const int status = cause.ending.shell_status();
    return status == 0 ? 1 : status;
  }
  if (has_failed_start_) return 1;
  if (stop_signal_ != 0 && !options_.program.empty()) return 128 + stop_signal_;
  return 0;
}

StartupRow& Launcher::row_of(const TaskName& task) {
  const auto row =
      std::find_if(rows_.begin(), rows_.end(), [&](const StartupRow& r) { return r.task == task; });
  check_internal(row != rows_.end(), task, " has no row");
  return *row;
}

void Launcher::set_state(StartupRow& row, const std::string& state, const std::string& detail) {
  if (row.state != state) row.after = since_start(Clock::now());
  row.state = state;
  row.detail = detail;
}

void Launcher::print_table(std::ostream& out) { out << format_startup_table(rows_) << std::flush; }

}  // namespace

int launch(LaunchOptions options) { return Launcher(std::move(options)).run(); }

}  // namespace leat
