// Programs on a device that is not the host: where values are copied, lifetimes, and order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ops.h"
#include "runtime/local_rendezvous.h"
#include "tests/runtime/ops_for_tests.h"
#include "tests/support/recording_device.h"

namespace leat {
namespace {

using testing::HasSubstr;

const std::string gpu0 = "/job:localhost/replica:0/task:0/device:GPU:0";

// Before the task: it must outlive the variables.
struct Gpu {
  RecordingDevice gpu{DeviceName::parse(gpu0)};
};

struct GpuTask : Gpu, TestTask {
  explicit GpuTask(int threads = 1) : TestTask(threads) {}
  TaskResources both() { return {{cpu.get(), &gpu}, &pool, containers, node_states}; }
  std::unique_ptr<RegisteredGraph> on_gpu(Graph graph, std::vector<std::string> fetches) {
    std::map<std::string, Graph> partitions;
    partitions.emplace(gpu0, std::move(graph));
    return std::make_unique<RegisteredGraph>(std::move(partitions), std::move(fetches),
                                             std::vector<CutEdge>{}, both());
  }
};

Tensor vector_of(std::vector<float> values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, std::span<const float>(values));
}

TEST(Device, CopiesFeedsAndFetchesOnce) {
  GpuTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output c = constant(graph, vector_of({1, 2}));
  const Output y = op("TestAdd", {op("TestAdd", {x, c}), op("TestAdd", {x, x})});
  const auto registered = task.on_gpu(std::move(graph), {y.name()});
  for (int step = 0; step < 3; ++step) {
    task.gpu.clear_record();
    EXPECT_EQ(floats(run_step(*registered, {{"x:0", vector_of({10, 20})}}).fetches[0].second),
              (std::vector<float>{31, 62}));
    const auto record = task.gpu.record();
    EXPECT_EQ(record.from_host, step == 0 ? 2 : 1) << "the constant goes up once";
    EXPECT_EQ(record.to_host, 1);
    EXPECT_EQ(record.bytes_to_host, 8u);
  }
}

TEST(Device, HostMayRunFarAhead) {
  GpuTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output y = op("TestAdd", {x, x});
  const auto registered = task.on_gpu(std::move(graph), {y.name()});
  // All steps are enqueued before the first has run: no buffer may be reused too early.
  task.gpu.recording_stream().hold();
  std::vector<std::future<StepResult>> results;
  for (int64_t step = 0; step < 20; ++step) {
    auto promise = std::make_shared<std::promise<StepResult>>();
    results.push_back(promise->get_future());
    registered->run({step, {{"x:0", vector_of({static_cast<float>(step)})}}, nullptr, false},
                    [promise](StepResult r) { promise->set_value(std::move(r)); });
  }
  task.gpu.recording_stream().resume();
  for (int step = 0; step < 20; ++step) {
    ASSERT_EQ(results[step].wait_for(std::chrono::seconds(60)), std::future_status::ready);
    EXPECT_EQ(floats(results[step].get().fetches.at(0).second)[0], 2.0f * static_cast<float>(step));
  }
}

TEST(Device, VariablesLiveOnTheDeviceAndAreCopiedOnWrite) {
  GpuTask task;
  const auto w = task.containers->variable("", "w", f32);
  {
    const Tensor host = vector_of({1, 2});
    Tensor there(f32, {2}, task.gpu.allocate(8));
    std::promise<void> copied;
    task.gpu.copy_from_host(host.raw(), there.raw(), 8, [&](const Status&) { copied.set_value(); });
    copied.get_future().wait();
    w->assign(there);
  }
  Graph graph;
  const Output ref = variable(graph, "w", {2});
  const Output before = op("TestPass", {ref});
  const Output updated = op("TestAssignAdd", {ref, feed(graph, "x", {2})});
  Output after;
  {
    const ControlScope scope(graph, std::vector<Output>{updated});
    after = op("TestPass", {ref});
  }
  const auto registered = task.on_gpu(std::move(graph), {before.name(), after.name()});
  auto fetches = run_step(*registered, {{"x:0", vector_of({10, 10})}}).fetches;
  EXPECT_EQ(floats(fetches[0].second), (std::vector<float>{1, 2}));
  EXPECT_EQ(floats(fetches[1].second), (std::vector<float>{11, 12}));
  fetches = run_step(*registered, {{"x:0", vector_of({10, 10})}}).fetches;
  EXPECT_EQ(floats(fetches[1].second), (std::vector<float>{21, 22}));
  EXPECT_EQ(w->value().device(), &task.gpu);
}

TEST(Device, CopiesValuesThatDecideShapesToTheHost) {
  GpuTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output ones = op("TestOnes", {op("TestCount", {x})});
  const auto registered = task.on_gpu(std::move(graph), {ones.name()});
  EXPECT_EQ(run_step(*registered, {{"x:0", vector_of({1, -1, 2})}}).fetches[0].second.elements(),
            2);
  EXPECT_EQ(run_step(*registered, {{"x:0", vector_of({1, -1, -2})}}).fetches[0].second.elements(),
            1);
}

TEST(Device, ShapesFoldOnTheHost) {
  GpuTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output ones = op("TestOnes", {shape_of(op("TestAdd", {x, x}))});
  const auto registered = task.on_gpu(std::move(graph), {ones.name()});
  EXPECT_EQ(floats(run_step(*registered, {{"x:0", vector_of({1, -1, 2})}}).fetches[0].second),
            (std::vector<float>{1, 1, 1}));
}

// What follows from shapes is a constant of the tape, also where the GPU reads it.
TEST(Device, UploadsWhatFollowsFromShapesOnce) {
  GpuTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output doubled = op("TestAdd", {x, x});
  const Output extent = op("TestFloats", {shape_of(doubled)});
  const auto registered = task.on_gpu(std::move(graph), {op("TestAdd", {doubled, extent}).name()});
  for (int step = 0; step < 3; ++step) {
    task.gpu.clear_record();
    EXPECT_EQ(floats(run_step(*registered, {{"x:0", vector_of({3})}}).fetches[0].second),
              std::vector<float>{7});
    EXPECT_EQ(task.gpu.record().from_host, step == 0 ? 2 : 1) << "the feed, and once the constant";
    EXPECT_EQ(task.gpu.record().to_host, 1);
  }
}

// Counts stay on the host and are computed there: no copy, and so no wait.
TEST(Device, ComputesCountsOnTheHost) {
  GpuTask task;
  Graph graph;
  const Output i = feed(graph, "i", {1}, i32);
  const Output ones = op("TestOnes", {i * 2 + 1});
  const auto registered = task.on_gpu(std::move(graph), {op("TestAdd", {ones, ones}).name()});
  task.gpu.clear_record();
  EXPECT_EQ(
      floats(run_step(*registered, {{"i:0", Tensor::of<int32_t>({1}, {1})}}).fetches[0].second),
      (std::vector<float>{2, 2, 2}));
  EXPECT_EQ(task.gpu.record().from_host, 0);
  EXPECT_EQ(task.gpu.record().to_host, 1) << "the result alone";
}

TEST(Device, StreamErrorEndsTheStep) {
  GpuTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output y = op("TestAdd", {x, x});
  const auto registered = task.on_gpu(std::move(graph), {y.name()});
  task.gpu.fail_next({Code::internal, "an illegal address"});
  EXPECT_THAT(thrown_by([&] {
                run_step(*registered, {{"x:0", vector_of({1})}});
              }).message(),
              HasSubstr("an illegal address"));
  EXPECT_EQ(floats(run_step(*registered, {{"x:0", vector_of({1})}}).fetches[0].second),
            std::vector<float>{2});
}

TEST(Device, DeviceThatAcceptsNoMoreWorkEndsTheStep) {
  GpuTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  // The last wait of the step fails, on the device's own thread after the copy.
  const Output y = op("TestAdd", {x, x});
  const auto registered = task.on_gpu(std::move(graph), {y.name()});
  const auto sum = [&] {
    return floats(run_step(*registered, {{"x:0", vector_of({1})}}).fetches[0].second);
  };
  EXPECT_EQ(sum(), std::vector<float>{2});
  task.gpu.make_sick();
  EXPECT_THAT(thrown_by(sum).message(), HasSubstr("takes no more work"));
  task.gpu.make_sick(false);
  EXPECT_EQ(sum(), std::vector<float>{2});
}

// Two programs share a variable's name, but not its device.
TEST(Device, RejectsVariablesInTheMemoryOfAnotherDevice) {
  GpuTask task;
  task.containers->variable("", "w", f32)->assign(vector_of({1, 2}));
  Graph graph;
  const Output updated = op("TestAssignAdd", {variable(graph, "w", {2}), feed(graph, "x", {2})});
  const auto registered = task.on_gpu(std::move(graph), {updated.name()});
  EXPECT_THAT(thrown_by([&] {
                run_step(*registered, {{"x:0", vector_of({1, 2})}});
              }).message(),
              HasSubstr("variable 'w' is in the memory of the host"));
}

class DeviceThreads : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, DeviceThreads, testing::Values(1, 4));

