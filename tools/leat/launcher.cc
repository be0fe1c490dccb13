#include "tools/leat/launcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <set>

#include "core/error.h"
#include "distributed/cluster/launcher_link.h"
#include "graph/formats/file.h"
#include "tools/leat/command_lines.h"
#include "tools/leat/console.h"
#include "tools/leat/failure_report.h"
#include "tools/leat/gpu_shares.h"
#include "tools/leat/member_group.h"
#include "tools/leat/startup_table.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds waiting_interval{10'000};  // between two lines on who is still missing
constexpr milliseconds name_interval{500};        // between two questions for a host's address
constexpr std::chrono::seconds name_limit{5};     // for a name that a resolver does not know
constexpr milliseconds answer_limit{2'000};       // for a task to read what the cluster is

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
  void check_own_tasks() const;
  void share_gpus();
  void start_task(StartupRow& row);
  TaskName plaintext_task() const;
  void start_programs();
  void start_program(StartupRow& row, bool has_terminal);

  milliseconds until_next_deadline() const;
  void tell_of_logs();
  void check_deadlines();
  void handle_signals();
  void read_link(Member& member);
  void handle_report(Member& member, const TaskReport& report);
  void note_missing(const MissingPeer& peer);
  void reap_all();
  void handle_ending(Member& member);

  void write_cluster(const char* name) const;
  void tell_cluster_when_bound();
  void run_when_ready();
  void tell_of_missing();
  void print_table(std::ostream& out);
  void stop_when_done();
  TaskName chief() const {
    return cluster_.contains({"chief", 0}) ? TaskName{"chief", 0} : TaskName{"worker", 0};
  }
  void fail_start(const std::string& why);
  void stop(Phase phase);
  void kill_late();
  int finish();
  std::vector<Failure> failures() const;
  std::string describe(const Member& member) const;

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
  StartupTable table_;
  std::map<TaskName, std::string> gpus_;  // of the tasks that share those of the host
  std::set<TaskName> left_;               // tasks elsewhere that were there and are not any more
  MemberGroup members_;
};

Launcher::Launcher(LaunchOptions options)
    : options_(std::move(options)),
      cluster_(options_.cluster),
      table_(cluster_, options_.only, start_),
      members_(console_) {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&handled, signal);
  if (!is_ignored(SIGHUP)) sigaddset(&handled, SIGHUP);  // blocked, it would come all the same
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  signals_ = Fd(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  survive_failed_writes();
}

// A name that cannot be resolved is asked for again until the start's deadline: a host may get its
// name after its processes. But where a resolver says that nobody has the name, that is soon taken
// for a slip of the pen. False if the start has failed, or a signal came.
bool Launcher::find_own_tasks() {
  for (bool is_first = true; !table_.find_hosts(); is_first = false) {
    if (is_first) print_table(std::cout);
    pollfd signals{signals_.get(), POLLIN, 0};
    if (poll(&signals, 1, static_cast<int>(name_interval.count())) > 0) handle_signals();
    check_deadlines();
    if (phase_ != Phase::starting) return false;
    if (options_.waits_for_names) continue;
    for (const StartupRow& row : table_.rows()) {
      if (!row.unknown_since || Clock::now() - *row.unknown_since < name_limit) continue;
      fail_start(
          fmt::format("the host name {} of {} has no address after {} s: correct it in {}, or "
                      "wait for it with --wait-for-names",
                      HostPort::parse(row.address).host, row.task.to_string(), name_limit.count(),
                      options_.source));
      return false;
    }
  }
  return true;
}

void Launcher::check_own_tasks() const {
  bool is_any_ours = false, is_any_elsewhere = false;
  for (const StartupRow& row : table_.rows())
    (row.state == "starting" ? is_any_ours : is_any_elsewhere) = true;
  check(is_any_ours || options_.only, "no task of ", options_.source,
        " belongs on this host: none of the addresses is local (", cluster_.to_json(), ")");
  check(!is_any_elsewhere || !cluster_.has_open_ports(), options_.source,
        " has tasks on several hosts, so every task needs a port: other hosts cannot know a port "
        "that is chosen here");
}

