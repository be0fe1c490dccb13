// The copies of a model that train together, and the scopes in which each is built: what strategies
// have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontends/cpp/cluster.h"
#include "frontends/cpp/strategies/parts/server_sharding.h"
#include "graph/graph.h"

namespace leat {

// The cluster that a strategy uses, and the place of this program in it. Made of what
// join_cluster() returns, or of a description alone: then this program is the chief.
struct StrategyCluster {
  StrategyCluster();                         // this process alone
  StrategyCluster(const ClusterSpec& spec);  // NOLINT: converts
  StrategyCluster(const ClusterSpec& spec, const TaskName& task, std::string target);
  StrategyCluster(const Cluster& cluster);  // NOLINT
  // Defined in one file: programs would take long to compile the copies of a ClusterSpec.
  StrategyCluster(const StrategyCluster&);
  StrategyCluster(StrategyCluster&&) noexcept;
  StrategyCluster& operator=(const StrategyCluster&);
  StrategyCluster& operator=(StrategyCluster&&) noexcept;
  ~StrategyCluster();

  ClusterSpec spec;
  std::optional<TaskName> task;
  std::string target;  // of this program's sessions
  bool is_chief = true;
};

// While it lives, new nodes of the graph get the scopes of a replica.
class ReplicaScope {
 public:
  ReplicaScope(Graph& graph, Graph::Scopes scopes)
      : graph_(graph), outer_(std::exchange(graph.scopes(), std::move(scopes))) {}
  ~ReplicaScope() { graph_.scopes() = std::move(outer_); }
  ReplicaScope(const ReplicaScope&) = delete;

 private:
  Graph& graph_;
  Graph::Scopes outer_;
};

struct ReplicaJobs {
  std::string servers = "ps";
  std::string workers = "worker";
  ServerSharding sharding = {};
};

// One replica for each task of the workers' job; one in this process if there is no cluster. Cheap
// to copy; copies place variables together.
class Replicas {
 public:
  // INVALID_ARGUMENT if there is a cluster without workers.
  explicit Replicas(const StrategyCluster& cluster, const ReplicaJobs& jobs = {});

  // One replica for each of these devices ("GPU:0") of the task that this program's sessions use.
  Replicas(const StrategyCluster& cluster, const std::vector<std::string>& devices);
  // The first one alone.
  Replicas first() const { return only({0}); }
  // Some of them, in that order: the members of a group, in a grid of workers.
  Replicas only(const std::vector<int>& workers) const;

  int count() const { return static_cast<int>(workers_.size()); }
  // Of this program. FAILED_PRECONDITION if it is not a worker's.
  int own() const;
  bool has_own() const { return own_.has_value(); }
  bool is_chief() const { return is_chief_; }
  const std::string& target() const { return target_; }
  const DeviceName& worker(int k) const;
  // The workers whose addresses name the same host, in order; all are together where there are no
  // addresses.
  std::vector<std::vector<int>> by_host() const;
  // The tasks of the servers' job; none if the cluster has no such job.
  std::vector<DeviceName> servers() const;

  // ---- Scopes: where the nodes and the variables go that are made while they live ----
  // All to worker k.
  ReplicaScope on_worker(Graph& graph, int k) const;
  // All to that device.
  ReplicaScope on_device(Graph& graph, const DeviceName& device) const;
  // Variables to the servers (ReplicaJobs::sharding), other nodes to worker k. Programs that make
  // the same variables in the same order agree. Without servers, the workers' tasks are the
  // servers.
  ReplicaScope on_servers(Graph& graph, int k) const;
  // All to worker k. A variable "w" becomes "worker_<k>/w", a copy of the variable "w", which must
  // be there: initialised from it, and not saved. Nodes get that prefix, too. `own_state`, given
  // the first time: see add_copy_root().
  ReplicaScope copy(Graph& graph, int k, bool own_state = false) const;
  // For replicas that all have their own variables, the model being those of the first: as
  // on_worker() for replica 0, as copy() for the others.
  ReplicaScope first_or_copy(Graph& graph, int k) const;
  // As on_servers(), but a variable "w" is the "w" that is there already: for the second and all
  // further calls of a model function. Nodes get the prefix. `with_slots`, given the first time:
  // see add_shared_root().
  ReplicaScope sharing(Graph& graph, int k, std::string_view prefix, bool with_slots = false) const;
  // For replicas that share variables on servers: as on_servers() for replica 0, as sharing() with
  // the prefix "replica_<k>" for the others.
  ReplicaScope first_or_sharing(Graph& graph, int k) const;

  // "worker_1/": the prefix of a copy.
  std::string prefix(int k) const;
  // What copy() made of `variable`; the variable itself if there is none.
  Output copy_of(Output variable, int k) const;

 private:
  Graph::Scopes scopes(Graph& graph, int k) const;
  Graph::Scopes sharing_scopes(Graph& graph, int k, std::string_view prefix, bool with_slots) const;
  std::function<DeviceName(const OpDef&, const AttrMap&)> placement() const;  // on servers

  std::string worker_job_;
  std::vector<DeviceName> workers_;
  std::vector<int> tasks_;
  std::vector<std::string> hosts_;  // as tasks_
  std::optional<int> own_;
  std::string target_;
  bool is_chief_ = true, has_servers_ = false;
  std::shared_ptr<ServerChoice> choice_;
};

}  // namespace leat
