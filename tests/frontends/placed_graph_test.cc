// The graph that TensorBoard shows: every node with the device on which it ran, or would run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/training/training_hooks.h"
#include "graph/formats/event_file.h"
#include "graph/import/graph_def.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

constexpr const char* ps = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr const char* worker0 = "/job:worker/replica:0/task:0/device:CPU:0";
constexpr const char* worker1 = "/job:worker/replica:0/task:1/device:CPU:0";

std::map<std::string, std::string> devices_of(std::string_view graph_def) {
  std::map<std::string, std::string> out;
  for (const WrittenNode& node : read_graph_def(graph_def, "a test")) out[node.name] = node.device;
  return out;
}

std::string graph_in(const std::string& directory) {
  std::string out;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    for (const LoggedEvent& event : read_events(file.path().string()))
      if (!event.graph_def.empty()) out = event.graph_def;
  }
  return out;
}

// w and its update are on the ps. The model is on worker 1, except the loss, which requests no
// device: the client dials worker 0.
struct Program {
  Graph graph;
  Output x, w, loss, summary, step;
  Node* train;

  Program() {
    {
      const DeviceScope on(graph, "/job:ps");
      step = variable(graph, "global_step", {}, initializers::zeros(), i64, {.trainable = false});
      w = variable(graph, "w", {}, initializers::zeros());
    }
    Output difference;
    {
      const DeviceScope on(graph, "/job:worker/task:1");
      x = placeholder(graph, "x", f32, {any});
      difference = w * x - x * 2.0f;
      const Output unused = difference + 17.0f;  // no step runs it
      EXPECT_TRUE(unused);
    }
    loss = mean(square(difference));
    summary = scalar_summary("loss", loss);
    train = &Sgd{0.1}.minimize(loss, {.global_step = step});
  }
};

TEST(PlacedGraph, HasTheDevicesThatThePlacerChose) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  const ScratchDirectory directory;
  Program program;
  RunMetadata ran;
  {
    TrainingSession training(program.graph, {.train = program.train,
                                             .global_step = program.step,
                                             .inputs = {program.x},
                                             .fetches = {program.loss},
                                             .session = {.target = cluster.target("worker", 0)}});
    training.add(std::make_unique<WriteSummaries>(directory.path(),
                                                  std::vector<Output>{program.summary}, 1));
    expect_error_with(Code::failed_precondition, "only after the first step",
                      [&] { training.placed_graph(); });
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(training.step({Tensor::of<float>({2}, {1, 2})}));
    training.session().run({{program.x, Tensor::of<float>({2}, {1, 2})}}, {program.loss},
                           {*program.train}, {.partition_graphs = true}, &ran);
  }
  const auto devices = devices_of(graph_in(directory.path()));
  ASSERT_EQ(devices.size(), program.graph.nodes().size());
  for (const auto& [name, device] : devices)
    EXPECT_TRUE(DeviceName::parse(device).is_complete()) << name << ": " << device;
  EXPECT_EQ(devices.at("w"), ps);
  EXPECT_EQ(devices.at("x"), worker1);
  EXPECT_EQ(devices.at(program.loss.node->name), worker0);
  size_t compared = 0;
  for (const std::string& partition : ran.partition_graphs) {
    for (const auto& [name, device] : devices_of(partition)) {
      const auto same = devices.find(name);
      if (same == devices.end()) continue;  // a send, a receive, a feed
      EXPECT_EQ(same->second, device) << name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 10u);
}

// A node that no task can run and no step needs keeps its requested device.
TEST(PlacedGraph, KeepsRequestsThatNoTaskCanServe) {
  const ScratchDirectory directory;
  Program program;
  for (const auto& node : program.graph.nodes()) node->requested_device = {};
  {
    const DeviceScope on(program.graph, "/job:moon/task:3");
    program.graph.add(
        {.op = "Neg", .name = "far", .inputs = {constant(program.graph, Tensor::scalar(1.0f))}});
  }
  {
    TrainingSession training(
        program.graph,
        {.train = program.train, .global_step = program.step, .inputs = {program.x}});
    training.add(std::make_unique<WriteSummaries>(directory.path(),
                                                  std::vector<Output>{program.summary}, 1));
    ASSERT_TRUE(training.step({Tensor::of<float>({2}, {1, 2})}));
  }
  const auto devices = devices_of(graph_in(directory.path()));
  EXPECT_EQ(devices.at("far"), "/job:moon/task:3");
  EXPECT_TRUE(DeviceName::parse(devices.at("w")).is_complete()) << devices.at("w");
}

}  // namespace
}  // namespace leat
