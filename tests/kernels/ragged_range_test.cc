// Only its inputs' values bound how many values RaggedRange returns.
#include <gtest/gtest.h>

#include "frontends/cpp/session.h"
#include "graph/ops.h"

namespace leat {
namespace {

TEST(RaggedRange, InfersTheNumberOfValuesFromConstants) {
  Graph g;
  const auto ranges = [&](const Literal& limits) {
    return op_outputs("RaggedRange", {constant(g, 0), constant(g, limits), constant(g, 1)});
  };
  EXPECT_EQ(ranges({3, 0, 2})[1].shape(), Shape({5}));
  EXPECT_EQ(Session(g).run(ranges({3, 0, 2})[1]).to_vector<int>(),
            (std::vector<int>{0, 1, 2, 0, 1}));
  // Folding this would take gigabytes before the step begins.
  EXPECT_EQ(ranges(2'000'000'000)[1].shape(), Shape({2'000'000'000}));
  const Output x = placeholder(g, "x", i32, {});
  const Output unknown = op_outputs("RaggedRange", {constant(g, 0), x, constant(g, 1)})[1];
  EXPECT_EQ(unknown.shape(), Shape({any}));
}

}  // namespace
}  // namespace leat
