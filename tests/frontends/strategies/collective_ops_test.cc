// TensorFlow's collectives, on a cluster of tasks in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "frontends/cpp/session.h"
#include "frontends/cpp/variables.h"
#include "graph/ops.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

using testing::ElementsAreArray;

constexpr int n = 3;

class CollectiveOps : public testing::Test {
 protected:
  // On worker k.
  template <class Make>
  auto on(int k, const Make& make) {
    const DeviceScope there(graph_, concat("/job:worker/task:", k));
    return make();
  }
  Output reduce(int k, const Output& x, int instance, AttrMap attrs = {}, int size = n) {
    if (!attrs.contains("merge_op")) attrs.insert_or_assign("merge_op", "Add");
    if (!attrs.contains("final_op")) attrs.insert_or_assign("final_op", "Id");
    attrs.insert_or_assign("Nordering_token", 0);
    return on(k, [&] {
      return op("CollectiveReduceV2",
                {x, constant(graph_, size), constant(graph_, 7), constant(graph_, instance)},
                attrs);
    });
  }
  // Worker k has k + 1, k + 2, ….
  Output values(int k, int64_t count, DType dtype = f32) {
    return on(k, [&] { return cast(arange(graph_, count) + (k + 1), dtype); });
  }
  std::vector<float> run(const Output& output) { return run(std::vector<Output>{output})[0]; }
  std::vector<std::vector<float>> run(const std::vector<Output>& outputs) {
    Session session(graph_, {.target = cluster_.target("worker", 0)});
    session.initialize();
    std::vector<Output> numbers;
    for (const Output& each : outputs) numbers.push_back(cast(each, f32));
    std::vector<std::vector<float>> out;
    for (const Tensor& each : session.run({}, numbers)) {
      const auto span = each.span<float>();
      out.emplace_back(span.begin(), span.end());
    }
    return out;
  }

  InProcessCluster cluster_{{{"worker", n}}};
  Graph graph_;
};

TEST_F(CollectiveOps, ReduceGivesAllMembersTheSame) {
  const std::map<std::string, std::function<float(float, float, float)>> merges = {
      {"Add", [](float a, float b, float c) { return a + b + c; }},
      {"Mul", [](float a, float b, float c) { return a * b * c; }},
      {"Min",
       [](float a, float b, float c) {
         return std::min({a, b, c});
       }},
      {"Max", [](float a, float b, float c) {
         return std::max({a, b, c});
       }}};
  int instance = 0;
  for (const auto& [merge, of] : merges) {
    for (const DType dtype : {f32, f64, i32, i64}) {
      for (const int64_t count : {1, 2, 7}) {
        std::vector<Output> results;
        ++instance;
        for (int k = 0; k < n; ++k)
          results.push_back(reduce(k, values(k, count, dtype), instance, {{"merge_op", merge}}));
        std::vector<float> expected;
        for (int64_t i = 0; i < count; ++i) {
          const auto first = static_cast<float>(i + 1);
          expected.push_back(of(first, first + 1, first + 2));
        }
        for (const auto& each : run(results)) EXPECT_EQ(each, expected) << merge << count;
      }
    }
  }
}

TEST_F(CollectiveOps, DivTakesTheMean) {
  std::vector<Output> means, rounded;
  for (int k = 0; k < n; ++k) {
    means.push_back(reduce(k, values(k, 2), 1, {{"final_op", "Div"}}));
    rounded.push_back(reduce(k, values(k, 2, i32) * (k + 1), 2, {{"final_op", "Div"}}));
  }
  for (const auto& each : run(means)) EXPECT_EQ(each, (std::vector<float>{2, 3}));
  // 1 + 4 + 9 = 14, 2 + 6 + 12 = 20
  for (const auto& each : run(rounded)) EXPECT_EQ(each, (std::vector<float>{4, 6}));
}

// So large that each member reduces a part.
TEST_F(CollectiveOps, LargeTensorsAreReducedInParts) {
  constexpr int64_t count = 500'001;
  std::vector<Output> sums;
  for (int k = 0; k < n; ++k) sums.push_back(reduce(k, reshape(values(k, count), {-1, 3}), 1));
  EXPECT_EQ(sums[0].shape(), (Shape{count / 3, 3}));
  for (const auto& each : run(sums)) {
    ASSERT_EQ(each.size(), static_cast<size_t>(count));
    for (int64_t i = 0; i < count; i += 999)
      EXPECT_EQ(each[static_cast<size_t>(i)], static_cast<float>(3 * i + 6));
  }
}

