// What leaves a GPU while its backward pass goes on: gradients that a collective sums, and values
// for other tasks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <future>
#include <thread>

#include "core/byte_size.h"
#include "core/execution/side_stream.h"
#include "core/memory/memory_owner.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/strategies/all_reduce.h"
#include "graph/gradient.h"
#include "graph/op_def.h"
#include "graph/shape_inference.h"
#include "tests/cuda/host_gpu.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

using namespace std::chrono_literals;

// Holds up the streams that come to it.
class Gate {
 public:
  // Until this is true. A stream that has waited for long passes, and the next ones at once.
  void open_when(std::function<bool()> is_open) {
    is_open_ = std::move(is_open);
    has_timed_out_ = false;
  }
  bool has_timed_out() const { return has_timed_out_; }
  void pass() {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!has_timed_out_ && !is_open_()) {
      if (std::chrono::steady_clock::now() > deadline) has_timed_out_ = true;
      std::this_thread::sleep_for(100us);  // nobody announces what it asks for
    }
  }

 private:
  std::function<bool()> is_open_ = [] { return true; };  // set while no step runs
  std::atomic<bool> has_timed_out_ = false;
};

Gate& gate() {
  static Gate out;
  return out;
}

const Op held_up_op{{
    .name = "TestHeldUp",
    .doc = "y = x, for tests: once gate() is open.",
    .inputs = {"x: float"},
    .outputs = {"y: float"},
    .shape = shapes::same_as(0),
    .kernels = {{.device = DeviceType::gpu,
                 .prepare =
                     [](const KernelRequest& r) {
                       const size_t bytes = byte_size(DType::f32, r.outputs[0].shape);
                       return BoundKernel::of([device = &r.device, bytes](const Arguments& a) {
                         enqueue_call(*a.stream, [](void*) { gate().pass(); });
                         device->copy_within(a.inputs[0], a.outputs[0], bytes);
                       });
                     }}},
    .is_not_differentiable = true,
}};
const Op holds_up_gradient_op{{
    .name = "TestHoldsUpGradient",
    .doc = "y = x, for tests: the gradient waits until gate() is open.",
    .inputs = {"x: float"},
    .outputs = {"y: float"},
    .shape = shapes::same_as(0),
    .gradient = [](Gradient& g) { g.dx() = op("TestHeldUp", {g.dy()}); },
    .kernels = {{.device = DeviceType::gpu,
                 .prepare = [](const KernelRequest&) { return BoundKernel::view(); }}},
}};

Tensor waves(const Shape& shape, float scale) {
  Tensor out(f32, shape);
  for (int64_t i = 0; i < out.elements(); ++i)
    out.data<float>()[i] = scale * std::cos(static_cast<float>(i * i % 1009));
  return out;
}

// The gradients of the first and the last layer are large. In backward the gate is between them.
Output loss_of(Output x) {
  Graph& g = x.graph();
  const auto layer = [&](const char* name, Output in, int64_t columns) {
    return tanh(matmul(in, variable(g, name, waves({in.shape()[1], columns}, 0.3F))));
  };
  Output hidden = layer("third", layer("second", layer("first", x, 300), 20), 60);
  hidden = op("TestHoldsUpGradient", {hidden});
  return mean(square(layer("last", hidden, 300) - 0.5F));
}

class Overlap : public testing::Test {
 protected:
  Overlap() {
    (void)host_gpu();
    set_gpus(2);
  }
  ~Overlap() override {
    gate().open_when([] { return true; });
    set_gpus(1);
  }
};

// Trains on two GPUs.
class Mirrored {
 public:
  explicit Mirrored(collectives::Algorithm algorithm)
      : strategy_(StrategyCluster(),
                  {.devices = {"GPU:0", "GPU:1"}, .algorithm = algorithm, .bucket_bytes = 1}) {
    for (int k = 0; k < 2; ++k) {
      const auto replica = strategy_.replica(graph_, k);
      const Output x = placeholder(graph_, "x", f32, {8, 80});
      feeds_.emplace_back(x, waves({8, 80}, 1.0F + static_cast<float>(k)));
      losses_.push_back(loss_of(x));
    }
    train_ = &strategy_.minimize(Sgd{0.5}, losses_);
    session_ = std::make_unique<Session>(graph_, SessionOptions{.threads = 2});
    session_->initialize();
  }

