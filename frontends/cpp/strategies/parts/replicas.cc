#include "frontends/cpp/strategies/parts/replicas.h"

#include "frontends/cpp/variable_parts.h"

namespace leat {

StrategyCluster::StrategyCluster() = default;
StrategyCluster::StrategyCluster(const ClusterSpec& spec) : spec(spec) {}
StrategyCluster::StrategyCluster(const StrategyCluster&) = default;
StrategyCluster::StrategyCluster(StrategyCluster&&) noexcept = default;
StrategyCluster& StrategyCluster::operator=(const StrategyCluster&) = default;
StrategyCluster& StrategyCluster::operator=(StrategyCluster&&) noexcept = default;
StrategyCluster::~StrategyCluster() = default;

StrategyCluster::StrategyCluster(const ClusterSpec& spec, const TaskName& task, std::string target)
    : spec(spec), task(task), target(std::move(target)) {
  is_chief = ResolvedCluster{.spec = spec, .task = task}.is_chief();
}

StrategyCluster::StrategyCluster(const Cluster& cluster)
    : spec(cluster.spec()),
      task(cluster.task()),
      target(cluster.target()),
      is_chief(cluster.is_chief()) {}

Replicas::Replicas(const StrategyCluster& cluster, const ReplicaJobs& jobs)
    : worker_job_(jobs.workers), target_(cluster.target), is_chief_(cluster.is_chief) {
  const auto& all = cluster.spec.jobs();
  if (all.empty()) {
    workers_ = {DeviceName{}};
    tasks_ = {0};
    hosts_ = {""};
    own_ = 0;
    choice_ = std::make_shared<ServerChoice>(workers_, jobs.sharding);
    return;
  }
  const auto devices_of = [&](const std::string& job) {
    std::vector<DeviceName> out;
    const auto found = all.find(job);
    if (found == all.end()) return out;
    for (const auto& [index, address] : found->second) {
      DeviceName task;
      task.job = job;
      task.task = index;
      out.push_back(task);
    }
    return out;
  };
  workers_ = devices_of(jobs.workers);
  check(!workers_.empty(), "a strategy trains on the tasks of the job '", jobs.workers,
        "', which the cluster does not have: ", cluster.spec.to_json());
  for (size_t k = 0; k < workers_.size(); ++k) {
    tasks_.push_back(*workers_[k].task);
    hosts_.push_back(HostPort::parse(all.at(jobs.workers).at(tasks_[k])).host);
    if (cluster.task && cluster.task->job == jobs.workers && cluster.task->index == tasks_[k])
      own_ = static_cast<int>(k);
  }
  const std::vector<DeviceName> servers = devices_of(jobs.servers);
  has_servers_ = !servers.empty();
  choice_ = std::make_shared<ServerChoice>(has_servers_ ? servers : workers_, jobs.sharding);
}

Replicas::Replicas(const StrategyCluster& cluster, const std::vector<std::string>& devices)
    : worker_job_("replica"), own_(0), target_(cluster.target), is_chief_(cluster.is_chief) {
  check(!devices.empty(), "a strategy needs at least one device");
  for (const std::string& device : devices) {
    DeviceName name = DeviceName::parse(concat("/device:", device));
    if (cluster.task) name = name.with_defaults(cluster.task->device_name());
    tasks_.push_back(static_cast<int>(workers_.size()));
    hosts_.emplace_back();
    workers_.push_back(name);
  }
  choice_ = std::make_shared<ServerChoice>(workers_, ServerSharding());
}

std::vector<DeviceName> Replicas::servers() const {
  return has_servers_ ? choice_->servers() : std::vector<DeviceName>();
}

Replicas Replicas::only(const std::vector<int>& workers) const {
  check(!workers.empty(), "a group of replicas needs at least one");
  Replicas out = *this;
  out.workers_.clear();
  out.tasks_.clear();
  out.hosts_.clear();
  out.own_.reset();
  for (const int k : workers) {
    if (own_ == k) out.own_ = out.count();
    out.workers_.push_back(worker(k));
    out.tasks_.push_back(tasks_[static_cast<size_t>(k)]);
    out.hosts_.push_back(hosts_[static_cast<size_t>(k)]);
  }
  return out;
}

std::vector<std::vector<int>> Replicas::by_host() const {
  std::vector<std::vector<int>> out;
  std::map<std::string_view, size_t> known;
  for (int k = 0; k < count(); ++k) {
    const auto [found, is_new] = known.try_emplace(hosts_[static_cast<size_t>(k)], out.size());
    if (is_new) out.emplace_back();
    out[found->second].push_back(k);
  }
  return out;
}

int Replicas::own() const {
  if (own_) return *own_;
  fail(Code::failed_precondition, "this program is not the one of a worker: it trains no replica; ",
       "run it as a task of the job '", worker_job_, "'");
}

const DeviceName& Replicas::worker(int k) const {
  check(k >= 0 && k < count(), "replica ", k, " does not exist: job '", worker_job_, "' has ",
        count(), " tasks");
  return workers_[static_cast<size_t>(k)];
}

Graph::Scopes Replicas::scopes(Graph& graph, int k) const {
  Graph::Scopes scopes = graph.scopes();
  scopes.device = worker(k).with_defaults(scopes.device);
  return scopes;
}

ReplicaScope Replicas::on_worker(Graph& graph, int k) const { return on_device(graph, worker(k)); }

ReplicaScope Replicas::on_device(Graph& graph, const DeviceName& device) const {
  Graph::Scopes scopes = graph.scopes();
  scopes.device = device.with_defaults(scopes.device);
  scopes.device_function = nullptr;
  return {graph, std::move(scopes)};
}

std::function<DeviceName(const OpDef&, const AttrMap&)> Replicas::placement() const {
  VariablePlacement out;
  out.of_node = [choice = choice_](const OpDef& op, const AttrMap& attrs) {
    if (!op.is_variable) return DeviceName();
    return choice->lightest(attrs.find("shape")->second.get<Shape>(),
                            attrs.find("dtype")->second.get<DType>());
  };
  out.of_variable = [choice = choice_](std::string_view name, const Shape& shape, DType dtype) {
    return choice->of_variable(name, shape, dtype);
  };
  out.of_parts = [choice = choice_](const Shape& shape, DType dtype) {
    return choice->of_parts(shape, dtype);
  };
  return out;
}

ReplicaScope Replicas::on_servers(Graph& graph, int k) const {
  Graph::Scopes scopes = this->scopes(graph, k);
  scopes.device_function = placement();
  return {graph, std::move(scopes)};
}

namespace {

// Makes a node that stands for a prefix, unless it is there.
Node* new_marker(Graph& graph, const std::string& prefix, int k, const DeviceName& device) {
  const std::string marker = prefix.substr(0, prefix.size() - 1);
  check(graph.unique_name(marker) == marker, "the name '", marker, "', which replica ", k,
        " needs, is taken");
  const ReplicaScope outside(graph, {.device = device});
  return &no_op(graph, marker);
}

}  // namespace

ReplicaScope Replicas::copy(Graph& graph, int k, bool own_state) const {
  Graph::Scopes scopes = this->scopes(graph, k);
  scopes.device_function = nullptr;
  const std::string prefix = this->prefix(k);
  if (copy_root_of(graph, prefix).empty())
    add_copy_root(graph, *new_marker(graph, prefix, k, scopes.device), own_state);
  scopes.name = prefix + scopes.name.substr(copy_root_of(graph, scopes.name).size());
  return {graph, std::move(scopes)};
}

ReplicaScope Replicas::first_or_copy(Graph& graph, int k) const {
  if (k != 0) return copy(graph, k);
  Graph::Scopes scopes = this->scopes(graph, k);
  scopes.device_function = nullptr;
  scopes.name = scopes.name.substr(copy_root_of(graph, scopes.name).size());
  return {graph, std::move(scopes)};
}

Graph::Scopes Replicas::sharing_scopes(Graph& graph, int k, std::string_view prefix,
                                       bool with_slots) const {
  Graph::Scopes scopes = this->scopes(graph, k);
  const std::string root = concat(prefix, "/");
  if (shared_root_of(graph, root).empty())
    add_shared_root(graph, *new_marker(graph, root, k, scopes.device), with_slots);
  scopes.name = root;
  return scopes;
}

ReplicaScope Replicas::sharing(Graph& graph, int k, std::string_view prefix,
                               bool with_slots) const {
  return {graph, sharing_scopes(graph, k, prefix, with_slots)};
}

ReplicaScope Replicas::first_or_sharing(Graph& graph, int k) const {
  if (k == 0) return on_servers(graph, k);
  Graph::Scopes scopes = sharing_scopes(graph, k, concat("replica_", k), false);
  scopes.device_function = placement();
  return {graph, std::move(scopes)};
}

std::string Replicas::prefix(int k) const {
  worker(k);
  return concat(worker_job_, "_", tasks_[static_cast<size_t>(k)], "/");
}

Output Replicas::copy_of(Output variable, int k) const {
  const Output copy = variable_named(variable.graph(), prefix(k) + variable_name(variable));
  return copy ? copy : variable;
}

}  // namespace leat
