// Steps that span tasks: several tasks in one process exchange values by edge, and end together
// after an error.
#include "distributed/worker/rendezvous_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "tests/support/connected_tasks.h"
#include "tests/support/eventually.h"
#include "tests/support/faulty_stream.h"

namespace leat {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Edges = std::shared_ptr<const std::vector<CutEdge>>;

const TaskName ps0{"ps", 0}, worker0{"worker", 0}, worker1{"worker", 1};

DeviceName device(const std::string& task, const std::string& type = "CPU:0") {
  const TaskName name = ConnectedTasks::task(task);
  return DeviceName::parse(
      concat("/job:", name.job, "/replica:0/task:", name.index, "/device:", type));
}

CutEdge edge(int64_t id, const DeviceName& source, const DeviceName& destination,
             DType dtype = DType::f32) {
  CutEdge out;
  out.id = id;
  out.tensor_name = concat("edge_", id, "_w", id);
  out.source = source;
  out.destination = destination;
  out.dtype = dtype;
  out.producer = concat("w", id);
  return out;
}

Edges edges_of(std::vector<CutEdge> edges) {
  return std::make_shared<const std::vector<CutEdge>>(std::move(edges));
}

// The values that came for the edges of one step on one task.
struct Arrivals {
  struct One {
    Status status;
    Tensor value;
    bool is_dead = false;
  };
  std::mutex mutex;
  std::map<int64_t, One> all;

