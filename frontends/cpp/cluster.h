// A program's place in the cluster that TF_CONFIG describes.
//   const Cluster cluster = join_cluster();
//   Session session(graph, {.target = cluster.target()});
// `leat run cluster -- program` runs a task beside each worker's program; the program dials it.
// Under `leat run --embed` the program itself is the task, like one with TensorFlow's
// tf.train.Server: one process fewer, and feeds and fetches cross no wire. Without TF_CONFIG it
// trains in this process; where srun or mpirun started several copies of it, it also prints how to
// make one cluster of them.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "distributed/cluster/cluster_spec.h"
#include "distributed/task.h"

namespace leat {

struct JoinOptions {
  // Run the task in this process even if no launcher asks for it: for programs started by hand, one
  // per worker, with TF_CONFIG.
  bool embed = false;
  TaskOptions task;  // of an own task
  // Under `leat run --embed` its --start-timeout applies instead.
  std::chrono::milliseconds start_timeout{60'000};
};

// An own task lives as long as this object, which must outlive all sessions. When its program is
// done, the task still computes for the others, until the launcher reports that all are done. If an
// exception destroys the Cluster, the task ends at once.
class Cluster {
 public:
  ~Cluster();
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) = delete;

  // Its jobs and the addresses of their tasks; all ports are known. Empty if there is no cluster.
  const ClusterSpec& spec() const;
  // Which task of it this program belongs to; none if there is no cluster.
  const std::optional<TaskName>& task() const;
  // For SessionOptions: "grpc://host:port", or "" if there is no cluster.
  std::string target() const;
  bool is_chief() const;  // also without a cluster

 private:
  friend Cluster join_cluster(const JoinOptions& options);
  struct State;
  explicit Cluster(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// With an own task, waits until all tasks are up: UNAVAILABLE after options.start_timeout, with a
// table of missing tasks and reasons. INVALID_ARGUMENT for a malformed TF_CONFIG.
Cluster join_cluster(const JoinOptions& options = {});

}  // namespace leat
