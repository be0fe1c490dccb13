// Losses and metrics against their formulas.
#include "frontends/cpp/nn/losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "frontends/cpp/nn/metrics.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/variables.h"
#include "graph/gradient.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using Term = std::function<double(double p, double t)>;

std::vector<float> numbers(const Tensor& x) {
  return {x.data<float>(), x.data<float>() + x.elements()};
}

void expect_mean(Output (*loss)(Output, Output, Location), const Term& term) {
  const std::vector<float> p = {0.2F, 1.5F, -3, 0.5F, 2, 1}, t = {1, 1, -1, -1, 1, 1};
  Graph g;
  const Output y = loss(constant(g, Tensor::of<float>({2, 3}, p)),
                        constant(g, Tensor::of<float>({2, 3}, t)), here());
  std::vector<float> expected;
  for (size_t row = 0; row < 2; ++row) {
    double total = 0;
    for (size_t i = row * 3; i < row * 3 + 3; ++i) total += term(p[i], t[i]);
    expected.push_back(static_cast<float>(total / 3));
  }
  EXPECT_THAT(numbers(Session(g).run({}, {y})[0]),
              testing::Pointwise(testing::FloatNear(1e-5F), expected));
}

TEST(Losses, MatchTheMeansOfTheirFormulas) {
  expect_mean(nn::mean_squared_error, [](double p, double t) { return (p - t) * (p - t); });
  expect_mean(nn::mean_absolute_error, [](double p, double t) { return std::abs(p - t); });
  expect_mean(nn::log_cosh, [](double p, double t) { return std::log(std::cosh(p - t)); });
  expect_mean(nn::hinge, [](double p, double t) { return std::max(1 - p * t, 0.0); });
  expect_mean([](Output p, Output t, Location at) { return nn::huber(p, t, 0.75, at); },
              [](double p, double t) {
                const double d = std::abs(p - t);
                return d <= 0.75 ? d * d / 2 : 0.75 * (d - 0.375);
              });
  expect_mean(
      [](Output p, Output t, Location at) {
        return nn::sigmoid_cross_entropy(p, (t + 1) / 2, {.label_smoothing = 0.2}, at);
      },
      [](double x, double t) {
        const double p = 1 / (1 + std::exp(-x)), y = (t + 1) / 2 * 0.8 + 0.1;
        return -y * std::log(p) - (1 - y) * std::log(1 - p);
      });
}

TEST(Losses, CompareDistributions) {
  Graph g;
  const Output p = constant(g, Tensor::of<double>({2, 2}, {0.25, 0.75, 0.5, 0.5})),
               t = constant(g, Tensor::of<double>({2, 2}, {0.5, 0.5, 0, 1}));
  const Tensor divergence = Session(g).run({}, {nn::kl_divergence(p, t)})[0];
  EXPECT_NEAR(divergence.data<double>()[0], 0.5 * std::log(2) + 0.5 * std::log(2.0 / 3), 1e-12);
  EXPECT_NEAR(divergence.data<double>()[1], std::log(2), 1e-12);
  const Tensor cosine = Session(g).run({}, {nn::cosine_similarity(p, t)})[0];
  EXPECT_NEAR(cosine.data<double>()[1], std::sqrt(0.5), 1e-12);
}

// sum over rows of weight · cross entropy, and its second derivative in the direction `v`.
struct SecondDerivative {
  Output x, weights, v;

  std::vector<double> of(Output rows) const {
    const Output slope = gradients(sum(rows * weights), x)[0];
    return Session(x.graph()).run(gradients(sum(slope * v), x)[0]).to_vector<double>();
  }
};

