// `leat up` and `leat run`: the command lines of launcher.h.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>

#include "core/error.h"
#include "graph/near_misses.h"
#include "tools/leat/cluster_source.h"
#include "tools/leat/commands.h"
#include "tools/leat/launcher.h"
#include "tools/leat/process.h"
#include "tools/leat/tls_flags.h"

namespace leat {
namespace {

struct Flags {
  LaunchOptions options;
  std::string log_directory;
  std::vector<std::string> files, op_libraries, slow;
  double start_timeout = 60, grace = 5;
  bool gpus = false;
  TlsPaths tls;
};

constexpr const char* source_help =
    "A file with the cluster's addresses, {\"cluster\": {\"ps\": [\"host:port\"], \"worker\": "
    "[…]}}, or "
    "local:ps=1,worker=2. Port 0: Leat chooses one. Under srun or mpirun, a process per task: "
    "slurm:ps=1,worker=* or mpi:ps=1,worker=*";

std::shared_ptr<Flags> add_flags(CLI::App& command) {
  auto flags = std::make_shared<Flags>();
  command.add_option("cluster", flags->options.source, source_help)->required();
  command.add_option(
      "--log-dir", flags->log_directory,
      "Folder for each process's output, besides the console (default: a new temporary folder)");
  command
      .add_option("--start-timeout", flags->start_timeout, "Seconds until every task must be ready")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command.add_option("--grace", flags->grace, "Seconds between SIGTERM and SIGKILL")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  command.add_option("--files", flags->files, files_help)->allow_extra_args(false);
  command.add_option("--ops", flags->op_libraries, ops_help)->allow_extra_args(false);
  command.add_option(
      "--task-program", flags->options.task_program,
      "Start tasks as `PROGRAM task …` instead of with this leat: a debug build, or a "
      "wrapper that starts a debugger");
  command.add_flag("--gpus", flags->gpus,
                   "All tasks but parameter servers offer the GPUs of their hosts; \"gpus\": "
                   "[\"worker\"] in the cluster's file says the same");
  command.add_option("--slow", flags->slow, slow_help)->allow_extra_args(false);
  add_tls_flags(command, flags->tls);
  command
      .add_option("--plaintext-port", flags->options.plaintext_port,
                  "With TLS: a port of 127.0.0.1 where clients without TLS (TensorFlow's) may open "
                  "sessions with this host's first worker or chief, else its first task")
      ->check(CLI::Range(1, 65535));
  command.add_flag("--wait-for-names", flags->options.waits_for_names,
                   "Wait until --start-timeout for a host name without an address (default: 5 s)");
  return flags;
}

// It would run nowhere, and that would be a success.
void check_program_has_a_job(const LaunchOptions& options) {
  std::string names, guess;
  for (const auto& [job, tasks] : options.cluster.jobs()) {
    if (job == "worker" || job == "chief") return;
    names += (names.empty() ? "" : ", ") + job;
    if (guess.empty() && job != "ps") guess = did_you_mean(job, {"worker", "chief"});
  }
  fail(Code::invalid_argument, options.source,
       " has no worker and no chief, so no program would run; its jobs are ", names, guess);
}

int launch(Flags& flags) {
  const auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  };
  ResolvedCluster cluster = resolve_cluster(flags.options.source);
  if (cluster.task) end_with_parent();  // mpirun may be killed
  apply_tls_flags(flags.tls, cluster.spec);
  flags.options.cluster = std::move(cluster.spec);
  limit_files(flags.files, flags.options.cluster);
  if (flags.gpus) offer_gpus(flags.options.cluster);
  for (const std::string& path : flags.op_libraries) {
    flags.options.op_libraries.push_back(std::filesystem::absolute(path));
    check(std::filesystem::exists(flags.options.op_libraries.back()), "--ops: there is no file ",
          path);
  }
  for (const std::string& text : flags.slow) flags.options.slow.add(text);
  flags.options.slow.check_exist(flags.options.cluster);
  if (!flags.options.program.empty()) check_program_has_a_job(flags.options);
  flags.options.only = cluster.task;
  flags.options.log_directory = flags.log_directory;
  flags.options.start_timeout = milliseconds(flags.start_timeout);
  flags.options.grace = milliseconds(flags.grace);
  return launch(flags.options);
}

}  // namespace

void add_up_command(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("up", "Start every task of a cluster that belongs on this host");
  const auto flags = add_flags(*command);
  command->footer(R"(
Tasks with an address of this host run as child processes until Ctrl-C or SIGTERM (a second one kills them at once). If one
ends by itself, leat shows its last lines and stops the others.

Exit status: 0 after Ctrl-C or SIGTERM; the status of the task that ended, 128 + n if it was killed by signal n; 1 if
the cluster could not start; 2 for a mistake in the command line or the cluster description.)");
  command->callback([flags, &exit_status] { exit_status = launch(*flags); });
}

void add_run_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "run", "Start the tasks as `up` does, run a copy of a program per worker, and end with them");
  const auto flags = add_flags(*command);
  command->add_flag("--embed", flags->options.embed,
                    "Each program is its worker's task, as with tf.train.Server: it calls "
                    "leat::join_cluster(), and its feeds and fetches stay in the process");
  command->add_option("program", flags->options.program, "The program and its arguments, after --")
      ->required();
  command->footer(R"(
A copy of the program runs for every worker (and chief) of this host, with TF_CONFIG set to the cluster and its task. When
all have ended, the tasks are stopped. If something fails, the first failure is shown first, with its last lines.

Examples:
  leat run local:ps=1,worker=2 -- ./mnist --epochs 10
  leat run --embed local:ps=1,worker=2 -- ./mnist --epochs 10
  srun --kill-on-bad-exit --ntasks 4 leat run slurm:ps=1,worker=* -- ./mnist
  mpirun -n 4 leat run mpi:ps=1,worker=*,port=9000 -- ./mnist

Under srun and mpirun every rank starts its own task, and its own copy of the program. If one fails, mpirun ends the others;
so does srun with --kill-on-bad-exit. Give two jobs on one host different ports.

Exit status: 0 if all programs ended with 0; else that of the first program or task that failed, 128 + n if it was killed
by signal n; 128 + n after Ctrl-C or another signal n; 1 if the cluster could not start; 2 for a mistake in the command
line or the cluster description; 126 or 127 if the program cannot be run or does not exist.)");
  command->callback([flags, &exit_status] {
    try {
      flags->options.program[0] = find_program(flags->options.program[0]);
    } catch (const Error& error) {
      std::cerr << "leat: " << error.message() << "\n";
      exit_status = error.code() == Code::not_found ? 127 : 126;
      return;
    }
    exit_status = launch(*flags);
  });
}

}  // namespace leat
