// Calls over the channel between two tasks, and steps that go this way between a client, its master
// and the workers.
#include "distributed/wire/channel_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <numeric>

#include "distributed/cluster_session.h"
#include "distributed/grpc/rpc_client.h"
#include "distributed/master/master.h"
#include "graph/ops.h"
#include "tests/support/connected_tasks.h"
#include "tests/support/counter_graph.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/gate.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/tcp_proxy.h"

namespace leat {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr const char* ps = "/job:ps/task:0";

struct Outcome {
  RpcStatus status;
  std::string answer;
};

enum class Way { network, shared_memory };

// ps:0 and worker:0, connected; `handle` serves what the worker calls on the ps.
struct Caller {
  ConnectedTasks tasks{{"ps:0", "worker:0"}};
  std::shared_ptr<Channel> channel;  // the worker's

  Caller(Way way, CallHandlers handlers) {
    tasks.spec.set_shares_memory(way == Way::shared_memory);
    tasks["ps:0"].membership->serve_calls(std::move(handlers));
    tasks.start_all();
    tasks.wait_until_connected();
    channel = tasks["worker:0"].membership->channel({"ps", 0});
  }
  // Nullopt if it does not go over the channel.
  std::optional<std::future<Outcome>> start(const std::string& method, std::string request,
                                            RpcCallOptions options = {}) {
    const auto outcome = std::make_shared<std::promise<Outcome>>();
    if (!channel->call(method, to_slices(std::move(request)), options,
                       [outcome](const RpcStatus& status, const Bytes& answer) {
                         outcome->set_value({status, answer.to_string()});
                       }))
      return std::nullopt;
    return outcome->get_future();
  }
  Outcome call(const std::string& method, std::string request, RpcCallOptions options = {}) {
    auto outcome = start(method, std::move(request), options);
    if (!outcome || outcome->wait_for(seconds(20)) != std::future_status::ready) {
      ADD_FAILURE() << method << " got no answer";
      return {};
    }
    return outcome->get();
  }
};

class ChannelCall : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(, ChannelCall, testing::Values(Way::network, Way::shared_memory),
                         [](const auto& info) {
                           return info.param == Way::network ? "Network" : "SharedMemory";
                         });

TEST_P(ChannelCall, BringsTheRequestAndTheAnswer) {
  Caller caller(GetParam(), {.handle = [](RpcCall call) {
                  call.reply(call.method() + ":" + call.request().to_string());
                }});
  for (const size_t size : {0, 1, 2'000, 5'000, 200'000}) {
    const std::string request(size, 'x');
    const Outcome outcome = caller.call("/a/b", request);
    EXPECT_TRUE(outcome.status.is_ok()) << outcome.status.message;
    EXPECT_EQ(outcome.answer, "/a/b:" + request);
  }
  // Answers come to their calls, in whatever order.
  std::vector<std::future<Outcome>> outcomes;
  for (int i = 0; i < 100; ++i) outcomes.push_back(*caller.start("/n", std::to_string(i)));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(outcomes[i].get().answer, concat("/n:", i));
}

TEST_P(ChannelCall, LargeRequestsDoNotGoThisWay) {
  std::atomic<int> calls{0};
  Caller caller(GetParam(), {.handle = [&](RpcCall call) {
                  ++calls;
                  call.reply("");
                }});
  EXPECT_FALSE(caller.start("/m", std::string(ChannelCalls::largest, 'x')));
  EXPECT_TRUE(caller.call("/m", std::string(ChannelCalls::largest - 2, 'x')).status.is_ok());
  EXPECT_EQ(calls, 1);
}

TEST_P(ChannelCall, LargeAnswersWaitAtTheServer) {
  std::string large(ChannelCalls::largest + 1, 'x');
  std::iota(large.begin(), large.end(), char{0});
  CallHandlers handlers{.handle = [&](RpcCall call) { call.reply(large); }};
  {
    Caller without(GetParam(), handlers);
    const Outcome outcome = without.call("/m", "");
    EXPECT_EQ(outcome.status.code, static_cast<int>(Code::resource_exhausted));
    EXPECT_THAT(outcome.status.message, HasSubstr("a frame holds at most 262144"));
  }
  RpcServer server;
  handlers.keep = server.keeper();
  RpcClient client("127.0.0.1:" + std::to_string(server.start("127.0.0.1:0")));
  Caller caller(GetParam(), handlers);
  const Outcome outcome = caller.call("/m", "");
  ASSERT_TRUE(RpcClient::is_kept(outcome.status));
  std::promise<Outcome> taken;
  client.take(outcome.status, {}, [&](const RpcStatus& status, const Bytes& answer) {
    taken.set_value({status, answer.to_string()});
  });
  const Outcome all = taken.get_future().get();
  EXPECT_TRUE(all.status.is_ok()) << all.status.message;
  EXPECT_TRUE(all.answer == large);
  EXPECT_TRUE(client.close());
}

TEST_P(ChannelCall, BringsErrors) {
  Caller caller(GetParam(), {.handle = [](RpcCall call) {
                  if (call.method() == "/fails") {
                    call.fail({static_cast<int>(Code::out_of_range), "too far", {}, "details"});
                    call.reply("too late");
                  } else if (call.method() == "/throws") {
                    throw std::runtime_error("thrown");
                  }
                }});
  const RpcStatus failed = caller.call("/fails", "").status;
  EXPECT_EQ(failed.code, static_cast<int>(Code::out_of_range));
  EXPECT_EQ(failed.message, "too far");
  EXPECT_EQ(failed.details, "details");
  const RpcStatus thrown = caller.call("/throws", "").status;
  EXPECT_EQ(thrown.code, static_cast<int>(Code::internal));
  EXPECT_EQ(thrown.message, "thrown");
  EXPECT_EQ(caller.call("/silent", "").status.message, "the server gave no answer");
  Caller nobody(GetParam(), {});
  EXPECT_EQ(nobody.call("/m", "").status.code, static_cast<int>(Code::unimplemented));
}

TEST_P(ChannelCall, BringsTheDeadline) {
  std::mutex mutex;
  std::optional<std::chrono::steady_clock::time_point> received;
  Caller caller(GetParam(), {.handle = [&](RpcCall call) {
                  {
                    std::lock_guard lock(mutex);
                    received = call.deadline();
                  }
                  call.reply("");
                }});
  const auto deadline_of_call = [&](RpcCallOptions options) {
    caller.call("/m", "", options);
    std::lock_guard lock(mutex);
    return received;
  };
  EXPECT_FALSE(deadline_of_call({}));
  const auto until = std::chrono::steady_clock::now() + seconds(100);
  const auto deadline = deadline_of_call({until});
  ASSERT_TRUE(deadline);
  EXPECT_LT(*deadline - until, seconds(50));
  EXPECT_GT(*deadline - until, -seconds(1));
  EXPECT_FALSE(caller.start("/m", "", {std::chrono::steady_clock::now()})) << "it has passed";
}

TEST_P(ChannelCall, EndsWithTheChannelOnBothSides) {
  std::mutex mutex;
  std::optional<RpcCall> kept;
  std::atomic<bool> is_cancelled{false};
  Caller caller(GetParam(), {.handle = [&](RpcCall call) {
                  call.on_cancel([&] { is_cancelled = true; });
                  std::lock_guard lock(mutex);
                  kept = call;
                }});
  auto outcome = caller.start("/m", "");
  ASSERT_TRUE(outcome && eventually([&] {
                std::lock_guard lock(mutex);
                return kept.has_value();
              }));
  caller.channel->cut({Code::unavailable, "cut by the test"});
  ASSERT_EQ(outcome->wait_for(seconds(20)), std::future_status::ready);
  const RpcStatus status = outcome->get().status;
  EXPECT_EQ(status.code, static_cast<int>(Code::unavailable));
  EXPECT_EQ(status.cause, RpcCause::lost);
  EXPECT_THAT(status.message, HasSubstr("cut by the test"));
  EXPECT_TRUE(eventually([&] { return is_cancelled.load(); }));
  EXPECT_FALSE(caller.start("/m", "")) << "the next one goes another way";
  kept->reply("to nobody");
}

// ---- Steps ----

// The counter on the ps, a client that dials the worker through a relay, and a worker that dials
// the ps through one: what goes through memory passes neither.
class StepWay : public testing::TestWithParam<Way> {
 protected:
  StepWay()
      : cluster_({{"ps", 1}, {"worker", 1}}, InProcessCluster::default_options(),
                 [this](const TaskName& viewer, const ClusterSpec& cluster) {
                   ClusterSpec view = cluster;
                   view.set_shares_memory(GetParam() == Way::shared_memory);
                   if (viewer.job == "ps") return view;
                   if (to_ps_ == nullptr)
                     to_ps_ = std::make_unique<TcpProxy>(cluster.address({"ps", 0}));
                   view.set_address({"ps", 0}, to_ps_->address());
                   return view;
                 }),
        to_master_(cluster_.task("worker").address()) {
    Output w;
    {
      const DeviceScope on(graph_, ps);
      w = add_counter(graph_);
      const Output x = placeholder(graph_, "x", f32, {any});
      graph_.add({.op = "Neg", .name = "minus", .inputs = {x}});
    }
    session_ = make_grpc_session({.target = "grpc://" + to_master_.address()});
    session_->extend(graph_);
    session_->run({}, {}, {"init"});
  }
  // The bytes that have passed a relay.
  static int64_t passed(const TcpProxy& proxy) { return proxy.bytes(true) + proxy.bytes(false); }

  std::unique_ptr<TcpProxy> to_ps_;
  InProcessCluster cluster_;
  TcpProxy to_master_;
  Graph graph_;
  std::unique_ptr<SessionInterface> session_;
};
INSTANTIATE_TEST_SUITE_P(, StepWay, testing::Values(Way::network, Way::shared_memory),
                         [](const auto& info) {
                           return info.param == Way::network ? "Network" : "SharedMemory";
                         });

TEST_P(StepWay, StepsGoThroughMemoryIfTheyMay) {
  constexpr int steps = 50;
  int64_t client = 0, worker = 0;
  int rounds = 0;
  const auto measure = [&] {
    client = -passed(to_master_), worker = -passed(*to_ps_);
    for (int i = 0; i < steps; ++i) session_->run({}, {}, {"add"});
    client += passed(to_master_), worker += passed(*to_ps_);
    ++rounds;
  };
  if (GetParam() == Way::network) {
    measure();
    EXPECT_GT(client, steps * 50);
    EXPECT_GT(worker, steps * 50);
  } else {  // once the client's channel is there
    EXPECT_TRUE(eventually([&] {
      measure();
      return client < steps * 20 && worker < steps * 20;
    })) << client
        << " bytes from and to the client, " << worker << " to the ps";
  }
  EXPECT_EQ(session_->run({}, {"w:0"}, {})[0].data<float>()[0], static_cast<float>(rounds * steps));
}

TEST_P(StepWay, LargeFeedsAndFetchesArrive) {
  for (const int64_t elements : {int64_t{10}, int64_t{60'000}, int64_t{70'000}, int64_t{3} << 20}) {
    Tensor x(f32, {elements});
    std::iota(x.data<float>(), x.data<float>() + elements, 1.0f);
    for (int i = 0; i < 3; ++i) {
      const Tensor y = session_->run({{"x:0", x}}, {"minus:0"}, {})[0];
      ASSERT_EQ(y.shape(), x.shape());
      for (const int64_t at : {int64_t{0}, elements / 2, elements - 1})
        ASSERT_EQ(y.data<float>()[at], -x.data<float>()[at]);
    }
  }
}

TEST_P(StepWay, ErrorsAreTheSame) {
  for (int i = 0; i < 20; ++i) {
    const Status status = error_of([&] {
      session_->run({{"x:0", Tensor::scalar<float>(1)}}, {"nobody:0"}, {});
    });
    EXPECT_EQ(code_name(status.code), code_name(Code::not_found));
    EXPECT_THAT(status.message, HasSubstr("nobody"));
  }
}

TEST_P(StepWay, ClosedSessionEndsItsSteps) {
  {
    const DeviceScope on(graph_, ps);
    gate(constant(graph_, Tensor::of<float>({2}, {1, 2})), "way");
  }
  session_->extend(graph_);
  auto outcome = std::async(
      std::launch::async, [&] { return error_of([&] { session_->run({}, {"TestGate:0"}, {}); }); });
  ASSERT_TRUE(wait_at_gate("way"));
  session_->close();
  EXPECT_EQ(code_name(outcome.get().code), code_name(Code::cancelled));
  open_gate("way");
}

TEST_P(StepWay, RunStepsNamesTheStepThatFailed) {
  const auto callable = session_->make_callable({{"x:0"}, {"minus:0"}, {"add"}});
  std::vector<int64_t> results;
  const Status status = error_of([&] {
    session_->run_steps(
        callable, 20,
        [](int64_t step, std::vector<Tensor>& feeds) {
          feeds.push_back(step == 7 ? Tensor::scalar<int32_t>(1) : Tensor::of<float>({1}, {1}));
        },
        [&](int64_t step, std::vector<Tensor>&) { results.push_back(step); }, 4);
  });
  EXPECT_EQ(code_name(status.code), code_name(Code::invalid_argument));
  EXPECT_THAT(status.message, testing::StartsWith("step 7: "));
  EXPECT_EQ(results, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(eventually([&] { return cluster_.task("worker").master().running_steps() == 0; }));
}

}  // namespace
}  // namespace leat