  void expect(Rendezvous& rendezvous, int64_t edge) {
    rendezvous.recv(edge, [this, edge](const Status& status, Tensor value, bool is_dead) {
      std::lock_guard lock(mutex);
      EXPECT_FALSE(all.contains(edge)) << "edge " << edge << " arrived twice";
      all[edge] = {status, std::move(value), is_dead};
    });
  }
  bool wait(int64_t edge) {
    return eventually([&] {
      std::lock_guard lock(mutex);
      return all.contains(edge);
    });
  }
  size_t count() {
    std::lock_guard lock(mutex);
    return all.size();
  }
};

TEST(RendezvousRouter, ValuesReachTheTaskThatOwnsTheEdge) {
  ConnectedTasks tasks({"ps:0", "worker:0", "worker:1"});
  tasks.start_all();
  tasks.wait_until_connected();
  const Edges edges = edges_of({edge(0, device("ps:0"), device("worker:0")),
                                edge(1, device("worker:0"), device("worker:1")),
                                edge(2, device("worker:1"), device("ps:0")),
                                edge(3, device("ps:0"), device("ps:0", "GPU:0")),
                                edge(4, device("ps:0"), device("worker:1"), DType::invalid)});
  for (int64_t step = 1; step <= 20; ++step) {
    Arrivals at_ps, at_worker0, at_worker1;
    auto ps = tasks["ps:0"].router->open(step, edges);
    auto first = tasks["worker:0"].router->open(step, edges);
    auto second = tasks["worker:1"].router->open(step, edges);
    at_worker0.expect(*first, 0);  // the receiver comes first
    at_ps.expect(*ps, 3);
    ps->send(0, Tensor::scalar<float>(static_cast<float>(step)), false);
    ps->send(3, Tensor::scalar(3.0f), false);
    ps->send(4, {}, false);
    first->send(1, Tensor::of<float>({2}, {1, 2}), false);
    second->send(2, Tensor::scalar(2.0f), true);
    ASSERT_TRUE(at_worker0.wait(0));
    at_worker1.expect(*second, 1);
    at_worker1.expect(*second, 4);
    at_ps.expect(*ps, 2);
    ASSERT_TRUE(at_worker1.wait(1) && at_worker1.wait(4) && at_ps.wait(2) && at_ps.wait(3));
    EXPECT_EQ(at_worker0.all[0].value.item<float>(), static_cast<float>(step));
    EXPECT_EQ(at_worker1.all[1].value.span<float>()[1], 2.0f);
    EXPECT_FALSE(at_worker1.all[4].value.is_valid());
    EXPECT_TRUE(at_ps.all[2].is_dead);
    EXPECT_EQ(at_ps.all[3].value.item<float>(), 3.0f);
    for (const char* name : {"ps:0", "worker:0", "worker:1"}) tasks[name].router->close(step);
  }
  EXPECT_EQ(tasks["ps:0"].router->open_steps(), 0u);
}

TEST(RendezvousRouter, StepAfterALossReportsWhenThePeerWasLastHeard) {
  ConnectedTasks tasks({"ps:0", "worker:0"});
  tasks.start_all();
  tasks.wait_until_connected();
  tasks.stop("ps:0", /*politely=*/false);
  const Membership& membership = *tasks["worker:0"].membership;
  ASSERT_TRUE(eventually([&] { return !membership.is_connected(ps0); }));
  std::this_thread::sleep_for(milliseconds(600));  // the age in the message
  const Edges edges = edges_of({edge(0, device("ps:0"), device("worker:0"))});
  auto rendezvous = tasks["worker:0"].router->open(1, edges);
  Arrivals arrivals;
  arrivals.expect(*rendezvous, 0);
  ASSERT_TRUE(arrivals.wait(0));
  const std::string text = arrivals.all[0].status.message;
  EXPECT_THAT(text, HasSubstr("/job:ps/task:0 (" + tasks.spec.address(ps0) + ") is gone: "));
  const size_t at = text.find("last heard ");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_GE(std::stod(text.substr(at + 11)), 0.5) << text;
}

TEST(RendezvousRouter, RunsManyStepsAtOnce) {
  ConnectedTasks tasks({"ps:0", "worker:0"});
  tasks.start_all();
  tasks.wait_until_connected();
  std::vector<CutEdge> list;
  constexpr int64_t edge_count = 40, step_count = 50;
  for (int64_t i = 0; i < edge_count; ++i) {
    const bool down = i % 2 == 0;
    list.push_back(edge(i, device(down ? "ps:0" : "worker:0"), device(down ? "worker:0" : "ps:0")));
  }
  const Edges edges = edges_of(list);
  std::vector<Arrivals> arrivals(step_count);
  std::vector<std::shared_ptr<Rendezvous>> kept(step_count * 2);
  std::vector<std::thread> threads;
  for (const bool is_ps : {true, false}) {
    threads.emplace_back([&, is_ps] {
      ConnectedTask& task = tasks[is_ps ? "ps:0" : "worker:0"];
      for (int64_t step = 0; step < step_count; ++step) {
        auto rendezvous = kept[static_cast<size_t>(step * 2 + is_ps)] =
            task.router->open(step, edges);
        for (int64_t i = 0; i < edge_count; ++i) {
          if ((i % 2 == 0) == is_ps) {
            rendezvous->send(
                i, Tensor::of<float>({3}, {static_cast<float>(step), static_cast<float>(i), 7}),
                false);
          } else {
            arrivals[static_cast<size_t>(step)].expect(*rendezvous, i);
          }
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int64_t step = 0; step < step_count; ++step) {
    Arrivals& at = arrivals[static_cast<size_t>(step)];
    ASSERT_TRUE(eventually([&] { return at.count() == edge_count; }));
    for (auto& [id, one] : at.all) {
      ASSERT_TRUE(one.status.is_ok()) << one.status.message;
      EXPECT_EQ(one.value.span<float>()[0], static_cast<float>(step));
      EXPECT_EQ(one.value.span<float>()[1], static_cast<float>(id));
    }
  }
}

TEST(RendezvousRouter, ValuesMayArriveBeforeTheStep) {
  ConnectedTasks tasks({"ps:0", "worker:0"});
  tasks.start_all();
  tasks.wait_until_connected();
  const Edges edges = edges_of({edge(0, device("ps:0"), device("worker:0"))});
  auto ps = tasks["ps:0"].router->open(1, edges);
  const Tensor sent = Tensor(DType::f32, {300'000});
  ps->send(0, sent, false);
  tasks["ps:0"].router->close(1);  // its part has ended; what it sent still counts
  RendezvousRouter& router = *tasks["worker:0"].router;
  ASSERT_TRUE(eventually([&] { return router.parked_bytes() == sent.bytes(); }));
  auto worker = router.open(1, edges);
  EXPECT_EQ(router.parked_bytes(), 0u);
  Arrivals arrivals;
  arrivals.expect(*worker, 0);
  ASSERT_TRUE(arrivals.wait(0));
  EXPECT_EQ(arrivals.all[0].value.shape(), sent.shape());
}

TEST(RendezvousRouter, ValuesOfAStepThatNeverBeginsAreDropped) {
  MembershipOptions options;
  options.heartbeat = milliseconds(20);
  ConnectedTasks tasks({"ps:0", "worker:0"}, options,
                       {.executor = {}, .parking = milliseconds(100)});
  tasks.start_all();
  tasks.wait_until_connected();
  const Edges edges = edges_of({edge(0, device("ps:0"), device("worker:0"))});
  auto ps = tasks["ps:0"].router->open(1, edges);
  ps->send(0, Tensor::scalar(1.0f), false);
  RendezvousRouter& router = *tasks["worker:0"].router;
  ASSERT_TRUE(eventually([&] { return router.parked_bytes() > 0; }));
  ASSERT_TRUE(eventually([&] { return router.parked_bytes() == 0; }));
  Arrivals arrivals;
  auto worker = router.open(1, edges);
  arrivals.expect(*worker, 0);
  ASSERT_TRUE(arrivals.wait(0));
  EXPECT_EQ(arrivals.all[0].status.code, Code::deadline_exceeded);
}

// The sender may have ended its part long ago: nothing tells the receiver that the rest is useless,
// and what has arrived takes the whole window.
TEST(RendezvousRouter, UnbegunStepReturnsItsWindowInTime) {
  MembershipOptions options;
  options.heartbeat = milliseconds(20);
  options.window = 1 << 20;
  ConnectedTasks tasks({"ps:0", "worker:0"}, options,
                       {.executor = {}, .parking = milliseconds(100)});
  tasks.start_all();
  tasks.wait_until_connected();
  const Edges edges = edges_of({edge(0, device("ps:0"), device("worker:0"))});
  auto unbegun = tasks["ps:0"].router->open(1, edges);
  unbegun->send(0, Tensor(DType::f32, {1'000'000}), false);
  tasks["ps:0"].router->close(1);
  auto ps = tasks["ps:0"].router->open(2, edges);
  ps->send(0, Tensor::scalar(2.0f), false);
  RendezvousRouter& router = *tasks["worker:0"].router;
  auto worker = router.open(2, edges);
  Arrivals arrivals;
  arrivals.expect(*worker, 0);
  ASSERT_TRUE(arrivals.wait(0)) << "step 1 holds the window";
  EXPECT_EQ(arrivals.all[0].value.item<float>(), 2.0f);
  Arrivals late;
  auto first = router.open(1, edges);
  late.expect(*first, 0);
  ASSERT_EQ(late.count(), 1u);
  EXPECT_EQ(late.all[0].status.code, Code::deadline_exceeded);
  EXPECT_THAT(late.all[0].status.message, HasSubstr("its first bytes came from /job:ps/task:0"));
}

TEST(RendezvousRouter, LateValuesReviveNoStep) {
  ConnectedTasks tasks({"ps:0", "worker:0"});
  tasks.start_all();
  tasks.wait_until_connected();
  const Edges edges = edges_of(
      {edge(0, device("ps:0"), device("worker:0")), edge(1, device("ps:0"), device("worker:0"))});
  RendezvousRouter& router = *tasks["worker:0"].router;
  router.open(1, edges);
  router.close(1);
  auto ps = tasks["ps:0"].router->open(1, edges);
  ps->send(0, Tensor(DType::f32, {1'000'000}), false);
  // A value of another step, sent later, proves that the late value has arrived.
  auto next = router.open(2, edges);
  Arrivals arrivals;
  arrivals.expect(*next, 1);
  auto ps2 = tasks["ps:0"].router->open(2, edges);
  ps2->send(0, Tensor(DType::f32, {1'000'000}), false);
  arrivals.expect(*next, 0);
  ps2->send(1, Tensor::scalar(1.0f), false);
  ASSERT_TRUE(arrivals.wait(0) && arrivals.wait(1));
  EXPECT_EQ(router.parked_bytes(), 0u);
  EXPECT_EQ(router.open_steps(), 1u);
  try {
    router.open(1, edges);
    FAIL() << "a step began twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::already_exists);
  }
}

TEST(RendezvousRouter, AbortReachesAllTasksThatShareAnEdge) {
  ConnectedTasks tasks({"ps:0", "worker:0", "worker:1"});
  tasks.start_all();
  tasks.wait_until_connected();
  // worker:1 shares an edge with worker:0 only.
  const Edges edges = edges_of({edge(0, device("ps:0"), device("worker:0")),
                                edge(1, device("worker:0"), device("worker:1"))});
  Arrivals at_worker0, at_worker1;
  auto worker_0 = tasks["worker:0"].router->open(1, edges);
  auto worker_1 = tasks["worker:1"].router->open(1, edges);
  auto ps = tasks["ps:0"].router->open(1, edges);
  at_worker0.expect(*worker_0, 0);
  at_worker1.expect(*worker_1, 1);
  ps->abort({Code::invalid_argument, "the root cause [[{{node w0}}]]"});
  ASSERT_TRUE(at_worker0.wait(0) && at_worker1.wait(1));
  for (const Status& status : {at_worker0.all[0].status, at_worker1.all[1].status}) {
    EXPECT_EQ(status.code, Code::invalid_argument);
    EXPECT_EQ(status.message, "the root cause [[{{node w0}}]]");
    EXPECT_TRUE(status.derived);
  }
  ps->abort({Code::internal, "not the first"});
  Arrivals later;
  later.expect(*worker_0, 0);
  EXPECT_EQ(later.all.at(0).status.message, "the root cause [[{{node w0}}]]");
}

TEST(RendezvousRouter, AbortMayArriveBeforeTheStep) {
  ConnectedTasks tasks({"ps:0", "worker:0"});
  tasks.start_all();
  tasks.wait_until_connected();
  const Edges edges = edges_of({edge(0, device("ps:0"), device("worker:0"))});
  RendezvousRouter& router = *tasks["worker:0"].router;
  auto ps = tasks["ps:0"].router->open(1, edges);
  ps->send(0, Tensor::scalar(1.0f), false);
  ASSERT_TRUE(eventually([&] { return router.parked_bytes() > 0; }));
  ps->abort({Code::aborted, "given up"});
  ASSERT_TRUE(eventually([&] { return router.parked_bytes() == 0; }));
  Arrivals arrivals;
  auto worker = router.open(1, edges);
  arrivals.expect(*worker, 0);
  ASSERT_EQ(arrivals.count(), 1u);
  EXPECT_EQ(arrivals.all[0].status.message, "given up");
}

TEST(RendezvousRouter, LostTaskEndsTheStepsThatNeedIt) {
  ConnectedTasks tasks({"ps:0", "worker:0", "worker:1"});
  tasks.start_all();
  tasks.wait_until_connected();
  std::vector<CutEdge> list;
  for (int64_t i = 0; i < 5; ++i) list.push_back(edge(i, device("ps:0"), device("worker:0")));
  const Edges needs_ps = edges_of(list);
  const Edges needs_worker = edges_of({edge(0, device("worker:1"), device("worker:0"))});
  Arrivals first, second;
  auto with_ps = tasks["worker:0"].router->open(1, needs_ps);
  auto without = tasks["worker:0"].router->open(2, needs_worker);
  first.expect(*with_ps, 0);
  second.expect(*without, 0);
  auto ps = tasks["ps:0"].router->open(1, needs_ps);
  ps->send(3, Tensor::scalar(1.0f), false);
  Arrivals third;
  third.expect(*with_ps, 3);
  ASSERT_TRUE(third.wait(3));
  tasks.stop("ps:0", /*politely=*/false);
  ASSERT_TRUE(first.wait(0));
  const Status status = first.all[0].status;
  EXPECT_EQ(status.code, Code::unavailable);
  EXPECT_THAT(status.message,
              AllOf(HasSubstr("/job:ps/task:0 (" + tasks.spec.address(ps0) + ") is gone"),
                    HasSubstr("last heard 0."),
                    HasSubstr("; it owed edge_0_w0 (of node w0), edge_1_w1 (of node w1), edge_2_w2 "
                              "(of node w2) and 1 more")));
  EXPECT_EQ(second.count(), 0u);
  auto worker1_step = tasks["worker:1"].router->open(2, needs_worker);
  worker1_step->send(0, Tensor::scalar(5.0f), false);
  ASSERT_TRUE(second.wait(0));
  EXPECT_TRUE(second.all[0].status.is_ok());

  // A step that begins now fails at once.
  Arrivals later;
  auto rendezvous = tasks["worker:0"].router->open(3, needs_ps);
  later.expect(*rendezvous, 0);
  ASSERT_EQ(later.count(), 1u);
  EXPECT_EQ(later.all[0].status.code, Code::unavailable);
  EXPECT_THAT(later.all[0].status.message, HasSubstr("/job:ps/task:0"));
}

TEST(RendezvousRouter, NamesATaskThatNeverStarted) {
  ConnectedTasks tasks({"ps:0", "worker:0"});
  tasks.start("worker:0");
  Arrivals arrivals;
  auto step =
      tasks["worker:0"].router->open(1, edges_of({edge(0, device("ps:0"), device("worker:0"))}));
  arrivals.expect(*step, 0);
  ASSERT_EQ(arrivals.count(), 1u);
  EXPECT_EQ(arrivals.all[0].status.code, Code::unavailable);
  EXPECT_THAT(arrivals.all[0].status.message, HasSubstr("/job:ps/task:0"));
}

TEST(RendezvousRouter, WaitsForTasksThatStartLater) {
  ConnectedTasks tasks({"ps:0", "worker:0", "worker:1"});
  tasks.start("ps:0");
  tasks.start("worker:0");
  RendezvousRouter& router = *tasks["worker:0"].router;
  std::atomic<int> met{0};
  router.meet(edges_of({edge(0, device("ps:0"), device("worker:0")),
                        edge(1, device("worker:0"), device("worker:1"))}),
              [&] { ++met; });
  ASSERT_TRUE(eventually([&] { return tasks["worker:0"].membership->is_connected(ps0); }));
  EXPECT_EQ(met, 0);
  tasks.start("worker:1");
  ASSERT_TRUE(eventually([&] { return met == 1; }));
  tasks.stop("worker:1");
  const Edges known = edges_of({edge(1, device("worker:0"), device("worker:1"))});
  router.meet(known, [&] { ++met; });  // all tasks have been connected
  EXPECT_EQ(met, 2);
}

TEST(RendezvousRouter, WaitsForNoTaskLongerThanItsPatience) {
  MembershipOptions options;
  options.heartbeat = milliseconds(20);
  ConnectedTasks tasks({"ps:0", "worker:0"}, options, {.patience = milliseconds(100)});
  tasks.start("worker:0");
  RendezvousRouter& router = *tasks["worker:0"].router;
  const Edges edges = edges_of({edge(0, device("ps:0"), device("worker:0"))});
  std::atomic<bool> met{false};
  router.meet(edges, [&] { met = true; });
  ASSERT_TRUE(eventually([&] { return met.load(); }));
  Arrivals arrivals;
  auto step = router.open(1, edges);
  arrivals.expect(*step, 0);
  ASSERT_EQ(arrivals.count(), 1u);
  EXPECT_THAT(arrivals.all[0].status.message,
              HasSubstr("/job:ps/task:0 has not been connected to /job:worker/task:0"));
}

TEST(RendezvousRouter, RejectsEdgesOfOtherTasks) {
  ConnectedTasks tasks({"ps:0", "worker:0"});
  tasks.start_all();
  tasks.wait_until_connected();
  const Edges edges = edges_of({edge(0, device("ps:0"), device("worker:0"))});
  Arrivals arrivals;
  auto worker = tasks["worker:0"].router->open(1, edges);
  arrivals.expect(*worker, 17);
  ASSERT_EQ(arrivals.count(), 1u);
  EXPECT_EQ(arrivals.all[17].status.code, Code::internal);
  worker->send(0, Tensor::scalar(1.0f), false);  // this edge ends here
  arrivals.expect(*worker, 0);
  ASSERT_EQ(arrivals.count(), 2u);
  EXPECT_EQ(arrivals.all[0].status.code, Code::internal);
}

// Values arrive on the transport's thread, which is lent for what is quick.
TEST(RendezvousRouter, ExecutorRunsWhatAnAbortTriggers) {
  std::atomic<int> executed{0};
  ThreadPool pool(2);
  ConnectedTasks tasks({"ps:0", "worker:0"}, {}, {.executor = [&](std::function<void()> work) {
                         ++executed;
                         pool.schedule(std::move(work));
                       }});
  tasks.start_all();
  tasks.wait_until_connected();
  const Edges edges = edges_of(
      {edge(0, device("ps:0"), device("worker:0")), edge(1, device("ps:0"), device("worker:0"))});
  auto worker = tasks["worker:0"].router->open(1, edges);
  auto ps = tasks["ps:0"].router->open(1, edges);
  Arrivals arrivals;
  arrivals.expect(*worker, 0);
  arrivals.expect(*worker, 1);
  ps->send(0, Tensor::scalar(1.0f), false);
  ASSERT_TRUE(arrivals.wait(0));
  EXPECT_EQ(executed, 0);
  ps->abort({Code::aborted, "given up"});
  ASSERT_TRUE(arrivals.wait(1));
  EXPECT_EQ(executed, 1);
}

// Steps run while their connection breaks again and again: each ends, with its values or with an
// error that gives the reason.
TEST(RendezvousRouter, EveryStepEndsWhenConnectionsBreak) {
  Faults faults;
  MembershipOptions options;
  options.retry = milliseconds(5);
  options.wrap_stream = [&](const TaskName&, std::shared_ptr<RpcStream> stream) {
    return faults.wrap(std::move(stream));
  };
  ConnectedTasks tasks({"ps:0", "worker:0"}, options);
  tasks.start_all();
  tasks.wait_until_connected();
  const Edges edges = edges_of(
      {edge(0, device("ps:0"), device("worker:0")), edge(1, device("worker:0"), device("ps:0"))});
  int done = 0, failed = 0;
  for (int64_t step = 1; step <= 200; ++step) {
    Arrivals at_worker, at_ps;
    auto ps = tasks["ps:0"].router->open(step, edges);
    auto worker = tasks["worker:0"].router->open(step, edges);
    at_worker.expect(*worker, 0);
    at_ps.expect(*ps, 1);
    ps->send(0, Tensor(DType::f32, {200'000}), false);
    if (step % 10 == 0) faults.cut();
    worker->send(1, Tensor::scalar(1.0f), false);
    if (step % 10 == 0) {
      ps->abort({Code::aborted, "the other side may never know"});
      worker->abort({Code::aborted, "the other side may never know"});
    }
    ASSERT_TRUE(at_worker.wait(0) && at_ps.wait(1)) << "step " << step;
    (at_worker.all[0].status.is_ok() && at_ps.all[1].status.is_ok() ? done : failed)++;
    for (const char* name : {"ps:0", "worker:0"}) tasks[name].router->close(step);
    if (step % 10 == 0) tasks.wait_until_connected();
  }
  EXPECT_GE(done, 50);  // timing decides how many fail after a break
  EXPECT_EQ(done + failed, 200);
  EXPECT_EQ(tasks["ps:0"].router->open_steps(), 0u);
}

// What belongs together is received into one buffer, each value in its place, and once.
TEST(RendezvousRouter, ValuesAreReceivedIntoTheirPlaces) {
  ConnectedTasks tasks({"ps:0", "worker:0"});
  tasks.start_all();
  tasks.wait_until_connected();
  const auto with_place = [](CutEdge edge, size_t offset) {
    edge.shape = {100'000};
    edge.place = {.joint = 5, .offset = offset, .total = 1'000'000};
    return edge;
  };
  const DeviceName ps = device("ps:0"), worker = device("worker:0");
  const Edges edges =
      edges_of({with_place(edge(0, ps, worker), 400'000), with_place(edge(1, ps, worker), 0),
                with_place(edge(2, ps, worker), 0), edge(3, ps, worker)});
  const auto values = [](float value) {
    Tensor out(DType::f32, {100'000});
    std::fill_n(out.data<float>(), 100'000, value);
    return out;
  };
  Arrivals arrivals;
  const auto at_worker = tasks["worker:0"].router->open(1, edges);
  const auto at_ps = tasks["ps:0"].router->open(1, edges);
  for (int64_t i = 0; i < 4; ++i) arrivals.expect(*at_worker, i);
  at_ps->send(0, values(1), false);
  at_ps->send(1, values(2), false);
  at_ps->send(2, Tensor::of<float>({2}, {3, 4}), false);  // of another shape
  at_ps->send(3, values(5), false);
  for (int64_t i = 0; i < 4; ++i) ASSERT_TRUE(arrivals.wait(i));
  const auto& buffer = arrivals.all[0].value.buffer();
  EXPECT_EQ(buffer->joint(), 5);
  EXPECT_EQ(buffer->bytes(), 1'000'000u);
  EXPECT_EQ(arrivals.all[1].value.buffer(), buffer);
  EXPECT_EQ(arrivals.all[0].value.raw(), static_cast<char*>(buffer->data()) + 400'000);
  EXPECT_EQ(arrivals.all[1].value.raw(), buffer->data());
  for (const int64_t i : {2, 3}) EXPECT_EQ(arrivals.all[i].value.buffer()->joint(), 0) << i;
  EXPECT_EQ(arrivals.all[0].value.data<float>()[99'999], 1);
  EXPECT_EQ(arrivals.all[1].value.data<float>()[99'999], 2);

  RendezvousRouter& router = *tasks["worker:0"].router;
  const Shape shape = {100'000};
  EXPECT_FALSE(router.room_for(ps0, 1, 0, f32, shape).is_valid()) << "it has come";
  EXPECT_FALSE(router.room_for(ps0, 2, 0, f32, shape).is_valid()) << "no such step";
  tasks["worker:0"].router->open(3, edges);
  EXPECT_FALSE(router.room_for(worker1, 3, 0, f32, shape).is_valid()) << "of another task";
  EXPECT_FALSE(router.room_for(ps0, 3, 0, DType::i32, shape).is_valid());
  EXPECT_FALSE(router.room_for(ps0, 3, 0, f32, {50'000}).is_valid());
  EXPECT_FALSE(router.room_for(ps0, 3, 9, f32, shape).is_valid());
  const Tensor room = router.room_for(ps0, 3, 0, f32, shape);
  EXPECT_TRUE(room.is_valid());
  EXPECT_NE(room.buffer(), buffer) << "every step has its own";
  EXPECT_FALSE(router.room_for(ps0, 3, 0, f32, shape).is_valid()) << "a second time";
}

}  // namespace
}  // namespace leat