TEST(Losses, CrossEntropyHasSecondDerivativesOfLabelsThatDependOnTheLogits) {
  Graph g;
  const Output x = constant(g, {{1.0, -0.5, 2.0}, {0.25, 3.0, -1.0}}, f64);
  const SecondDerivative second{x, constant(g, {0.5, 2.0}, f64),
                                constant(g, {{1.0, 2.0, -3.0}, {0.5, -1.0, 4.0}}, f64)};
  for (const Output& labels : {softmax(x), softmax(0.5 * x + 1), softmax(square(x))}) {
    EXPECT_THAT(second.of(nn::softmax_cross_entropy(x, labels)),
                testing::Pointwise(testing::DoubleNear(1e-12),
                                   second.of(-sum(labels * log_softmax(x), -1))));
  }
}

// At 0, too, where a logistic regression begins whose weights are zeros.
TEST(Losses, SigmoidCrossEntropyHasTheSlopeOfItsFormula) {
  Graph g;
  const std::vector<double> logits = {0, 0, -3, 3, -40, 40}, labels = {0, 1, 1, 0.25, 0, 1};
  const Output x = constant(g, logits), y = constant(g, labels);
  const Output slope = gradients(sum(sigmoid_cross_entropy(x, y)), x)[0];
  const std::vector<double> got = Session(g).run(slope).to_vector<double>();
  for (size_t i = 0; i < logits.size(); ++i)
    EXPECT_NEAR(got[i], 1 / (1 + std::exp(-logits[i])) - labels[i], 1e-12) << "at " << logits[i];
}

TEST(Losses, CrossEntropySumsTheGradientsOfWhatItBroadcasts) {
  Graph g;
  const Output all = constant(g, {{1.0, -0.5, 2.0}, {0.25, 3.0, -1.0}}, f64);
  const Output weights = constant(g, {0.5, 2.0}, f64);
  const auto slopes = [&](Output loss, Output x) {
    const Output slope = gradients(sum(loss * weights), x)[0];
    EXPECT_EQ(slope.shape(), x.shape());
    return Session(g).run(slope).to_vector<double>();
  };
  const auto near = [](const std::vector<double>& expected) {
    return testing::Pointwise(testing::DoubleNear(1e-12), expected);
  };
  for (const Output& one : {constant(g, {{0.2, 0.3, 0.5}}, f64), constant(g, {0.2, 0.3, 0.5}, f64),
                            constant(g, {{0.5}, {0.25}}, f64)}) {
    const Output both = one + zeros_like(all);
    EXPECT_THAT(slopes(softmax_cross_entropy(all, one), one),
                near(slopes(-sum(both * log_softmax(all), -1), one)));
    EXPECT_THAT(slopes(softmax_cross_entropy(one, softmax(all)), one),
                near(slopes(-sum(softmax(all) * log_softmax(both), -1), one)));
  }
}

TEST(Losses, CrossEntropyAcceptsClassesAndSequences) {
  Graph g;
  const std::vector<double> logits = {1, 2, 3, 0, -1, 4, 2, 2, 2, 5, 1, 0};
  const std::vector<int> labels = {2, 0, 1, 0};
  const Output rows = constant(g, Tensor::of<double>({2, 2, 3}, logits));
  const Output classes = constant(g, Tensor::of<int32_t>({2, 2}, labels));
  const Output flat = reshape(rows, {-1, 3}), flat_classes = reshape(classes, {-1});
  const auto cross_entropy = [&](size_t row, double smoothing) {
    double total = 0, out = 0;
    for (size_t i = 0; i < 3; ++i) total += std::exp(logits[row * 3 + i]);
    for (size_t i = 0; i < 3; ++i) {
      const double p = (static_cast<int>(i) == labels[row] ? 1 - smoothing : 0) + smoothing / 3;
      out -= p * (logits[row * 3 + i] - std::log(total));
    }
    return out;
  };
  const std::vector<Tensor> got = Session(g).run(
      {}, {nn::softmax_cross_entropy(rows, classes), nn::softmax_cross_entropy(flat, flat_classes),
           nn::softmax_cross_entropy(flat, flat_classes, {.label_smoothing = 0.3})});
  EXPECT_EQ(got[0].shape(), Shape({2, 2}));
  for (size_t row = 0; row < 4; ++row) {
    EXPECT_NEAR(got[0].data<double>()[row], cross_entropy(row, 0), 1e-12);
    EXPECT_NEAR(got[1].data<double>()[row], cross_entropy(row, 0), 1e-12);
    EXPECT_NEAR(got[2].data<double>()[row], cross_entropy(row, 0.3), 1e-12);
  }
}

