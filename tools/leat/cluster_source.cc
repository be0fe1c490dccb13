#include "tools/leat/cluster_source.h"

#include <charconv>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <vector>

#include "core/error.h"
#include "distributed/cluster/cluster_resolvers.h"
#include "graph/op_library.h"

namespace leat {
namespace {

constexpr std::string_view local_prefix = "local:", slurm_prefix = "slurm:", mpi_prefix = "mpi:";
constexpr int most_local_tasks = 256;

ClusterSpec parse_local(std::string_view jobs) {
  ClusterSpec spec;
  std::istringstream parts{std::string(jobs)};
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.find('=');
    int count = 0;
    const bool is_counted = equals != std::string::npos;
    if (is_counted) std::from_chars(part.data() + equals + 1, part.data() + part.size(), count);
    check(is_counted && count > 0 && count <= most_local_tasks &&
              part.substr(equals + 1) == std::to_string(count),
          "local:", jobs, ": \"", part, "\" is not JOB=COUNT with a count from 1 to ",
          most_local_tasks, "; write for example local:ps=1,worker=2");
    for (int index = 0; index < count; ++index)
      spec.add({part.substr(0, equals), index}, "127.0.0.1:0");
  }
  check(spec.size() > 0, "local: needs jobs; write for example local:ps=1,worker=2");
  return spec;
}

}  // namespace

ResolvedCluster resolve_cluster(const std::string& source) {
  const std::string_view text = source;
  if (text.starts_with(local_prefix))
    return {parse_local(text.substr(local_prefix.size())), std::nullopt};
  if (text.starts_with(slurm_prefix))
    return resolve_slurm(text.substr(slurm_prefix.size()), process_environment());
  if (text.starts_with(mpi_prefix))
    return resolve_open_mpi(text.substr(mpi_prefix.size()), process_environment());
  return {ClusterSpec::read(source), std::nullopt};
}

void offer_gpus(ClusterSpec& cluster) {
  std::vector<std::string> jobs;
  for (const auto& [job, tasks] : cluster.jobs()) {
    if (job != "ps" || cluster.jobs().size() == 1) jobs.push_back(job);
  }
  cluster.set_gpus(std::move(jobs));
}

void limit_files(const std::vector<std::string>& directories, ClusterSpec& cluster) {
  if (directories.empty()) return;
  std::vector<std::string> absolute;
  for (const std::string& directory : directories) {
    check(!directory.empty(), "--files needs the name of a directory");
    absolute.push_back(std::filesystem::absolute(directory).lexically_normal().string());
  }
  cluster.set_files(std::move(absolute));
}

void load_op_libraries(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::string names;
    for (const std::string& name : load_op_library(path)) names += " " + name;
    if (!names.empty()) std::cout << path << " adds" << names << std::endl;
  }
}

}  // namespace leat