TEST_F(CollectiveOps, OfUnknownShapeReduce) {
  std::vector<Output> sums;
  Feeds feeds;
  for (int k = 0; k < n; ++k) {
    const Output x = on(k, [&] { return placeholder(graph_, "x", f32); });
    feeds.push_back({x, Tensor::of<float>({2}, {1.0F, static_cast<float>(k)})});
    sums.push_back(reduce(k, x, 1));
  }
  Session session(graph_, {.target = cluster_.target("worker", 0)});
  for (const Tensor& each : session.run(feeds, sums)) {
    EXPECT_EQ(each.data<float>()[0], 3);
    EXPECT_EQ(each.data<float>()[1], 3);
  }
}

TEST_F(CollectiveOps, GatherJoinsInTheOrderOfTheDevices) {
  std::vector<Output> results(n);
  for (const int k : {2, 0, 1}) {
    results[static_cast<size_t>(k)] = on(k, [&] {
      return op("CollectiveGatherV2",
                {values(k, k + 1), constant(graph_, n), constant(graph_, 1), constant(graph_, 1)},
                {{"Nordering_token", 0}});
    });
  }
  for (const auto& each : run(results)) EXPECT_EQ(each, (std::vector<float>{1, 2, 3, 3, 4, 5}));
  EXPECT_EQ(results[1].shape(), (Shape{6}));
}

TEST_F(CollectiveOps, BroadcastSendsToAll) {
  std::vector<Output> results;
  for (int k = 0; k < n; ++k) {
    results.push_back(on(k, [&] {
      const Output size = constant(graph_, n), group = constant(graph_, 1),
                   instance = constant(graph_, 5);
      return k == 1 ? op("CollectiveBcastSendV2", {values(1, 3), size, group, instance})
                    : op("CollectiveBcastRecvV2", {size, group, instance, constant(graph_, {3})},
                         {{"T", f32}});
    }));
  }
  EXPECT_EQ(results[0].shape(), (Shape{3}));
  for (const auto& each : run(results)) EXPECT_EQ(each, (std::vector<float>{2, 3, 4}));
}

