// While loops that change state of several tasks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "frontends/cpp/control_flow/while_loop.h"
#include "graph/ops.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using Outputs = std::vector<Output>;

constexpr const char* ps[] = {"/job:ps/task:0", "/job:ps/task:1"};

Output count(Graph& graph, int32_t value) { return constant(graph, Tensor::scalar(value)); }

// Counters "a" on ps:0 and "b" on ps:1, a queue on ps:0; "init" sets the counters to 0.
class SpreadLoops : public testing::Test {
 protected:
  SpreadLoops() {
    Outputs initialized;
    for (const auto& [name, task] : {std::pair{"a", 0}, {"b", 1}}) {
      const DeviceScope on(graph_, ps[task]);
      const Output made =
          graph_
              .add(
                  {.op = "VariableV2", .name = name, .attrs = {{"shape", Shape{}}, {"dtype", i32}}})
              .output();
      initialized.push_back(
          graph_.add({.op = "Assign", .inputs = {made, count(graph_, 0)}}).output());
      (task == 0 ? a_ : b_) = made;
    }
    const DeviceScope on(graph_, ps[0]);
    queue_ = graph_
                 .add({.op = "FIFOQueueV2",
                       .name = "queue",
                       .attrs = {{"component_types", std::vector<DType>{i32}},
                                 {"shapes", std::vector<Shape>{Shape{}}},
                                 {"capacity", int64_t{10}}}})
                 .output();
    const ControlScope after(graph_, initialized);
    graph_.add({.op = "NoOp", .name = "init"});
  }

  Output add(Output counter, Output value) {
    return graph_.add({.op = "AssignAdd", .inputs = {counter, value}}).output();
  }
  Output add(Output counter, int32_t value) { return add(counter, count(graph_, value)); }
  void enqueue(Output value) {
    last_ = &graph_.add({.op = "QueueEnqueueV2", .inputs = {queue_, value}});
  }
  Output dequeue() {
    return graph_
        .add({.op = "QueueDequeueV2",
              .name = "take",
              .inputs = {queue_},
              .attrs = {{"component_types", std::vector<DType>{i32}}}})
        .output();
  }
  // i from 0 to n; `body` returns what each iteration waits for.
  Output counted(Output n, const std::function<Outputs(Output i)>& body) {
    return while_loop([&](const Outputs& v) { return less(v[0], n); },
                      [&](const Outputs& v) {
                        const ControlScope after(graph_, body(v[0]));
                        return Outputs{identity(v[0]) + count(graph_, 1)};
                      },
                      Outputs{count(graph_, 0)})[0];
  }
  std::vector<int32_t> run(const std::vector<std::string>& fetches) {
    std::vector<int32_t> out;
    for (const Tensor& value : session_->run({}, fetches, {})) out.push_back(value.item<int32_t>());
    return out;
  }
  void start(int workers = 1) {
    cluster_.emplace(std::map<std::string, int>{{"ps", 2}, {"worker", workers}});
    session_ = cluster_->session(graph_);
    session_->run({}, {}, {"init"});
  }

  std::optional<InProcessCluster> cluster_;
  Graph graph_;
  Output a_, b_, queue_;
  Node* last_ = nullptr;
  std::unique_ptr<SessionInterface> session_;
};

TEST_F(SpreadLoops, EachIterationUpdatesBothTasks) {
  const Output n = counted(count(graph_, 5), [&](Output i) {
    return Outputs{add(a_, 1), add(b_, i)};
  });
  start();
  EXPECT_EQ(run({n.name()}), std::vector<int32_t>{5});
  EXPECT_EQ(run({"a", "b"}), (std::vector<int32_t>{5, 10}));
  EXPECT_EQ(run({n.name()}), std::vector<int32_t>{5});
  EXPECT_EQ(run({"a", "b"}), (std::vector<int32_t>{10, 20}));
}

// Each iteration adds 1 and the b of the iteration before to a, and then a to b.
TEST_F(SpreadLoops, IterationsSeeEarlierWrites) {
  const Output n = counted(count(graph_, 4), [&](Output) {
    const Output grown = add(a_, identity(b_) + count(graph_, 1));
    return Outputs{add(b_, identity(grown))};
  });
  start();
  run({n.name()});
  // (1, 1), (3, 4), (8, 12), (21, 33)
  EXPECT_EQ(run({"a", "b"}), (std::vector<int32_t>{21, 33}));
}

