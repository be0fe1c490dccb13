// A seed of the graph: sessions draw the same numbers, ops different ones.
#include "graph/ops/seed.h"

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/state/queue.h"
#include "tests/frontends/tutorials.h"

namespace leat {
namespace {

using Draw = std::function<Output(Graph&)>;

std::vector<float> drawn(const std::function<void(Graph&)>& prepare, const Draw& draw) {
  Graph graph;
  prepare(graph);
  const Output y = draw(graph);
  Session session(graph);
  session.initialize();
  return session.run(cast(y, f32)).to_vector<float>();
}

void with_seed(Graph& graph) { random::seed(graph, 7); }
void without_seed(Graph&) {}

class EverySource : public testing::TestWithParam<std::pair<std::string, Draw>> {};

TEST_P(EverySource, DrawsTheSameInEverySession) {
  const Draw& draw = GetParam().second;
  EXPECT_EQ(drawn(with_seed, draw), drawn(with_seed, draw));
  EXPECT_NE(drawn(without_seed, draw), drawn(without_seed, draw));
  EXPECT_NE(drawn(with_seed, draw), drawn([](Graph& g) { random::seed(g, 8); }, draw));
}

INSTANTIATE_TEST_SUITE_P(
    Seed, EverySource,
    testing::Values(
        std::pair<std::string, Draw>("normal", [](Graph& g) { return random::normal(g, {64}); }),
        std::pair<std::string, Draw>("uniform", [](Graph& g) { return random::uniform(g, {64}); }),
        std::pair<std::string, Draw>("integers",
                                     [](Graph& g) { return random::integers(g, {64}, 0, 1000); }),
        std::pair<std::string, Draw>("gamma", [](Graph& g) { return random::gamma(g, {64}, 2.0); }),
        std::pair<std::string, Draw>("poisson",
                                     [](Graph& g) { return random::poisson(g, {64}, 50.0); }),
        std::pair<std::string, Draw>("shuffle",
                                     [](Graph& g) { return random::permutation(g, 64); }),
        std::pair<std::string, Draw>("categorical",
                                     [](Graph& g) {
                                       return random::categorical(zeros(g, {1, 99}), 64);
                                     }),
        std::pair<std::string, Draw>("variable",
                                     [](Graph& g) {
                                       return variable(g, "w", {64}, initializers::glorot_uniform) +
                                              0;
                                     }),
        std::pair<std::string, Draw>("dropout",
                                     [](Graph& g) { return nn::dropout(ones(g, {64}), 0.5); })),
    [](const auto& info) { return info.param.first; });

TEST(Seed, OpsDifferFromEachOther) {
  const Draw second = [](Graph& g) {
    random::normal(g, {64});
    return random::normal(g, {64});
  };
  const Draw first = [](Graph& g) { return random::normal(g, {64}); };
  EXPECT_NE(drawn(with_seed, first), drawn(with_seed, second));
}

TEST(Seed, OfAnOpBesideThatOfTheGraph) {
  const Draw own = [](Graph& g) { return random::normal(g, {64}, {.seed = 3}); };
  // Independent of its place in the graph.
  const Draw later = [](Graph& g) {
    random::normal(g, {64});
    return random::normal(g, {64}, {.seed = 3});
  };
  EXPECT_EQ(drawn(with_seed, own), drawn(with_seed, later));
  EXPECT_EQ(drawn(without_seed, own), drawn(without_seed, later));
  EXPECT_NE(drawn(with_seed, own), drawn(without_seed, own));
}

// By the rule of tf.set_random_seed: the attributes are those that TensorFlow would set.
TEST(Seed, AttributesFollowTensorFlow) {
  Graph g;
  EXPECT_EQ(random::seeds(g, 5).seed, 5);
  EXPECT_EQ(random::seeds(g, 5).seed2, 0);
  random::seed(g, 7);
  EXPECT_EQ(random::seeds(g, 5).seed, 7);
  EXPECT_EQ(random::seeds(g, 5).seed2, 5);
  EXPECT_EQ(random::seeds(g, 0).seed2, static_cast<int64_t>(g.size()));
  random::seed(g, 9);  // the last one counts
  EXPECT_EQ(random::seeds(g, 0).seed, 9);
  const ShuffleQueue queue(g, "q", {f32}, {.seed = 4});
  EXPECT_EQ(g.find("q")->attr<int64_t>("seed"), 9);
  EXPECT_EQ(g.find("q")->attr<int64_t>("seed2"), 4);
}

}  // namespace
}  // namespace leat