TEST_P(DeviceThreads, ValuesCrossBetweenHostAndDevice) {
  GpuTask task(GetParam());
  const auto edge = [](Graph& graph, std::string_view op_name, int64_t id,
                       std::vector<Output> inputs) -> Node& {
    AttrMap attrs = {{"edge", id},
                     {"tensor_name", concat("edge_", id)},
                     {"send_device", id == 0 ? cpu0 : gpu0},
                     {"recv_device", id == 0 ? gpu0 : cpu0},
                     {"wave", id}};
    const std::vector<DType> types = {f32};
    attrs.emplace(op_name == "_Send" ? "T" : "tensor_type", types);
    return graph.add({.op = std::string(op_name),
                      .name = concat("edge_", id),
                      .inputs = std::move(inputs),
                      .attrs = std::move(attrs)});
  };
  Graph host, device;
  const Output x = feed(host, "x", {any});
  edge(host, "_Send", 0, {op("TestAdd", {x, x})});
  const Output back = edge(host, "_Recv", 1, {}).output();
  const Output y = op("TestAdd", {back, back});
  const Output there = edge(device, "_Recv", 0, {}).output();
  edge(device, "_Send", 1, {op("TestAdd", {there, there})});
  std::map<std::string, Graph> partitions;
  const std::string fetched = y.name();
  partitions.emplace(cpu0, std::move(host));
  partitions.emplace(gpu0, std::move(device));
  const std::vector<CutEdge> edges = {{.id = 0}, {.id = 1}};
  RegisteredGraph registered(std::move(partitions), {fetched}, edges, task.both());
  for (int step = 0; step < 20; ++step) {
    const auto result = run_step(registered, {{"x:0", vector_of({static_cast<float>(step)})}},
                                 std::make_shared<LocalRendezvous>(2));
    EXPECT_EQ(floats(result.fetches[0].second)[0], 8.0f * static_cast<float>(step));
  }
}

}  // namespace
}  // namespace leat
