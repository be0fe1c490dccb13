// Command lines for the processes of a launch: the tasks, and the programs that use them.
#pragma once

#include <string>

#include "distributed/cluster/cluster_spec.h"
#include "tools/leat/launcher.h"
#include "tools/leat/process.h"

namespace leat {

// Whether a copy of the program runs beside this task, or as this task.
bool has_program(const LaunchOptions& options, const TaskName& task);

// `cluster_file`: the cluster as requested.
SpawnOptions task_command(const LaunchOptions& options, const TaskName& task,
                          const std::string& cluster_file, bool has_plaintext_port);

// `cluster`: with the ports that are bound so far. The program gets it in TF_CONFIG.
SpawnOptions program_command(const LaunchOptions& options, const TaskName& task,
                             const ClusterSpec& cluster);

// The prefix of the lines that a process writes: "[worker:1]". If a program with the same name
// runs, the plain prefix is the program's.
std::string task_prefix(const LaunchOptions& options, const TaskName& task);
std::string program_prefix(const TaskName& task);

}  // namespace leat
