// What a caller hears of another task's worker.
#include "distributed/remote_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "distributed/grpc/rpc_client.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/worker_wire.h"
#include "tests/support/eventually.h"

namespace leat {
namespace {

using testing::HasSubstr;
using testing::Not;

// A server that stops answers for the calls that it has, with no word of who it was.
TEST(RemoteWorker, NamesItsTaskWhenThatStops) {
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

}  // namespace
}  // namespace leat
