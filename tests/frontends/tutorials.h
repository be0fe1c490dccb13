// What the tests of tutorials share: a graph and some values.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/cpp/session.h"
#include "frontends/cpp/variables.h"
#include "graph/ops.h"
#include "tests/support/expect_error.h"

namespace leat {

class Tutorials : public testing::Test {
 protected:
  template <class T = float>
  std::vector<T> values(Output y, const Feeds& feeds = {}) {
    Session session(g);
    session.initialize();
    return session.run(feeds, y).to_vector<T>();
  }
  void expect_near(Output y, const std::vector<float>& expected, float tolerance = 1e-5F) {
    EXPECT_THAT(values(y), testing::Pointwise(testing::FloatNear(tolerance), expected));
  }

  Graph g;
  Output x = constant(g, {{3.0, 1.0, 2.0}, {0.5, 0.5, -1.0}});
  Output v = constant(g, {1.0, -2.0, 3.0});
};

}  // namespace leat
