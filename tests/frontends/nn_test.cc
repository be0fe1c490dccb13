#include "frontends/cpp/nn/nn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

TEST(BatchNorm, NormalisesABatchAndTracksItsMean) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any, 2});
  const nn::BatchNorm layer(graph, 2, {.momentum = 0.9, .epsilon = 0.01});
  const Output trained = layer(x, true), used = layer(x, false);
  Node& train = Sgd(0).minimize(sum(trained));
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  const Tensor batch = Tensor::of<float>({3, 2}, {1, 10, 2, 20, 6, 30});
  const std::vector<double> means = {3, 20}, variances = {14.0 / 3, 200.0 / 3};

  const Tensor y = session.run({{x, batch}}, {trained})[0];
  for (int i = 0; i < 6; ++i) {
    const double expected =
        (batch.data<float>()[i] - means[i % 2]) / std::sqrt(variances[i % 2] + 0.01);
    EXPECT_NEAR(y.data<float>()[i], expected, 1e-5);
  }
  EXPECT_EQ(session.run({}, {layer.moving_mean()})[0].data<float>()[0], 0)
      << "only with apply_gradients()";

  session.run({{x, batch}}, {train});
  const auto [mean, variance] =
      session.run({}, fetch(layer.moving_mean(), layer.moving_variance()));
  for (int c = 0; c < 2; ++c) {
    EXPECT_NEAR(mean.data<float>()[c], 0.1 * means[c], 1e-5);
    // The unbiased variance of three rows.
    EXPECT_NEAR(variance.data<float>()[c], 0.9 + 0.1 * variances[c] * 3 / 2, 1e-4);
  }
  const Tensor z = session.run({{x, batch}}, {used})[0];
  for (int i = 0; i < 6; ++i) {
    const int c = i % 2;
    EXPECT_NEAR(z.data<float>()[i],
                (batch.data<float>()[i] - mean.data<float>()[c]) /
                    std::sqrt(variance.data<float>()[c] + 0.01),
                1e-4);
  }
}

TEST(Flatten, RejectsRowsBeyondInt32) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any, 2, 3});
  EXPECT_EQ(nn::flatten(x).shape(), Shape({any, 6}));
  const Output large = placeholder(graph, "large", f32, {any, 1 << 16, 1 << 16});
  expect_error_with(Code::invalid_argument, "a row can have at most 2147483647 elements, got large",
                    [&] { nn::flatten(large); });
}

TEST(BatchNorm, AcceptsImages) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any, 2, 2, 1});
  const nn::BatchNorm layer(graph, 1, {.epsilon = 0, .use_scale = false});
  const Output y = layer(x, true);
  EXPECT_EQ(graph.collection("trainable_variables").size(), 1U);
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  const Tensor out = session.run({{x, Tensor::of<float>({1, 2, 2, 1}, {1, 1, 3, 3})}}, {y})[0];
  EXPECT_THAT(std::vector<float>(out.data<float>(), out.data<float>() + 4),
              testing::Pointwise(testing::FloatNear(1e-5F), {-1.0F, -1.0F, 1.0F, 1.0F}));
}

// Of {1, 2, 6}, the mean is 3 and the variance 14/3, unbiased 7.
TEST(BatchNorm, AcceptsOtherFloatingPointTypes) {
  for (const DType dtype : {f16, bf16, f64}) {
    Graph graph;
    const Output w = variable(graph, "w", Tensor::of<float>({3, 1}, {1, 2, 6}));
    const Output x = cast(w, dtype);
    const Output y = nn::batch_norm(x, true, {.momentum = 0.9, .epsilon = 0.25});
    const Output used = nn::batch_norm(x, false, {.epsilon = 0});
    EXPECT_EQ(y.dtype(), dtype);
    const DType own = dtype == f64 ? f64 : f32;
    EXPECT_EQ(variable_named(graph, "batch_norm/gamma").dtype(), own);
    const double tolerance = dtype == f64 ? 1e-12 : dtype == f16 ? 2e-3 : 1e-2;
    const Output slope = gradients(sum(cast(y, f32) * Tensor::of<float>({3, 1}, {1, 0, 0})), w)[0];
    Node& update = group(graph, graph.collection("update_ops"));
    Session session(graph);
    session.initialize();
    const std::vector<double> got = session.run(cast(y, f64)).to_vector<double>();
    EXPECT_EQ(session.run(cast(used, f32)).to_vector<float>(), (std::vector<float>{1, 2, 6}));
    const double inverse = 1 / std::sqrt(14.0 / 3 + 0.25);
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(got[i], (std::array<double, 3>{1, 2, 6}[i] - 3) * inverse, tolerance) << dtype;
    // d y0 / d x_i = inverse (δ - 1/3 - (x0 - 3) (x_i - 3) inverse² / 3)
    const std::vector<float> slopes = session.run(slope).to_vector<float>();
    EXPECT_NEAR(slopes[0], inverse * (2.0 / 3 - 4 * inverse * inverse / 3), 2e-2) << dtype;
    EXPECT_NEAR(slopes[2], inverse * (-1.0 / 3 + 6 * inverse * inverse / 3), 2e-2) << dtype;
    session.run(update);
    const auto average = [&](const char* name) {
      return session.run(cast(variable_named(graph, name), f64)).item<double>();
    };
    EXPECT_NEAR(average("batch_norm/moving_mean"), 0.3, 1e-6) << dtype;
    EXPECT_NEAR(average("batch_norm/moving_variance"), 0.9 + 0.7, 1e-5) << dtype;
  }
  Graph graph;
  expect_error_with(Code::invalid_argument, "the input must be float, half or bfloat16, [batch, 1]",
                    [&] {
                      nn::BatchNorm(graph, 1)(ones(graph, {2, 1}, f64), true);
                    });
  expect_error_with(Code::invalid_argument, "must be float or double, got half",
                    [&] { nn::BatchNorm(graph, 1, {.dtype = f16}); });
}

