// Trains a 784-128-10 perceptron, or with --model cnn a convolutional network, on handwritten
// digits.
//   --mode async: a parameter server; every worker's program builds one replica of the model and
//   updates the shared variables on its own.
//   --mode sync: a parameter server; the chief's program builds a replica on every worker; one
//   update per step with their mean gradient.
//   --mode all-reduce: the same without a parameter server; every worker has its own copy of the
//   variables.
//   leat run cluster.json -- mnist --mode async --data DIR
// Without a cluster it trains in this process.
#include <iostream>

#include "frontends/cpp/examples/common/digits_program.h"

using namespace leat;
using namespace leat::examples;

namespace {

void build_local(const Flags& flags, Training& training) {
  training.global_step = global_step(training.graph);
  const auto model = make_model(training.graph, flags);
  training.replicas = {make_replica(training.graph, model)};
  training.train = &make_optimizer(flags)->minimize(training.replicas[0].loss,
                                                    {.global_step = training.global_step});
}

void build_async(const Flags& flags, const ParameterServer& strategy, int worker,
                 Training& training) {
  const auto on_worker = strategy.replica(training.graph, worker);
  training.global_step = global_step(training.graph);
  const auto model = make_model(training.graph, flags);
  training.replicas = {make_replica(training.graph, model)};
  training.train = &strategy.minimize(*make_optimizer(flags), training.replicas[0].loss,
                                      {.global_step = training.global_step});
}

void build_sync(const Flags& flags, const ParameterServer& strategy, Training& training) {
  const auto on_chief = strategy.replica(training.graph, 0);
  training.global_step = global_step(training.graph);
  const auto model = make_model(training.graph, flags);
  std::vector<Output> losses;
  for (int k = 0; k < strategy.workers(); ++k) {
    const auto on_worker = strategy.replica(training.graph, k);
    training.replicas.push_back(make_replica(training.graph, model, k));
    losses.push_back(training.replicas.back().loss);
  }
  training.train =
      &strategy.minimize(*make_optimizer(flags), losses, {.global_step = training.global_step});
}

void build_all_reduce(const Flags& flags, const AllReduce& strategy, Training& training) {
  std::vector<Output> losses;
  for (int k = 0; k < strategy.workers(); ++k) {
    const auto replica = strategy.replica(training.graph, k);
    if (k == 0) training.global_step = global_step(training.graph);
    training.replicas.push_back(make_replica(training.graph, make_model(training.graph, flags), k));
    losses.push_back(training.replicas.back().loss);
  }
  training.train =
      &strategy.minimize(*make_optimizer(flags), losses, {.global_step = training.global_step});
}

void run(const Flags& flags) {
  const ClusterMember member = join_cluster();
  const ResolvedCluster& cluster = member.cluster();
  Training training;
  if (!cluster.task) {
    build_local(flags, training);
    return train(flags, member, training);
  }
  if (flags.mode == "async") {
    const ParameterServer strategy(cluster.spec);
    training.shard = cluster.task->index;
    training.shards = strategy.workers();
    build_async(flags, strategy, training.shard, training);
  } else {
    if (left_to_the_chief(member)) return;
    if (flags.mode == "sync") build_sync(flags, ParameterServer(cluster.spec), training);
    if (flags.mode == "all-reduce") build_all_reduce(flags, AllReduce(cluster.spec), training);
  }
  train(flags, member, training);
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = parse_flags(
      argc, argv, "Trains a perceptron or a convolutional network on handwritten digits.", true);
  return guarded([&] { run(flags); });
}
