// SessionOptions::mixed_precision and LossScale: models train as they do in float32, within the
// rounding of 16 bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "graph/import/graph_def.h"
#include "graph/ops/seed.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

Tensor normal(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& value : values) value = distribution(random);
  return Tensor::of<float>(shape, values);
}

// How many nodes of each op compute in that dtype, loops included.
void count_ops(std::string_view graph_def, DType dtype, std::map<std::string, int>& ops) {
  for (const WrittenNode& node : read_graph_def(graph_def, "a test")) {
    const auto type = node.attrs.find("T");
    if (type != node.attrs.end() && type->second.kind() == "type" &&
        type->second.get<DType>() == dtype)
      ++ops[node.op];
    if (node.op == "_Loop") count_ops(node.attrs.at("body").get<std::string>(), dtype, ops);
  }
}

struct Outcome {
  std::vector<float> losses;
  std::map<std::string, int> low;  // ops in 16 bits
};

using Model = std::function<Output(const Output& x)>;

class Training {
 public:
  Training(const Shape& input, const Model& model, const LossScale* scale = nullptr)
      : x_(placeholder(graph_, "x", f32, input)), input_(normal(input, 1)) {
    random::seed(graph_, 1);  // some initial weights stray further from each other
    loss_ = mean(square(model(x_) - 0.5f));
    Adam adam{1e-2};
    if (scale != nullptr) adam.set_loss_scale(*scale);
    step_ = &adam.minimize(loss_);
    Session session(graph_);
    session.initialize();
    variables_ = graph_.collection("variables");
    for (const Output& v : variables_) {
      values_.push_back(placeholder(graph_, "value", v.dtype(), v.shape()));
      starts_.push_back(*assign(v, values_.back()).node);
    }
    start_ = session.run({}, variables_);
  }

  // From the same weights each time, without fusion, so that ops can be counted.
  Outcome run(MixedPrecision format, const std::string& target = "") {
    Session session(
        graph_,
        {.target = target, .fuse = false, .mixed_precision = format, .isolate_state = true});
    Feeds feeds;
    for (size_t i = 0; i < values_.size(); ++i) feeds.push_back({values_[i], start_[i]});
    session.run(feeds, std::vector<Output>{}, starts_);
    Outcome out;
    for (int i = 0; i < 12; ++i) {
      RunMetadata ran;
      const Tensor loss = session.run({{x_, input_}}, std::vector<Output>{loss_}, Targets{*step_},
                                      {.partition_graphs = true}, &ran)[0];
      EXPECT_EQ(loss.dtype(), f32);
      out.losses.push_back(loss.item<float>());
      out.low.clear();
      const DType low = format == MixedPrecision::bfloat16 ? bf16 : f16;
      for (const std::string& part : ran.partition_graphs) count_ops(part, low, out.low);
    }
    return out;
  }

 private:
  Graph graph_;
  Output x_, loss_;
  Tensor input_;
  Node* step_ = nullptr;
  std::vector<Output> variables_, values_;
  Targets starts_;
  std::vector<Tensor> start_;
};

// The curve of float32, within `tolerance` of the loss and the first loss.
void expect_curve(const Outcome& mixed, const Outcome& exact, double tolerance) {
  ASSERT_EQ(mixed.losses.size(), exact.losses.size());
  EXPECT_LT(exact.losses.back(), 0.7f * exact.losses.front()) << "it learns";
  EXPECT_NE(mixed.losses, exact.losses);
  for (size_t i = 0; i < exact.losses.size(); ++i)
    EXPECT_NEAR(mixed.losses[i], exact.losses[i],
                tolerance * (exact.losses.front() + exact.losses[i]))
        << "step " << i;
}

struct Case {
  const char* name;
  Shape input;
  Model model;
  std::map<std::string, int> low = {};  // at least so many of these
};

