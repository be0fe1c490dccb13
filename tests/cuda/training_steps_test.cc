// Whole training steps on a GPU: where the placer puts them with the plug-in's kernels, what
// crosses the bus, and that they compute what the CPU computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "distributed/cluster_view.h"
#include "frontends/cpp/session.h"
#include "graph/passes/placer.h"
#include "runtime/local_session.h"
#include "runtime/program.h"
#include "tests/cuda/host_gpu.h"
#include "tests/cuda/models.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

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
    curves.push_back(losses(training, on_gpu, {.mixed_precision = format}));
  }
  EXPECT_NE(curves[1], curves[0]);
  for (size_t step = 0; step < curves[0].size(); ++step) {
    EXPECT_NEAR(curves[2][step], curves[1][step], 0.03F * curves[0][0]) << "step " << step;
    EXPECT_NEAR(curves[2][step], curves[0][step], 0.05F * curves[0][0]) << "step " << step;
  }
}

// On the GPU products round their operands; the CPU knows no such format.
TEST_P(TrainingSteps, LearnInTensorFloat32) {
  std::vector<std::vector<float>> curves;
  for (const auto& [on_gpu, format] :
       {std::pair{false, MixedPrecision::nothing}, std::pair{true, MixedPrecision::nothing},
        std::pair{false, MixedPrecision::tensor_float_32},
        std::pair{true, MixedPrecision::tensor_float_32}}) {
    Training training;
    GetParam().build(training);
    set_seeds(training.graph);
    curves.push_back(losses(training, on_gpu, {.mixed_precision = format}));
  }
  EXPECT_EQ(curves[2], curves[0]);
  EXPECT_NE(curves[3], curves[1]);
  for (size_t step = 0; step < curves[0].size(); ++step)
    EXPECT_NEAR(curves[3][step], curves[0][step], 0.01F * curves[0][0]) << "step " << step;
}

// Where the step's convolutions ran, and its losses, in a session on worker 0 of two. The model is
// on worker 1, of whose kernels the master only hears.
struct OnCluster {
  std::set<std::string> devices;
  std::vector<float> losses;
};
OnCluster train_on_cluster(const SessionOptions& session_options) {
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
  const auto session = cluster.session(training.graph, "worker", 0, session_options);
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
  const OnCluster on_gpu = train_on_cluster({.gpus = Gpus::prefer}),
                  on_cpu = train_on_cluster({.gpus = Gpus::avoid}),
                  rounded = train_on_cluster({.mixed_precision = MixedPrecision::tensor_float_32});
  EXPECT_THAT(on_gpu.devices, testing::ElementsAre("/job:worker/replica:0/task:1/device:GPU:0"));
  EXPECT_THAT(on_cpu.devices, testing::ElementsAre("/job:worker/replica:0/task:1/device:CPU:0"));
  ASSERT_EQ(on_gpu.losses.size(), on_cpu.losses.size());
  for (size_t step = 0; step < on_cpu.losses.size(); ++step)
    EXPECT_NEAR(on_gpu.losses[step], on_cpu.losses[step], 1e-4F) << "step " << step;
  EXPECT_NE(rounded.losses, on_gpu.losses);
  EXPECT_NEAR(rounded.losses.back(), on_gpu.losses.back(), 1e-2F);
}

// After a fault the task says so to the master of the next session, which trains on the CPU.
TEST(Clusters, GoOnWithoutAGpuThatIsLost) {
  (void)host_gpu();
  TaskOptions options = InProcessCluster::default_options();
  options.gpus = true;
  InProcessCluster cluster({{"worker", 2}}, options);
  const auto devices_of_a_step = [&] {
    Training training;
    {
      const DeviceScope there(training.graph, "/job:worker/task:1");
      mlp(training);
    }
    Node& initialise = initialize_variables(training.graph);
    const auto session = cluster.session(training.graph, "worker", 0, {.isolate_state = true});
    session->run({}, {}, {initialise.name});
    RunMetadata ran;
    session->run(training.batch, {training.loss.name()}, {training.train->name}, {.trace = true},
                 &ran);
    std::set<std::string> out;
    for (const TraceEvent& event : ran.events)
      if (event.op == "MatMul") out.insert(event.device);
    return out;
  };
  EXPECT_THAT(devices_of_a_step(),
              testing::ElementsAre("/job:worker/replica:0/task:1/device:GPU:0"));
  break_gpu();
  const std::set<std::string> after = devices_of_a_step();
  const std::string table = to_text(view_cluster(cluster.target("worker", 0)));
  recover_gpu();
  EXPECT_THAT(after, testing::ElementsAre("/job:worker/replica:0/task:1/device:CPU:0"));
  EXPECT_THAT(table, testing::ContainsRegex("/job:worker/task:1 .* CPU:0, GPU:0 \\(lost\\) "));
}

INSTANTIATE_TEST_SUITE_P(Models, TrainingSteps, testing::ValuesIn(models),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace leat
