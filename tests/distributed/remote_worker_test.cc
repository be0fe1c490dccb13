// What a caller receives from another task's worker, and what that worker keeps.
#include "distributed/worker/remote_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "core/device.h"
#include "core/execution/thread_pool.h"
#include "core/execution/work_source.h"
#include "distributed/grpc/rpc_client.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/worker/worker.h"
#include "distributed/worker/worker_service.h"
#include "distributed/worker/worker_wire.h"
#include "runtime/local_rendezvous.h"
#include "tests/support/eventually.h"

namespace leat {
namespace {

using testing::HasSubstr;
using testing::Not;

WorkerOptions options_of_ps(Device& device, ThreadPool& pool) {
  WorkerOptions options;
  options.task = {"ps", 0};
  options.incarnation = 7;
  options.devices = {&device};
  options.pool = &pool;
  return options;
}

// A stopping server answers its open calls without naming itself.
TEST(RemoteWorker, NamesItsTaskWhenTheTaskStops) {
  RpcServer server;
  std::atomic<int> calls{0};
  std::shared_ptr<RpcCall> kept;
  server.handle(worker_service, [&](RpcCall call) {
    kept = std::make_shared<RpcCall>(std::move(call));
    ++calls;
  });
  const std::string address = "127.0.0.1:" + std::to_string(server.start("127.0.0.1:0"));
  RemoteWorker worker({"ps", 0}, std::make_shared<RpcClient>(address));
  std::promise<Status> answer;
  worker.status(std::chrono::steady_clock::now() + std::chrono::seconds(20),
                [&](const Status& status, const WorkerStatus&) { answer.set_value(status); });
  ASSERT_TRUE(eventually([&] { return calls == 1; }));
  server.stop();
  const Status status = answer.get_future().get();
  EXPECT_EQ(code_name(status.code), code_name(Code::unavailable));
  const std::string label = "/job:ps/task:0 (" + address + ")";
  EXPECT_THAT(status.message, HasSubstr(label));
  EXPECT_THAT(status.message.substr(label.size()), Not(HasSubstr(address)));
}

// TensorFlow's client looks for these words; the rest says what to do.
TEST(Worker, RequestForItsFormerProcessIsAborted) {
  ThreadPool pool(1);
  const auto device = make_cpu_device(DeviceName::parse("/job:ps/task:0/device:CPU:0"), pool);
  Worker worker(options_of_ps(*device, pool));
  RegisterGraph request;
  request.request_id = 1;
  request.session = "session";
  request.master = {"worker", 0};
  request.worker_incarnation = 6;
  std::promise<Status> answer;
  worker.register_graph(std::move(request), std::nullopt,
                        [&](const Status& status, uint64_t) { answer.set_value(status); });
  const Status status = answer.get_future().get();
  EXPECT_EQ(code_name(status.code), code_name(Code::aborted));
  EXPECT_THAT(status.message, HasSubstr("expects a different device incarnation: 6 vs. 7"));
  EXPECT_THAT(status.message, HasSubstr("initialise or restore them"));
  pool.wait_until_idle();
}

// A request that a master's process sent just before it was killed may arrive after the next one's.
TEST(Worker, RejectsAReplacedMasterAndKeepsTheNewSessions) {
  ThreadPool pool(1);
  const auto device = make_cpu_device(DeviceName::parse("/job:ps/task:0/device:CPU:0"), pool);
  Worker worker(options_of_ps(*device, pool));
  const TaskName master{"worker", 0};
  uint64_t next = 1;
  const auto ask = [&](uint64_t incarnation, const char* session) {
    RegisterGraph request;
    request.request_id = next++;
    request.session = session;
    request.master = master;
    request.master_incarnation = incarnation;
    std::promise<Status> answer;
    worker.register_graph(std::move(request), std::nullopt,
                          [&](const Status& status, uint64_t) { answer.set_value(status); });
    return answer.get_future().get();
  };
  const auto sessions = [&] { return worker.current_status().sessions; };
  worker.master_connected(master, 100);
  EXPECT_TRUE(ask(100, "old").is_ok());
  EXPECT_TRUE(ask(200, "new").is_ok());  // which membership has not met yet
  EXPECT_EQ(sessions(), 2)
      << "whoever says that it is the master's next process ended its sessions";
  worker.master_connected(master, 200);
  EXPECT_EQ(sessions(), 1);
  const Status late = ask(100, "old");
  EXPECT_EQ(code_name(late.code), code_name(Code::aborted));
  EXPECT_THAT(late.message, HasSubstr("/job:worker/task:0 has restarted"));
  EXPECT_EQ(sessions(), 1);
  EXPECT_TRUE(ask(200, "new").is_ok());
  pool.wait_until_idle();
}

// The session, or the task, may close while the step opens its rendezvous.
TEST(Worker, StepDoesNotRunIfItsSessionClosesMeanwhile) {
  ThreadPool pool(1);
  const auto device = make_cpu_device(DeviceName::parse("/job:ps/task:0/device:CPU:0"), pool);
  std::shared_ptr<Worker> worker;
  int closed = 0;
  WorkerOptions options = options_of_ps(*device, pool);
  options.exchange.open = [&](int64_t, const auto&) {
    worker->cleanup_session("session");
    return std::make_shared<LocalRendezvous>(1);
  };
  options.exchange.close = [&](int64_t step) { closed += step == 3 ? 1 : 0; };
  worker = std::make_shared<Worker>(std::move(options));
  RegisterGraph graph;
  graph.request_id = 1;
  graph.session = "session";
  graph.master = {"worker", 0};
  const DeviceName& name = device->name();
  graph.edges = {{.tensor_name = "edge_0_x", .source = name, .destination = name}};
  const AttrMap attrs = {{"tensor_name", graph.edges[0].tensor_name},
                         {"edge", int64_t{0}},
                         {"send_device", name.to_string()},
                         {"recv_device", name.to_string()}};
  AttrMap sends = attrs, receives = attrs;
  sends.emplace("T", std::vector<DType>{});
  receives.emplace("tensor_type", std::vector<DType>{});
  Graph partition;
  partition.insert({.op = "_Send", .name = "send", .attrs = sends}, name);
  partition.insert({.op = "_Recv", .name = "recv", .attrs = receives}, name);
  graph.partitions.emplace(name.to_string(), std::move(partition));
  worker->register_graph(std::move(graph), std::nullopt, [](const Status& status, uint64_t) {
    EXPECT_TRUE(status.is_ok()) << status.message;
  });
  RunGraph run;
  run.request_id = 2;
  run.session = "session";
  run.graph = 1;
  run.step = 3;
  Status answer;
  worker->run_graph(std::move(run), std::nullopt,
                    [&](const Status& status, const RunGraphResult&) { answer = status; });
  EXPECT_EQ(code_name(answer.code), code_name(Code::aborted));
  EXPECT_THAT(answer.message, HasSubstr("Session handle is not found: session"));
  EXPECT_EQ(closed, 1);
  EXPECT_EQ(worker->current_status().running_steps, 0);
  pool.wait_until_idle();
}

// The task is stuck until long after the master has given up.
TEST(RemoteWorker, DropsGraphsThatNobodyWaitsFor) {
  // One thread that works off the queue, and all the threads that the pool starts beside it while
  // it is stuck.
  ThreadPool pool(2);
  std::promise<void> release;
  const std::shared_future<void> go_on = release.get_future().share();
  std::atomic<int> stuck{0};
  {
    const WorkSource::Scope source(WorkSource::requests);
    for (int i = 0; i < 100; ++i) {
      pool.schedule([&] {
        ++stuck;
        go_on.wait();
      });
    }
  }
  ASSERT_TRUE(eventually([&] { return stuck == 65; }));
  const auto device = make_cpu_device(DeviceName::parse("/job:ps/task:0/device:CPU:0"), pool);
  const auto worker = std::make_shared<Worker>(options_of_ps(*device, pool));
  RpcServer server;
  serve_worker(server, worker);
  const std::string address = "127.0.0.1:" + std::to_string(server.start("127.0.0.1:0"));
  RemoteWorker remote({"ps", 0}, std::make_shared<RpcClient>(address));
  const auto request = [](uint64_t id) {
    RegisterGraph out;
    out.request_id = id;
    out.session = "late";
    out.master = {"worker", 0};
    return out;
  };
  std::promise<Status> answer;
  remote.register_graph(request(5),
                        std::chrono::steady_clock::now() + std::chrono::milliseconds(200),
                        [&](const Status& status, uint64_t) { answer.set_value(status); });
  EXPECT_EQ(code_name(answer.get_future().get().code), code_name(Code::deadline_exceeded));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the server learns of it, too
  release.set_value();
  pool.wait_until_idle();
  EXPECT_EQ(worker->current_status().graphs, 0);
  EXPECT_EQ(worker->current_status().sessions, 0);

  // A request that only lost its answer is found by its id.
  std::promise<Status> registered;
  remote.register_graph(request(6), std::nullopt,
                        [&](const Status& status, uint64_t) { registered.set_value(status); });
  const Status status = registered.get_future().get();
  EXPECT_TRUE(status.is_ok()) << status.message;
  EXPECT_EQ(worker->current_status().graphs, 1);
  remote.deregister_graph("late", 6);
  EXPECT_TRUE(eventually([&] { return worker->current_status().graphs == 0; }));
  server.stop();
}

}  // namespace
}  // namespace leat
