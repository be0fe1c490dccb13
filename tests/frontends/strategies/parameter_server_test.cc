#include "frontends/cpp/strategies/parameter_server.h"

#include <gtest/gtest.h>

#include "frontends/cpp/variables.h"
#include "graph/ops.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

TEST(ParameterServer, SynchronousTrainingNeedsTheLossOfEachWorker) {
  const ParameterServer strategy(
      ClusterSpec::parse(R"({"cluster": {"ps": ["h:1"], "worker": ["h:2", "h:3"]}})"));
  Graph graph;
  const auto on_chief = strategy.replica(graph, 0);
  const Output loss = sum(square(variable(graph, "w", {2})));
  const auto minimize = [&](const std::vector<Output>& losses) {
    return [&strategy, losses] { strategy.minimize(Sgd{0.1}, losses); };
  };
  expect_error(minimize({}), Code::invalid_argument,
               "synchronous training with 2 workers needs the loss of each replica, got 0");
  expect_error(minimize({loss}), Code::invalid_argument,
               "synchronous training with 2 workers needs the loss of each replica, got 1");
  expect_error(minimize({loss, Output()}), Code::invalid_argument,
               "the loss of replica 1 is an empty Output");
  EXPECT_NO_THROW(minimize({loss, loss})());
}

}  // namespace
}  // namespace leat
