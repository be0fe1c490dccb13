#include "frontends/cpp/strategies/all_reduce.h"

#include <algorithm>
#include <map>

namespace leat {
namespace {

using Gradients = std::vector<GradientAndVariable>;  // of one replica

int64_t bytes_of(const Output& variable) {
  return variable.shape().elements() * static_cast<int64_t>(dtype_size(variable.dtype()));
}

// Numbers of gradients that are exchanged together: of one dtype, those that backward makes first
// in front, and not above `limit` bytes unless there is only one.
std::vector<std::vector<size_t>> make_buckets(const Gradients& gradients, int64_t limit) {
  struct Open {
    size_t bucket = 0;
    int64_t bytes = 0;
  };
  std::vector<std::vector<size_t>> buckets;
  std::map<DType, Open> open;
  for (size_t i = gradients.size(); i-- > 0;) {
    const Output& variable = gradients[i].variable;
    const int64_t bytes = bytes_of(variable);
    auto [found, is_new] = open.try_emplace(variable.dtype());
    if (is_new || found->second.bytes + bytes > limit) {
      found->second = {buckets.size(), 0};
      buckets.emplace_back();
    }
    buckets[found->second.bucket].push_back(i);
    found->second.bytes += bytes;
  }
  return buckets;
}

Output reshaped(Output x, const Shape& shape) { return x.shape() == shape ? x : reshape(x, shape); }

// The gradients of a bucket in one vector.
Output flat(const Gradients& gradients, const std::vector<size_t>& bucket) {
  std::vector<Output> rows;
  for (const size_t i : bucket)
    rows.push_back(reshaped(gradients[i].gradient, {gradients[i].variable.shape().elements()}));
  return rows.size() == 1 ? rows.front() : concatenate(rows, 0);
}

// And back.
void assign_flat(Output mean, const std::vector<size_t>& bucket, Gradients& gradients) {
  std::vector<int64_t> sizes;
  for (const size_t i : bucket) sizes.push_back(gradients[i].variable.shape().elements());
  const std::vector<Output> rows =
      sizes.size() == 1 ? std::vector<Output>{mean} : split(mean, sizes, 0);
  for (size_t n = 0; n < bucket.size(); ++n) {
    GradientAndVariable& each = gradients[bucket[n]];
    each.gradient = reshaped(rows[n], each.variable.shape());
  }
}

// Of n chunks; they differ by 1 at most.
std::vector<int64_t> chunk_sizes(int64_t elements, int64_t n) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < n; ++i) out.push_back((i + 1) * elements / n - i * elements / n);
  return out;
}

Output mean_of(const std::vector<Output>& values) {
  return add_n(values) * (1.0 / static_cast<double>(values.size()));
}

// The ops of one exchange, on all workers.
class Exchange {
 public:
  Exchange(const AllReduce& strategy, Graph& graph) : strategy_(strategy), graph_(graph) {
    for (int k = 0; k < strategy.workers(); ++k) {
      const auto there = strategy.replica(graph, k);
      scopes_.push_back(NameScope(graph, "mean_gradients").name());
    }
  }

  // What `make(k)` makes under the scopes of replica k, for all of them.
  template <class Make>
  auto on_each(const Make& make) const {
    std::vector<decltype(make(size_t{0}))> out;
    for (size_t k = 0; k < scopes_.size(); ++k) {
      const auto there = strategy_.replica(graph_, static_cast<int>(k));
      const NameScope scope(graph_, scopes_[k]);
      out.push_back(make(k));
    }
    return out;
  }

  // In: a vector on each worker. Out: their mean on each worker.
  std::vector<Output> directly(const std::vector<Output>& values) const {
    return on_each([&](size_t) { return mean_of(values); });
  }
  std::vector<Output> by_chunks(const std::vector<Output>& values) const {
    const size_t n = values.size();
    const std::vector<int64_t> sizes =
        chunk_sizes(values.front().shape().elements(), static_cast<int64_t>(n));
    const auto chunks = on_each([&](size_t k) { return split(values[k], sizes, 0); });
    const auto means = on_each([&](size_t owner) {
      std::vector<Output> of_owner;
      for (size_t k = 0; k < n; ++k) of_owner.push_back(chunks[k][owner]);
      return mean_of(of_owner);
    });
    return on_each([&](size_t) { return concatenate(means, 0); });
  }

 private:
  const AllReduce& strategy_;
  Graph& graph_;
  std::vector<std::string> scopes_;
};

}  // namespace

AllReduce::AllReduce(const ClusterSpec& cluster, Options options) : options_(std::move(options)) {
  const auto job = cluster.jobs().find(options_.worker_job);
  check(job != cluster.jobs().end() && !job->second.empty(), "an all-reduce needs the job '",
        options_.worker_job, "', which the cluster does not have: ", cluster.to_json());
  for (const auto& [index, address] : job->second) worker_tasks_.push_back(index);
}

