// Steps that have ended stop their kernels, and do not keep others waiting meanwhile.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "core/device.h"
#include "core/memory/host_memory.h"
#include "core/memory/malloc_heap.h"
#include "distributed/worker/worker.h"
#include "graph/op_def.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/sanitizers.h"

namespace leat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* ps = "/job:ps/task:0";
// The promise is half a second; a machine may be busy, and sanitizers are slow. Each kernel below
// would take far longer.
constexpr auto soon = seconds(6);

Output numbers(Graph& graph, const Shape& shape, DType dtype = f32) {
  const Output out = random::uniform(graph, shape, {.dtype = dtype == f64 ? f32 : dtype});
  return dtype == f64 ? cast(out, f64) : out;
}

struct Work {
  const char* name;
  Output (*make)(Graph& graph);
};

const Work works[] = {
    {"Product",
     [](Graph& g) {
       return matmul(numbers(g, {9000, 9000}), numbers(g, {9000, 9000}));
     }},
    {"ProductOfDoubles",
     [](Graph& g) {
       return matmul(numbers(g, {4000, 4000}, f64), numbers(g, {4000, 4000}, f64));
     }},
    {"Inverse",
     [](Graph& g) {
       return op("MatrixInverse", {numbers(g, {4000, 4000}, f64)});
     }},
    {"Eigenvalues",
     [](Graph& g) {
       return op("SelfAdjointEigV2", {numbers(g, {2500, 2500}, f64)});
     }},
    {"Convolution",
     [](Graph& g) {
       return conv2d(numbers(g, {64, 256, 256, 32}), numbers(g, {9, 9, 32, 128}));
     }},
    {"ElementByElement",
     [](Graph& g) {
       return op("Igamma", {numbers(g, {40'000'000}), numbers(g, {40'000'000})});
     }},
    {"Sort",
     [](Graph& g) {
       return op("TopKV2", {numbers(g, {40'000'000}), constant(g, Tensor::scalar(40'000'000))});
     }},
    {"DifferentElements",
     [](Graph& g) {
       return op("Unique", {numbers(g, {60'000'000})}, {{"out_idx", DType::i64}});
     }},
    {"ManyReductions",
     [](Graph& g) {
       Output x = numbers(g, {20'000'000});
       for (int i = 0; i < 1'000; ++i) x = x * 0.5 + sum(x) * 1e-7;
       return x;
     }},
};

class AbandonedStep : public testing::TestWithParam<Work> {};
INSTANTIATE_TEST_SUITE_P(Kernels, AbandonedStep, testing::ValuesIn(works),
                         [](const auto& info) { return info.param.name; });

bool is_idle(InProcessCluster& cluster, const std::string& job = "ps") {
  return cluster.task(job).worker().current_status().running_steps == 0;
}

TEST_P(AbandonedStep, StopsItsKernels) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  Output small;
  {
    const DeviceScope on(graph, ps);
    graph.add(
        {.op = "Identity", .name = "end", .inputs = {sum(cast(GetParam().make(graph), f32))}});
    small = numbers(graph, {2}) + 1;
  }
  const auto session = cluster.session(graph);
  session->run({}, {small.name()}, {});
  const Status status =
      error_of([&] { session->run({}, {"end:0"}, {}, {.timeout = milliseconds(700)}); });
  EXPECT_EQ(code_name(status.code), code_name(Code::deadline_exceeded)) << status.message;
  EXPECT_TRUE(eventually([&] { return is_idle(cluster); }, soon)) << "it still runs";
  EXPECT_EQ(session->run({}, {small.name()}, {}).size(), 1u);
}

