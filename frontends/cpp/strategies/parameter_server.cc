#include "frontends/cpp/strategies/parameter_server.h"

#include <algorithm>

namespace leat {

struct ParameterServer::Load {
  std::map<int, int64_t> bytes;
};

ParameterServer::ParameterServer(const ClusterSpec& cluster, Options options)
    : options_(std::move(options)), load_(std::make_shared<Load>()) {
  for (const std::string& job : {options_.ps_job, options_.worker_job}) {
    check(cluster.jobs().contains(job) && !cluster.jobs().at(job).empty(),
          "a parameter server needs the jobs '", options_.ps_job, "' and '", options_.worker_job,
          "'; the cluster has no '", job, "': ", cluster.to_json());
  }
  for (const auto& [index, address] : cluster.jobs().at(options_.ps_job)) load_->bytes[index] = 0;
  for (const auto& [index, address] : cluster.jobs().at(options_.worker_job))
    worker_tasks_.push_back(index);
}

DeviceName ParameterServer::place_variable(const Shape& shape, DType dtype) const {
  const auto lightest =
      std::min_element(load_->bytes.begin(), load_->bytes.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  lightest->second +=
      std::max<int64_t>(shape.elements(), 1) * static_cast<int64_t>(dtype_size(dtype));
  DeviceName out;
  out.job = options_.ps_job;
  out.task = lightest->first;
  return out;
}

ReplicaScope ParameterServer::replica(Graph& graph, int index) const {
  Graph::Scopes scopes = scopes_on_worker(graph, options_.worker_job, worker_tasks_, index);
  scopes.device_function = [strategy = *this](const OpDef& op, const AttrMap& attrs) -> DeviceName {
    if (!op.is_variable) return {};
    return strategy.place_variable(attrs.find("shape")->second.get<Shape>(),
                                   attrs.find("dtype")->second.get<DType>());
  };
  return {graph, std::move(scopes)};
}

Node& ParameterServer::minimize(const Optimizer& optimizer, Output loss,
                                const MinimizeOptions& options, Location at) const {
  return optimizer.minimize(loss, options, at);
}

Node& ParameterServer::minimize(const Optimizer& optimizer, const std::vector<Output>& losses,
                                const MinimizeOptions& options, Location at) const {
  check(std::ssize(losses) == workers(), "synchronous training with ", workers(),
        " workers needs the loss of each replica, got ", losses.size());
  for (size_t k = 0; k < losses.size(); ++k)
    check(bool(losses[k]), "the loss of replica ", k, " is an empty Output");
  std::vector<std::vector<GradientAndVariable>> of_replica;
  for (const Output& loss : losses)
    of_replica.push_back(optimizer.compute_gradients(loss, options.variables));
  Graph& graph = losses.front().graph();
  const NameScope scope(graph, "mean_gradients");
  std::vector<GradientAndVariable> means;
  for (size_t v = 0; v < of_replica.front().size(); ++v) {
    const Output variable = of_replica.front()[v].variable;
    const ColocationScope with(graph, {variable});  // the mean is taken where the update is
    std::vector<GradientAndVariable> gradients;
    for (const auto& replica : of_replica) {
      if (replica[v].gradient) gradients.push_back(replica[v]);
    }
    if (gradients.empty()) continue;
    means.push_back(sum_of(gradients, at));
    means.back().gradient = means.back().gradient * (1.0 / static_cast<double>(losses.size()));
  }
  return optimizer.apply_gradients(means, {.global_step = options.global_step}, at);
}

}  // namespace leat
