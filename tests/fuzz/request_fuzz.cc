// Requests of clients (RunStep and its kin) and of masters, over the wire, at a task that has a
// session: whatever they contain, another client's step must still return its value. The first byte
// selects the method; the text SESSION-HANDLE-0 of a seed is replaced by the session's handle.
#include <chrono>

#include "distributed/grpc/rpc_client.h"
#include "distributed/master/master.h"
#include "distributed/session_factory.h"
#include "distributed/task.h"
#include "distributed/worker/worker.h"
#include "distributed/worker/worker_wire.h"
#include "graph/import/graph_def.h"
#include "graph/ops.h"
#include "tests/fuzz/target.h"
#include "tests/support/wire.h"

namespace leat::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view handle_in_seeds = "SESSION-HANDLE-0";

const char* const methods[] = {
    "/tensorflow.MasterService/RunStep",
    "/tensorflow.MasterService/ExtendSession",
    "/tensorflow.MasterService/MakeCallable",
    "/tensorflow.MasterService/RunCallable",
    "/tensorflow.MasterService/ReleaseCallable",
    "/tensorflow.MasterService/CreateSession",
    "/tensorflow.MasterService/ListDevices",
    "/tensorflow.MasterService/PartialRunSetup",
    "/leat.Worker/RunGraph",
    "/leat.Worker/RegisterGraph",
    "/leat.Worker/AbortStep",
    "/leat.Worker/DeregisterGraph",
    "/leat.Worker/GetStatus",
    "/leat.Worker/GetActivity",
    "/leat.Cluster/View",
    "/leat.Channel/Identify",
};

constexpr size_t create_session = 5, register_graph = 9;

Graph model() {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any});
  graph.add({.op = "AddV2", .name = "y", .inputs = {x, constant(graph, Tensor::scalar(1.0f))}});
  return graph;
}

struct Server {
  Server() {
    ClusterSpec spec;
    spec.add({"worker", 0}, "127.0.0.1:0");
    task = std::make_unique<Task>(spec, TaskName{"worker", 0}, TaskOptions{.threads = 2});
    spec.set_address({"worker", 0}, task->address());
    task->start(spec);
    SessionOptions options;
    options.target = task->target();
    session = new_session(options);
    session->extend(graph);
    client = std::make_unique<RpcClient>(task->address());
    using namespace wire_format;
    const std::string created = call(methods[create_session], text(1, to_graph_def(graph)));
    handle = fields(created).find(1)->second;
  }
  std::string call(const std::string& method, const std::string& request) {
    const auto [status, reply] = client->call_and_wait(
        method, request, {.deadline = Clock::now() + std::chrono::seconds(5)});
    return status.is_ok() ? reply : "";
  }
  void expect_answers() const {
    const Tensor got = session->run({{"x:0", Tensor::of<float>({2}, {1, 2})}}, {"y:0"}, {})[0];
    check_internal(got.to_string() == "float[2] [2, 3]", "another client got ", got.to_string());
  }

  Graph graph = model();
  std::unique_ptr<Task> task;
  std::unique_ptr<SessionInterface> session;
  std::unique_ptr<RpcClient> client;
  std::string handle;
};

Server& server() {
  static Server* one = new Server;  // its threads live as long as the process
  return *one;
}

}  // namespace

std::vector<std::string> seeds() {
  using namespace wire_format;
  const std::string handle = text(1, handle_in_seeds);
  const std::string tensor = to_tensor_proto(Tensor::of<float>({2}, {1, 2}));
  const std::string feed = text(1, "x:0") + text(2, tensor);
  const auto seed = [](size_t method, std::string body) {
    return static_cast<char>(method) + std::move(body);
  };
  std::vector<std::string> out = {
      seed(0, handle + text(2, feed) + text(3, "y:0") + text(4, "y") + number(7, 1) + number(8, 3)),
      seed(0, handle + text(2, feed) + text(3, "y:0") +
                  text(5, number(1, 3) + number(2, 500) + number(5, 1))),
      seed(1, handle + text(2, to_graph_def(model())) + number(3, 0)),
      seed(2, handle + text(2, text(1, "x:0") + text(2, "y:0")) + number(3, 7)),
      seed(3, handle + number(2, 1) + text(3, tensor)),
      seed(4, handle + number(2, 1)),
      seed(5, text(1, to_graph_def(model())) + text(2, number(7, 1) + text(4, "/job:worker"))),
      seed(6, handle),
      seed(7, handle + text(2, "x:0") + text(3, "y:0") + number(5, 5)),
      seed(0, handle + text(2, feed) + text(3, "y:0") + text(6, "1")),
      seed(12, ""),
      seed(13, ""),
      seed(14, ""),
      seed(15, ""),
  };
  const auto framed = [&](size_t method, const Slices& slices) {
    std::string body;
    for (const ByteSlice& slice : slices)
      body.append(static_cast<const char*>(slice.data), slice.size);
    out.push_back(seed(method, body));
  };
  RunGraph run;
  run.request_id = 1;
  run.session = std::string(handle_in_seeds);
  run.graph = 2;
  run.step = 3;
  run.feeds = {{"x:0", Tensor::of<float>({2}, {1, 2})},
               {"s:0", Tensor::of<std::string>({2}, {"a", "bcd"})}};
  framed(8, wire::encode_run_graph(run));
  RegisterGraph registration;
  registration.session = "another";
  registration.master = {"worker", 0};
  registration.partitions.emplace("/job:worker/replica:0/task:0/device:CPU:0", model());
  framed(9, wire::encode_register_graph(registration));
  framed(10, wire::encode_abort_step({3, {Code::cancelled, "enough"}}));
  framed(11, wire::encode_deregister_graph({"another", 1}));
  return out;
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leat;
  if (size == 0 || size > 65536) return 0;
  fuzz::Server& server = fuzz::server();
  std::string body(fuzz::text_of(data + 1, size - 1));
  if (const size_t at = body.find(fuzz::handle_in_seeds); at != std::string::npos)
    body.replace(at, fuzz::handle_in_seeds.size(), server.handle);
  const size_t method = data[0] % std::size(fuzz::methods);
  const std::string reply = server.call(fuzz::methods[method], body);
  // Removes what the input has made.
  if (method == fuzz::create_session && !reply.empty()) {
    const auto created = wire_format::fields(reply);
    server.call("/tensorflow.MasterService/CloseSession",
                wire_format::text(1, created.find(1)->second));
  }
  if (method == fuzz::register_graph)
    server.task->worker().master_connected({"worker", 0}, server.task->incarnation());
  static int runs = 0;
  if (++runs % 16 == 0) fuzz::expect_no_mistake_of_ours([&] { server.expect_answers(); });
  return 0;
}