// ref += 1, slowly.
constexpr int64_t slow_elements = 400;
const Op slow_update_op{{
    .name = "TestSlowUpdate",
    .doc = "ref = ref + 1, elementwise, which takes its time.",
    .inputs = {"ref: Ref(float)"},
    .outputs = {"output_ref: Ref(float)"},
    .shape = shapes::same_as(0),
    .kernels = {{.prepare =
                     [](const KernelRequest&) {
                       return BoundKernel::of([](const Arguments& a) {
                         a.stream->parallel_for(slow_elements, 1, [&](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i) {
                             a.ref<float>(0)[i] += 1;
                             std::this_thread::sleep_for(milliseconds(2));
                           }
                         });
                       });
                     }}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

TEST(AbandonedSteps, NeverLeaveAVariableHalfUpdated) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  {
    const DeviceScope on(graph, ps);
    const Output w = graph
                         .add({.op = "VariableV2",
                               .name = "w",
                               .attrs = {{"shape", Shape{slow_elements}}, {"dtype", f32}}})
                         .output(0);
    const Output zeros = leat::zeros(graph, {slow_elements});
    graph.add({.op = "Assign", .name = "init", .inputs = {w, zeros}});
    graph.add({.op = "TestSlowUpdate", .name = "update", .inputs = {w}});
    graph.add({.op = "Max", .name = "max", .inputs = {w, Axes(0).of(w)}});
    graph.add({.op = "Min", .name = "min", .inputs = {w, Axes(0).of(w)}});
  }
  const auto session = cluster.session(graph);
  session->run({}, {}, {"init"});
  const Status status =
      error_of([&] { session->run({}, {}, {"update"}, {.timeout = milliseconds(150)}); });
  EXPECT_EQ(code_name(status.code), code_name(Code::deadline_exceeded)) << status.message;
  EXPECT_TRUE(eventually([&] { return is_idle(cluster); }, soon));
  const std::vector<Tensor> values = session->run({}, {"min:0", "max:0"}, {});
  EXPECT_EQ(values[0].item<float>(), values[1].item<float>());
}

// Six clients run long work; another client's small step arrives behind them. Whether a step is
// long depends on its feeds: it was quick before.
class Clients : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(QuickBefore, Clients, testing::Bool());

TEST_P(Clients, WithLongWorkDoNotDelayOthers) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph, small_graph;
  {
    const DeviceScope on(graph, ps);
    const Output n = placeholder(graph, "n", i32, {2});
    const Output values = op("SelfAdjointEigV2", {cast(random::uniform(graph, n), f64)});
    graph.add({.op = "Identity", .name = "end", .inputs = {sum(values)}});
  }
  {
    const DeviceScope on(small_graph, ps);
    small_graph.add({.op = "Identity", .name = "y", .inputs = {sum(numbers(small_graph, {2, 2}))}});
  }
  const auto run = [](SessionInterface& session, int32_t n) {
    session.run({{"n", Tensor::of<int32_t>({2}, {n, n})}}, {}, {"end"}, {.timeout = seconds(12)});
  };
  std::vector<std::unique_ptr<SessionInterface>> sessions;
  std::vector<std::future<Status>> steps;
  for (int i = 0; i < 6; ++i) {
    sessions.push_back(cluster.session(graph));
    for (int quick = 0; GetParam() && quick < 200; ++quick) run(*sessions.back(), 2);
  }
  for (const auto& session : sessions) {
    steps.push_back(std::async(std::launch::async, [&run, session = session.get()] {
      return error_of([&] { run(*session, 2500); });
    }));
  }
  ASSERT_TRUE(
      eventually([&] { return cluster.task("ps").worker().current_status().running_steps == 6; }));
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto session = cluster.session(small_graph);
    session->run({}, {"y:0"}, {});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(3));
  }
  EXPECT_EQ(cluster.task("ps").worker().current_status().running_steps, 6)
      << "the long steps are over: this test shows nothing";
  for (const auto& session : sessions) session->close();
  for (auto& step : steps) EXPECT_FALSE(step.get().is_ok());
  EXPECT_TRUE(eventually([&] { return is_idle(cluster); }, soon));
}

TEST(AbandonedSteps, ReturnTheirMemory) {
#ifdef LEAT_UNDER_SANITIZER
  GTEST_SKIP() << "a sanitizer keeps what is freed";
#endif
  constexpr int64_t megabyte = 1 << 20;
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  {
    const DeviceScope on(graph, ps);
    const Output large = numbers(graph, {100 * megabyte / 4});
    const Output first = sqrt(large)[slice(0, 1)];
    const Output values = op("SelfAdjointEigV2", {numbers(graph, {2500, 2500}, f64)});
    const Output different = op("Unique", {large * 2}, {{"out_idx", DType::i64}});
    graph.add({.op = "Identity", .name = "end", .inputs = {sum(values) + cast(first, f64)}});
    graph.add({.op = "Identity", .name = "different", .inputs = {sum(different)}});
    graph.add({.op = "Identity", .name = "y", .inputs = {sum(numbers(graph, {2, 2}))}});
  }
  const auto session = cluster.session(graph);
  session->run({}, {"y:0"}, {});
  trim_heaps();
  const int64_t before = resident_host_memory();
  const Status status = error_of([&] {
    session->run({}, {"end:0", "different:0"}, {}, {.timeout = milliseconds(900)});
  });
  EXPECT_EQ(code_name(status.code), code_name(Code::deadline_exceeded)) << status.message;
  EXPECT_TRUE(eventually([&] { return is_idle(cluster); }, soon));
  // A task trims its heaps all the time: the step does not hold what Unique's table left free.
  const auto is_given_back = [&] {
    trim_heaps();
    return resident_host_memory() - before < 40 * megabyte;
  };
  EXPECT_TRUE(eventually(is_given_back, seconds(2)))
      << (resident_host_memory() - before) / megabyte << " MB are kept";
}

}  // namespace
}  // namespace leat
