// Steps that wait in a queue, an accumulator or a clock report what is missing there: in the error
// after their deadline, and in `leat top` before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "distributed/cluster_view.h"
#include "frontends/cpp/state/queue.h"
#include "graph/ops.h"
#include "tests/support/eventually.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

// A ps with a queue of two elements and an accumulator; the worker's client uses both.
class WaitingOps : public testing::Test {
 protected:
  WaitingOps() {
    const DeviceScope on(graph_, "/job:ps/task:0");
    const auto add = [&](const char* op, const char* name, std::vector<Output> inputs,
                         AttrMap attrs = {}) {
      return &graph_.add(
          {.op = op, .name = name, .inputs = std::move(inputs), .attrs = std::move(attrs)});
    };
    const AttrMap types = {{"component_types", std::vector<DType>{f32}}};
    const Output q = add("FIFOQueueV2", "tokens", {},
                         {{"component_types", std::vector<DType>{f32}},
                          {"shapes", std::vector<Shape>{Shape{}}},
                          {"capacity", int64_t{2}}})
                         ->output();
    add("QueueEnqueueV2", "put", {q, constant(graph_, Tensor::scalar(1.0f))});
    add("QueueDequeueV2", "take", {q}, types);
    add("QueueDequeueManyV2", "take_three", {q, constant(graph_, Tensor::scalar(3))}, types);

    const Output a = add("ConditionalAccumulator", "grad", {},
                         {{"dtype", f32}, {"shape", Shape{2}}, {"reduction_type", "MEAN"}})
                         ->output();
    const Output step = placeholder(graph_, "step", i64, {});
    add("AccumulatorApplyGradient", "apply",
        {a, step, constant(graph_, Tensor::of<float>({2}, {1, 2}))});
    add("AccumulatorSetGlobalStep", "set_step", {a, step});
    add("AccumulatorTakeGradient", "mean", {a, constant(graph_, Tensor::scalar(3))},
        {{"dtype", f32}});

    const Output c =
        add("Clock", "c", {}, {{"members", int64_t{3}}, {"shared_name", "clock"}})->output();
    const Output rank = placeholder(graph_, "rank", i32, {});
    add("ClockTick", "tick", {c, rank});
    add("ClockJoin", "join", {c, rank});
    add("ClockLeave", "leave", {c, rank});
    add("ClockTick", "tick_own",
        {add("Clock", "own", {}, {{"members", int64_t{3}}})->output(), rank});
    add("ClockWait", "wait", {c, rank, constant(graph_, Tensor::scalar<int64_t>(2))});
    session_ = cluster_.session(graph_);
  }

  void run(const std::string& target) { session_->run({}, {}, {target}); }
  void run_at(int64_t step, const std::string& target) {
    session_->run({{"step:0", Tensor::scalar(step)}}, {}, {target});
  }
  static void run_as(SessionInterface& session, int rank, const std::string& target) {
    session.run({{"rank:0", Tensor::scalar(rank)}}, {}, {target});
  }
  // The message of a step that waits beyond its deadline.
  std::string missing(const std::string& target, const NamedTensors& feeds = {}) {
    try {
      session_->run(feeds, {}, {target}, {.timeout = milliseconds(500)});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::deadline_exceeded);
      return error.message();
    }
    ADD_FAILURE() << target << " did not wait";
    return "";
  }
  std::string label() { return "/job:ps/task:0 (" + cluster_.spec().address({"ps", 0}) + ")"; }

  InProcessCluster cluster_{{{"ps", 1}, {"worker", 1}}};
  Graph graph_;
  std::unique_ptr<SessionInterface> session_;
};

TEST_F(WaitingOps, AccumulatorReportsReceivedAndStaleGradients) {
  run_at(7, "set_step");
  run_at(7, "apply");
  run_at(6, "apply");
  run_at(5, "apply");
  EXPECT_THAT(missing("mean"),
              AllOf(HasSubstr(label() +
                              " waits in AccumulatorTakeGradient node mean: ConditionalAccumulator "
                              "'grad' has 1 of 3 gradients at step 7, 2 were dropped as stale, "
                              "for "),
                    HasSubstr("within its deadline (0.5 s)")));
}

TEST_F(WaitingOps, EmptyQueueReportsThatItHasNoProducer) {
  EXPECT_THAT(missing("take"),
              HasSubstr(label() + " waits in QueueDequeueV2 node take: FIFOQueue 'tokens' has 0 of "
                                  "at most 2 elements; no enqueue waits, 1 dequeue waits, for "));
  run("put");
  EXPECT_THAT(missing("take_three"),
              HasSubstr("has 0 of at most 2 elements; no enqueue waits, 1 dequeue waits, the first "
                        "has got 1 of 3, for "));
}

TEST_F(WaitingOps, FullQueueIsReported) {
  run("put");
  run("put");
  EXPECT_THAT(missing("put"), HasSubstr(label() + " waits in QueueEnqueueV2 node put: FIFOQueue "
                                                  "'tokens' has 2 of at most 2 elements; 1 enqueue "
                                                  "waits, no dequeue waits, for "));
}

