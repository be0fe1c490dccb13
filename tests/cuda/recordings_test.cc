// What a GPU repeats: a step's work is recorded as a CUDA graph when its addresses come for the
// second time, and then costs the host one call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/byte_size.h"
#include "core/execution/work_recorder.h"
#include "frontends/cpp/session.h"
#include "graph/op_def.h"
#include "graph/ops/seed.h"
#include "graph/shape_inference.h"
#include "runtime/local_session.h"
#include "tests/cuda/host_gpu.h"
#include "tests/cuda/models.h"

namespace leat {
namespace {

// What the device did since.
CudaCalls operator-(const CudaCalls& now, const CudaCalls& before) {
  return {now.enqueued - before.enqueued,
          now.graphs - before.graphs,
          now.recorded - before.recorded,
          now.allocations - before.allocations,
          now.waits - before.waits,
          now.from_host - before.from_host,
          now.to_host - before.to_host,
          now.between_devices - before.between_devices,
          now.from_host_beside_work - before.from_host_beside_work};
}

class Recordings : public testing::TestWithParam<Model> {};

TEST_P(Recordings, AStepIsOneGraph) {
  (void)host_gpu();
  Training training;
  GetParam().build(training);
  LocalSession session({.threads = 1}, {.gpus = true});
  Node& initialise = initialize_variables(training.graph);
  session.extend(training.graph);
  session.run({}, {}, {initialise.name});
  const auto step = [&] {
    return session.run(training.batch, {training.loss.name()}, {training.train->name})[0]
        .item<float>();
  };
  for (int warm_up = 0; warm_up < 6; ++warm_up) step();
  const CudaCalls before = count_gpu_calls();
  constexpr int64_t steps = 100;
  for (int64_t i = 0; i < steps; ++i) step();
  const CudaCalls calls = count_gpu_calls() - before;
  EXPECT_EQ(calls.waits, 0);
  EXPECT_EQ(calls.to_host, steps) << "the loss";
  if (std::string_view(GetParam().name) == "lstm") {  // an iteration is a step of its own
    EXPECT_GT(calls.graphs, steps);
    EXPECT_LT(calls.recorded, 10);
    EXPECT_LT(calls.allocations, 10) << "iterations get ahead of the device more or less";
    return;
  }
  EXPECT_EQ(calls.allocations, 0);
  EXPECT_EQ(calls.recorded, 0) << "the addresses of step 6 are those of step 106";
  EXPECT_EQ(calls.from_host, steps * std::ssize(training.batch));
  if (std::string_view(GetParam().name) == "gaussian_process") {
    EXPECT_EQ(calls.graphs, 2 * steps) << "before the factor and after it";
    return;
  }
  if (std::string_view(GetParam().name) == "matrix_functions") {
    EXPECT_GT(calls.graphs, steps) << "between the calls of a library";
    return;
  }
  EXPECT_EQ(calls.graphs, steps);
  EXPECT_EQ(calls.enqueued, calls.graphs + calls.from_host + calls.to_host);
}

INSTANTIATE_TEST_SUITE_P(Models, Recordings, testing::ValuesIn(models),
                         [](const auto& info) { return info.param.name; });

// Each step draws new numbers, and they are those of the CPU.
TEST(RecordedSteps, DrawNewNumbers) {
  (void)host_gpu();
  const auto draw = [](const char* device) {
    Graph graph;
    const DeviceScope on{graph, device};
    random::seed(graph, 7);
    Output sum = random::uniform(graph, {8});
    for (int i = 0; i < 4; ++i) sum = sum + 0.5F * random::uniform(graph, {8});
    Session session(graph, {.threads = 1});
    std::vector<std::vector<float>> out;
    for (int step = 0; step < 8; ++step) out.push_back(session.run(sum).to_vector<float>());
    return out;
  };
  const CudaCalls before = count_gpu_calls();
  const auto on_gpu = draw("/device:GPU:0");
  EXPECT_GT((count_gpu_calls() - before).graphs, 4);
  const auto on_cpu = draw("/device:CPU:0");
  std::set<float> first;
  for (size_t step = 0; step < on_cpu.size(); ++step) {
    EXPECT_THAT(on_gpu[step], testing::Pointwise(testing::FloatEq(), on_cpu[step])) << step;
    first.insert(on_gpu[step][0]);
  }
  EXPECT_EQ(first.size(), on_gpu.size());
}

struct Chain {
  Graph graph;
  Output x, y;
  Chain() {
    const DeviceScope on{graph, "/device:GPU:0"};
    x = placeholder(graph, "x", f32, {any, 3});
    y = matmul(x, constant(graph, Tensor::full({3, 3}, 0.5F)));
    for (int i = 0; i < 4; ++i) y = matmul(y, constant(graph, Tensor::full({3, 3}, 0.25F)));
  }
};
float expected(float each) { return each * 1.5F * 0.75F * 0.75F * 0.75F * 0.75F; }

// A result that somebody keeps lies elsewhere than the next one.
TEST(RecordedSteps, LeaveTheResultsOfOthersAlone) {
  (void)host_gpu();
  Chain chain;
  Session session(chain.graph, {.threads = 1});
  std::vector<Tensor> kept;
  for (int step = 0; step < 12; ++step)
    kept.push_back(session.run({{chain.x, Tensor::full({2, 3}, float(step))}}, chain.y));
  for (int step = 0; step < 12; ++step)
    EXPECT_FLOAT_EQ(kept[step].at<float>(1, 2), expected(float(step))) << step;
}

// Batches of other sizes have recordings of their own.
TEST(RecordedSteps, FollowTheShape) {
  (void)host_gpu();
  Chain chain;
  Session session(chain.graph, {.threads = 1});
  for (int step = 0; step < 24; ++step) {
    const int64_t rows = 1 + step % 3;
    const Tensor out = session.run({{chain.x, Tensor::full({rows, 3}, float(step))}}, chain.y);
    EXPECT_FLOAT_EQ(out.at<float>(rows - 1, 0), expected(float(step))) << step;
  }
}

// With two steps in flight the batch of the next one comes while a step runs; and each step
// computes with its own.
TEST(RecordedSteps, TakeTheNextBatchBesideTheirWork) {
  (void)host_gpu();
  Graph graph;
  const DeviceScope on{graph, "/device:GPU:0"};
  constexpr int64_t rows = 300, columns = 300;  // more than small copies have
  const Output x = placeholder(graph, "x", f32, {rows, columns});
  Output y = x;
  for (int i = 0; i < 4; ++i)
    y = matmul(y, constant(graph, Tensor::full({columns, columns}, 1.0F / columns)));
  const Output result = mean(y);
  Session session(graph, {.threads = 2});
  const Callable step = session.prepare({x}, {result});
  std::vector<float> got;
  const CudaCalls before = count_gpu_calls();
  delay_copies_from_host(3);
  step.run_steps(
      12,
      [&](int64_t i, std::vector<Tensor>& batch) {
        batch = {Tensor::full({rows, columns}, float(i))};
      },
      [&](int64_t, std::vector<Tensor>& values) { got.push_back(values[0].item<float>()); }, 2);
  delay_copies_from_host(0);
  const CudaCalls calls = count_gpu_calls() - before;
  ASSERT_EQ(got.size(), 12u);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], float(i), 1e-3F);
  EXPECT_GT(calls.from_host_beside_work, 0);
  EXPECT_GT(calls.graphs, 0);
}

