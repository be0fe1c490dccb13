#include "tools/leat/command_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "distributed/cluster/launcher_link.h"
#include "distributed/cluster/tls.h"
#include "tools/leat/commands.h"

namespace leat {
namespace {

std::string seconds(std::chrono::duration<double> time) {
  return fmt::format("{:.3f}", time.count());
}

std::string task_config(const TaskName& task, const ClusterSpec& cluster) {
  nlohmann::json config = nlohmann::json::parse(cluster.to_json());
  config["task"] = {{"type", task.job}, {"index", task.index}};
  config["rpc_layer"] = "grpc";
  return config.dump();
}

}  // namespace

bool has_program(const LaunchOptions& options, const TaskName& task) {
  return !options.program.empty() && (task.job == "worker" || task.job == "chief");
}

SpawnOptions task_command(const LaunchOptions& options, const TaskName& task,
                          const std::string& cluster_file, bool has_plaintext_port) {
  SpawnOptions out{
      .arguments = {options.task_program.empty() ? own_path() : options.task_program, "task",
                    cluster_file, "--job", task.job, "--task", std::to_string(task.index),
                    "--launcher-fd", std::to_string(link_fd), "--start-timeout",
                    seconds(options.start_timeout)},
      .has_link = true};
  for (const std::string& path : options.op_libraries)
    out.arguments.insert(out.arguments.end(), {"--ops", path});
  if (has_plaintext_port) {
    out.arguments.insert(out.arguments.end(),
                         {"--plaintext-port", std::to_string(options.plaintext_port)});
  }
  return out;
}

SpawnOptions program_command(const LaunchOptions& options, const TaskName& task,
                             const ClusterSpec& cluster) {
  SpawnOptions out{.arguments = options.program,
                   .environment = {{"TF_CONFIG", task_config(task, cluster)}}};
  // One that is a task itself has its files from TF_CONFIG.
  if (cluster.tls().is_set() && !options.embed) {
    const TlsPaths tls = with_name(cluster.tls(), client_name);
    out.environment.emplace_back(tls_ca_variable, tls.ca);
    out.environment.emplace_back(tls_certificate_variable, tls.certificate);
    out.environment.emplace_back(tls_key_variable, tls.key);
  }
  if (options.embed) {
    out.has_link = true;
    out.environment.emplace_back(launcher_fd_variable, std::to_string(link_fd));
    out.environment.emplace_back(start_timeout_variable, seconds(options.start_timeout));
  }
  return out;
}

std::string task_prefix(const LaunchOptions& options, const TaskName& task) {
  return fmt::format("[{}:{}{}]", task.job, task.index, has_program(options, task) ? " task" : "");
}

std::string program_prefix(const TaskName& task) {
  return fmt::format("[{}:{}]", task.job, task.index);
}

}  // namespace leat
