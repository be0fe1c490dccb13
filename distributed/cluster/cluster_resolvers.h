// Clusters laid out by a launcher: Slurm and Open MPI start processes on hosts of their choice and
// give each its rank in the environment. Every rank becomes one task.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/cluster/cluster_spec.h"

namespace leat {

// Looks up a variable of the environment; nullopt if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

// `jobs` maps ranks to jobs: "ps=1,worker=3". Ranks are dealt to the jobs sorted by name, as in
// TensorFlow's SlurmClusterResolver; "worker=*" takes the remaining ranks. "port=9000" is the first
// port of every host (default 8888); each further rank there takes the next one. An empty text
// means "ps=1,worker=*".
//
// The result has the cluster, which every rank computes alike, and the rank's own task.
// INVALID_ARGUMENT if the counts do not fit the number of ranks, or the environment is not one of a
// job step: it names the missing variable and says how to start.

// Ranks and hosts from SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST and
// SLURM_STEP_TASKS_PER_NODE (or their older names), for block distribution.
ResolvedCluster resolve_slurm(std::string_view jobs, const Environment& environment);
// Ranks from OMPI_COMM_WORLD_*. Open MPI does not publish the hosts. They are Slurm's if it runs
// below, 127.0.0.1 if all ranks are on this host; otherwise `jobs` names them, with equally many
// ranks each: "ps=1,worker=3,hosts=a;b".
ResolvedCluster resolve_open_mpi(std::string_view jobs, const Environment& environment);

// For a program that has no cluster, though srun or mpirun started it as rank 0 of several: they
// would all do the same. A line that says how to start it; empty for other ranks and other
// launchers.
std::string note_on_unused_ranks(const Environment& environment);

// "node[01-03,7],gpu1" → node01 node02 node03 node7 gpu1
std::vector<std::string> expand_host_list(std::string_view text);

}  // namespace leat
