// A training step whose variables live on the GPU, run on the host: the whole way of a session with
// two devices, its copies, its allocator and its completions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/memory/memory_owner.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "tests/cuda/host_gpu.h"

namespace leat {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

Tensor random_floats(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(-1, 1);
  Tensor out(f32, shape);
  for (float& value : out.span<float>()) value = numbers(random);
  return out;
}

struct Outcome {
  std::vector<float> losses;
  std::vector<std::string> devices;
};

// A perceptron on fixed weights, trained for 20 steps on `device`.
Outcome train(const std::string& device) {
  Graph graph;
  const Output images = placeholder(graph, "images", f32, {any, 37});
  const Output labels = placeholder(graph, "labels", i32, {any});
  Output loss;
  Node* step = nullptr;
  {
    const DeviceScope on{graph, device};
    const Output w1 = variable(graph, "w1", random_floats({37, 65}, 1)),
                 b1 = variable(graph, "b1", random_floats({65}, 2)),
                 w2 = variable(graph, "w2", random_floats({65, 10}, 3)),
                 b2 = variable(graph, "b2", random_floats({10}, 4));
    const Output hidden = relu(matmul(images, w1) + b1);
    loss = mean(softmax_cross_entropy(matmul(hidden, w2) + b2, labels));
    step = &Adam{0.01}.minimize(loss);
  }
  Session session(graph, {.allow_soft_placement = true, .threads = 2});
  session.initialize();
  Outcome out;
  for (unsigned i = 0; i < 20; ++i) {
    Tensor answers(i32, {33});
    const Tensor batch = random_floats({33, 37}, 100 + i);
    for (int64_t r = 0; r < 33; ++r)
      answers.data<int32_t>()[r] = batch.data<float>()[r * 37] > 0 ? 3 : 7;
    RunMetadata ran;
    const auto got = session.run({{images, batch}, {labels, answers}}, {loss}, Targets{*step},
                                 {.trace = i == 19}, &ran);
    out.losses.push_back(got[0].item<float>());
    for (const TraceEvent& event : ran.events) {
      if (event.op == "MatMul") out.devices.push_back(event.device);
    }
  }
  return out;
}

TEST(HostGpu, TrainsAPerceptronAsTheCpuDoes) {
  (void)host_gpu();  // from here on sessions have it
  const Outcome cpu = train("/device:CPU:0");
  for (const uint64_t seed : {0, 5}) {
    set_order_of_threads(seed);
    const Outcome gpu = train("/device:GPU:0");
    ASSERT_EQ(gpu.losses.size(), cpu.losses.size());
    for (size_t i = 0; i < cpu.losses.size(); ++i)
      EXPECT_NEAR(gpu.losses[i], cpu.losses[i], 1e-4) << "step " << i;
    EXPECT_LT(gpu.losses.back(), gpu.losses.front());
    ASSERT_FALSE(gpu.devices.empty());
    for (const std::string& device : gpu.devices) EXPECT_THAT(device, HasSubstr("GPU:0"));
  }
  set_order_of_threads(0);
}

std::string refusal(size_t bytes) {
  try {
    (void)host_gpu().allocate(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::resource_exhausted);
    return std::string(error.message());
  }
  return "it gave more than it has";
}

TEST(HostGpu, SaysWhoHasItsMemory) {
  // Other tests have let go of theirs, but the device keeps it for reuse until it needs more.
  limit_gpu_memory(1 << 20);
  EXPECT_THAT(
      refusal(2 << 20),
      MatchesRegex("GPU:0 has no device memory for 2.0 MiB \\(others\\). This process has .* in "
                   "use.*. The GPU has .* free of 1.0 MiB.*"));
  limit_gpu_memory(64 << 20);
  {
    Graph graph;
    const DeviceScope on{graph, "/device:GPU:0"};
    (void)variable(graph, "words/table", Tensor(f32, {1 << 20}));
    (void)variable(graph, "b", Tensor(f32, {1 << 18}));
    Session session(graph, {.threads = 1});
    session.initialize();
    const MemoryOwner owner(MemoryUse::variable, "words/other");
    EXPECT_THAT(refusal(80 << 20),
                AllOf(HasSubstr("GPU:0 has no device memory for 80.0 MiB (variables words/other)"),
                      HasSubstr("variables 5.0 MiB (words/table 4.0 MiB, b 1.0 MiB)")));
  }
  limit_gpu_memory(size_t{4} << 30);
  EXPECT_NE(host_gpu().allocate(2 << 20)->data(), nullptr);
}

TEST(HostGpu, SaysWhyItIsLost) {
  Graph graph;
  const DeviceScope on{graph, "/device:GPU:0"};
  const Output x = placeholder(graph, "x", f32, {8}), y = relu(x);
  (void)host_gpu();
  Session session(graph, {.threads = 1});
  const Feeds feeds = {{x, Tensor(f32, {8})}};
  session.run(feeds, {y});
  const auto failure = [&] {
    try {
      session.run(feeds, {y});
    } catch (const Error& error) {
      return std::string(error.message());
    }
    return std::string("it ran");
  };
  break_gpu();
  const std::string first = failure(), second = failure();
  recover_gpu();
  EXPECT_THAT(first, HasSubstr("an illegal memory access was encountered"));
  EXPECT_THAT(second, HasSubstr("GPU:0 is lost since: CUDA: "));
  for (const std::string& message : {first, second})
    EXPECT_THAT(message,
                HasSubstr("CUDA cannot use GPU:0 again in this process: restart the task"));
}

// A kernel takes as long as the work does, not as long as it takes to enqueue it.
TEST(HostGpu, TracesWhenWorkRuns) {
  Graph graph;
  (void)host_gpu();
  const DeviceScope on{graph, "/device:GPU:0"};
  const Output x = placeholder(graph, "x", f32, {64, 512});
  const Output y = matmul(x, transpose(tanh(x)));
  Session session(graph, {.threads = 1});
  RunMetadata ran;
  const Feeds feeds = {{x, random_floats({64, 512}, 1)}};
  session.run(feeds, {y}, {}, {.trace = true}, &ran);
  const auto event = [&](std::string_view op) -> TraceEvent {
    for (const TraceEvent& each : ran.events)
      if (each.op == op) return each;
    ADD_FAILURE() << op;
    return {};
  };
  const TraceEvent tanh = event("Tanh"), product = event("MatMul");
  EXPECT_GT(tanh.end_ns, tanh.start_ns);
  EXPECT_EQ(product.start_ns, tanh.end_ns) << "one event between two kernels";
  EXPECT_GT(product.end_ns, product.start_ns);
}

}  // namespace
}  // namespace leat
