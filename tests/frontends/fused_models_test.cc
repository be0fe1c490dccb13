// Models train alike with and without fused nodes.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "graph/import/graph_def.h"

namespace leat {
namespace {

Output data(Graph& graph, const std::string& name, const Shape& shape) {
  std::mt19937 random(static_cast<unsigned>(shape.elements()));
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& value : values) value = normal(random);
  const Tensor tensor = Tensor::of<float>(shape, values);
  return variable(graph, name, tensor, {.trainable = false});
}

struct Outcome {
  std::vector<float> losses;
  std::map<std::string, int> ops;  // of the training step: how many nodes, loops included
};

void count_ops(std::string_view graph_def, std::map<std::string, int>& ops) {
  for (const WrittenNode& node : read_graph_def(graph_def, "a test")) {
    ++ops[node.op];
    if (node.op == "_Loop") count_ops(node.attrs.at("body").get<std::string>(), ops);
  }
}

using Model = std::function<Output(Graph&)>;  // its output

class Training {
 public:
  explicit Training(const Model& model) {
    loss_ = mean(square(model(graph_) - 0.5f));
    step_ = &Sgd{0.05}.minimize(loss_);
    variables_ = graph_.collection("variables");
    for (const Output& v : variables_) {
      const Output value = placeholder(graph_, "value", v.dtype(), v.shape());
      values_.push_back(value);
      starts_.push_back(*assign(v, value).node);
    }
    Session session(graph_);
    session.initialize();
    start_ = session.run({}, variables_);
  }

  // From the same weights each time.
  Outcome run(bool fuse) {
    Session session(graph_, {.fuse = fuse, .threads = 2});
    Feeds feeds;
    for (size_t i = 0; i < values_.size(); ++i) feeds.push_back({values_[i], start_[i]});
    session.run(feeds, std::vector<Output>{}, starts_);
    Outcome out;
    for (int i = 0; i < 4; ++i) {
      RunMetadata ran;
      const std::vector<Tensor> got = session.run({}, std::vector<Output>{loss_}, Targets{*step_},
                                                  {.partition_graphs = true}, &ran);
      out.losses.push_back(got[0].item<float>());
      out.ops.clear();
      for (const std::string& part : ran.partition_graphs) count_ops(part, out.ops);
    }
    return out;
  }

 private:
  Graph graph_;
  Output loss_;
  Node* step_ = nullptr;
  std::vector<Output> variables_, values_;
  Targets starts_;
  std::vector<Tensor> start_;
};

void expect_alike(const char* name, const Model& model) {
  SCOPED_TRACE(name);
  Training training(model);
  Outcome plain = training.run(false), fused = training.run(true);
  EXPECT_EQ(plain.ops["_Fused"], 0);
  EXPECT_GT(fused.ops["_Fused"], 0);
  ASSERT_EQ(fused.losses.size(), plain.losses.size());
  EXPECT_NE(plain.losses.front(), plain.losses.back());
  for (size_t i = 0; i < plain.losses.size(); ++i)
    EXPECT_NEAR(fused.losses[i], plain.losses[i], 2e-5 * std::abs(plain.losses[i]) + 1e-6);
}

TEST(FusedModels, TrainAlike) {
  expect_alike("mlp", [](Graph& g) {
    Output x = relu(nn::dense(data(g, "x", {48, 40}), 64));
    return tanh(nn::dense(x, 32));
  });
  expect_alike("cnn", [](Graph& g) {
    Output x = relu(nn::conv2d(data(g, "x", {6, 20, 20, 3}), 8, 3));
    x = max_pool(x, 2);
    const Output y = relu(nn::batch_norm(nn::conv2d(x, 8, 3), {.training = true}) + x);
    return sigmoid(y);
  });
  expect_alike("transformer", [](Graph& g) {
    const Output x = data(g, "x", {4, 12, 32});
    const Output h = nn::layer_norm(x + nn::attention(x, x, x, {.heads = 4}));
    return h + nn::dense(gelu(nn::dense(h, 64)), 32);
  });
  expect_alike("lstm", [](Graph& g) {
    const Output x = data(g, "x", {16, 9, 12});
    return nn::rnn(nn::Lstm(g, 40), x).outputs;
  });
  expect_alike("branches", [](Graph& g) {
    const Output x = nn::dense(data(g, "x", {32, 40}), 40);
    const Output is_large = mean(x) > 0.0f;
    return cond(
        is_large, [&] { return tanh(x * 2.0f) + x; }, [&] { return exp(-x) * x; });
  });
}

// Of `d` and `e` only the shapes are read, which are known before the step. Both may lie where `c`
// was, but not both at once.
TEST(FusedModels, ResultsThatNobodyReadsLieApart) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any, any});
  const Output c = cumsum(x, 0), d = c * x, e = tanh(d - x), f = d * e;
  const Output sizes = shape_of(d) + shape_of(e);
  Tensor values(f32, {20, 30});
  for (int64_t i = 0; i < values.elements(); ++i)
    values.data<float>()[i] = std::sin(static_cast<float>(i));
  const auto run = [&](bool fuse) {
    Session session(graph, {.fuse = fuse, .threads = 1});
    return session.run({{x, values}}, {f, sizes})[0];
  };
  const Tensor with = run(true), without = run(false);
  for (int64_t i = 0; i < values.elements(); ++i)
    ASSERT_NEAR(with.data<float>()[i], without.data<float>()[i], 1e-5) << i;
}

}  // namespace
}  // namespace leat
