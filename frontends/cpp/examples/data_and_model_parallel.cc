// Data and model parallelism at once: variables on the parameter server, and two replicas whose
// layers lie crosswise on two workers (replica 0: hidden layer on worker 0, logits on worker 1;
// replica 1 the other way round). One synchronous update per step with the mean gradient.
//   leat run cluster.json -- data_and_model_parallel
#include "frontends/cpp/examples/common/digits_program.h"

using namespace leat;
using namespace leat::examples;

namespace {

void run(const Flags& flags) {
  const Cluster cluster = join_cluster();
  check(cluster.task().has_value(),
        "this program needs a cluster: leat run local:ps=1,worker=2 -- data_and_model_parallel");
  const ParameterServer strategy(cluster.spec());
  check(strategy.workers() >= 2, "this program needs two workers, but the cluster has ",
        strategy.workers());
  if (left_to_the_chief(cluster)) return;
  Program program;
  Graph& graph = program.graph;
  const auto on_chief = strategy.replica(graph, 0);
  program.global_step = global_step(graph);
  const nn::Dense hidden = make_hidden_layer(graph, flags);
  const nn::Dense logits = make_logits_layer(graph, flags);
  std::vector<Output> losses;
  for (int k = 0; k < strategy.workers(); ++k) {
    const int next = (k + 1) % strategy.workers();
    const auto on_next = strategy.replica(graph, next);  // labels and loss are where the logits are
    program.replicas.push_back(make_replica(
        graph,
        [&](Output images) {
          const auto on_first = strategy.replica(graph, k);
          const Output features = hidden(images);
          const auto back = strategy.replica(graph, next);
          return logits(features);
        },
        k));
    losses.push_back(program.replicas.back().loss);
  }
  program.train =
      &strategy.minimize(*make_optimizer(flags), losses, {.global_step = program.global_step});
  train(flags, cluster, program);
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = parse_flags(
      argc, argv, "Trains replicas of a perceptron whose layers run on different workers.");
  return guarded([&] { run(flags); });
}
