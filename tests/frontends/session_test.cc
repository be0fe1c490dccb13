// leat::Session as programs use it.
#include "frontends/cpp/session.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "graph/ops.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

// The graph is taken over once, whoever comes first.
TEST(Session, FirstStepsAtOnce) {
  InProcessCluster cluster({{"worker", 1}});
  for (const std::string& target : {std::string(), cluster.target("worker", 0)}) {
    for (int round = 0; round < 20; ++round) {
      Graph graph;
      const Output x = placeholder(graph, "x", f32, {});
      const Output y = add(x, 1);
      for (int i = 0; i < 500; ++i) identity(y);  // taking them over takes a while
      Session session(graph, {.target = target});
      std::vector<std::string> errors(4);
      std::latch start(4);
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
          start.arrive_and_wait();
          try {
            const auto value = static_cast<float>(t);
            if (session.run({{x, Tensor::scalar(value)}}, {y})[0].value<float>() != value + 1)
              errors[t] = "another sum";
          } catch (const Error& error) {
            errors[t] = error.message();
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      for (const std::string& error : errors) ASSERT_EQ(error, "") << target;
    }
  }
}

}  // namespace
}  // namespace leat