std::string AllReduce::root(int index) const {
  if (index == 0) return "";
  return concat(options_.worker_job, "_", worker_tasks_[static_cast<size_t>(index)], "/");
}

ReplicaScope AllReduce::replica(Graph& graph, int index) const {
  Graph::Scopes scopes = scopes_on_worker(graph, options_.worker_job, worker_tasks_, index);
  scopes.device_function = nullptr;
  const std::string root = this->root(index);
  if (!root.empty() && copy_root_of(graph, root).empty()) {
    const std::string marker = root.substr(0, root.size() - 1);
    check(graph.unique_name(marker) == marker, "the name '", marker, "', which replica ", index,
          " needs, is taken");
    const ReplicaScope outside(graph, {.device = scopes.device});
    add_copy_root(graph, no_op(graph, marker));
  }
  scopes.name = root + scopes.name.substr(copy_root_of(graph, scopes.name).size());
  return {graph, std::move(scopes)};
}

// By replica, and there by variable; without variables on which no loss depends.
std::vector<AllReduce::Gradients> AllReduce::gradients(const Optimizer& optimizer,
                                                       const std::vector<Output>& losses,
                                                       std::vector<Output> variables) const {
  Graph& graph = losses.front().graph();
  if (variables.empty()) variables = graph.collection("trainable_variables");
  std::vector<Gradients> all;
  for (int k = 0; k < workers(); ++k) {
    const ReplicaScope there = replica(graph, k);
    std::vector<Output> copies;
    for (const Output& variable : variables) {
      const Output copy = variable_named(graph, root(k) + variable_name(variable));
      copies.push_back(copy ? copy : variable);
    }
    all.push_back(optimizer.compute_gradients(losses[static_cast<size_t>(k)], copies));
  }
  std::vector<Gradients> used(all.size());
  for (size_t v = 0; v < variables.size(); ++v) {
    const bool is_used = std::any_of(all.begin(), all.end(),
                                     [&](const Gradients& g) { return bool(g[v].gradient); });
    for (size_t k = 0; is_used && k < all.size(); ++k) {
      const std::string name = root(static_cast<int>(k)) + variable_name(variables[v]);
      check(variable_name(all[k][v].variable) == name, "replica ", k, " has no copy '", name,
            "' of the variable '", variable_name(variables[v]),
            "': every replica must make the same variables as replica 0, under the same names");
      check(
          bool(all[k][v].gradient), "the loss '", losses[k].name(), "' of replica ", k,
          " does not depend on its variable '", name,
          "', but another replica's loss does: give the losses in the order of the replicas, all ",
          "of the same model");
      used[k].push_back(densify(all[k][v]));
    }
  }
  check(!used.front().empty(),
        "no loss depends on a trainable variable of its own replica: give the losses ",
        "in the order of the replicas");
  return used;
}

void AllReduce::exchange(Graph& graph, std::vector<Gradients>& all) const {
  const auto n = static_cast<int64_t>(all.size());
  for (const std::vector<size_t>& bucket : make_buckets(all.front(), options_.bucket_bytes)) {
    const Exchange exchange(*this, graph);
    const auto values = exchange.on_each([&](size_t k) { return flat(all[k], bucket); });
    const int64_t elements = values.front().shape().elements();
    const bool is_small = (n - 1) * (n - 2) * bytes_of(values.front()) <= n * options_.trip_bytes;
    const auto means =
        is_small || elements < n ? exchange.directly(values) : exchange.by_chunks(values);
    exchange.on_each([&](size_t k) {
      assign_flat(means[k], bucket, all[k]);
      return k;
    });
  }
}

Node& AllReduce::minimize(const Optimizer& optimizer, const std::vector<Output>& losses,
                          const MinimizeOptions& options, Location at) const {
  check(std::ssize(losses) == workers(), "an all-reduce over ", workers(),
        " workers needs the loss of each replica, got ", losses.size());
  for (size_t k = 0; k < losses.size(); ++k)
    check(bool(losses[k]), "the loss of replica ", k, " is an empty Output");
  Graph& graph = losses.front().graph();
  std::vector<Gradients> all = gradients(optimizer, losses, options.variables);
  if (workers() > 1) exchange(graph, all);
  std::vector<Output> updates;
  for (int k = 0; k < workers(); ++k) {
    const ReplicaScope there = replica(graph, k);
    updates.push_back(optimizer
                          .apply_gradients(all[static_cast<size_t>(k)],
                                           {.global_step = k == 0 ? options.global_step : Output{}},
                                           at)
                          .output());
  }
  const ReplicaScope chief = replica(graph, 0);
  return updates.size() == 1 ? *updates.front().node : group(graph, updates, "update", at);
}

}  // namespace leat
