// A program's place in the cluster that TF_CONFIG describes.
//   const ClusterMember member = join_cluster();
//   Session session(graph, {.target = member.target()});
// `leat run cluster -- program` runs a task of its own beside each worker's program, which dials
// it. Under `leat run --embed` the program is that task itself, as a program with TensorFlow's
// tf.train.Server is: one process less, and feeds and fetches cross no wire. Without TF_CONFIG it
// trains in this process.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "distributed/cluster/cluster_spec.h"
#include "distributed/task.h"

namespace leat {

struct JoinOptions {
  // Be the task oneself also where no launcher asks for it: for programs that are started by hand,
  // one per worker, with TF_CONFIG.
  bool embed = false;
  TaskOptions task;  // of an own task
  // Under `leat run --embed` its --start-timeout counts.
  std::chrono::milliseconds start_timeout{60'000};
};

// An own task lives as long as this, which must outlive all sessions: after its program's part is
// done it still computes for the others, until the launcher says that all are done. If the member
// goes because of an exception the task ends at once.
class ClusterMember {
 public:
  ~ClusterMember();
  ClusterMember(ClusterMember&&) noexcept;
  ClusterMember& operator=(ClusterMember&&) = delete;

  // Every port known; empty, and without a task, if there is no cluster.
  const ResolvedCluster& cluster() const;
  // For SessionOptions: "grpc://host:port", or "" if there is no cluster.
  std::string target() const;
  bool is_chief() const;  // also without a cluster

 private:
  friend ClusterMember join_cluster(const JoinOptions& options);
  struct State;
  explicit ClusterMember(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Waits, with an own task, until all tasks are there: UNAVAILABLE after options.start_timeout, with
// a table of who is missing, and why. INVALID_ARGUMENT for a TF_CONFIG that is none.
ClusterMember join_cluster(const JoinOptions& options = {});

}  // namespace leat