TEST_F(SpreadLoops, NodesAfterTheLoopRunAfterItOnAllTasks) {
  const Output n = counted(count(graph_, 30), [&](Output) {
    return Outputs{add(a_, 1), add(b_, 1)};
  });
  Output after;
  {
    const ControlScope scope(graph_, Outputs{n});
    const DeviceScope on(graph_, "/job:worker/task:0");
    after = identity(a_) * count(graph_, 1000) + identity(b_);
  }
  start();
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(run({after.name()}), std::vector<int32_t>{30 * 1001 * i});
}

TEST_F(SpreadLoops, NestedLoops) {
  const Output n = counted(count(graph_, 3), [&](Output i) {
    const Output inner = counted(i, [&](Output j) { return Outputs{add(a_, j), add(b_, 1)}; });
    return Outputs{inner, add(b_, 100)};
  });
  start();
  run({n.name()});
  EXPECT_EQ(run({"a", "b"}), (std::vector<int32_t>{1, 303}));
}

TEST_F(SpreadLoops, ConditionReadsStateOfAnotherTask) {
  const Output n =
      while_loop([&](const Outputs& v) { return less(identity(a_) + v[0], count(graph_, 10)); },
                 [&](const Outputs& v) {
                   const ControlScope after(graph_, Outputs{add(a_, 1), add(b_, v[0])});
                   return Outputs{identity(v[0]) + count(graph_, 1)};
                 },
                 Outputs{count(graph_, 0)})[0];
  start();
  EXPECT_EQ(run({n.name()}), std::vector<int32_t>{5});
  EXPECT_EQ(run({"a", "b"}), (std::vector<int32_t>{5, 10}));
}

TEST_F(SpreadLoops, QueueOfOneTaskAndVariableOfAnother) {
  const Output n = counted(count(graph_, 4), [&](Output i) {
    enqueue(i);
    const ControlScope after(graph_, std::vector<Node*>{last_});
    return Outputs{add(b_, dequeue())};
  });
  start();
  run({n.name()});
  EXPECT_EQ(run({"a", "b"}), (std::vector<int32_t>{0, 6}));
}

TEST_F(SpreadLoops, ErrorInOnePartFailsTheStep) {
  const Output n = counted(count(graph_, 10), [&](Output i) {
    const Output number =
        graph_.add({.op = "FloorDiv", .inputs = {count(graph_, 6), count(graph_, 3) - i}}).output();
    const DeviceScope on(graph_, ps[1]);
    Node& checked = graph_.add(
        {.op = "Assert", .name = "below_three", .inputs = {less(i, count(graph_, 3)), number}});
    const ControlScope after(graph_, std::vector<Node*>{&checked});
    return Outputs{add(a_, 1), add(b_, 1)};
  });
  start();
  const Status status = error_of([&] { run({n.name()}); });
  EXPECT_EQ(status.code, Code::invalid_argument);
  EXPECT_THAT(status.message, HasSubstr("[[{{node while/"));
  EXPECT_EQ(run({"a", "b"}), (std::vector<int32_t>{3, 3}));
}

// The waiting task and the one it waits for, in the error and in `leat top`.
TEST_F(SpreadLoops, DeadlineNamesTheWaitInTheLoop) {
  const Output n = counted(count(graph_, 3), [&](Output) {
    return Outputs{add(a_, dequeue()), add(b_, 1)};
  });
  start();
  const Status status =
      error_of([&] { session_->run({}, {n.name()}, {}, {.timeout = milliseconds(500)}); });
  EXPECT_EQ(status.code, Code::deadline_exceeded);
  EXPECT_THAT(
      status.message,
      AllOf(HasSubstr("waits in QueueDequeueV2 node while/take: FIFOQueue 'queue' has 0 of "),
            HasSubstr("waits for tensor edge_"), HasSubstr("from /job:ps/task:0")));
  EXPECT_EQ(run({"b"}), std::vector<int32_t>{1});
}

TEST_F(SpreadLoops, LostTaskEndsTheLoop) {
  const Output n = counted(count(graph_, 3), [&](Output) {
    return Outputs{add(a_, dequeue()), add(b_, 1)};
  });
  start();
  std::thread killer([&] {
    std::this_thread::sleep_for(milliseconds(300));
    cluster_->kill("ps", 1);
  });
  const Status status = error_of([&] { run({n.name()}); });
  killer.join();
  EXPECT_EQ(status.code, Code::unavailable);
  EXPECT_THAT(status.message, HasSubstr("/job:ps/task:1"));
}

}  // namespace
}  // namespace leat
