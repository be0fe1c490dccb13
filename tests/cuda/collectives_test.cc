// Collectives between GPUs by the library that connects them: here its stand-in, whose calls must
// be the same, and in the same order, on all members.
#include "frontends/cpp/strategies/parts/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "frontends/cpp/session.h"
#include "graph/gradient.h"
#include "graph/ops/raw.h"
#include "tests/cuda/host_gpu.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"

namespace leat::collectives {
namespace {

using testing::Each;
using testing::ElementsAre;

class GpuCollectives : public testing::Test {
 protected:
  static constexpr int n = 3;

  GpuCollectives() {
    (void)host_gpu();
    set_gpus(n);
  }
  ~GpuCollectives() override { set_gpus(1); }

  // Of replica k: 100 k, 100 k + 1, …, or with another number than 100.
  PerReplica values(Shape shape, DType dtype = f32, int apart = 100) {
    PerReplica out;
    for (int k = 0; k < n; ++k) {
      const auto there = replicas_.on_worker(graph_, k);
      const Output numbers = cast(arange(graph_, shape.elements()) + apart * k, f32) + zero_;
      out.push_back(reshape(cast(numbers, dtype), Dims(shape)));
    }
    return out;
  }
  std::vector<Tensor> run(const PerReplica& outputs) {
    Session session(graph_, {.threads = 2});
    return session.run(zero(), outputs);
  }
  PerReplica as_floats(PerReplica values) {
    for (Output& each : values) each = cast(each, f32);
    return values;
  }
  static int64_t collectives() { return count_gpu_calls().collectives; }
  static std::vector<float> floats_of(const Tensor& tensor) { return tensor.to_vector<float>(); }