// srun and mpirun start a launcher for each task, and give each task its GPUs themselves.
void Launcher::share_gpus() {
  if (options_.only) return;
  std::vector<TaskName> ours;
  for (const StartupRow& row : table_.rows())
    if (row.state == "starting") ours.push_back(row.task);
  gpus_ = gpu_shares(cluster_, ours, gpus_of_this_host());
}

void Launcher::start_task(StartupRow& row) {
  const bool has_plaintext_port = options_.plaintext_port > 0 && row.task == plaintext_task();
  SpawnOptions command = task_command(
      options_, row.task, (members_.log_directory() / asked_file).string(), has_plaintext_port);
  if (const auto own = gpus_.find(row.task); own != gpus_.end())
    command.environment.emplace_back("CUDA_VISIBLE_DEVICES", own->second);
  const Member& member =
      members_.start(command, {.prefix = task_prefix(options_, row.task), .task = row.task});
  row.pid = member.process.pid;
}

// The one of this host whose master clients of the host ask.
TaskName Launcher::plaintext_task() const {
  const auto is_ours = [](const StartupRow& row) {
    return row.state == "starting" || row.pid != 0;
  };
  const std::vector<StartupRow>& rows = table_.rows();
  auto found = std::find_if(rows.begin(), rows.end(), [&](const StartupRow& row) {
    return is_ours(row) && (row.task.job == "worker" || row.task.job == "chief");
  });
  if (found == rows.end()) found = std::find_if(rows.begin(), rows.end(), is_ours);
  return found->task;
}

// Of the tasks of this host; the chief's first.
void Launcher::start_programs() {
  std::vector<StartupRow*> rows;
  for (StartupRow& row : table_.rows()) {
    const bool is_ours = options_.embed ? row.state == "starting" : row.pid != 0;
    if (is_ours && has_program(options_, row.task)) rows.push_back(&row);
  }
  std::stable_partition(rows.begin(), rows.end(),
                        [](const StartupRow* row) { return row->task.job == "chief"; });
  for (StartupRow* row : rows) start_program(*row, /*has_terminal=*/row == rows.front());
  if (rows.empty() && !options_.only)
    say("this host has no worker, so no program runs here; its tasks run until they are stopped");
}

