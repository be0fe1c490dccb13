// Models that are split between workers train as they do on one device.
#include <gtest/gtest.h>

#include "frontends/cpp/optimizers/optimizers.h"
#include "tests/frontends/strategies/split_models.h"

namespace leat::split_models {
namespace {

struct Case {
  std::string name;
  ModelFunction model;
  Dataset data;
};

std::vector<Case> cases() {
  return {{"perceptron", perceptron, examples({6}, 4)},
          {"three_layers", three_layers, examples({6}, 4)},
          {"attention", attention_block, examples({4, 8}, 4)},
          {"words", words, examples({5}, 4)},
          {"convolutions", convolutions, examples({36}, 4)},
          {"batch_norm", normalised, examples({36}, 4)},
          {"uneven", uneven, examples({5}, 3)},
          {"dropout", with_dropout, examples({6}, 4)},
          {"resources", resources, examples({6}, 4)},
          {"known_batch", perceptron, examples({6}, 4, {.drop_remainder = true})}};
}

class TensorParallelModels : public testing::TestWithParam<int> {};

TEST_P(TensorParallelModels, TrainsAsOneDevice) {
  const Case model = cases()[static_cast<size_t>(GetParam())];
  InProcessCluster two({{"worker", 2}}), four({{"worker", 4}});
  const Sgd sgd{0.1};
  const Adam adam{0.01};
  const auto train = [&](const std::string& strategy, InProcessCluster& cluster,
                         const Optimizer& optimizer) {
    return Program(strategy, member(cluster), optimizer, model.data, model.model).train(5);
  };
  const Result by_sgd = train("one_device", two, sgd), by_adam = train("one_device", two, adam);

  expect_equal(train("tensor_parallel", two, sgd), by_sgd);
  expect_equal(train("tensor_parallel:shards=4", four, sgd), by_sgd);
  // Adam divides by the root of small sums of squares.
  expect_equal(train("tensor_parallel:shards=2", two, adam), by_adam, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, TensorParallelModels,
                         testing::Range(0, static_cast<int>(cases().size())), [](const auto& info) {
                           return cases()[static_cast<size_t>(info.param)].name;
                         });

}  // namespace
}  // namespace leat::split_models