TEST(BatchNorm, RejectsOtherChannels) {
  Graph graph;
  const nn::BatchNorm layer(graph, 2);
  try {
    layer(placeholder(graph, "x", f32, {any, 3}), true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("[batch, 2]"));
    EXPECT_THAT(error.message(), testing::HasSubstr("got x:0 float[?,3]"));
  }
}

TEST(Layers, AreNamedAsInTensorFlow) {
  Graph graph;
  Output x = placeholder(graph, "x", f32, {any, 3});
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) x = nn::dense(x, 3);
  for (const Output& variable : graph.collection("trainable_variables"))
    names.push_back(variable.node->name);
  EXPECT_THAT(names, testing::ElementsAre("dense/kernel", "dense/bias", "dense_1/kernel",
                                          "dense_1/bias", "dense_2/kernel", "dense_2/bias"));
  EXPECT_EQ(x.node->name.substr(0, 8), "dense_2/");
}

TEST(Accuracy, RejectsLabelsThatAreNotClasses) {
  Graph graph;
  const Output logits = placeholder(graph, "logits", f32, {2, 3});
  const auto expect_refused = [&](DType dtype, const Shape& shape) {
    const Output labels = placeholder(graph, "labels", dtype, shape);
    expect_error_with(Code::invalid_argument, "labels class numbers",
                      [&] { nn::accuracy(logits, labels); });
  };
  expect_refused(i32, {2, 1});
  expect_refused(i32, {1});
  expect_refused(f32, {2});
  expect_refused(f32, {2, 4});
  EXPECT_NO_THROW(nn::accuracy(logits, placeholder(graph, "labels", i64, {any})));
}

TEST(Dropout, KeepsTheMean) {
  Graph graph;
  const Output x = constant(graph, Tensor::of<float>({10000}, std::vector<float>(10000, 3)));
  const Output y = nn::dropout(x, 0.25, {.seed = 7});
  EXPECT_TRUE(same(nn::dropout(x, 0), x));
  EXPECT_THROW(nn::dropout(x, 1), Error);
  const Tensor out = Session(graph).run({}, {y})[0];
  int dropped = 0;
  for (const float value : out.span<float>()) {
    if (value == 0) {
      ++dropped;
    } else {
      EXPECT_FLOAT_EQ(value, 4);
    }
  }
  EXPECT_NEAR(dropped, 2500, 200);
}

TEST(Dropout, IsEqualInEverySessionForOneStep) {
  Graph graph;
  const Output x = constant(graph, Tensor::of<float>({1, 64}, std::vector<float>(64, 1)));
  const Output step = placeholder(graph, "step", i64, {});
  const Output first = nn::dropout(x, 0.5, {.seed = 7, .step = step}),
               other = nn::dropout(x, 0.5, {.seed = 8, .step = step});
  const auto at = [&](int64_t number) {
    return Session(graph).run({{step, Tensor::scalar(number)}}, {first, other});
  };
  const std::vector<Tensor> once = at(3);
  EXPECT_EQ(at(3)[0].to_string(), once[0].to_string());
  EXPECT_NE(at(4)[0].to_string(), once[0].to_string());
  EXPECT_NE(once[1].to_string(), once[0].to_string());
  for (const float value : once[0].span<float>()) EXPECT_TRUE(value == 0 || value == 2) << value;
  EXPECT_THROW(nn::dropout(x, 0.5, {.step = x}), Error);
}

