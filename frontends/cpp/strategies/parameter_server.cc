#include "frontends/cpp/strategies/parameter_server.h"

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/state/clock.h"

namespace leat {
namespace {

const StrategyCluster& checked(const StrategyCluster& cluster,
                               const ParameterServerOptions& options) {
  check(!options.staleness || *options.staleness >= 0,
        "parameter_server: the staleness must not be negative, got ", *options.staleness);
  using Delay = DelayCorrection::Kind;
  check(options.delay.kind == Delay::none || options.staleness != 0,
        "parameter_server: with staleness 0 no gradient is late, so there is no delay to correct");
  check(options.delay.kind != Delay::adaptive_revision || !options.drop_stale,
        "parameter_server: adaptive_revision corrects late gradients, and drop_stale drops them: ",
        "use one of them");
  check(!options.drop_stale || (*options.drop_stale >= 0 && options.staleness != 0),
        "parameter_server: drop_stale needs a limit of at least 0, and gradients that may be late ",
        "(not staleness 0)");
  const auto& jobs = cluster.spec.jobs();
  if (jobs.empty()) return cluster;  // all in this process
  for (const std::string& job : {options.ps_job, options.worker_job}) {
    check(jobs.contains(job) && !jobs.at(job).empty(), "a parameter server needs the jobs '",
          options.ps_job, "' and '", options.worker_job, "'; the cluster has no '", job,
          "': ", cluster.spec.to_json());
  }
  return cluster;
}

// The update, and what must also be done.
Node& together(Node& update, std::vector<Output> also, Location at) {
  if (also.empty()) return update;
  also.push_back(update.output());
  return group(*update.graph, also, "update", at);
}

}  // namespace

ParameterServer::ParameterServer(const StrategyCluster& cluster, Options options)
    : Strategy(Replicas(checked(cluster, options), {.servers = options.ps_job,
                                                    .workers = options.worker_job,
                                                    .sharding = options.sharding})),
      options_(std::move(options)) {}

ReplicaScope ParameterServer::replica(Graph& graph, int index) const {
  return replicas().on_servers(graph, index);
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
  std::vector<Output> done;
  for (size_t k = 0; k < losses.size(); ++k)
    of_replica.push_back(compressed(replicas(), static_cast<int>(k),
                                    optimizer.compute_gradients(losses[k], options.variables),
                                    options_.compression, done, at));
  Graph& graph = losses.front().graph();
  const NameScope scope(graph, "mean_gradients");
  std::vector<GradientAndVariable> means;
  for (size_t v = 0; v < of_replica.front().size(); ++v) {
    std::vector<GradientAndVariable> gradients;
    for (const auto& replica : of_replica) gradients.push_back(replica[v]);
    means.push_back(mean_of(gradients, at));
  }
  return together(optimizer.apply_gradients(means, {.global_step = options.global_step}, at), done,
                  at);
}

Training ParameterServer::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                                   const ModelFunction& model, Location at) const {
  if (options_.staleness == 0) return synchronous(graph, optimizer, data, model, at);
  if (options_.staleness || options_.drop_stale ||
      options_.delay.kind != DelayCorrection::Kind::none)
    return with_copies(graph, optimizer, data, model, at);
  return asynchronous(graph, optimizer, data, model, at);
}

Training ParameterServer::synchronous(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                                      const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/true);
  if (training.is_idle) return training;
  const std::vector<Losses> built =
      build_all(training, data, model, &Replicas::first_or_sharing, at);
  const auto first = replica(graph, 0);
  set_shown(training, built);
  training.step = &minimize(optimizer, losses_of(built), {.global_step = training.global_step}, at);
  return training;
}

