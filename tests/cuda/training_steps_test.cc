// Whole training steps on a GPU: where the placer puts them with the plug-in's kernels, what
// crosses the bus, and that they compute what the CPU computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "distributed/cluster_view.h"
#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "graph/passes/placer.h"
#include "runtime/local_session.h"
#include "runtime/program.h"
#include "tests/cuda/host_gpu.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

// A training step, and the batches that it gets.
struct Training {
  Graph graph;
  std::vector<std::pair<std::string, Tensor>> batch;
  Output loss;
  Node* train = nullptr;
};

Tensor numbers(const Shape& shape) {
  std::mt19937 random(static_cast<unsigned>(shape.elements()));
  std::normal_distribution<float> normal;
  Tensor out(f32, shape);
  for (float& each : out.span<float>()) each = normal(random);
  return out;
}
Tensor classes(const Shape& shape, int count) {
  Tensor out(i32, shape);
  int next = 0;
  for (int32_t& each : out.span<int32_t>()) each = next++ % count;
  return out;
}

Output feed(Training& t, const std::string& name, Tensor value) {
  const Output out = placeholder(t.graph, name, value.dtype(), value.shape());
  t.batch.emplace_back(out.name(), std::move(value));
  return out;
}

void finish(Training& t, Output loss, Node& train) {
  t.loss = loss;
  t.train = &train;
}

void mlp(Training& t) {
  const Output x = feed(t, "x", numbers({8, 20})), labels = feed(t, "labels", classes({8}, 5));
  const Output hidden = nn::dense(x, 16, {.activation = relu});
  const Output loss = mean(nn::softmax_cross_entropy(nn::dense(hidden, 5), labels));
  finish(t, loss, Adam{1e-2}.minimize(loss));
}

Output convolutions(Output images, bool normalises) {
  Output x = nn::conv2d(images, 4, 3);
  if (normalises) x = nn::batch_norm(x, true);
  x = max_pool(relu(x), 2);
  x = nn::conv2d(x, 6, 3, {.strides = 2, .activation = relu});
  return nn::dense(nn::flatten(x), 5);
}

void cnn(Training& t) {
  const Output x = feed(t, "x", numbers({4, 9, 9, 2})), labels = feed(t, "labels", classes({4}, 5));
  const Output loss = mean(nn::softmax_cross_entropy(convolutions(x, false), labels));
  finish(t, loss, Momentum{1e-2, 0.9}.minimize(loss));
}

void cnn_with_batch_norm(Training& t) {
  const Output x = feed(t, "x", numbers({4, 9, 9, 2})), labels = feed(t, "labels", classes({4}, 5));
  const Output loss = mean(nn::softmax_cross_entropy(convolutions(x, true), labels));
  finish(t, loss, Momentum{1e-2, 0.9}.minimize(loss));
}

// As frontends/cpp/examples/char_lstm.cc.
void lstm(Training& t) {
  constexpr int64_t length = 6, units = 8, characters = 7;
  const Output ids = feed(t, "ids", classes({3, length}, characters));
  const nn::Lstm cell(t.graph, units);
  const nn::Dense logits(t.graph, units, characters);
  const Output by_time = transpose(ids);
  const std::vector<Output> zero = cell.zero_state(ids);
  auto [time, h, c, sum] =
      while_loop([](Output i, Output, Output, Output) { return i < length - 1; },
                 [&](Output i, Output h, Output c, Output sum) {
                   const auto state = cell(one_hot(take(by_time, i), characters), {h, c});
                   const Output wanted = take(by_time, i + 1);
                   const Output loss = mean(nn::softmax_cross_entropy(logits(state[0]), wanted));
                   return std::tuple{i + 1, state[0], state[1], sum + loss};
                 },
                 constant(t.graph, 0), zero[0], zero[1], constant(t.graph, 0.0F));
  const Output loss = sum / static_cast<double>(length - 1);
  finish(t, loss, Adam{1e-2}.minimize(loss));
}