// The first versions of the ops have the key as attributes.
TEST_F(CollectiveOps, TakeTheKeyAsAttributes) {
  std::vector<Output> results;
  for (int k = 0; k < n; ++k) {
    const auto numbered = [](AttrMap attrs, int instance) {
      attrs["group_size"] = n;
      attrs["group_key"] = 1;
      attrs["instance_key"] = instance;
      return attrs;
    };
    results.push_back(on(k, [&] {
      return op(
          "CollectiveReduce", {values(k, 2)},
          numbered(
              {{"merge_op", "Max"}, {"final_op", "Id"}, {"subdiv_offsets", std::vector<int64_t>{}}},
              1));
    }));
    results.push_back(on(k, [&] {
      return op("CollectiveGather", {values(k, 1)}, numbered({{"shape", Shape{3}}}, 2));
    }));
    results.push_back(on(k, [&] {
      const AttrMap attrs = numbered({{"T", f32}, {"shape", Shape{2}}}, 3);
      return k == 2 ? op("CollectiveBcastSend", {values(2, 2)}, attrs)
                    : op_node(graph_, "CollectiveBcastRecv", {}, attrs).output();
    }));
  }
  const auto got = run(results);
  for (size_t k = 0; k < got.size(); k += 3) {
    EXPECT_EQ(got[k], (std::vector<float>{3, 4}));
    EXPECT_EQ(got[k + 1], (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(got[k + 2], (std::vector<float>{3, 4}));
  }
}

// What a member waits for, all wait for.
TEST_F(CollectiveOps, WaitForControlInputs) {
  const Output w = on(1, [&] { return variable(graph_, "w", {}, initializers::zeros()); });
  const Output set = assign(w, 5.0F);
  std::vector<Output> results;
  for (int k = 0; k < n; ++k) {
    const ControlScope after(graph_, k == 1 ? std::vector<Output>{set} : std::vector<Output>{});
    results.push_back(
        reduce(k, k == 1 ? read_variable(w) : on(k, [&] { return constant(graph_, 1.0F); }), 1));
  }
  for (const auto& each : run(results)) EXPECT_EQ(each, (std::vector<float>{7}));
}

TEST_F(CollectiveOps, OfOneMemberIsItsInput) {
  EXPECT_EQ(run(reduce(0, values(0, 2), 1, {}, 1)), (std::vector<float>{1, 2}));
}

TEST_F(CollectiveOps, SayWhichMemberIsMissingOrDiffers) {
  const Output first = reduce(0, values(0, 2), 1), second = reduce(1, values(1, 2), 1);
  expect_error_with(Code::invalid_argument,
                    "the collective of group 7, instance 1 has 3 members, but the step runs 2 of "
                    "them, the first is CollectiveReduceV2 node 'CollectiveReduceV2'",
                    [&] {
                      run({first, second});
                    });
  const Output third = reduce(2, values(2, 3), 1);
  expect_error_with(Code::invalid_argument, "has shape [3], but CollectiveReduceV2 node", [&] {
    run({first, second, third});
  });
  const Output merged = reduce(2, values(2, 2), 1, {{"merge_op", "Max"}});
  expect_error_with(Code::invalid_argument, "has merge_op Max, but CollectiveReduceV2 node", [&] {
    run({first, second, merged});
  });
  const Output longs = reduce(2, values(2, 2, f64), 1);
  expect_error_with(Code::invalid_argument, "has dtype double, but CollectiveReduceV2 node", [&] {
    run({first, second, longs});
  });
}

TEST_F(CollectiveOps, ThatCrossEachOtherAreAnError) {
  const auto pair = [&](int k, bool swapped) {
    const Output x = reduce(k, values(k, 1), swapped ? 12 : 11, {}, 2);
    const ControlScope after(graph_, {x});
    return std::vector<Output>{x, reduce(k, values(k, 1), swapped ? 11 : 12, {}, 2)};
  };
  std::vector<Output> all = pair(0, false);
  for (const Output& each : pair(1, true)) all.push_back(each);
  expect_error_with(Code::invalid_argument,
                    "collectives wait for each other, so none can run: the collective of group 7, "
                    "instance 11",
                    [&] { run(all); });
}

// ---- Members in several programs, each with a session of its own

// Of worker k: what `build(graph)` makes there, run `steps` times beside the others.
class CollectivePrograms : public testing::Test {
 protected:
  using Build = std::function<std::vector<Output>(Graph& graph, int k)>;

  // By program: the values of the last step.
  std::vector<std::vector<Tensor>> run(const Build& build, int steps = 3) {
    std::vector<std::vector<Tensor>> out(n);
    each_program([&](int k) {
      Graph graph;
      const std::vector<Output> outputs = build(graph, k);
      Session session(graph, options(k));
      for (int step = 0; step < steps; ++step)
        out[static_cast<size_t>(k)] = session.run({}, outputs);
    });
    return out;
  }
  template <class Program>
  void each_program(const Program& program) {
    std::vector<std::thread> threads;
    for (int k = 0; k < n; ++k) threads.emplace_back([&, k] { program(k); });
    for (std::thread& each : threads) each.join();
  }
  SessionOptions options(int k) {
    SessionOptions out;
    out.target = cluster_.target("worker", k);
    out.collective_leader = "/job:worker/replica:0/task:1";
    return out;
  }
  static Output reduce(const Output& x, int instance, AttrMap attrs = {{"merge_op", "Add"}}) {
    if (!attrs.contains("final_op")) attrs.insert_or_assign("final_op", "Id");
    attrs.insert_or_assign("Nordering_token", 0);
    return op("CollectiveReduceV2", inputs(x, instance), attrs);
  }
  static Output fill_of(Graph& graph, int64_t elements) {
    return constant(graph, Tensor::full({elements}, 1.0F));
  }
  static std::vector<Output> inputs(const Output& x, int instance) {
    Graph& graph = x.graph();
    return {x, constant(graph, n), constant(graph, 7), constant(graph, instance)};
  }

  InProcessCluster cluster_{{{"worker", n}}};
};

TEST_F(CollectivePrograms, ReduceGatherAndBroadcast) {
  const auto results = run([](Graph& graph, int k) {
    const Output x = constant(graph, {float(k + 1), float(10 * k)});
    const Output gathered =
        op("CollectiveGatherV2", inputs(tile(x, {k + 1}), 3), {{"Nordering_token", 0}});
    std::vector<Output> key = inputs(x, 4);
    Output sent;
    if (k == 1) {
      sent = op("CollectiveBcastSendV2", key);
    } else {
      key.erase(key.begin());
      key.push_back(constant(graph, {2}));
      sent = op("CollectiveBcastRecvV2", key, {{"T", f32}});
    }
    return std::vector{reduce(x, 1), reduce(x, 2, {{"merge_op", "Max"}}),
                       reduce(cast(x, i32), 5, {{"merge_op", "Add"}, {"final_op", "Div"}}),
                       gathered, sent};
  });
  for (const std::vector<Tensor>& each : results) {
    EXPECT_EQ(each[0].to_vector<float>(), (std::vector<float>{6, 30}));
    EXPECT_EQ(each[1].to_vector<float>(), (std::vector<float>{3, 20}));
    EXPECT_EQ(each[2].to_vector<int32_t>(), (std::vector<int32_t>{2, 10}));
    EXPECT_EQ(each[3].to_vector<float>(),
              (std::vector<float>{1, 0, 2, 10, 2, 10, 3, 20, 3, 20, 3, 20}));
    EXPECT_EQ(each[4].to_vector<float>(), (std::vector<float>{2, 10}));
  }
}

TEST_F(CollectivePrograms, KeepStepEvenIfOneIsAhead) {
  std::vector<std::vector<float>> sums(n);
  each_program([&](int k) {
    Graph graph;
    const Output x = placeholder(graph, "x", f32, {1});
    const Output sum = reduce(x, 1);
    Session session(graph, options(k));
    for (int step = 0; step < 20; ++step) {
      if (k == 2 && step % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const Tensor fed = Tensor::full({1}, static_cast<float>(step * (k + 1)));
      sums[static_cast<size_t>(k)].push_back(session.run({{x, fed}}, sum).item<float>());
    }
  });
  for (const auto& each : sums) {
    for (size_t step = 0; step < 20; ++step) EXPECT_EQ(each[step], static_cast<float>(6 * step));
  }
}

TEST_F(CollectivePrograms, DifferentMembersAreErrorsOfAll) {
  each_program([&](int k) {
    Graph graph;
    const Output sum = reduce(fill_of(graph, k == 2 ? 3 : 2), 1);
    Session session(graph, options(k));
    expect_error_with(Code::invalid_argument,
                      "the collective of group 7, instance 1: /job:worker/replica:0/task:2/device:"
                      "CPU:0 has shape [3], but /job:worker/replica:0/task:0/device:CPU:0 has [2]",
                      [&] { session.run({}, sum); });
  });
}

// A member that has given up leaves nothing behind; the error of a wait says who is there.
TEST_F(CollectivePrograms, SayWhoIsThere) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {2});
  const Output sum = reduce(x, 1);
  Session session(graph, options(0));
  const Tensor old = Tensor::full({2}, 100.0F), fed = Tensor::full({2}, 1.0F);
  expect_error_with(
      Code::deadline_exceeded,
      "the collective of group 7, instance 1 has 1 of 3 members "
      "(/job:worker/replica:0/task:0/device:CPU:0) and waits for the others",
      [&] {
        session.run({{x, old}}, {sum}, {}, {.timeout = std::chrono::milliseconds(300)});
      });
  each_program([&](int k) {
    Graph own;
    const Output y = placeholder(own, "x", f32, {2});
    const Output total = reduce(y, 1);
    Session program(own, options(k));
    EXPECT_EQ(program.run({{y, fed}}, total).to_vector<float>(), (std::vector<float>{3, 3}));
  });
}

// Their state is not shared, so that they could not meet.
TEST_F(CollectivePrograms, AreNotIsolated) {
  Graph graph;
  const Output sum = reduce(fill_of(graph, 2), 1);
  SessionOptions isolated = options(0);
  isolated.isolate_state = true;
  expect_error_with(Code::invalid_argument, "has 3 members, but the step runs 1 of them",
                    [&] { Session(graph, isolated).run({}, sum); });
}

TEST_F(CollectivePrograms, NeedALeaderThatIsATask) {
  Graph graph;
  const Output sum = reduce(fill_of(graph, 2), 1);
  SessionOptions wrong = options(0);
  wrong.collective_leader = "worker 0";
  expect_error_with(Code::invalid_argument, "the leader of collectives must be a task",
                    [&] { Session(graph, wrong).run({}, sum); });
}

}  // namespace
}  // namespace leat
