// Strategies whose threads train the same variables.
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/strategy_programs.h"

namespace leat {
namespace {

using namespace strategy_programs;

TEST(Strategies, ThreadsOfOneProcessLoseNoUpdate) {
  Program program("hogwild:threads=4", {}, Sgd{1}, count_updates);
  TrainingSession session(program.training, {.hooks = {stop_at(2'000)}});
  session.run();
  const auto steps = session.session().run(variable_named(program.graph, "global_step"));
  EXPECT_GE(steps.item<int64_t>(), 2'000);
  EXPECT_EQ(session.session().run(variable_named(program.graph, "w")).item<float>(),
            -static_cast<float>(steps.item<int64_t>()));
}

TEST(Strategies, AnErrorOfAThreadEndsTheTraining) {
  int calls = 0;
  const auto fails = [&](const Batch& batch) {
    Losses losses = count_updates(batch);
    if (++calls == 2)
      losses.loss = losses.loss * check_numerics(1 / sum(batch[0] * 0), "the second thread");
    return losses;
  };
  Program program("hogwild:threads=2", {}, Sgd{1}, fails);
  TrainingSession session(program.training);
  expect_error_with(Code::invalid_argument, "the second thread", [&] {
    for (int i = 0; i < 100'000; ++i) session.step({});
  });
}

}  // namespace
}  // namespace leat