Training ParameterServer::asynchronous(Graph& graph, const Optimizer& optimizer,
                                       const Dataset& data, const ModelFunction& model,
                                       Location at) const {
  Training training = new_training(graph, /*drives_all=*/false);
  const int own = replicas().own();
  const auto servers = replica(graph, own);
  training.global_step = global_step(graph, at);
  const Losses losses = build(training, data, model, own, at);
  training.inputs.clear();  // how far a share had been read is not known after a restart
  set_shown(training, {losses});
  std::vector<Output> done;
  const auto gradients = compressed(replicas(), own, optimizer.compute_gradients(losses.loss),
                                    options_.compression, done, at);
  training.step = &together(
      optimizer.apply_gradients(gradients, {.global_step = training.global_step}, at), done, at);
  return training;
}

// A step computes with copies of the variables, applies its gradient to the variables, ticks, waits
// for the slowest worker, and fetches the copies for the next step.
Training ParameterServer::with_copies(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                                      const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/false);
  CopiedModel copied(*this, training, data, model, at);
  const int own = replicas().own();
  const auto servers = replica(graph, own);
  training.global_step = copied.step();
  set_shown(training, {copied.losses()});
  std::vector<GradientAndVariable> gradients =
      optimizer.compute_gradients(copied.losses().loss, copied.trainable_copies());
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i].variable = copied.trainable()[i];
  std::vector<Output> done;
  gradients = compressed(replicas(), own, std::move(gradients), options_.compression, done, at);
  const bool needs_step =
      options_.drop_stale || options_.delay.kind == DelayCorrection::Kind::adadelay;
  const Output step_of_weights = needs_step ? copied.own_step(at) : Output();
  std::vector<Output> applied;
  gradients = corrected(std::move(gradients), copied, step_of_weights, options_.delay, applied, at);
  const Output update =
      options_.drop_stale
          ? update_in_time(optimizer, gradients, training.global_step, step_of_weights, at)
          : optimizer.apply_gradients(gradients, {.global_step = training.global_step}, at)
                .output();
  applied.push_back(update);
  for (const Output& each : copied.push_state({update}, at)) done.push_back(each);

  std::vector<Output> before = applied;
  if (options_.staleness) {
    const ColocationScope with(graph, {training.global_step});
    const Clock clock(graph, "clock", workers(), {.shared_name = "leat_staleness_clock"}, at);
    training.begin = clock.join(own, at);
    training.end = clock.leave(own, at);
    const Output tick = [&] {
      const ControlScope after(graph, applied);
      return clock.tick(own, at);
    }();
    const ControlScope after(graph, {tick});
    before = {clock.wait(own, *options_.staleness, at)};
  }
  done.push_back(copied.fetch(before, at).output());
  if (step_of_weights) {
    const Output now = [&] {
      const ColocationScope with(graph, {training.global_step});
      const ControlScope after(graph, before);
      return read_variable(training.global_step, at);
    }();
    const ColocationScope with(graph, {step_of_weights});
    done.push_back(assign(step_of_weights, now, at));
  }
  training.step = &group(graph, done, "update", at);
  return training;
}

Output ParameterServer::update_in_time(const Optimizer& optimizer,
                                       const std::vector<GradientAndVariable>& gradients,
                                       Output step, Output step_of_weights, Location at) const {
  Graph& graph = step.graph();
  const Output dropped = [&] {
    const ColocationScope with(graph, {step});
    return variable(graph, "dropped_gradients", {}, i64, {.trainable = false}, at);
  }();
  std::vector<Output> computed;
  for (const GradientAndVariable& each : gradients) {
    if (each.gradient) computed.push_back(each.gradient);
  }
  const Output read_at = read_variable(step_of_weights, at);
  const Output is_late = [&] {
    const ColocationScope with(graph, {step});
    const ControlScope after(graph, computed);
    return read_variable(step, at) - read_at > *options_.drop_stale;
  }();
  return cond(
      is_late,
      [&] {
        const ColocationScope with(graph, {step});
        return read_variable(assign_add(dropped, 1, at), at);
      },
      [&] {
        Node& update = optimizer.apply_gradients(gradients, {.global_step = step}, at);
        const ColocationScope with(graph, {step});
        const ControlScope after(graph, {update});
        return constant(graph, int64_t{0});
      });
}

}  // namespace leat