  Replicas replicas_{StrategyCluster(), {"GPU:0", "GPU:1", "GPU:2"}};
  Graph graph_;
  // Fed: of constants, the sums would be constants.
  Output zero_ = placeholder(graph_, "zero", f32, {});
  Feeds zero(Feeds more = {}) const {
    more.push_back({zero_, Tensor::scalar(0.0F)});
    return more;
  }
};

TEST_F(GpuCollectives, AllReduceByTheLibrary) {
  for (const DType dtype : {f32, f64, f16, bf16}) {
    const PerReplica in = values({4}, dtype, 10);
    const int64_t before = collectives();
    const auto sums = run(as_floats(all_reduce(replicas_, in, {.reduction = Reduction::sum})));
    for (const Tensor& each : sums)
      EXPECT_THAT(floats_of(each), ElementsAre(30, 33, 36, 39)) << dtype;
    for (const Tensor& each : run(as_floats(all_reduce(replicas_, in))))
      EXPECT_THAT(floats_of(each), ElementsAre(10, 11, 12, 13)) << dtype;
    EXPECT_EQ(collectives() - before, 2) << dtype;
  }
}

TEST_F(GpuCollectives, ScatterAndGather) {
  const PerReplica in = values({6, 2});
  const int64_t before = collectives();
  const auto parts = run(reduce_scatter(replicas_, in, Reduction::sum));
  for (int k = 0; k < n; ++k) {
    const float first = static_cast<float>(300 + 3 * 4 * k);
    EXPECT_EQ(parts[k].shape(), (Shape{2, 2}));
    EXPECT_THAT(floats_of(parts[k]), ElementsAre(first, first + 3, first + 6, first + 9));
  }
  const auto all = run(all_gather(replicas_, values({2})));
  for (const Tensor& each : all)
    EXPECT_THAT(floats_of(each), ElementsAre(0, 1, 100, 101, 200, 201));
  EXPECT_EQ(collectives() - before, 2);
}

// An algorithm that the user has chosen, a member that the step lacks, or one that is on a CPU.
TEST_F(GpuCollectives, OtherwiseByMessages) {
  const int64_t before = collectives();
  const PerReplica in = values({4});
  const PerReplica ring = all_reduce(replicas_, in, {.algorithm = Algorithm::ring});
  EXPECT_THAT(floats_of(run(ring)[2]), ElementsAre(100, 101, 102, 103));
  const PerReplica sums = all_reduce(replicas_, in);
  Session session(graph_, {.threads = 2});
  EXPECT_THAT(floats_of(session.run(zero(), sums[1])), ElementsAre(100, 101, 102, 103));
  const Replicas mixed(StrategyCluster(), std::vector<std::string>{"GPU:0", "CPU:0"});
  const PerReplica two = all_reduce(mixed, PerReplica{in[0], in[1]});
  EXPECT_THAT(floats_of(run(two)[1]), ElementsAre(50, 51, 52, 53));
  EXPECT_EQ(collectives() - before, 0);
}

TEST_F(GpuCollectives, HaveGradients) {
  const PerReplica in = values({2});
  const PerReplica means = all_reduce(replicas_, in);
  const Output slope = gradients(sum(square(means[1])), in[2])[0];
  EXPECT_THAT(floats_of(run({slope})[0]),
              ElementsAre(testing::FloatEq(200 / 3.0F), testing::FloatEq(202 / 3.0F)));
}

// Buckets, and collectives of results of others, have one order on all members, whatever the order
// of the nodes.
TEST_F(GpuCollectives, HaveOneOrder) {
  const PerReplica x = values({4}), y = values({7});
  std::vector<PerReplica> tensors = {x, y, values({300'000}), values({300'001})};
  std::vector<PerReplica> out =
      all_reduce(replicas_, tensors, {.reduction = Reduction::sum, .bucket_bytes = 1 << 20});
  PerReplica twice;
  for (int k = n - 1; k >= 0; --k) {
    const auto there = replicas_.on_worker(graph_, k);
    twice.insert(twice.begin(), tanh(out[1][k] * 0.0F) + out[0][k][0]);
  }
  const PerReplica again = all_reduce(replicas_, twice);
  std::vector<Output> fetches;
  for (int k = 0; k < n; ++k) {
    for (const auto& each : out) fetches.push_back(each[k]);
    fetches.push_back(again[k]);
  }
  const int64_t before = collectives();
  Session session(graph_, {.threads = 2});
  for (int step = 0; step < 10; ++step) {
    const auto results = session.run(zero(), fetches);
    for (int k = 0; k < n; ++k) {
      EXPECT_THAT(floats_of(results[5 * k]), ElementsAre(300, 303, 306, 309));
      EXPECT_EQ(results[5 * k + 3].at<float>(300'000), 300 + 3 * 300'000.0F);
      EXPECT_THAT(floats_of(results[5 * k + 4]), Each(300));
    }
  }
  EXPECT_EQ((collectives() - before) % 10, 0);
  EXPECT_GE(collectives() - before, 30);
}

// Steps of several threads share a communicator: each gets its own sums.
TEST_F(GpuCollectives, ServeStepsAtTheSameTime) {
  PerReplica in;
  const Output x = placeholder(graph_, "x", f32, {5});
  for (int k = 0; k < n; ++k) {
    const auto there = replicas_.on_worker(graph_, k);
    in.push_back(x * static_cast<float>(k + 1));
  }
  const std::vector<PerReplica> sums =
      all_reduce(replicas_, {in, in, in}, {.reduction = Reduction::sum, .bucket_bytes = 1});
  std::vector<Output> fetches;
  for (const PerReplica& each : sums) fetches.insert(fetches.end(), each.begin(), each.end());
  Session session(graph_, {.threads = 2});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int step = 0; step < 25; ++step) {
        const float value = static_cast<float>(100 * t + step);
        for (const Tensor& each : session.run({{x, Tensor::full({5}, value)}}, fetches))
          EXPECT_THAT(floats_of(each), Each(6 * value));
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

// A step that fails on one member while others wait for it: all end with its error, and the next
// step has a group again.
TEST_F(GpuCollectives, SurviveAStepThatFails) {
  const Output x = placeholder(graph_, "x", i32, {4});
  PerReplica early = values({3}), late;
  for (int k = 0; k < n; ++k) {
    const auto there = replicas_.on_worker(graph_, k);
    if (k == 1) {
      const DeviceScope host(graph_, "CPU:0");
      late.push_back(cast(take(constant(graph_, {1, 2, 3}), x), f32));
    } else {
      late.push_back(cast(x, f32));
    }
  }
  {
    const auto there = replicas_.on_worker(graph_, 1);
    late[1] = identity(late[1]);
  }
  const auto sums =
      all_reduce(replicas_, {early, late}, {.reduction = Reduction::sum, .bucket_bytes = 1});
  std::vector<Output> fetches = sums[0];
  fetches.insert(fetches.end(), sums[1].begin(), sums[1].end());
  Session session(graph_, {.threads = 2});
  const auto indices = [](int last) { return Tensor::of<int32_t>({4}, {0, 1, 2, last}); };
  for (int round = 0; round < 3; ++round) {
    const auto good = session.run(zero({{x, indices(2)}}), fetches);
    EXPECT_THAT(floats_of(good[4]), ElementsAre(1, 4, 7, 7)) << round;
    expect_error_with(Code::invalid_argument, "[3] = 9", [&] {
      session.run(zero({{x, indices(9)}}), fetches);
    });
  }
  EXPECT_THAT(floats_of(session.run(zero({{x, indices(2)}}), fetches)[4]), ElementsAre(1, 4, 7, 7));
}

// GPU 0 enqueues its part of the collective first. GPU 1 then needs another result of GPU 0 before
// it has its own part: the collective must not hold up that result.
TEST_F(GpuCollectives, HoldUpNoOtherWork) {
  PerReplica in = values({3});
  Output late;
  {
    const DeviceScope host(graph_, "CPU:0");
    late = identity(in[0]);
  }
  {
    const auto there = replicas_.on_worker(graph_, 0);
    late = tanh(late) * 0.0F;
  }
  {
    const auto there = replicas_.on_worker(graph_, 1);
    in[1] = in[1] + late;
  }
  const PerReplica sums = all_reduce(replicas_, in, {.reduction = Reduction::sum});
  const int64_t before = collectives();
  Session session(graph_, {.timeout = std::chrono::seconds(20), .threads = 2});
  for (int step = 0; step < 3; ++step) {
    for (const Tensor& each : session.run(zero(), sums))
      EXPECT_THAT(floats_of(each), ElementsAre(300, 303, 306));
  }
  EXPECT_EQ(collectives() - before, 3);
}

// Marks that clients may write by hand, and that contradict themselves or each other: the plain ops
// stay, and nothing is looked up that is not there.
TEST_F(GpuCollectives, LeaveMarksThatContradictThemselves) {
  const PerReplica in = values({2});
  const auto mark = [&](int k, AttrMap attrs, bool has_ticket = false) {
    AttrMap all = {{"kind", "all_reduce"}, {"is_mean", false},        {"group", "g"}, {"rank", 0},
                   {"members", 2},         {"N", int64_t{has_ticket}}};
    for (auto& [name, value] : attrs) all.insert_or_assign(name, value);
    std::vector<Output> inputs = {in[k], in[k]};
    if (has_ticket) inputs.push_back(constant(graph_, std::string("t")));
    const auto there = replicas_.on_worker(graph_, k);
    return op("CollectiveResult", inputs, all);
  };
  const std::vector<std::string> tasks = {"/job:localhost/task:0", "/job:localhost/task:1"};
  const PerReplica marks = {
      mark(0, {{"group", "rank"}, {"rank", 5}}),
      mark(0, {{"group", "size"}, {"members", int64_t{1} << 60}}),
      mark(0, {{"group", "two"}, {"members", 2}}),
      mark(1, {{"group", "two"}, {"members", 3}, {"rank", 1}}),
      mark(0, {{"group", "few"}, {"programs", "few"}, {"tasks", std::vector{tasks[0]}}}),
      mark(0, {{"group", "first"}, {"programs", "first"}, {"tasks", tasks}}, true),
      mark(1, {{"group", "later"}, {"programs", "later"}, {"tasks", tasks}, {"rank", 1}})};
  const int64_t before = collectives();
  const auto values = run(marks);
  for (size_t i = 0; i < marks.size(); ++i)
    EXPECT_THAT(floats_of(values[i]), ElementsAre(i == 3 || i == 6 ? 100 : 0, testing::_)) << i;
  EXPECT_EQ(collectives() - before, 0);
}

TEST_F(GpuCollectives, ReachOtherTasks) {
  TaskOptions options = InProcessCluster::default_options();
  options.gpus = true;
  set_gpus(1);
  InProcessCluster cluster({{"worker", n}}, options);
  const Replicas replicas(cluster.spec());
  PerReplica in;
  for (int k = 0; k < n; ++k) {
    const auto there = replicas.on_worker(graph_, k);
    in.push_back(cast(arange(graph_, 6) + 100 * k, f32) + zero_);
  }
  const PerReplica sums = all_reduce(replicas, in, {.reduction = Reduction::sum});
  const int64_t before = collectives();
  Session session(graph_, {.target = cluster.target("worker", 0)});
  for (int step = 0; step < 5; ++step) {
    for (const Tensor& each : session.run(zero(), sums))
      EXPECT_THAT(floats_of(each), ElementsAre(300, 303, 306, 309, 312, 315));
  }
  EXPECT_EQ(collectives() - before, 5);
}

}  // namespace
}  // namespace leat::collectives
