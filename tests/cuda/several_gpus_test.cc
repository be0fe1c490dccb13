// Several GPUs in one process, and in several tasks: values go from one to the other without a way
// through the host where they can.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/strategies/all_reduce.h"
#include "tests/cuda/host_gpu.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

class SeveralGpus : public testing::Test {
 protected:
  SeveralGpus() {
    (void)host_gpu();
    set_gpus(2);
  }
  ~SeveralGpus() override { set_gpus(1); }

  // y = relu(x w) on GPU:0, then (y v) on GPU:1, in tasks of a cluster or here.
  struct Halves {
    Output x, y;
    Halves(Graph& graph, const std::string& first, const std::string& second) {
      const Output hidden = [&] {
        const DeviceScope on{graph, first};
        x = placeholder(graph, "x", f32, {any, 3});
        return relu(matmul(x, constant(graph, Tensor::full({3, 4}, 0.5F))));
      }();
      const DeviceScope on{graph, second};
      y = matmul(hidden, constant(graph, Tensor::full({4, 2}, 2.0F)));
    }
  };
};

TEST_F(SeveralGpus, HandOverWithoutTheHost) {
  Graph graph;
  const Halves halves(graph, "/device:GPU:0", "/device:GPU:1");
  Session session(graph, {.threads = 2});
  for (int step = 0; step < 20; ++step) {
    const CudaCalls before = count_gpu_calls();
    const Tensor out = session.run({{halves.x, Tensor::full({2, 3}, float(step))}}, halves.y);
    const CudaCalls calls = count_gpu_calls();
    EXPECT_FLOAT_EQ(out.at<float>(1, 1), float(step) * 1.5F * 8.0F);
    EXPECT_EQ(calls.between_devices - before.between_devices, 1);
    EXPECT_EQ(calls.to_host - before.to_host, 1) << "the result";
    EXPECT_EQ(calls.from_host - before.from_host, step == 0 ? 3 : 1) << "the feed; two constants";
  }
}

// Read on both devices and on the host: each gets it.
TEST_F(SeveralGpus, ServeReadersOnTheHostToo) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {4});
  const Output hidden = [&] {
    const DeviceScope on{graph, "/device:GPU:0"};
    return tanh(x);
  }();
  const auto doubled = [&](const char* device) {
    const DeviceScope on{graph, device};
    return hidden * 2.0F;
  };
  const Output there = doubled("/device:GPU:1"), here = doubled("/device:CPU:0");
  Session session(graph, {.threads = 2});
  for (int step = 0; step < 5; ++step) {
    const auto out = session.run({{x, Tensor::full({4}, 0.25F)}}, {hidden, there, here});
    EXPECT_FLOAT_EQ(out[0].at<float>(3), std::tanh(0.25F));
    EXPECT_FLOAT_EQ(out[1].at<float>(3), 2 * std::tanh(0.25F));
    EXPECT_FLOAT_EQ(out[2].at<float>(3), 2 * std::tanh(0.25F));
  }
}

TEST_F(SeveralGpus, OfSeveralTasksExchangeTensors) {
  TaskOptions options = InProcessCluster::default_options();
  options.gpus = true;
  InProcessCluster cluster({{"worker", 2}}, options);
  Graph graph;
  const Halves halves(graph, "/job:worker/task:0/device:GPU:1", "/job:worker/task:1/device:GPU:0");
  const auto session = cluster.session(graph, "worker", 0);
  for (int step = 0; step < 5; ++step) {
    const auto out =
        session->run({{halves.x.name(), Tensor::full({2, 3}, float(step))}}, {halves.y.name()}, {});
    EXPECT_FLOAT_EQ(out[0].at<float>(1, 1), float(step) * 1.5F * 8.0F);
  }
}

// A network on `devices`, 40 steps of mini-batches that are the same in sum.
std::vector<float> losses(const std::vector<std::string>& devices) {
  Graph graph;
  const AllReduce strategy(StrategyCluster(), {.devices = devices});
  std::vector<Output> losses;
  std::vector<Feed> feeds;
  const int n = strategy.workers();
  for (int k = 0; k < n; ++k) {
    const auto replica = strategy.replica(graph, k);
    const int64_t rows = 8 / n;
    Tensor x(f32, {rows, 6}), labels(i32, {rows});
    for (int64_t i = 0; i < rows * 6; ++i)
      x.data<float>()[i] = std::sin(static_cast<float>(k * rows * 6 + i));
    for (int64_t i = 0; i < rows; ++i)
      labels.data<int32_t>()[i] = static_cast<int32_t>((k * rows + i) % 3);
    const Output inputs = placeholder(graph, "x", f32, x.shape()),
                 wanted = placeholder(graph, "labels", i32, labels.shape());
    feeds.emplace_back(inputs, x);
    feeds.emplace_back(wanted, labels);
    const auto weights = [&](Shape shape, float scale) {
      Tensor out(f32, shape);
      for (int64_t i = 0; i < out.elements(); ++i)
        out.data<float>()[i] = scale * std::cos(static_cast<float>(7 * i));
      return variable(graph, scale > 0.4F ? "w1" : "w2", out);
    };
    const Output hidden = relu(matmul(inputs, weights({6, 16}, 0.5F)));
    losses.push_back(
        mean(nn::softmax_cross_entropy(matmul(hidden, weights({16, 3}, 0.3F)), wanted)));
  }
  Node& train = strategy.minimize(Sgd{0.5}, losses);
  Session session(graph, {.allow_soft_placement = true, .threads = 2});
  session.initialize();
  std::vector<float> out;
  for (int step = 0; step < 40; ++step) {
    const std::vector<Tensor> values = session.run(feeds, losses, {train});
    float mean = 0;
    for (const Tensor& each : values) mean += each.item<float>() / static_cast<float>(n);
    out.push_back(mean);
  }
  return out;
}

TEST_F(SeveralGpus, TrainMirroredAsOneDoes) {
  const std::vector<float> one = losses({"GPU:0"});
  const CudaCalls before = count_gpu_calls();
  const std::vector<float> two = losses({"GPU:0", "GPU:1"});
  const CudaCalls calls = count_gpu_calls();
  EXPECT_EQ(calls.collectives - before.collectives, 40);
  EXPECT_LT(one.back(), 0.9F * one.front());
  ASSERT_EQ(one.size(), two.size());
  for (size_t step = 0; step < one.size(); ++step) EXPECT_NEAR(two[step], one[step], 1e-5F) << step;
}

}  // namespace
}  // namespace leat