std::vector<Case> cases() {
  return {
      {"mlp",
       {48, 40},
       [](const Output& x) {
         return nn::dense(nn::dense(nn::dense(x, 64, {.activation = relu}), 32), 8);
       },
       {{"MatMul", 8}, {"Relu", 1}, {"ReluGrad", 1}}},
      {"cnn with batch norm",
       {6, 12, 12, 3},
       [](const Output& x) {
         Output h = relu(nn::batch_norm(nn::conv2d(x, 8, 3), {.training = true}));
         h = max_pool(relu(nn::conv2d(h, 8, 3) + h), 2);
         return nn::dense(nn::flatten(h), 4);
       },
       {{"Conv2D", 2},
        {"Conv2DBackpropFilter", 2},
        {"Conv2DBackpropInput", 1},
        {"FusedBatchNormV3", 1},
        {"FusedBatchNormGradV3", 1},
        {"MaxPool", 1},
        {"_MaxPoolReluGrad", 1},
        {"MatMul", 3}}},
      {"transformer",
       {4, 12, 32},
       [](const Output& x) {
         const Output h = nn::layer_norm(x + nn::attention(x, x, x, {.heads = 4}));
         return h + nn::dense(gelu(nn::dense(h, 64)), 32);
       },
       {{"MatMul", 6}}},
      {"lstm",
       {16, 9, 12},
       [](const Output& x) { return nn::dense(nn::rnn(nn::Lstm(x.graph(), 24), x).outputs, 4); },
       {{"MatMul", 4}}},
  };
}

TEST(MixedPrecisionTraining, FollowsTheCurveOfFloat32) {
  for (Case& each : cases()) {
    SCOPED_TRACE(each.name);
    Training training(each.input, each.model);
    const Outcome exact = training.run(MixedPrecision::nothing);
    for (const MixedPrecision format : {MixedPrecision::bfloat16, MixedPrecision::float16}) {
      Outcome mixed = training.run(format);
      expect_curve(mixed, exact, 0.03);
      for (const auto& [op, count] : each.low) EXPECT_GE(mixed.low[op], count) << op;
    }
    EXPECT_TRUE(exact.low.empty());
  }
}

TEST(MixedPrecisionTraining, IsAnOptionOfSessionsOnClusters) {
  InProcessCluster cluster({{"worker", 1}});
  Training training({48, 40}, cases()[0].model);
  const Outcome here = training.run(MixedPrecision::bfloat16);
  const Outcome there = training.run(MixedPrecision::bfloat16, cluster.target("worker", 0));
  EXPECT_EQ(there.losses, here.losses);
  EXPECT_EQ(there.low, here.low);
  EXPECT_GT(there.low.at("MatMul"), 0);
}

// ---- LossScale

// w · x for a gradient of x / scale: finite or not, as x is.
struct Scaled {
  explicit Scaled(const LossScale& options, bool with_rows = false) {
    x = placeholder(graph, "x", f32, {2});
    w = with_rows ? variable(graph, "w", Tensor::of<float>({4, 2}, {1, 1, 1, 1, 1, 1, 1, 1}))
                  : variable(graph, "w", Tensor::of<float>({2}, {1, 1}));
    const Output read = with_rows ? take(w, constant(graph, {1, 1, 3}), 0) : w;
    Adam adam{0.1};
    adam.set_loss_scale(options);
    steps = global_step(graph);
    train = &adam.minimize(sum(read * x), {.global_step = steps});
    scale = LossScaling(graph, options, here()).scale();
    session.emplace(graph);
    session->initialize();
  }

  void step(float first, float second) {
    session->run({{x, Tensor::of<float>({2}, {first, second})}}, std::vector<Output>{},
                 Targets{*train});
  }
  float current_scale() { return session->run(scale).item<float>(); }
  // Of all variables but the scale's.
  std::vector<Tensor> state() {
    std::vector<Output> others;
    for (const Output& v : graph.collection("variables"))
      if (v.node->name.find("loss_scale") == std::string::npos) others.push_back(v);
    return session->run({}, others);
  }

  Graph graph;
  Output x, w, steps, scale;
  Node* train = nullptr;
  std::optional<Session> session;
};

bool are_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].bytes() != b[i].bytes() || std::memcmp(a[i].raw(), b[i].raw(), a[i].bytes()) != 0)
      return false;
  }
  return true;
}

constexpr float infinite = std::numeric_limits<float>::infinity();

TEST(LossScale, SkipsStepsWithGradientsThatAreNotFinite) {
  for (const bool with_rows : {false, true}) {
    Scaled training({.initial = 8}, with_rows);
    training.step(1, 2);
    const std::vector<Tensor> before = training.state();
    EXPECT_EQ(training.session->run(training.steps).item<int64_t>(), 1);
    training.step(1, infinite);
    EXPECT_TRUE(are_equal(training.state(), before));
    EXPECT_EQ(training.current_scale(), 4);
    training.step(std::nanf(""), 2);
    EXPECT_TRUE(are_equal(training.state(), before));
    EXPECT_EQ(training.current_scale(), 2);
    training.step(1, 2);
    EXPECT_FALSE(are_equal(training.state(), before));
    EXPECT_EQ(training.session->run(training.steps).item<int64_t>(), 2);
    for (int i = 0; i < 3; ++i) training.step(infinite, 0);
    EXPECT_EQ(training.current_scale(), 1) << "not below 1";
  }
}