TEST(Embedding, ReturnsRowsAndLearnsThem) {
  Graph graph;
  const Output ids = placeholder(graph, "ids", i32, {any, 2});
  const nn::Embedding table(
      graph, 3, 2,
      {.initializer = initializers::constant(Tensor::of<float>({3, 2}, {0, 1, 2, 3, 4, 5}))});
  const Output y = table(ids);
  EXPECT_EQ(y.shape(), Shape({any, 2, 2}));
  Node& train = Sgd(1).minimize(sum(y));
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  const Tensor which = Tensor::of<int32_t>({1, 2}, {2, 2});
  const Tensor rows = session.run({{ids, which}}, {y})[0];
  EXPECT_THAT(std::vector<float>(rows.data<float>(), rows.data<float>() + 4),
              testing::ElementsAre(4, 5, 4, 5));
  session.run({{ids, which}}, {train});
  const Tensor after = session.run({}, {table.embeddings()})[0];
  EXPECT_THAT(std::vector<float>(after.data<float>(), after.data<float>() + 6),
              testing::ElementsAre(0, 1, 2, 3, 2, 3));
  EXPECT_THROW(table(placeholder(graph, "x", f32, {2})), Error);
}

// Every node that a layer makes has the line of its caller.
TEST(Layers, KeepTheLineOfTheirCaller) {
  using Build = std::function<Output(Output rows, Output images, Output sequence, Output ids)>;
  const std::map<std::string, Build> layers = {
      {"dense",
       [](Output x, Output, Output, Output) { return nn::dense(x, 2, {.activation = relu}); }},
      {"dense of a sequence", [](Output, Output, Output x, Output) { return nn::dense(x, 2); }},
      {"dropout", [](Output x, Output, Output, Output) { return nn::dropout(x, 0.5); }},
      {"conv2d", [](Output, Output x, Output, Output) { return nn::conv2d(x, 2, 3); }},
      {"depthwise_conv2d",
       [](Output, Output x, Output, Output) { return nn::depthwise_conv2d(x, 3); }},
      {"conv2d_transpose",
       [](Output, Output x, Output, Output) { return nn::conv2d_transpose(x, 2, 3); }},
      {"batch_norm", [](Output x, Output, Output,
                        Output) { return nn::batch_norm(x, constant(x.graph(), true)); }},
      {"layer_norm", [](Output x, Output, Output, Output) { return nn::layer_norm(x); }},
      {"embedding", [](Output, Output, Output, Output x) { return nn::embedding(x, 2, 3); }},
      {"attention",
       [](Output, Output, Output x, Output) {
         return nn::multi_head_attention(x, x, x, {.heads = 3, .causal = true});
       }},
      {"lstm",
       [](Output, Output, Output x, Output ids) {
         return nn::rnn(nn::Lstm(x.graph(), 2), x, {.lengths = ids}).outputs;
       }},
      {"gru",
       [](Output, Output, Output x, Output) { return nn::rnn(nn::Gru(x.graph(), 2), x).outputs; }},
      {"simple_rnn", [](Output, Output, Output x,
                        Output) { return nn::rnn(nn::SimpleRnn(x.graph(), 2), x).outputs; }},
      {"orthogonal",
       [](Output x, Output, Output, Output) {
         return nn::dense(x, 2, {.kernel_initializer = initializers::orthogonal});
       }},
      {"cross entropy",
       [](Output x, Output, Output, Output ids) {
         return nn::softmax_cross_entropy(x, ids, {.label_smoothing = 0.1});
       }},
      {"huber", [](Output x, Output, Output, Output) { return nn::huber(x, x); }},
      {"auc", [](Output x, Output, Output, Output) { return metrics::Auc(x, x).value(); }},
  };
  for (const auto& [name, build] : layers) {
    Graph graph;
    build(placeholder(graph, "rows", f32, {2, 3}), placeholder(graph, "images", f32, {2, 4, 4, 3}),
          placeholder(graph, "sequence", f32, {2, 5, 3}), placeholder(graph, "ids", i32, {2}));
    for (const auto& node : graph.nodes()) {
      EXPECT_THAT(node->location.file, testing::EndsWith("nn_test.cc"))
          << name << ": " << describe(*node);
    }
  }
}

TEST(Layers, AFunctionOfTheUserKeepsItsOwnLine) {
  Graph graph;
  const Location layer = {"model.cc", 7};
  nn::dense(zeros(graph, {2, 3}), 2, {.activation = [](Output h) { return tanh(h); }}, layer);
  EXPECT_EQ(graph.find("dense/MatMul")->location.line, 7);
  EXPECT_THAT(graph.find("dense/Tanh")->location.file, testing::EndsWith("nn_test.cc"));
}

TEST(Layers, UninitialisedOnesAreReportedAtTheirLine) {
  Graph graph;
  const Output y = nn::layer_norm(zeros(graph, {2, 3}), {}, Location{"model.cc", 7});
  Session session(graph);
  expect_error_with(Code::failed_precondition, "which Mul (model.cc:7) reads",
                    [&] { session.run({y}); });
}

}  // namespace
}  // namespace leat
