// Runs this host's tasks of a cluster, and programs that use it, as child processes; `leat up` and
// `leat run`.
//
// Life of a launch: spawn the tasks → each reports the port it bound → all get the complete cluster
// → each reports that it is ready (or which tasks it misses, until the deadline) → the programs
// start → they end, something fails, or a signal requests the end → SIGTERM to the rest, a grace
// time, SIGKILL. Programs that are tasks themselves start with the others and report like them, and
// also report when they are done; they then serve until all are done, which they learn when their
// link is closed. One thread, one poll loop.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "distributed/cluster/cluster_spec.h"
#include "tools/leat/slow_tasks.h"

namespace leat {

struct LaunchOptions {
  std::string source;   // as the user wrote it, for messages
  ClusterSpec cluster;  // the description from `source`
  // Only this task, and its program: srun or mpirun started this launcher for it, and other
  // launchers for the others. A launcher then ends when its program has ended and its task is no
  // longer needed: a worker's once the chief has left, a parameter server's once all workers have.
  std::optional<TaskName> only;
  std::vector<std::string>
      program;         // one copy per worker and chief of this host; empty: the tasks alone
  bool embed = false;  // each copy is itself its worker's task: leat::join_cluster()
  std::vector<std::string> op_libraries;  // absolute paths of libraries that every task loads
  std::string task_program;  // run as `… task SOURCE --job J --task I`; "" = this leat
  std::filesystem::path
      log_directory;             // "" = a fresh one in the system's folder for temporary files
  int plaintext_port = -1;       // of one task of this host (TaskOptions); -1: none
  bool waits_for_names = false;  // waits for unknown host names, as for others
  SlowTasks slow;                // from the moment when all tasks are ready
  std::chrono::milliseconds start_timeout{60'000};
  std::chrono::milliseconds grace{5'000};  // between SIGTERM and SIGKILL
  // How long others may continue after the first failure, to report what they lost.
  std::chrono::milliseconds linger{3'000};
};

// Returns the exit status: 0, the root cause's own, 128 + n for signal n, or 1 if the launch itself
// fails. Prints on standard output, failures on standard error. Call it from the main thread, once.
// leat::Error if there is nothing to start.
int launch(LaunchOptions options);

}  // namespace leat
