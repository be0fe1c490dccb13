// Runs a cluster's tasks of this host, and programs that use it, as child processes; `leat up` and
// `leat run`.
//
// Life of a launch: spawn the tasks → each reports the port it bound → all get the complete cluster
// → each reports that it is ready (or whom it misses, until the deadline) → the programs start →
// they end, something fails, or a signal asks for the end → SIGTERM to what is left, a grace time,
// SIGKILL. Programs that are tasks themselves start with the others and report as they do, and also
// when they are done; then they serve until all are, which they learn when their link is closed.
// One thread, one poll loop.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "distributed/cluster/cluster_spec.h"

namespace leat {

struct LaunchOptions {
  std::string source;   // as the user gave it, for messages
  ClusterSpec cluster;  // what it says
  // Only this task, and its program: srun or mpirun has started this launcher for it, and others
  // for the others. A launcher then ends when its program has ended and nobody needs its task any
  // more: a worker's when the chief has left, a parameter server's when all workers have.
  std::optional<TaskName> only;
  std::vector<std::string>
      program;         // one copy per worker and chief of this host; empty: the tasks alone
  bool embed = false;  // each copy is its worker's task itself: leat::join_cluster()
  std::vector<std::string> op_libraries;  // that tasks load: absolute paths
  std::string task_program;  // what is run as `… task SOURCE --job J --task I`; "" = this leat
  std::filesystem::path
      log_directory;             // "" = a fresh one in the system's folder for temporary files
  int plaintext_port = -1;       // of one task of this host (TaskOptions); -1: none
  bool waits_for_names = false;  // for one that a resolver says nobody has, as for other names
  std::chrono::milliseconds start_timeout{60'000};
  std::chrono::milliseconds grace{5'000};  // between SIGTERM and SIGKILL
  // How long others may go on after the first failure, to say in their own words what they lost.
  std::chrono::milliseconds linger{3'000};
};

// Returns the exit status: 0, the root cause's own, 128 + n for signal n, or 1 for a failure of the
// launch itself. Prints on standard output, failures on standard error. Call it from the main
// thread, once. leat::Error if there is nothing to start.
int launch(LaunchOptions options);

}  // namespace leat
