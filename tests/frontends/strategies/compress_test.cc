// Compressed gradients: what arrives, what stays, and how much crosses.
#include "frontends/cpp/strategies/parts/compress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "frontends/cpp/session.h"
#include "frontends/cpp/variables.h"
#include "graph/passes/pipeline.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

using Kind = Compression::Kind;

class Compress : public testing::Test {
 protected:
  void build(const Compression& compression, int64_t n) {
    {
      const auto servers = replicas_.on_servers(graph_, 0);
      fed_ = placeholder(graph_, "fed", f32, {n});
      gradient_ = -fed_;
      variable_ = variable(graph_, "w", {n});
    }
    arrived_ =
        compressed(replicas_, 0, {{gradient_, variable_}}, compression, updates_).front().gradient;
    applied_ = assign_sub(variable_, arrived_);
    session_.emplace(graph_, SessionOptions{.target = cluster_.target("worker")});
    session_->run(initialize_variables(graph_));
  }
  std::vector<float> send(const std::vector<float>& gradient) {
    Tensor fed(f32, {static_cast<int64_t>(gradient.size())});
    std::transform(gradient.begin(), gradient.end(), fed.data<float>(), std::negate<>());
    Targets targets;
    for (const Output& each : updates_) targets.push_back(*each.node);
    const Tensor out = session_->run({{fed_, fed}}, std::vector<Output>{arrived_}, targets)[0];
    const auto values = out.span<float>();
    return {values.begin(), values.end()};
  }
  int64_t bytes_to_the_server() {
    PipelineOptions options;
    options.signature.feeds = {fed_.name()};
    options.signature.targets = {applied_.node->name};
    for (const char* task : {"worker", "ps"}) {
      options.placement.devices.push_back(
          {DeviceName::parse(concat("/job:", task, "/replica:0/task:0/device:CPU:0")),
           DeviceType::cpu});
    }
    options.placement.default_device = options.placement.devices.front().name;
    int64_t out = 0;
    for (const CutEdge& edge : run_pipeline(graph_, options).edges) {
      if (edge.dtype != DType::invalid && edge.destination.job == "ps")
        out += edge.shape.elements() * static_cast<int64_t>(dtype_size(edge.dtype));
    }
    return out;
  }

  InProcessCluster cluster_{{{"ps", 1}, {"worker", 1}}};
  Replicas replicas_{cluster_.spec()};
  Graph graph_;
  Output fed_, gradient_, variable_, arrived_, applied_;
  std::vector<Output> updates_;
  std::optional<Session> session_;
};

// A gradient of multiples of 1/16, another one in each step.
std::vector<float> gradient_of(int step, size_t n) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i)
    out[i] = std::round(16 * std::sin(static_cast<float>(step * 37 + static_cast<int>(i)))) / 16;
  return out;
}

TEST_F(Compress, TwoBitsKeepWhatTheyDoNotSend) {
  constexpr size_t n = 11;  // not a multiple of four
  constexpr float threshold = 0.5F;
  build({.kind = Kind::two_bit, .threshold = threshold}, n);
  std::vector<float> residual(n, 0);
  for (int step = 0; step < 10; ++step) {
    const std::vector<float> gradient = gradient_of(step, n);
    std::vector<float> expected(n, 0);
    for (size_t i = 0; i < n; ++i) {
      residual[i] += gradient[i];
      if (residual[i] >= threshold) expected[i] = threshold;
      if (residual[i] <= -threshold) expected[i] = -threshold;
      residual[i] -= expected[i];
    }
    EXPECT_EQ(send(gradient), expected) << "step " << step;
  }
}

TEST_F(Compress, TopKSendsTheLargest) {
  constexpr size_t n = 20, k = 4;
  build({.kind = Kind::top_k, .ratio = 0.2}, n);
  std::vector<float> residual(n, 0);
  for (int step = 0; step < 10; ++step) {
    std::vector<float> gradient = gradient_of(step, n);
    for (size_t i = 0; i < n; ++i) gradient[i] += static_cast<float>(i) / 1024;  // no ties
    for (size_t i = 0; i < n; ++i) residual[i] += gradient[i];
    std::vector<size_t> order(n);
    for (size_t i = 0; i < n; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::fabs(residual[a]) > std::fabs(residual[b]);
    });
    std::vector<float> expected(n, 0);
    for (size_t i = 0; i < k; ++i) expected[order[i]] = std::exchange(residual[order[i]], 0.0F);
    EXPECT_EQ(send(gradient), expected) << "step " << step;
  }
}