  std::vector<float> step() {
    std::vector<float> out;
    for (const Tensor& each : session_->run(feeds_, losses_, {*train_}))
      out.push_back(each.item<float>());
    return out;
  }

 private:
  Graph graph_;
  const AllReduce strategy_;
  Feeds feeds_;
  std::vector<Output> losses_;
  Node* train_ = nullptr;
  std::unique_ptr<Session> session_;
};

TEST_F(Overlap, CollectivesRunWhileBackwardGoesOn) {
  Mirrored by_library(collectives::Algorithm::automatic),
      by_messages(collectives::Algorithm::direct);
  std::vector<std::vector<float>> losses, expected;
  constexpr int steps = 12, warm_up = 2;
  for (int i = 0; i < steps; ++i) {
    const int64_t before = count_gpu_calls().collectives;
    if (i >= warm_up) {
      gate().open_when([before] { return count_gpu_calls().collectives > before; });
    }
    losses.push_back(by_library.step());
    ASSERT_FALSE(gate().has_timed_out()) << "in step " << i << " no gradient was summed before";
    EXPECT_EQ(count_gpu_calls().collectives, before + 4);
  }
  gate().open_when([] { return true; });
  for (int i = 0; i < steps; ++i) expected.push_back(by_messages.step());
  EXPECT_EQ(losses, expected);
  EXPECT_LT(losses.back()[0], 0.9F * losses.front()[0]);
}

// On each GPU, up to the first large gradient and from there on. Updates are single kernels.
TEST_F(Overlap, StepsAreAsManyGraphsAsStretches) {
  Mirrored training(collectives::Algorithm::automatic);
  for (int warm_up = 0; warm_up < 6; ++warm_up) training.step();
  const CudaCalls before = count_gpu_calls();
  constexpr int64_t steps = 100;
  for (int64_t i = 0; i < steps; ++i) training.step();
  const CudaCalls calls = count_gpu_calls();
  EXPECT_EQ(calls.recorded - before.recorded, 0);
  EXPECT_EQ(calls.allocations - before.allocations, 0);
  EXPECT_EQ(calls.waits - before.waits, 0);
  EXPECT_EQ(calls.collectives - before.collectives, 4 * steps);
  EXPECT_EQ(calls.graphs - before.graphs, 2 * 2 * steps);
}

// A block whose former users are before the mark, and one whose former user is behind it.
TEST_F(Overlap, FollowsFormerUsersOfWhatItWrites) {
  Device& gpu = host_gpu();
  auto& streams = dynamic_cast<HasSideStreams&>(gpu);
  const auto side = streams.take_side_stream(), other = streams.take_side_stream();
  const auto mark = streams.make_mark();
  const auto allocate = [&] {
    const MemoryOwner owner(MemoryUse::copy);
    return gpu.allocate(1 << 20);
  };
  const auto wait_for = [](SideStream& stream) {
    std::promise<void> is_finished;
    stream.when_finished([&](const Status&) { is_finished.set_value(); });
    ASSERT_EQ(is_finished.get_future().wait_for(10s), std::future_status::ready);
  };
  std::shared_ptr<Buffer> blocks[] = {allocate(), allocate()};
  const void* const late = blocks[1]->data();
  blocks[0] = nullptr;
  mark->set();
  static std::atomic<bool> is_open, was_open;
  is_open = false;
  gate().open_when([] { return is_open.load(); });
  enqueue_call(gpu.stream(), [](void*) { gate().pass(); });
  blocks[1] = nullptr;
  for (auto& each : blocks) each = allocate();
  if (blocks[1]->data() != late) std::swap(blocks[0], blocks[1]);
  ASSERT_EQ(blocks[1]->data(), late);

  side->follow(*mark, blocks[0]->data());
  wait_for(*side);  // while the gate is closed
  side->follow(*mark, blocks[1]->data());
  enqueue_call(side->stream(), [](void*) { was_open = is_open.load(); });
  for (int i = 0; i < 100; ++i) wait_for(*other);  // time enough to begin too early
  is_open = true;
  wait_for(*side);
  EXPECT_TRUE(was_open);
  EXPECT_FALSE(gate().has_timed_out());
}