void transformer(Training& t) {
  constexpr int64_t length = 5, size = 8, words = 11;
  const Output ids = feed(t, "ids", classes({2, length}, words)),
               wanted = feed(t, "wanted", classes({2, length}, 7));
  Output x =
      nn::embedding(ids, words, size) + variable(t.graph, "positions", numbers({length, size}));
  x = nn::layer_norm(x + nn::multi_head_attention(x, x, x, {.heads = 2, .causal = true}));
  x = nn::layer_norm(x + nn::dense(nn::dense(x, 16, {.activation = gelu}), size));
  const Output loss = mean(nn::softmax_cross_entropy(nn::dense(x, words), wanted));
  finish(t, loss, Adam{1e-2}.minimize(loss));
}

struct Model {
  const char* name;
  void (*build)(Training&);
};
void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

class TrainingSteps : public testing::TestWithParam<Model> {
 protected:
  TrainingSteps() { GetParam().build(training_); }
  Training training_;
};

// "Conv2D conv2d/Conv2D, …": what is not on a GPU.
std::string without_gpu(const PartitionedGraph& parts) {
  std::map<std::string, std::string> out;  // by op
  for (const auto& [device, part] : parts.partitions) {
    if (DeviceName::parse(device).type == "GPU") continue;
    for (const auto& node : part.nodes()) {
      std::string& nodes = out[node->op->name];
      nodes += " " + node->name;
      if (node->is("_Loop")) nodes += concat(" (", *node->placement_reason, ")");
    }
  }
  std::string text;
  for (const auto& [op, nodes] : out) text += concat("\n", op, ":", nodes);
  return text;
}

TEST_P(TrainingSteps, AreOneSegmentOnTheGpu) {
  Device& gpu = host_gpu();
  ThreadPool pool(1);
  const auto cpu =
      make_cpu_device(DeviceName::parse("/job:localhost/replica:0/task:0/device:CPU:0"), pool);
  PipelineOptions options;
  for (const auto& [name, value] : training_.batch) options.signature.feeds.push_back(name);
  options.signature.fetches = {training_.loss.name()};
  options.signature.targets = {training_.train->name};
  options.placement.devices = {{cpu->name(), DeviceType::cpu}, {gpu.name(), DeviceType::gpu}};
  options.placement.default_device = cpu->name();
  place_stateful(training_.graph, options.placement);
  PartitionedGraph parts = run_pipeline(training_.graph, options);
  ASSERT_EQ(without_gpu(parts), "");
  ASSERT_EQ(parts.partitions.size(), 1u);

  auto containers = std::make_shared<Containers>();
  NodeStates node_states;
  const Program program(std::move(parts.partitions.begin()->second), options.signature.fetches, gpu,
                        *cpu, *containers, node_states, pool);
  std::map<ItemKind, std::vector<std::string>> items;
  for (const Item& item : program.plan().items)
    items[item.kind].push_back(item.node == nullptr ? "" : item.node->name);
  EXPECT_LE(items[ItemKind::to_device].size(), training_.batch.size())
      << testing::PrintToString(items[ItemKind::to_device]);
  EXPECT_EQ(items[ItemKind::to_host].size(), 1u)
      << testing::PrintToString(items[ItemKind::to_host]);
  EXPECT_EQ(testing::PrintToString(items[ItemKind::execute]), "{}");
  if (items[ItemKind::loop].empty()) {
    EXPECT_EQ(items[ItemKind::segment].size(), 1u);
  }
}

// So that both sessions draw the same numbers.
void set_seeds(Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->op->is_stateful && node->view().has("seed"))
      node->attrs["seed"] = int64_t{node->id + 1};
  }
}

std::vector<float> losses(Training& training, bool on_gpu,
                          MixedPrecision format = MixedPrecision::nothing) {
  (void)host_gpu();
  SessionOptions options{.mixed_precision = format, .threads = 1};
  LocalSession session(options, {.gpus = on_gpu});
  Node& initialise = initialize_variables(training.graph);
  session.extend(training.graph);
  session.run({}, {}, {initialise.name});
  std::vector<float> out;
  for (int step = 0; step < 20; ++step) {
    out.push_back(session.run(training.batch, {training.loss.name()}, {training.train->name})[0]
                      .item<float>());
  }
  return out;
}