TEST(Losses, RejectMistakes) {
  Graph g;
  const Output a = placeholder(g, "a", f32, {any, 3}), b = placeholder(g, "b", f32, {any, 2});
  expect_error_with(Code::invalid_argument, "mean_squared_error (",
                    [&] { nn::mean_squared_error(a, b); });
  expect_error_with(Code::invalid_argument, "got a:0 float[?,3] and b:0 float[?,2]",
                    [&] { nn::hinge(a, b); });
  expect_error_with(Code::invalid_argument, "delta must be positive, got 0",
                    [&] { nn::huber(a, a, 0); });
  expect_error_with(Code::invalid_argument, "label_smoothing must be in [0, 1), got 1",
                    [&] { nn::softmax_cross_entropy(a, a, {.label_smoothing = 1}); });
}

TEST(Metrics, OfOneBatch) {
  Graph g;
  const Output logits = constant(g, Tensor::of<float>({2, 4}, {1, 2, 3, 4, 9, 5, 3, 4}));
  const Output labels = constant(g, {2, 1});
  const std::vector<Tensor> got =
      Session(g).run({}, {nn::accuracy(logits, labels), nn::top_k_accuracy(logits, labels, 2),
                          nn::top_k_accuracy(logits, constant(g, {0, 1}), 2),
                          nn::perplexity(constant(g, Tensor::of<float>({2}, {1, 3})))});
  EXPECT_EQ(got[0].item<float>(), 0);
  EXPECT_EQ(got[1].item<float>(), 1);
  EXPECT_EQ(got[2].item<float>(), 0.5F);
  EXPECT_NEAR(got[3].item<float>(), std::exp(2.0), 1e-5);
}

// The value after these updates, after reset(), and after the first update alone.
void expect_collected(Graph& g, const metrics::Metric& metric, const std::vector<Feeds>& feeds,
                      double all, double empty, double first) {
  EXPECT_TRUE(g.collection("trainable_variables").empty());
  Node& init = initialize_variables(g);
  Session session(g);
  session.run({init});
  EXPECT_NEAR(session.run({}, {metric.value()})[0].item<float>(), empty, 1e-6);
  for (const Feeds& feed : feeds) session.run(feed, {metric.update()});
  EXPECT_NEAR(session.run({}, {metric.value()})[0].item<float>(), all, 1e-5);
  session.run({metric.reset()});
  EXPECT_NEAR(session.run({}, {metric.value()})[0].item<float>(), empty, 1e-6);
  session.run(feeds[0], {metric.update()});
  EXPECT_NEAR(session.run({}, {metric.value()})[0].item<float>(), first, 1e-5);
}

TEST(Metrics, MeanOverSteps) {
  Graph g;
  const Output x = placeholder(g, "x", f64, {any});
  const metrics::Mean mean(x);
  expect_collected(g, mean,
                   {{{x, Tensor::of<double>({2}, {1, 2})}}, {{x, Tensor::of<double>({1}, {6})}}}, 3,
                   0, 1.5);
}

TEST(Metrics, AccuracyOverSteps) {
  Graph g;
  const Output x = placeholder(g, "x", f32, {any, 2}), y = placeholder(g, "y", i32, {any});
  const metrics::Accuracy accuracy(x, y);
  const Feeds a = {{x, Tensor::of<float>({1, 2}, {1, 0})}, {y, Tensor::of<int32_t>({1}, {0})}},
              b = {{x, Tensor::of<float>({3, 2}, {1, 0, 1, 0, 0, 1})},
                   {y, Tensor::of<int32_t>({3}, {1, 1, 1})}};
  expect_collected(g, accuracy, {a, b}, 0.5, 0, 1);
}