template <class T>
void expect_skips(const char* name, bool with_resources) {
  SCOPED_TRACE(name);
  Graph graph;
  graph.use_resource_variables(with_resources);
  const Output w = variable(graph, "w", Tensor::of<float>({2}, {1, 2})),
               x = placeholder(graph, "x", f32, {2});
  T optimizer(0.01);
  optimizer.set_loss_scale({});
  Node& train = optimizer.minimize(sum(w * x));
  Session session(graph);
  session.initialize();
  std::vector<Output> state;
  for (const Output& v : graph.collection("variables"))
    if (v.node->name.find("loss_scale") == std::string::npos) state.push_back(v);
  const auto step = [&](float first) {
    session.run({{x, Tensor::of<float>({2}, {first, 3})}}, std::vector<Output>{}, Targets{train});
    return session.run({}, state);
  };
  const std::vector<Tensor> before = step(1);
  EXPECT_TRUE(are_equal(step(infinite), before));
  EXPECT_FALSE(are_equal(step(1), before));
}

TEST(LossScale, EveryOptimizerSkips) {
  for (const bool with_resources : {false, true}) {
    expect_skips<Sgd>("Sgd", with_resources);
    expect_skips<Momentum>("Momentum", with_resources);
    expect_skips<Adagrad>("Adagrad", with_resources);
    expect_skips<Adadelta>("Adadelta", with_resources);
    expect_skips<RmsProp>("RmsProp", with_resources);
    expect_skips<Adam>("Adam", with_resources);
    expect_skips<AdamW>("AdamW", with_resources);
    expect_skips<Adamax>("Adamax", with_resources);
    expect_skips<Nadam>("Nadam", with_resources);
    expect_skips<Lamb>("Lamb", with_resources);
    expect_skips<Lars>("Lars", with_resources);
    expect_skips<Ftrl>("Ftrl", with_resources);
    expect_skips<ProximalGradientDescent>("ProximalGradientDescent", with_resources);
    expect_skips<ProximalAdagrad>("ProximalAdagrad", with_resources);
    expect_skips<AddSign>("AddSign", with_resources);
    expect_skips<PowerSign>("PowerSign", with_resources);
  }
}

TEST(LossScale, GrowsAfterFiniteStepsInARow) {
  Scaled training({.initial = 8, .growth_steps = 3, .factor = 4});
  training.step(1, 1);
  training.step(1, 1);
  training.step(infinite, 1);  // 2, and counts from 0
  EXPECT_EQ(training.current_scale(), 2);
  training.step(1, 1);
  training.step(1, 1);
  EXPECT_EQ(training.current_scale(), 2);
  training.step(1, 1);
  EXPECT_EQ(training.current_scale(), 8);
}

TEST(LossScale, OfAFixedScaleStays) {
  Scaled training(LossScale::fixed(128));
  const std::vector<Tensor> before = training.state();
  training.step(infinite, 1);
  EXPECT_TRUE(are_equal(training.state(), before));
  training.step(1, 1);
  EXPECT_FALSE(are_equal(training.state(), before));
  EXPECT_EQ(training.current_scale(), 128);
}

// The gradient of `w` is 1e-9, which is 0 in float16.
TEST(LossScale, BringsSmallGradientsThroughFloat16) {
  const auto moved = [](bool with_scale) {
    Graph g;
    const Output w = variable(g, "w", Tensor::of<float>({1, 1}, {1}));
    const Output x = placeholder(g, "x", f32, {1, 1});
    Sgd sgd{1e8};
    if (with_scale) sgd.set_loss_scale(LossScale::fixed(65536));
    Node& train = sgd.minimize(sum(matmul(x, w)) * 1e-9f);
    Session session(g, {.mixed_precision = MixedPrecision::float16});
    session.initialize();
    session.run({{x, Tensor::of<float>({1, 1}, {1})}}, std::vector<Output>{}, Targets{train});
    return 1 - session.run(w).item<float>();
  };
  EXPECT_EQ(moved(false), 0);
  EXPECT_NEAR(moved(true), 0.1, 1e-3);
}

TEST(LossScale, RejectsNumbersOutOfRange) {
  Adam adam{0.1};
  for (const LossScale& wrong : {LossScale{.initial = 0.5}, LossScale{.initial = infinite},
                                 LossScale{.growth_steps = -1}, LossScale{.factor = 1}}) {
    EXPECT_THROW(adam.set_loss_scale(wrong), Error);
  }
}

}  // namespace
}  // namespace leat