TEST_P(TrainingSteps, LearnAsOnTheCpu) {
  set_seeds(training_.graph);
  const std::vector<float> here = losses(training_, false);
  Training again;
  GetParam().build(again);
  set_seeds(again.graph);
  const std::vector<float> there = losses(again, true);
  EXPECT_LT(there.back(), 0.9F * there.front());
  for (size_t step = 0; step < here.size(); ++step)
    EXPECT_NEAR(there[step], here[step], 1e-4F * std::abs(here[step])) << "step " << step;
}

// The curves of float32 and of the CPU in bfloat16, whose sums are added in another order.
TEST_P(TrainingSteps, LearnInBfloat16) {
  std::vector<std::vector<float>> curves;
  for (const auto& [on_gpu, format] :
       {std::pair{false, MixedPrecision::nothing}, std::pair{false, MixedPrecision::bfloat16},
        std::pair{true, MixedPrecision::bfloat16}}) {
    Training training;
    GetParam().build(training);
    set_seeds(training.graph);
    curves.push_back(losses(training, on_gpu, format));
  }
  EXPECT_NE(curves[1], curves[0]);
  for (size_t step = 0; step < curves[0].size(); ++step) {
    EXPECT_NEAR(curves[2][step], curves[1][step], 0.03F * curves[0][0]) << "step " << step;
    EXPECT_NEAR(curves[2][step], curves[0][step], 0.05F * curves[0][0]) << "step " << step;
  }
}

// Where the step's convolutions ran, and its losses, in a session on worker 0 of two. The model is
// on worker 1, of whose kernels the master only hears.
struct OnCluster {
  std::set<std::string> devices;
  std::vector<float> losses;
};
OnCluster train_on_cluster(Gpus gpus) {
  (void)host_gpu();
  TaskOptions options = InProcessCluster::default_options();
  options.gpus = true;
  InProcessCluster cluster({{"worker", 2}}, options);
  EXPECT_THAT(to_text(view_cluster(cluster.target("worker", 1))),
              testing::ContainsRegex("/job:worker/task:1 .* CPU:0, GPU:0 \\(4.0 GiB\\) "));
  Training training;
  {
    const DeviceScope there(training.graph, "/job:worker/task:1");
    cnn(training);
  }
  set_seeds(training.graph);
  Node& initialise = initialize_variables(training.graph);
  const auto session = cluster.session(training.graph, "worker", 0, {.gpus = gpus});
  session->run({}, {}, {initialise.name});
  OnCluster out;
  for (int step = 0; step < 5; ++step) {
    RunMetadata ran;
    out.losses.push_back(session
                             ->run(training.batch, {training.loss.name()}, {training.train->name},
                                   {.trace = true}, &ran)[0]
                             .item<float>());
    for (const TraceEvent& event : ran.events) {
      if (event.op.starts_with("Conv2D")) out.devices.insert(event.device);
    }
  }
  return out;
}

TEST(Clusters, TrainOnTheGpuOfAnotherTask) {
  const OnCluster on_gpu = train_on_cluster(Gpus::prefer), on_cpu = train_on_cluster(Gpus::avoid);
  EXPECT_THAT(on_gpu.devices, testing::ElementsAre("/job:worker/replica:0/task:1/device:GPU:0"));
  EXPECT_THAT(on_cpu.devices, testing::ElementsAre("/job:worker/replica:0/task:1/device:CPU:0"));
  ASSERT_EQ(on_gpu.losses.size(), on_cpu.losses.size());
  for (size_t step = 0; step < on_cpu.losses.size(); ++step)
    EXPECT_NEAR(on_gpu.losses[step], on_cpu.losses[step], 1e-4F) << "step " << step;
}

INSTANTIATE_TEST_SUITE_P(Models, TrainingSteps,
                         testing::Values(Model{"mlp", mlp}, Model{"cnn", cnn},
                                         Model{"cnn_with_batch_norm", cnn_with_batch_norm},
                                         Model{"lstm", lstm}, Model{"transformer", transformer}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace leat