TEST_F(Compress, TheSignificantAreSentAndTheOthersAddUp) {
  constexpr size_t n = 11;
  constexpr float threshold = 0.75F;
  build({.kind = Kind::significant, .threshold = threshold}, n);
  std::vector<float> residual(n, 0);
  for (int step = 0; step < 10; ++step) {
    const std::vector<float> gradient = gradient_of(step, n);
    std::vector<float> expected(n, 0);
    for (size_t i = 0; i < n; ++i) {
      residual[i] += gradient[i];
      if (std::fabs(residual[i]) > threshold) expected[i] = std::exchange(residual[i], 0.0F);
    }
    EXPECT_EQ(send(gradient), expected) << "step " << step;
  }
}

TEST_F(Compress, AllIsSignificantAboveZero) {
  build({.kind = Kind::significant, .threshold = 0}, 11);
  for (int step = 0; step < 3; ++step) {
    const std::vector<float> gradient = gradient_of(step, 11);
    EXPECT_EQ(send(gradient), gradient);
  }
}

// Multiples of 1/16 add up without rounding.
TEST_F(Compress, WhatIsSkippedIsSentLater) {
  constexpr size_t n = 200;
  build({.kind = Kind::random_skip, .ratio = 0.5}, n);
  std::vector<float> owed(n, 0);
  size_t sent = 0;
  for (int step = 0; step < 10; ++step) {
    const std::vector<float> gradient = gradient_of(step, n), arrived = send(gradient);
    for (size_t i = 0; i < n; ++i) {
      owed[i] += gradient[i];
      if (arrived[i] == 0) continue;
      EXPECT_EQ(arrived[i], owed[i]) << "step " << step << ", number " << i;
      owed[i] = 0;
      ++sent;
    }
  }
  EXPECT_GT(sent, 700U);  // of 2,000: 9 standard deviations below the mean, zeros aside
  EXPECT_LT(sent, 1'200U);
}

TEST_F(Compress, WithRatioOneNothingIsSkipped) {
  build({.kind = Kind::random_skip, .ratio = 1}, 11);
  EXPECT_EQ(send(gradient_of(1, 11)), gradient_of(1, 11));
}

TEST_F(Compress, TheKktFilterSkipsWhatThePenaltyHoldsAtZero) {
  build({.kind = Kind::kkt, .l1 = 0.5}, 4);
  session_->run(assign(variable_, Tensor::of<float>({4}, {0, 0, 1, 0})));
  for (int step = 0; step < 2; ++step)  // nothing is kept
    EXPECT_THAT(send({0.5, -0.75, 0.25, 0.375}), testing::ElementsAre(0, -0.75, 0.25, 0));
}

TEST_F(Compress, HalfPrecisionRounds) {
  build({.kind = Kind::bf16}, 2);
  EXPECT_THAT(send({1, 1.0F + 1.0F / 512}), testing::ElementsAre(1, 1));
}

struct Bytes {
  Compression compression;
  int64_t expected;
};
class CompressedBytes : public Compress, public testing::WithParamInterface<Bytes> {};
TEST_P(CompressedBytes, Cross) {
  build(GetParam().compression, 1000);
  EXPECT_EQ(bytes_to_the_server(), GetParam().expected);
}
INSTANTIATE_TEST_SUITE_P(Kinds, CompressedBytes,
                         testing::Values(Bytes{{.kind = Kind::none}, 4000},
                                         Bytes{{.kind = Kind::bf16}, 2000},
                                         Bytes{{.kind = Kind::fp16}, 2000},
                                         Bytes{{.kind = Kind::two_bit}, 250},
                                         Bytes{{.kind = Kind::top_k, .ratio = 0.01}, 80}));

TEST(CompressOptions, ReportMistakes) {
  expect_error([] { compression_named("3bit"); }, Code::invalid_argument,
               "there is no compression '3bit'; there are: none, bf16, fp16, 2bit, top_k");
  expect_error([] { filter_named("top_k"); }, Code::invalid_argument,
               "there is no filter 'top_k'; there are: none, significant, random_skip, kkt");
}

}  // namespace
}  // namespace leat
