// Trains a 784-128-10 perceptron, or with --model cnn a convolutional network, on handwritten
// digits, in any of the ways that strategies offer:
//   mnist --data DIR                                          in this process
//   leat run local:ps=1,worker=2 -- mnist --strategy parameter_server --data DIR
//   leat run local:worker=4 -- mnist --strategy local_sgd:steps=10 --data DIR
#include <iostream>

#include "frontends/cpp/examples/common/digits_program.h"

using namespace leat;
using namespace leat::examples;

namespace {

void run(const Flags& flags) {
  const Cluster cluster = join_cluster();
  const auto strategy = make_strategy(flags.strategy, cluster);
  const auto model = [&](const Batch& batch) {
    Output logits = make_model(batch[0].graph(), flags)(batch["image"]);
    return Losses{.loss = mean(nn::softmax_cross_entropy(logits, batch["label"])),
                  .metrics = {{"accuracy", nn::accuracy(logits, batch["label"])}}};
  };

  const std::string directory = digits_directory(flags);
  const int64_t examples = data::load_mnist(directory).train.size();
  const Dataset digits = datasets::mnist(directory)
                             .cache()  // decompressed and decoded once
                             .shuffle(10'000, flags.seed)
                             .repeat()
                             .batch(flags.batch)
                             .prefetch(2);
  Graph g;
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(flags);
  const MixedPrecision precision = mixed_precision_from_text(flags.mixed_precision);
  if (precision == MixedPrecision::float16 || precision == MixedPrecision::float16_on_gpus)
    optimizer->set_loss_scale({});
  const Training training = strategy->minimize(g, *optimizer, digits, model);
  if (training.is_idle) return TrainingSession(training).run();  // the chief trains all replicas
  constexpr int tests = 500;
  const Dataset test = datasets::mnist(directory, {.train = false}).repeat().batch(tests);
  const Output accuracy = strategy->evaluate(g, test.next(g), model).metrics[0].second,
               summary = scalar_summary("loss", training.loss);

  TrainingOptions options{.directory = flags.directory, .checkpoint_steps = flags.checkpoint_steps};
  options.session.recompute = recompute_from_text(flags.recompute);
  options.session.mixed_precision = precision;
  options.hooks.push_back(stop_at(flags.epochs * examples /
                                  (flags.batch * training.replicas * training.batches_per_step)));
  if (!flags.directory.empty() && training.is_chief)
    options.hooks.push_back(
        std::make_shared<WriteSummaries>(flags.directory, std::vector<Output>{summary}));
  if (!flags.losses.empty())
    options.hooks.push_back(std::make_shared<WriteLosses>(flags.losses, training.loss));
  TrainingSession session(training, options);
  session.run();

  if (training.is_chief) {
    double hits = 0;
    for (int i = 0; i < 4; ++i) hits += session.session().run(accuracy).item<float>();
    std::cout << "test accuracy " << 100 * hits / 4 << " % of " << 4 * tests << " digits"
              << std::endl;
    write_artifacts(session.session(), flags, {}, training.loss, *training.step.node);
  }
  session.close();
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = parse_flags(
      argc, argv, "Trains a perceptron or a convolutional network on handwritten digits.", true);
  return guarded([&] { run(flags); });
}
