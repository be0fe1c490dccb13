// The tasks of a cluster and their addresses: TensorFlow's ClusterSpec, read from a file, from
// TF_CONFIG, or made in code. Plain values; nothing here opens a connection.
#pragma once

#include <compare>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_name.h"
#include "distributed/cluster/tls_paths.h"

namespace leat {

// A task of a cluster: its job, and its index in the job.
struct TaskName {
  std::string job;
  int index = 0;

  // "/job:ps/task:0" (ignores a replica and a device). INVALID_ARGUMENT unless it has job and task.
  static TaskName parse(std::string_view text);
  static TaskName of(const DeviceName& device);
  std::string to_string() const;   // "/job:ps/task:0"
  DeviceName device_name() const;  // "/job:ps/replica:0/task:0"
  bool operator==(const TaskName&) const = default;
  auto operator<=>(const TaskName&) const = default;
};
std::ostream& operator<<(std::ostream& out, const TaskName& task);

// A parsed "host:port". An IPv6 host has brackets in text and none here. INVALID_ARGUMENT shows a
// correct example.
struct HostPort {
  std::string host;
  int port = 0;
  static HostPort parse(std::string_view address);
  static HostPort of_target(std::string_view target);  // "grpc://host:port"
  std::string to_string() const;
};

class ClusterSpec {
 public:
  using Job =
      std::map<int, std::string>;  // index → "host:port"; indices may have gaps (a sparse spec)

  ClusterSpec() = default;

  // Any of these JSON texts. Errors are INVALID_ARGUMENT with the JSON pointer and, for an unknown
  // key, the nearest known one:
  //   ours, TF_CONFIG  {"cluster": {"ps": ["h:1"], "worker": {"1": "h:2"}}, "cluster_id": "…",
  //                    "files": ["/data"], "shared_memory": false, "gpus": ["worker"],
  //                    "tls": {"ca": "ca.pem", "certificate": "{name}.pem", "key": "{name}.key"}}
  //   only the jobs    {"ps": ["h:1"], "worker": ["h:2", "h:3"]}
  //   a ClusterDef     {"job": [{"name": "ps", "tasks": {"0": "h:1"}}]}
  // and TensorFlow's flag: ps|h:2222;h:2223,worker|h:2224
  // `origin` names the text in errors: a path, or "TF_CONFIG".
  static ClusterSpec parse(std::string_view text, std::string_view origin = "cluster spec");
  static ClusterSpec read(const std::string& path);  // NOT_FOUND if there is no such file

  // Checks the job's name and the address, and that neither the task nor the address exists yet.
  void add(const TaskName& task, const std::string& address);
  // For a task with port 0, after it has bound one.
  void set_address(const TaskName& task, const std::string& address);

  const std::map<std::string, Job>& jobs() const { return jobs_; }
  std::vector<TaskName> tasks() const;  // by job, then index
  size_t size() const;
  bool contains(const TaskName& task) const;
  const std::string& address(const TaskName& task) const;  // NOT_FOUND lists the tasks that exist
  bool is_sparse() const;                                  // an index is missing somewhere
  bool has_open_ports() const;                             // some "host:0": to be bound first

  // The same for all tasks of one cluster, different for another. Given ("cluster_id"), or else a
  // hash of all addresses and their number. A spec that is sparse or has open ports does not know
  // all addresses: without a given id, its id is empty, which fits every cluster.
  std::string id() const;
  void set_id(std::string id) { id_ = std::move(id); }
  bool has_given_id() const { return !id_.empty(); }

  // "tls": {"ca": …, "certificate": …, "key": …}, paths relative to the file.
  const TlsPaths& tls() const { return tls_; }
  void set_tls(TlsPaths tls) { tls_ = std::move(tls); }

  // Every task's kernels may reach only files below these directories; nullopt: any file. Absolute
  // paths, on each task's own host.
  const std::optional<std::vector<std::string>>& files() const { return files_; }
  void set_files(std::vector<std::string> directories);

  // Tensors between tasks of one host go through memory that both map. False: over the network.
  bool shares_memory() const { return shares_memory_; }
  void set_shares_memory(bool shares) { shares_memory_ = shares; }

  // The jobs, and tasks ("/job:worker/task:0"), that offer the GPUs of their hosts. Empty: none.
  const std::vector<std::string>& gpus() const { return gpus_; }
  // NOT_FOUND lists the jobs, or the tasks, that there are.
  void set_gpus(std::vector<std::string> jobs_and_tasks);
  bool offers_gpus(const TaskName& task) const;

  std::string to_json() const;  // our file's form, one line
  bool operator==(const ClusterSpec&) const = default;

 private:
  std::map<std::string, Job> jobs_;
  std::map<std::string, TaskName> owners_;  // of addresses with a port
  std::string id_;
  std::optional<std::vector<std::string>> files_;
  bool shares_memory_ = true;
  std::vector<std::string> gpus_;
  TlsPaths tls_;
};

// Whether two tasks with these ids may belong together. Hashes of equally many addresses must be
// equal; of two descriptions of different size, one may be part of the other.
bool may_be_one_cluster(const std::string& id, const std::string& other);

// A cluster, and the calling program's task in it.
struct ResolvedCluster {
  ClusterSpec spec;
  std::optional<TaskName> task;      // an evaluator's is set too, though the spec does not hold it
  std::vector<std::string> remarks;  // what was ignored
  bool is_local() const { return spec.size() <= 1; }
  bool is_chief() const;  // the chief; without a chief job worker 0
};

// From a TF_CONFIG text. Launchers of all kinds write it, so unknown keys are ignored, and so is an
// evaluator, which runs outside of the cluster.
ResolvedCluster parse_tf_config(std::string_view text);
// From TF_CONFIG in the environment; nullopt if it is not set. The only code that reads it. Logs to
// stderr what it ignores.
std::optional<ResolvedCluster> cluster_from_environment();

}  // namespace leat