void Launcher::start_program(StartupRow& row, bool has_terminal) {
  SpawnOptions command = program_command(options_, row.task, cluster_);
  const std::string prefix = program_prefix(row.task);
  if (const auto own = gpus_.find(row.task); own != gpus_.end() && options_.embed)
    command.environment.emplace_back("CUDA_VISIBLE_DEVICES", own->second);
  command.has_terminal = has_terminal && console_.is_terminal();
  command.terminal_columns = std::max(40, console_.columns() - static_cast<int>(prefix.size()) - 2);
  const Member& member = members_.start(command, {.prefix = prefix,
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
  check_own_tasks();
  share_gpus();
  members_.set_log_directory(options_.log_directory);
  write_cluster(asked_file);
  say(fmt::format("starting {} of {}; logs in {}",
                  table_.rows().size() == 1 ? "the task" : "the tasks", options_.source,
                  members_.log_directory().string()));
  try {
    for (StartupRow& row : table_.rows()) {
      const bool is_embedded = options_.embed && has_program(options_, row.task);
      if (row.state == "starting" && !is_embedded) start_task(row);
    }
    if (options_.embed) start_programs();
    while (members_.is_any_running()) {
      const bool has_signal = members_.wait(signals_, until_next_deadline(),
                                            [&](Member& member) { read_link(member); });
      if (has_signal) handle_signals();
      tell_of_logs();
      check_deadlines();
      if (phase_ == Phase::running) options_.slow.update(members_);
    }
  } catch (...) {
    members_.kill();
    throw;
  }
  return finish();
}

milliseconds Launcher::until_next_deadline() const {
  Clock::time_point next = Clock::now() + std::chrono::hours(1);
  if (phase_ != Phase::running && phase_ != Phase::killing) next = std::min(next, phase_end_);
  if (phase_ == Phase::starting) next = std::min(next, next_note_);
  if (phase_ == Phase::running) next = std::min(next, options_.slow.next());
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(next - Clock::now()));
}

// Once: what fills one log's disk soon fails the others.
void Launcher::tell_of_logs() {
  if (has_told_of_logs_) return;
  for (const auto& member : members_.all()) {
    if (member->log_problem.empty()) continue;
    has_told_of_logs_ = true;
    return say(fmt::format("cannot write the log {}: {}; further output is shown here but not kept",
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
        tell_of_missing();
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
      say("killing the remaining processes");
      stop(Phase::killing);
      continue;
    }
    stop_signal_ = signal;
    say(fmt::format("{}: stopping; send it again to kill at once", signal_name(signal)));
    reap_all();
    if (phase_ != Phase::stopping && phase_ != Phase::killing) stop(Phase::stopping);
  }
  reap_all();
}

void Launcher::read_link(Member& member) {
  for (const TaskReport& report : member.read_reports()) handle_report(member, report);
}

void Launcher::handle_report(Member& member, const TaskReport& report) {
  StartupRow& row = table_.row(member.task);
  switch (report.state) {
    case TaskReport::State::bound:
      cluster_.set_address(member.task, report.address);
      row.address = report.address;
      table_.set_state(row, "listening", "");
      tell_cluster_when_bound();
      break;
    case TaskReport::State::waiting: {
      std::string names;
      for (const MissingPeer& peer : report.missing) {
        names += (names.empty() ? "for " : ", ") + peer.task.to_string();
        note_missing(peer);
      }
      table_.set_state(row, "waiting", names);
      break;
    }
    case TaskReport::State::ready:
      table_.set_state(row, "ready", report.detail);
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
      table_.set_state(row, "failed", report.detail);
      break;
  }
}

// What a task of ours says of one elsewhere.
void Launcher::note_missing(const MissingPeer& peer) {
  if (!cluster_.contains(peer.task)) return;
  StartupRow& row = table_.row(peer.task);
  if (row.pid != 0) return;
  table_.set_state(row, "no answer",
                   peer.is_refused ? fmt::format("{}: is `leat up` running on {}?", peer.reason,
                                                 HostPort::parse(row.address).host)
                                   : peer.reason);
}

// At once: launchers of other ranks may write the same, and their tasks read it.
void Launcher::write_cluster(const char* name) const {
  replace_file((members_.log_directory() / name).string(), cluster_.to_json() + "\n");
}

void Launcher::tell_cluster_when_bound() {
  if (is_cluster_known_ || !table_.are_ours("listening")) return;
  is_cluster_known_ = true;
  try {
    write_cluster(cluster_file);
  } catch (const Error& error) {
    return fail_start(error.message());
  }
  const std::string line = cluster_.to_json() + "\n";
  for (const auto& member : members_.all()) {
    // One that has gone is reaped, and named, as such.
    if (member->process.link) send_line(member->process.link, line, answer_limit);
  }
}

void Launcher::run_when_ready() {
  if (phase_ != Phase::starting || !table_.are_ours("ready")) return;
  for (StartupRow& row : table_.rows()) {
    if (row.pid == 0)
      table_.set_state(row, "ready", options_.only ? "another rank" : "on another host");
  }
  phase_ = Phase::running;
  if (!options_.only || *options_.only == chief()) print_table(std::cout);
  if (!options_.program.empty()) {
    if (!options_.embed) start_programs();
    stop_when_done();  // an embedded program may have been done before the last task was ready
    return;
  }
  const std::vector<StartupRow>& rows = table_.rows();
  const auto asked = std::find_if(rows.begin(), rows.end(), [](const StartupRow& row) {
    return row.task.job == "worker" || row.task.job == "chief";
  });
  const std::string& dialled = asked == rows.end() ? rows.front().address : asked->address;
  say(fmt::format("ready; programs connect to grpc://{}; the addresses are in {}; Ctrl-C ends it",
                  dialled, (members_.log_directory() / cluster_file).string()));
}

void Launcher::tell_of_missing() {
  for (const std::string& task : table_.missing())
    say(fmt::format("after {:.0f} s, {}", since_start(Clock::now()).count(), task));
}

void Launcher::reap_all() {
  members_.reap([&](Member& member) {
    if (member.process.link) read_link(member);
    member.read_last_output(console_);
    handle_ending(member);
  });
}

void Launcher::handle_ending(Member& member) {
  StartupRow& row = table_.row(member.task);
  if (member.is_task && row.state != "failed")
    table_.set_state(row, "ended", member.ending->describe());
  if (phase_ == Phase::stopping || phase_ == Phase::killing || member.was_stopped) return;
  if (phase_ == Phase::starting && member.is_program && member.ending->is_success()) {
    return fail_start(fmt::format(
        "{} ended without joining the cluster: with --embed, each program is its worker's task "
        "and must call leat::join_cluster()",
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
    options_.slow.end(members_);
    const bool is_awaited = member.is_task && members_.is_any_busy();
    console_.end_redraw();
    say(fmt::format("{} {} ({}){}", member.prefix,
                    member.is_program ? "the program ended" : "the task ended",
                    member.ending->describe(),
                    is_awaited ? "; waiting for the programs to notice" : "; stopping the rest"));
    if (!is_awaited && member.is_task) return stop(Phase::stopping);
    phase_end_ = Clock::now() + (is_awaited ? options_.linger : close_in_time);
  } else if (phase_ == Phase::failing) {
    if (!members_.is_any_busy()) phase_end_ = std::min(phase_end_, Clock::now() + close_in_time);
  }
}

// The programs of this host have ended, and (if others have launchers of their own) nobody needs
// its task any more.
void Launcher::stop_when_done() {
  if (phase_ != Phase::running || options_.program.empty()) return;
  if (members_.is_any_busy()) return;
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
  for (const auto& member : members_.all()) {
    if (!member->is_running()) continue;
    say(fmt::format("{} did not end within {:.1f} s of SIGTERM; killing it", member->prefix,
                    std::chrono::duration<double>(options_.grace).count()));
  }
  stop(Phase::killing);
}

void Launcher::stop(Phase phase) {
  options_.slow.end(members_);
  phase_ = phase;
  phase_end_ = Clock::now() + options_.grace;
  if (phase == Phase::killing) {
    members_.kill();
  } else {
    members_.terminate();
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

std::vector<Failure> Launcher::failures() const {
  std::vector<Failure> out;
  for (const auto& member : members_.all()) {
    if (!member->ending) continue;
    if (member->is_program && member->ending->is_success()) continue;
    out.push_back({.label = member->prefix,
                   .what = describe(*member),
                   .is_task = member->is_task,
                   .ending = *member->ending,
                   .after = since_start(member->ended),
                   .was_stopped = member->was_stopped,
                   .last_lines = {member->last_lines.begin(), member->last_lines.end()},
                   .log = member->log_path,
                   .log_problem = member->log_problem});
  }
  return out;
}

int Launcher::finish() {
  console_.end_redraw();
  const std::vector<Failure> all = failures();
  if (std::any_of(all.begin(), all.end(), [](const Failure& f) { return !f.was_stopped; })) {
    std::cerr << format_failure_report(all) << std::flush;
    const int status = all[root_cause(all)].ending.shell_status();
    return status == 0 ? 1 : status;
  }
  if (has_failed_start_) return 1;
  if (stop_signal_ != 0 && !options_.program.empty()) return 128 + stop_signal_;
  return 0;
}

void Launcher::print_table(std::ostream& out) {
  out << format_startup_table(table_.rows()) << std::flush;
}

}  // namespace

int launch(LaunchOptions options) { return Launcher(std::move(options)).run(); }

}  // namespace leat
