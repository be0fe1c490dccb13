// Model parallelism: the hidden layer lives on worker 0, the output layer on worker 1. Only
// activations and their gradients cross between the two tasks. The chief's program drives both.
//   leat run cluster.json -- model_parallel
#include "frontends/cpp/examples/common/digits_program.h"

using namespace leat;
using namespace leat::examples;

namespace {

constexpr const char* first_task = "/job:worker/task:0";
constexpr const char* second_task = "/job:worker/task:1";

void run(const Flags& flags) {
  const Cluster cluster = join_cluster();
  check(cluster.task() && cluster.spec().contains({"worker", 1}),
        "this program needs a cluster with two workers: "
        "leat run local:ps=1,worker=2 -- model_parallel");
  if (left_to_the_chief(cluster)) return;
  Program program;
  Graph& graph = program.graph;
  const auto make_on = [&](const char* task, auto&& layer) {
    const DeviceScope on(graph, task);
    return layer(graph, flags);
  };
  const nn::Dense hidden = make_on(first_task, make_hidden_layer);
  const nn::Dense logits = make_on(second_task, make_logits_layer);
  // labels, loss and counter are where the logits are
  const DeviceScope on_second(graph, second_task);
  program.global_step = global_step(graph);
  program.replicas = {make_replica(graph, [&](Output images) {
    const DeviceScope on_first(graph, first_task);
    const Output features = hidden(images);
    const DeviceScope back(graph, second_task);
    return logits(features);
  })};
  program.train = &make_optimizer(flags)->minimize(program.replicas[0].loss,
                                                   {.global_step = program.global_step});
  train(flags, cluster, program);
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags =
      parse_flags(argc, argv, "Trains a perceptron whose two layers run on two tasks.");
  return guarded([&] { run(flags); });
}