struct Scores {
  Graph g;
  Output p = placeholder(g, "p", f32, {any}), y = placeholder(g, "y", DType::boolean, {any});
  std::vector<Feeds> feeds = {
      {{p, Tensor::of<float>({3}, {0.9F, 0.6F, 0.2F})}, {y, labels({true, false, true})}},
      {{p, Tensor::of<float>({3}, {0.8F, 0.1F, 0.4F})}, {y, labels({true, false, false})}}};

  static Tensor labels(const std::vector<bool>& values) {
    Tensor out(DType::boolean, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) out.data<bool>()[i] = values[i];
    return out;
  }
};

TEST(Metrics, PrecisionAndRecallOverSteps) {
  Scores a;
  expect_collected(a.g, metrics::Precision(a.p, a.y), a.feeds, 2.0 / 3, 0, 0.5);
  Scores b;
  expect_collected(b.g, metrics::Recall(b.p, b.y), b.feeds, 2.0 / 3, 0, 0.5);
  Scores c;
  expect_collected(c.g, metrics::Recall(c.p, c.y, {.threshold = 0.1}), c.feeds, 1, 0, 1);
}

// Of the 9 pairs of a positive (0.9, 0.8, 0.2) and a negative (0.6, 0.4, 0.1), 7 are in order.
TEST(Metrics, AucOverSteps) {
  Scores a;
  expect_collected(a.g, metrics::Auc(a.p, a.y, {.num_thresholds = 400}), a.feeds, 7.0 / 9, 0, 0.5);
}

// Keras' values.
TEST(Losses, CrossEntropiesOfProbabilities) {
  Graph g;
  const Output p = constant(g, {{0.1, 0.8}, {0.4, 1.0}}), t = constant(g, {{0.0, 1.0}, {1.0, 0.0}});
  const Output q = constant(g, {{0.2, 0.6, 0.4}}), one = constant(g, {{0.0, 1.0, 0.0}});
  const std::vector<Tensor> got = Session(g).run(
      {nn::binary_cross_entropy(p, t),
       nn::binary_cross_entropy(p[{slice(1)}], t[{slice(1)}], {.label_smoothing = 0.2}),
       nn::categorical_cross_entropy(q, one)});
  EXPECT_NEAR(got[0].at<float>(0), 0.16425203, 1e-6);
  EXPECT_NEAR(got[0].at<float>(1), 8.51719319, 0.1);  // 1 - 1e-7 in float32
  EXPECT_NEAR(got[1].at<float>(0), 0.34342798, 1e-6);
  EXPECT_NEAR(got[2].at<float>(0), 0.69314718, 1e-6);
  expect_error_with(Code::invalid_argument, "one dtype and shape",
                    [&] { nn::binary_cross_entropy(p, q); });
}

TEST(Metrics, ConfusionMatrixHasARowForEachClass) {
  Graph g;
  const Output labels = constant(g, {1, 2, 4, 1}), predictions = constant(g, {2, 2, 4, 1}, i64);
  const Tensor got = Session(g).run(nn::confusion_matrix(labels, predictions, 5));
  EXPECT_EQ(got.dtype(), i32);
  EXPECT_EQ(got.to_vector<int32_t>(), (std::vector<int32_t>{0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1,
                                                            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  const Output beyond = nn::confusion_matrix(labels, predictions, 3);
  expect_error_with(Code::invalid_argument, "", [&] { Session(g).run(beyond); });
  expect_error_with(Code::invalid_argument, "must be class numbers of one shape",
                    [&] { nn::confusion_matrix(labels, constant(g, {1.0}), 3); });
}

}  // namespace
}  // namespace leat