TEST_F(WaitingOps, ClockReportsTheMembersWaitedFor) {
  for (int i = 0; i < 3; ++i) run_as(*session_, 0, "tick");
  run_as(*session_, 1, "tick");
  EXPECT_THAT(missing("wait", {{"rank:0", Tensor::scalar(0)}}),
              AllOf(HasSubstr(label() +
                              " waits in ClockWait node wait: clock 'clock': member 0, at 3, waits "
                              "for member 2, at 0 (staleness 2), for "),
                    HasSubstr("within its deadline (0.5 s)")));
}

// Each client has a session of its own, on a task of its own.
TEST_F(WaitingOps, ClientsShareAClock) {
  const auto other = cluster_.session(graph_, "ps");
  for (int i = 0; i < 3; ++i) run_as(*session_, 0, "tick");
  auto waiting = std::async(std::launch::async, [&] { run_as(*session_, 0, "wait"); });
  std::string text;
  EXPECT_TRUE(eventually([&] {
    text = to_text(view_cluster(cluster_.target("worker")));
    return text.find("waits for member 1, at 0 and member 2, at 0 (staleness 2)") !=
           std::string::npos;
  })) << text;
  EXPECT_THAT(text, ContainsRegex("/job:ps/task:0 +[0-9.]+ s +waits in ClockWait node wait: clock "
                                  "'clock': member 0, at 3, waits for member 1"));
  run_as(*other, 1, "tick");
  EXPECT_TRUE(eventually([&] {
    text = to_text(view_cluster(cluster_.target("worker")));
    return text.find("member 0, at 3, waits for member 2, at 0 (staleness 2)") != std::string::npos;
  })) << text;
  run_as(*other, 2, "leave");
  ASSERT_EQ(waiting.wait_for(seconds(20)), std::future_status::ready);
  waiting.get();
  // Without a shared_name each session has its own.
  for (SessionInterface* session : {session_.get(), other.get()}) {
    const Tensor count = session->run({{"rank:0", Tensor::scalar(2)}}, {"tick_own:0"}, {})[0];
    EXPECT_EQ(count.item<int64_t>(), 1);
  }
  // The counts outlive a client: who comes again joins at the slowest.
  session_ = cluster_.session(graph_);
  EXPECT_EQ(session_->run({{"rank:0", Tensor::scalar(2)}}, {"join:0"}, {})[0].item<int64_t>(), 1);
}

TEST_F(WaitingOps, ClusterViewShowsTheCounts) {
  run_at(0, "apply");
  auto taking = std::async(std::launch::async, [&] { run("mean"); });
  std::string text;
  EXPECT_TRUE(eventually([&] {
    text = to_text(view_cluster(cluster_.target("worker")));
    return text.find("has 1 of 3 gradients") != std::string::npos;
  })) << text;
  EXPECT_THAT(text,
              ContainsRegex("/job:ps/task:0 +[0-9.]+ s +waits in AccumulatorTakeGradient node "
                            "mean: ConditionalAccumulator 'grad' has 1 of 3 gradients"));
  run_at(0, "apply");
  EXPECT_TRUE(eventually([&] {
    text = to_text(view_cluster(cluster_.target("worker")));
    return text.find("has 2 of 3 gradients") != std::string::npos;
  })) << text;
  run_at(0, "apply");
  ASSERT_EQ(taking.wait_for(seconds(20)), std::future_status::ready);
  taking.get();
}

// The worker uses what came from the first queue, and the second gets its element only then: the
// two tensors do not come together, though the step asks the ps for both at once.
TEST(WaitsInOneStep, MayNeedEachOther) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  const auto on = [&](const char* task, const auto& make) {
    const DeviceScope there(graph, task);
    return make();
  };
  const auto queue = [&](const char* name) {
    return on("/job:ps/task:0",
              [&] { return std::make_unique<Queue>(graph, name, std::vector{f32}); });
  };
  const auto first = queue("first"), second = queue("second");
  const Output a = on("/job:ps/task:0", [&] { return first->dequeue()[0]; });
  const Output b = on("/job:ps/task:0", [&] { return second->dequeue()[0]; });
  const Output doubled = on("/job:worker/task:0", [&] { return a * 2.0F; });
  Node& passes_on = *on("/job:ps/task:0", [&] { return &second->enqueue({doubled}); });
  const Output sum = on("/job:worker/task:0", [&] { return a + b; });
  Node& fills = first->enqueue({placeholder(graph, "x", f32, {})});

  const auto session = cluster.session(graph);
  for (const float x : {1.0F, 5.0F}) {
    session->run({{"x:0", Tensor::scalar(x)}}, {}, {fills.name}, {.timeout = seconds(20)});
    const auto out = session->run({}, {sum.name()}, {passes_on.name}, {.timeout = seconds(20)});
    EXPECT_EQ(out[0].item<float>(), 3 * x);
  }
}

}  // namespace
}  // namespace leat
