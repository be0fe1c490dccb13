// Strategies whose workers train alone for some steps, by name.
#include "frontends/cpp/strategies/admm.h"
#include "frontends/cpp/strategies/easgd.h"
#include "frontends/cpp/strategies/local_sgd.h"
#include "frontends/cpp/strategies/names/names.h"

namespace leat::names {
namespace {

std::unique_ptr<Strategy> make_local_sgd(const StrategyCluster& cluster,
                                         const OptionReader& options, int64_t steps) {
  return std::make_unique<LocalSgd>(cluster,
                                    LocalSgdOptions{.steps = options.integer("steps", steps)});
}

std::unique_ptr<Strategy> make_bmuf(const StrategyCluster& cluster, const OptionReader& options) {
  const double n = Replicas(cluster).count();
  return std::make_unique<LocalSgd>(
      cluster, LocalSgdOptions{.steps = options.integer("steps", 10),
                               .has_block_momentum = true,
                               .momentum = options.number("momentum", 1 - 1 / n),
                               .block_rate = options.number("rate", 1),
                               .is_nesterov = options.boolean("nesterov", true),
                               .clears_momentum = options.boolean("clear_momentum", true)});
}

std::unique_ptr<Strategy> make_easgd(const StrategyCluster& cluster, const OptionReader& options) {
  return std::make_unique<Easgd>(cluster,
                                 EasgdOptions{.steps = options.integer("steps", 10),
                                              .moving_rate = options.number("moving_rate", 0)});
}

std::unique_ptr<Strategy> make_admm(const StrategyCluster& cluster, const OptionReader& options) {
  return std::make_unique<Admm>(cluster, AdmmOptions{.steps = options.integer("steps", 20),
                                                     .rho = options.number("rho", 1),
                                                     .l1 = options.number("l1", 0)});
}

}  // namespace

Entries of_local_steps() {
  const StrategyOption steps{"steps", "10", "local steps between two exchanges"};
  return {
      {{"local_sgd", "workers train alone and take the mean of their variables", {steps}},
       [](const auto& cluster, const auto& options) {
         return make_local_sgd(cluster, options, 10);
       }},
      {{"model_average", "local_sgd with TensorFlow's interval", {{"steps", "100", steps.doc}}},
       [](const auto& cluster, const auto& options) {
         return make_local_sgd(cluster, options, 100);
       }},
      {{"simu_parallel_sgd", "workers train alone; one mean at the end", {}},
       [](const auto& cluster, const auto& options) {
         return make_local_sgd(cluster, options, 0);
       }},
      {{"bmuf",
        "local_sgd with momentum of the blocks",
        {steps,
         {"momentum", "1 - 1/workers", "of the blocks"},
         {"rate", "1", "of the blocks"},
         {"nesterov", "true", "a block starts where the momentum will take it"},
         {"clear_momentum", "true", "that of the workers' optimizers, after each block"}}},
       make_bmuf},
      {{"easgd",
        "workers train alone, tied to a centre on the ps by a spring",
        {steps, {"moving_rate", "0.9 / (steps · workers)", "part of the distance that moves"}}},
       make_easgd},
      {{"admm",
        "workers solve their own part, multipliers make them agree",
        {{"steps", "20", steps.doc},
         {"rho", "1", "how strongly a worker is drawn to the consensus"},
         {"l1", "0", "weight of |z|₁"}}},
       make_admm},
  };
}

}  // namespace leat::names
