// The cluster argument of a command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "distributed/cluster/cluster_spec.h"

namespace leat {

// A file with a ClusterSpec; `local:ps=1,worker=2` (all on 127.0.0.1, ports chosen when they are
// bound); `slurm:ps=1,worker=*` or `mpi:ps=1,worker=*` in a process started by srun or mpirun
// (cluster_resolvers.h), which also determine this process's task. INVALID_ARGUMENT and NOT_FOUND
// say what is wrong, and where.
ResolvedCluster resolve_cluster(const std::string& source);

// Applies --gpus: all tasks but parameter servers offer GPUs, or these if there are no others.
void offer_gpus(ClusterSpec& cluster);

// Applies --files, if given: it replaces the description's directories.
void limit_files(const std::vector<std::string>& directories, ClusterSpec& cluster);
constexpr const char* files_help =
    "A directory; may be repeated. Ops that use files (checkpoints, records, ReadFile, …) then "
    "reach only files below these directories, on every task; same as \"files\" in the description";

// Of --ops: each library is loaded, and a line says what it adds.
void load_op_libraries(const std::vector<std::string>& paths);
constexpr const char* ops_help =
    "A shared library of custom ops (leat/custom_op.h) that every task loads; may be repeated";

}  // namespace leat