// A copy that calls `refuse` at its second call, the one that is to be recorded.
int calls_of_copy = 0;
OpDef refusing_copy(const char* name, void (*refuse)()) {
  return {.name = name,
          .doc = "y = x, for tests of recordings.",
          .inputs = {"x: float"},
          .outputs = {"y: float"},
          .shape = shapes::same_as(0),
          .kernels = {{.device = DeviceType::gpu,
                       .prepare =
                           [refuse](const KernelRequest& r) {
                             const size_t bytes = byte_size(DType::f32, r.outputs[0].shape);
                             return BoundKernel::of(
                                 [refuse, device = &r.device, bytes](const Arguments& a) {
                                   if (++calls_of_copy == 2) refuse();
                                   device->copy_within(a.inputs[0], a.outputs[0], bytes);
                                 });
                           }}},
          .is_not_differentiable = true};
}
const Op refuses_op{refusing_copy("TestRefusesToBeRecorded",
                                  [] { fail(Code::invalid_argument, "it must not be recorded"); })};
// As a library whose work must not be recorded.
const Op unrecorded_op{
    refusing_copy("TestNotRecordable", [] { throw NotRecordable("not this one"); })};

TEST(RecordedSteps, GoOnWithoutARecordingThatIsRefused) {
  (void)host_gpu();
  Chain chain;
  {
    const DeviceScope on{chain.graph, "/device:GPU:0"};
    chain.y = op("TestRefusesToBeRecorded", {chain.y});
  }
  Session session(chain.graph, {.threads = 1});
  testing::internal::CaptureStderr();
  const CudaCalls before = count_gpu_calls();
  calls_of_copy = 0;
  for (int step = 0; step < 6; ++step) {
    const Tensor out = session.run({{chain.x, Tensor::full({2, 3}, float(step))}}, chain.y);
    EXPECT_FLOAT_EQ(out.at<float>(1, 2), expected(float(step))) << step;
  }
  EXPECT_EQ((count_gpu_calls() - before).graphs, 0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::MatchesRegex(
                        "leat: /job:.*GPU:0: the kernels from 'MatMul.*' to "
                        "'TestRefusesToBeRecorded' are launched one by one, because they cannot be "
                        "recorded as a graph: it must not be recorded.*\n"))
      << "once";
}

