// `leat task CLUSTER --job ps --task 0`: one task of a cluster, until a signal ends it.
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/memory/malloc_heap.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/hosted_task.h"
#include "distributed/wire/protobuf_log.h"
#include "tools/leat/cluster_source.h"
#include "tools/leat/commands.h"
#include "tools/leat/process.h"
#include "tools/leat/tls_flags.h"

namespace leat {
namespace {

using std::chrono::milliseconds;

struct Arguments {
  std::string source;  // empty: TF_CONFIG
  std::string job;
  int index = -1;
  int threads = 0;
  bool gpus = false;
  double start_timeout = 60;  // seconds; 0: none
  double grace = 5;
  int launcher_fd = -1;
  std::vector<std::string> files, op_libraries;
  TlsPaths tls;
  int plaintext_port = -1;
};

milliseconds seconds(double value) { return milliseconds(static_cast<int64_t>(value * 1e3)); }

ResolvedCluster resolve(const Arguments& arguments) {
  ResolvedCluster out;
  if (!arguments.source.empty()) {
    out = resolve_cluster(arguments.source);
  } else {
    std::optional<ResolvedCluster> found = cluster_from_environment();
    check(found.has_value(),
          "no cluster: name a file (leat task cluster.json --job ps --task 0) or set TF_CONFIG");
    out = std::move(*found);
  }
  check(!arguments.job.empty() || arguments.index < 0 || out.task, "--task ", arguments.index,
        " needs a job, such as: --job ps --task ", arguments.index);
  if (!arguments.job.empty() || arguments.index >= 0) {
    const bool is_named = !arguments.job.empty();
    TaskName asked{is_named ? arguments.job : out.task->job, std::max(arguments.index, 0)};
    if (arguments.index < 0 && out.task && out.task->job == asked.job) asked = *out.task;
    check(!out.task || *out.task == asked, "--job and --task name ", asked, ", but ",
          arguments.source.empty() ? "TF_CONFIG" : arguments.source, " says that this process is ",
          out.task ? out.task->to_string() : "");
    out.task = asked;
  }
  check(out.task.has_value(),
        "no task is named: add its job and index, such as --job ps --task 0; the cluster has ",
        out.spec.to_json());
  out.spec.address(*out.task);  // NOT_FOUND lists what there is
  return out;
}

// Signals that end the task, as a descriptor. Made before any thread is started: they all inherit
// that the signals are blocked.
class StopSignals {
 public:
  StopSignals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    if (!is_ignored(SIGHUP)) sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd_ < 0) fail(Code::resource_exhausted, "no file descriptors are left");
  }
  ~StopSignals() { close(fd_); }
  StopSignals(const StopSignals&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

int run_task(const Arguments& arguments) {
  prepare_heaps();
  limit_protobuf_log();
  survive_failed_writes();
  load_op_libraries(arguments.op_libraries);
  // Before the signals are blocked: a cluster that comes out of a pipe may not come at all.
  ResolvedCluster cluster = resolve(arguments);
  limit_files(arguments.files, cluster.spec);
  apply_tls_flags(arguments.tls, cluster.spec);
  const StopSignals signals;
  HostedTaskOptions options;
  options.task.threads = arguments.threads;
  options.task.gpus = arguments.gpus;
  options.task.plaintext_port = arguments.plaintext_port;
  options.launcher_fd = arguments.launcher_fd;
  options.stop_fd = signals.fd();
  options.start_timeout = seconds(arguments.start_timeout);
  HostedTask hosted(cluster, options);
  Task& task = hosted.task();
  if (hosted.wait_for_peers()) {
    std::cout << task.name() << " ready at " << task.address() << ", incarnation " << std::hex
              << task.incarnation() << std::dec << ", pid " << getpid() << std::endl;
    hosted.serve();
  }
  task.shutdown(seconds(arguments.grace));
  return 0;
}

}  // namespace

void add_task_command(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* task =
      app.add_subcommand("task", "One task of a cluster: leat task cluster.json --job ps --task 0");
  task->add_option("cluster", arguments->source,
                   "A ClusterSpec file, slurm: or mpi: (see leat run); default: TF_CONFIG");
  task->add_option("--job", arguments->job, "The task's job");
  task->add_option("--task", arguments->index, "The task's index in its job")
      ->check(CLI::NonNegativeNumber);
  task->add_option("--threads", arguments->threads, "Compute threads (default: one per core)");
  task->add_option("--files", arguments->files, files_help)->allow_extra_args(false);
  task->add_option("--ops", arguments->op_libraries, ops_help)->allow_extra_args(false);
  task->add_flag("--gpus", arguments->gpus, "Offer this machine's GPUs");
  task->add_option("--start-timeout", arguments->start_timeout,
                   "Seconds to wait for the other tasks to start; 0: no limit")
      ->capture_default_str();
  task->add_option("--grace", arguments->grace,
                   "Seconds for running steps to finish after a signal ends the task")
      ->capture_default_str();
  add_tls_flags(*task, arguments->tls);
  task->add_option(
          "--plaintext-port", arguments->plaintext_port,
          "with TLS: a port of 127.0.0.1 where clients without TLS (TensorFlow's) may open "
          "sessions")
      ->check(CLI::Range(1, 65535));
  task->add_option("--launcher-fd", arguments->launcher_fd, "for `leat up`")->group("");
  task->footer(R"(
Exit status: 0 after Ctrl-C, SIGTERM or SIGHUP (ignored under nohup), when running steps have ended or --grace is over, or
when the launcher is gone; 1 if the address cannot be used, other tasks do not start in time, or another process owns the
task; 2 for a mistake in the command line or the cluster description.)");
  task->callback([arguments, &exit_status] { exit_status = run_task(*arguments); });
}

}  // namespace leat