TEST_F(Overlap, LargeCopiesToTheHostHoldUpNoWork) {
  Device& gpu = host_gpu();
  const Tensor numbers = waves({40'000}, 1);
  const Tensor value(f32, numbers.shape(), gpu.allocate(numbers.bytes()));
  gpu.copy_from_host(numbers.raw(), value.raw(), numbers.bytes(), [](const Status&) {});
  Tensor copy(f32, numbers.shape());
  static std::atomic<bool> has_gone_on;
  has_gone_on = false;
  gate().open_when([] { return has_gone_on.load(); });
  call_before_copies_to_host([] { gate().pass(); });
  std::promise<void> is_copied;
  gpu.copy_to_host(value.raw(), copy.raw(), copy.bytes(),
                   [&](const Status&) { is_copied.set_value(); });
  enqueue_call(gpu.stream(), [](void*) { has_gone_on = true; });
  is_copied.get_future().wait();
  call_before_copies_to_host(nullptr);
  EXPECT_FALSE(gate().has_timed_out());
  EXPECT_EQ(copy.to_vector<float>(), numbers.to_vector<float>());
}

std::atomic<int64_t> arrivals = 0;
const Op arrives_op{{
    .name = "TestArrives",
    .doc = "y = x, for tests: counts arrivals.",
    .inputs = {"x: float"},
    .outputs = {"y: float"},
    .shape = shapes::same_as(0),
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       c.set_output(0, c.input(0));
                       ++arrivals;
                     }}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

// A large value of a GPU goes to `receiver` while the GPU goes on.
void expect_early_arrival(const std::string& receiver, const std::string& gpu,
                          const std::string& target) {
  Graph graph;
  Output x, late, there;
  {
    const DeviceScope on{graph, gpu};
    x = placeholder(graph, "x", f32, {8, 80});
    Output early = tanh(matmul(x, constant(graph, waves({80, 3000}, 0.1F))));
    late = sum(op("TestHeldUp", {early * 2.0F}));
    const DeviceScope elsewhere{graph, receiver};
    there = sum(op("TestArrives", {early}));
  }
  Session session(graph, {.target = target, .threads = 2});
  for (int step = 0; step < 6; ++step) {
    const int64_t before = arrivals;
    gate().open_when([before] { return arrivals > before; });
    const Tensor batch = waves({8, 80}, 1.0F + static_cast<float>(step));
    const auto values = session.run({{x, batch}}, {late, there});
    ASSERT_FALSE(gate().has_timed_out()) << "in step " << step << " nothing came before";
    EXPECT_EQ(arrivals, before + 1);
    EXPECT_NEAR(values[0].item<float>(), 2 * values[1].item<float>(), 1e-2F);
  }
}

TEST_F(Overlap, ValuesReachOtherTasksWhileTheGpuGoesOn) {
  TaskOptions options = InProcessCluster::default_options();
  options.gpus = true;
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}}, options);
  expect_early_arrival("/job:ps/task:0/device:CPU:0", "/job:worker/task:0/device:GPU:0",
                       cluster.target("worker", 0));
}

TEST_F(Overlap, ValuesReachTheHostWhileTheGpuGoesOn) {
  expect_early_arrival("/device:CPU:0", "/device:GPU:0", "");
}

}  // namespace
}  // namespace leat