TEST(RecordedSteps, LeaveOutWhatMustNotBeRecorded) {
  (void)host_gpu();
  Chain chain;
  {
    const DeviceScope on{chain.graph, "/device:GPU:0"};
    chain.y = op("TestNotRecordable", {chain.y});
    for (int i = 0; i < 4; ++i)
      chain.y = matmul(chain.y, constant(chain.graph, Tensor::full({3, 3}, 1 / 3.0F)));
  }
  Session session(chain.graph, {.threads = 1});
  testing::internal::CaptureStderr();
  const CudaCalls before = count_gpu_calls();
  calls_of_copy = 0;
  constexpr int steps = 8;
  for (int step = 0; step < steps; ++step) {
    const Tensor out = session.run({{chain.x, Tensor::full({2, 3}, float(step))}}, chain.y);
    EXPECT_FLOAT_EQ(out.at<float>(1, 2), expected(float(step))) << step;
  }
  const CudaCalls calls = count_gpu_calls() - before;
  EXPECT_EQ(calls.recorded, 2) << "what comes before it, and after";
  EXPECT_EQ(calls.graphs, 2 * (steps - 2))
      << "the first step records nothing, the second is refused";
  EXPECT_EQ(calls_of_copy, steps + 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// A trace shows kernels, so it runs them one by one.
TEST(RecordedSteps, AreTracedKernelByKernel) {
  (void)host_gpu();
  Chain chain;
  Session session(chain.graph, {.threads = 1});
  const Feeds feeds = {{chain.x, Tensor::full({2, 3}, 1.0F)}};
  for (int step = 0; step < 4; ++step) session.run(feeds, chain.y);
  RunMetadata ran;
  const CudaCalls before = count_gpu_calls();
  session.run(feeds, {chain.y}, {}, {.trace = true}, &ran);
  EXPECT_EQ((count_gpu_calls() - before).graphs, 0);
  EXPECT_EQ(std::count_if(ran.events.begin(), ran.events.end(),
                          [](const TraceEvent& event) { return event.op == "MatMul"; }),
            5);
}

// After a fault the graph is refused as a kernel is.
TEST(RecordedSteps, SayWhyTheGpuIsLost) {
  (void)host_gpu();
  Chain chain;
  Session session(chain.graph, {.threads = 1});
  const Feeds feeds = {{chain.x, Tensor::full({2, 3}, 1.0F)}};
  for (int step = 0; step < 4; ++step) session.run(feeds, chain.y);
  EXPECT_EQ(host_gpu().problem(), "");
  break_gpu();
  const std::string problem = host_gpu().problem();
  std::string message = "it ran";
  try {
    session.run(feeds, chain.y);
  } catch (const Error& error) {
    message = error.message();
  }
  recover_gpu();
  EXPECT_THAT(problem, testing::HasSubstr("an illegal memory access was encountered"));
  EXPECT_THAT(message, testing::HasSubstr("GPU:0 is lost since"));
  EXPECT_FLOAT_EQ(session.run(feeds, chain.y).at<float>(0, 0), expected(1));
}

}  // namespace
}  // namespace leat
