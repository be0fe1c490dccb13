// A peer that speaks our protocols and lies: the tests register graphs with a task by hand, over
// the wire, without a master that has verified them. Each lie is INVALID_ARGUMENT and names the
// edge, and no kernel sees a value that contradicts its edge.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>

#include "distributed/grpc/rpc_client.h"
#include "distributed/wire/frame.h"
#include "distributed/wire/incoming_tensor.h"
#include "distributed/worker/remote_worker.h"
#include "distributed/worker/worker_wire.h"
#include "graph/import/graph_def.h"
#include "graph/ops.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

using testing::HasSubstr;

const DeviceName on_ps = DeviceName::parse("/job:ps/replica:0/task:0/device:CPU:0");
const DeviceName on_worker = DeviceName::parse("/job:worker/replica:0/task:0/device:CPU:0");

CutEdge edge(int64_t id, DType dtype, Shape shape, const DeviceName& source = on_ps,
             const DeviceName& destination = on_ps) {
  CutEdge out;
  out.id = id;
  out.tensor_name = concat("edge_", id, "_x");
  out.source = source;
  out.destination = destination;
  out.dtype = dtype;
  out.shape = std::move(shape);
  out.producer = "x";
  return out;
}

AttrMap attrs_of(const CutEdge& edge) {
  return {{"edge", edge.id},
          {"tensor_name", edge.tensor_name},
          {"send_device", edge.source.to_string()},
          {"recv_device", edge.destination.to_string()},
          {"wave", int64_t{edge.wave}}};
}

Output feed(Graph& graph, const DeviceName& device, DType dtype, const Shape& shape) {
  return graph
      .insert({.op = "_Feed",
               .name = "x",
               .attrs = {{"dtype", dtype}, {"shape", shape}, {"name", "x:0"}}},
              device)
      .output();
}

Node& send(Graph& graph, const CutEdge& edge, std::vector<Output> values,
           const std::string& name = "send") {
  return graph.insert(
      {.op = "_Send", .name = name, .inputs = std::move(values), .attrs = attrs_of(edge)},
      edge.source);
}

// Sends nothing, after a node has run.
Node& signal(Graph& graph, const CutEdge& edge, Output after) {
  return graph.insert({.op = "_Send",
                       .name = "send",
                       .attrs =
                           [&] {
                             AttrMap attrs = attrs_of(edge);
                             attrs.emplace("T", std::vector<DType>{});
                             return attrs;
                           }(),
                       .control_inputs = {after.node}},
                      edge.source);
}

Node& recv(Graph& graph, const CutEdge& edge, std::vector<DType> dtypes, const Shape& shape,
           const std::string& name = "recv") {
  AttrMap attrs = attrs_of(edge);
  attrs.emplace("tensor_type", std::move(dtypes));
  attrs.emplace("shape", shape);
  return graph.insert({.op = "_Recv", .name = name, .attrs = std::move(attrs)}, edge.destination);
}

void negate(Graph& graph, Node& value, const DeviceName& device) {
  graph.insert({.op = "Neg", .name = "y", .inputs = {value.output()}}, device);
}

// A task's worker, called over the wire.
class Peer {
 public:
  Peer(const TaskName& task, const std::string& address)
      : worker_(task, std::make_shared<RpcClient>(address)) {}

  Status register_graph(RegisterGraph graph) {
    graph.request_id = ++next_;
    std::promise<Status> out;
    worker_.register_graph(std::move(graph), deadline(),
                           [&](const Status& status, uint64_t) { out.set_value(status); });
    return out.get_future().get();
  }
  uint64_t last() const { return next_; }

  std::future<RunGraphResult> begin(const std::string& session, uint64_t graph, int64_t step,
                                    NamedTensors feeds) {
    RunGraph run;
    run.request_id = 1000 + ++next_;
    run.session = session;
    run.graph = graph;
    run.step = step;
    run.feeds = std::move(feeds);
    const auto out = std::make_shared<std::promise<RunGraphResult>>();
    worker_.run_graph(std::move(run), deadline(), [out](const Status& call, RunGraphResult result) {
      if (!call.is_ok()) result.status = call;
      out->set_value(std::move(result));
    });
    return out->get_future();
  }

 private:
  static std::chrono::steady_clock::time_point deadline() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(20);
  }
  RemoteWorker worker_;
  static inline uint64_t next_ = 0;  // shared: a request id is never used twice
};

class Lies : public testing::Test {
 protected:
  // On the ps: x is fed, crosses edge 0 to another partition of the device, is negated and fetched.
  struct Pieces {
    CutEdge listed = edge(0, DType::f64, {4});  // as the list of edges has it
    CutEdge sent = listed, received = listed;   // as _Send and _Recv have it
    DType fed = DType::f64;
    Shape fed_shape = {4};
    std::vector<DType> received_dtypes = {DType::f64};
    Shape received_shape = {4};
  };
  static RegisterGraph graph_of(const Pieces& pieces) {
    RegisterGraph out;
    out.session = "liar";
    out.master = {"worker", 0};
    Graph graph;
    send(graph, pieces.sent, {feed(graph, on_ps, pieces.fed, pieces.fed_shape)});
    Node& received = recv(graph, pieces.received, pieces.received_dtypes, pieces.received_shape);
    if (received.num_outputs() > 0) negate(graph, received, on_ps);
    out.partitions.emplace(on_ps.to_string(), std::move(graph));
    out.edges = {pieces.listed};
    if (received.num_outputs() > 0) out.fetches = {"y:0"};
    return out;
  }
  static RegisterGraph graph_of(const std::function<void(Pieces&)>& lie) {
    Pieces pieces;
    lie(pieces);
    return graph_of(pieces);
  }

  void expect_refused(RegisterGraph graph, const std::string& text) {
    const Status status = ps.register_graph(std::move(graph));
    EXPECT_EQ(code_name(status.code), code_name(Code::invalid_argument)) << status.message;
    EXPECT_THAT(status.message, HasSubstr(text));
  }

  InProcessCluster cluster{{{"ps", 1}, {"worker", 1}}};
  Peer ps{{"ps", 0}, cluster.task("ps").address()};
  Peer worker{{"worker", 0}, cluster.task("worker").address()};
};

TEST_F(Lies, ValidGraphRuns) {
  const Status status = ps.register_graph(graph_of(Pieces{}));
  ASSERT_TRUE(status.is_ok()) << status.message;
  const RunGraphResult result =
      ps.begin("liar", ps.last(), 11, {{"x:0", Tensor::of<double>({4}, {1, 2, 3, 4})}}).get();
  ASSERT_TRUE(result.status.is_ok()) << result.status.message;
  EXPECT_EQ(result.fetches.at(0).second.to_string(), "double[4] [-1, -2, -3, -4]");
}

// This leaked: the task read eight times the buffer, with the values of others in it.
TEST_F(Lies, Int8SendForADoubleRecv) {
  expect_refused(graph_of([](Pieces& p) { p.fed = DType::i8; }),
                 "edge 0 'edge_0_x' carries double, but its _Send gets int8 from 'x:0'");
  expect_refused(graph_of([](Pieces& p) { p.received_dtypes = {DType::i8}; }),
                 "edge 0 'edge_0_x' carries double, but its _Recv expects int8");
  expect_refused(graph_of([](Pieces& p) {
                   p.listed.dtype = DType::i8;
                   p.fed = DType::i8;
                 }),
                 "edge 0 'edge_0_x' carries int8, but its _Recv expects double");
}

TEST_F(Lies, AboutShapes) {
  expect_refused(graph_of([](Pieces& p) { p.fed_shape = {2}; }),
                 "edge 0 'edge_0_x' carries shape [4], but its _Send gets [2] from 'x:0'");
  expect_refused(graph_of([](Pieces& p) { p.received_shape = {400}; }),
                 "edge 0 'edge_0_x' carries shape [4], but its _Recv expects [400]");
}

TEST_F(Lies, AboutCounts) {
  expect_refused(graph_of([](Pieces& p) { p.received_dtypes = {}; }), "'edge_0_x'");
  expect_refused(graph_of([](Pieces& p) {
                   p.received_dtypes = {DType::f64, DType::f64};
                 }),
                 "'edge_0_x'");
  expect_refused(graph_of([](Pieces& p) { p.listed.dtype = DType::invalid; }),
                 "edge 0 'edge_0_x': _Send node 'send' has 1 value, but the edge carries none");
}

TEST_F(Lies, AboutEdges) {
  expect_refused(graph_of([](Pieces& p) { p.sent.id = 7; }),
                 "_Send node 'send' is for edge 7 'edge_0_x', which is not among");
  RegisterGraph twice = graph_of(Pieces{});
  twice.edges.push_back(edge(0, DType::f64, {4}));
  twice.edges.back().tensor_name = "edge_0_again";
  expect_refused(std::move(twice), "edge 0 'edge_0_again' has the same id as 'edge_0_x'");
  RegisterGraph no_end = graph_of(Pieces{});
  no_end.edges.push_back(edge(1, DType::f64, {4}));
  expect_refused(std::move(no_end), "edge 1 'edge_1_x' begins on /job:ps/task:0, but no");
  RegisterGraph two_sends = graph_of(Pieces{});
  Graph& graph = two_sends.partitions.begin()->second;
  send(graph, edge(0, DType::f64, {4}), {graph.output("x")}, "again");
  expect_refused(std::move(two_sends), "edge 0 'edge_0_x' has two _Send nodes");
  RegisterGraph two_recvs = graph_of(Pieces{});
  recv(two_recvs.partitions.begin()->second, edge(0, DType::f64, {4}), {DType::f64}, {4}, "again");
  expect_refused(std::move(two_recvs), "edge 0 'edge_0_x' has two _Recv nodes");
  expect_refused(graph_of([](Pieces& p) { p.listed.tensor_name = "edge_0_other"; }),
                 "edge 0 'edge_0_other'");
}

TEST_F(Lies, AboutDevices) {
  expect_refused(graph_of([](Pieces& p) { p.listed.source = on_worker; }), "'edge_0_x'");
  expect_refused(graph_of([](Pieces& p) { p.listed.source = p.listed.destination = on_worker; }),
                 "neither is on /job:ps/task:0");
  RegisterGraph elsewhere = graph_of(Pieces{});
  elsewhere.partitions.begin()->second.find("y")->assigned_device = on_worker;
  expect_refused(std::move(elsewhere), "came in the partition of /job:ps");
  RegisterGraph no_device = graph_of(Pieces{});
  auto node = no_device.partitions.extract(on_ps.to_string());
  node.key() = "/job:ps/replica:0/task:0/device:CPU:9";
  no_device.partitions.insert(std::move(node));
  expect_refused(std::move(no_device), "CPU:9");
}

TEST_F(Lies, AboutFetches) {
  for (const char* fetch : {"nothing:0", "y:1", "", ":0", "send:0"}) {
    RegisterGraph graph = graph_of(Pieces{});
    graph.fetches = {fetch};
    expect_refused(std::move(graph), concat("the fetch '", fetch, "'"));
  }
}

TEST_F(Lies, ConstantThatContradictsItsDtype) {
  RegisterGraph graph;
  graph.session = "liar";
  graph.master = {"worker", 0};
  Graph partition;
  Node& constant =
      partition.insert({.op = "Const",
                        .name = "c",
                        .attrs = {{"dtype", DType::i8}, {"value", Tensor::scalar<int8_t>(1)}}},
                       on_ps);
  negate(partition, constant, on_ps);
  constant.attrs["dtype"] = DType::f64;  // the value stays
  constant.outputs.write()[0].dtype = DType::f64;
  partition.find("y")->attrs["T"] = DType::f64;
  partition.find("y")->outputs.write()[0].dtype = DType::f64;
  graph.partitions.emplace(on_ps.to_string(), std::move(partition));
  graph.fetches = {"y:0"};
  expect_refused(std::move(graph), "'value' holds int8, but 'dtype' is double");
}

TEST_F(Lies, AboutTheSessionOrGraph) {
  ASSERT_TRUE(ps.register_graph(graph_of(Pieces{})).is_ok());
  const uint64_t first = ps.last();
  RegisterGraph other = graph_of(Pieces{});
  other.session = "another";
  ASSERT_TRUE(ps.register_graph(std::move(other)).is_ok());
  const Status wrong = ps.begin("another", first, 21, {}).get().status;
  EXPECT_EQ(code_name(wrong.code), code_name(Code::invalid_argument));
  EXPECT_THAT(wrong.message, HasSubstr("belongs to another session"));
  RegisterGraph stolen = graph_of(Pieces{});
  stolen.master = {"ps", 0};
  expect_refused(std::move(stolen), "session liar belongs to another master");
}

TEST_F(Lies, AboutFeeds) {
  ASSERT_TRUE(ps.register_graph(graph_of(Pieces{})).is_ok());
  uint64_t graph = ps.last();
  int64_t step = 30;
  const auto expect_refused = [&](const NamedTensors& feeds, const std::string& text) {
    Status status = ps.begin("liar", graph, ++step, feeds).get().status;
    // The task has asked the master, which knows of no such session.
    for (int i = 0; i < 10 && status.code == Code::aborted; ++i) {
      ASSERT_TRUE(ps.register_graph(graph_of(Pieces{})).is_ok());
      graph = ps.last();
      status = ps.begin("liar", graph, ++step, feeds).get().status;
    }
    EXPECT_EQ(code_name(status.code), code_name(Code::invalid_argument)) << status.message;
    EXPECT_THAT(status.message, HasSubstr(text));
  };
  expect_refused({{"x:0", Tensor::of<int8_t>({4}, {1, 2, 3, 4})}}, "'x:0' has dtype int8");
  expect_refused({{"x:0", Tensor::of<std::string>({4}, {"a", "b", "c", "d"})}},
                 "'x:0' has dtype string");
  expect_refused({{"x:0", Tensor::of<double>({2}, {1, 2})}}, "'x:0' has shape [2]");
  expect_refused({}, "no value was fed for 'x:0'");
  expect_refused({{"x:0", Tensor::of<double>({4}, {1, 2, 3, 4})}, {"z:0", Tensor::scalar(1.0f)}},
                 "'z:0' was fed, but this graph has no such feed");
}

// A bool whose byte is neither 0 nor 1: Switch took it for the number of an output.
TEST(LiesInBytes, AreNormalisedInBools) {
  const auto bytes_of = [](const std::string& text) {
    const auto kept = std::make_shared<const std::string>(text);
    return Bytes({std::string_view(*kept)}, kept);
  };
  const auto values = [](const Tensor& tensor) {
    return std::string(static_cast<const char*>(tensor.raw()), tensor.bytes());
  };
  Tensor lie(DType::boolean, {3});
  std::memcpy(lie.raw(), "\x80\0\x01", 3);
  const std::string right("\1\0\1", 3);

  RunGraph run;
  run.feeds = {{"x:0", lie}};
  std::string request;
  for (const ByteSlice& slice : wire::encode_run_graph(run))
    request.append(static_cast<const char*>(slice.data), slice.size);
  EXPECT_EQ(values(wire::decode_run_graph(bytes_of(request)).feeds.at(0).second), right);

  FrameHeader header;
  header.kind = FrameKind::tensor;
  header.dtype = DType::boolean;
  header.rank = 1;
  header.total = 3;
  const Bytes frame = bytes_of(encode(header, lie.shape(), values(lie)));
  FrameReader reader(frame);
  const FrameHeader read = reader.header();
  IncomingTensor incoming(read, reader.shape(), 1 << 20);
  EXPECT_TRUE(incoming.read(reader, read));
  EXPECT_EQ(values(std::move(incoming).take()), right);

  EXPECT_EQ(values(from_tensor_proto(to_tensor_content_proto(lie))), right);
}

// Two tasks whose graphs are valid, each by itself, but contradict each other: the ps receives what
// the worker sends.
class LiesBetweenTasks : public Lies {
 protected:
  static constexpr int64_t step = 40;

  // The ps's error when the worker's end is `sent`, with a tensor `value`.
  Status meet(const CutEdge& sent, const CutEdge& received, const Tensor& value,
              bool is_signal = false) {
    RegisterGraph sender, receiver;
    sender.session = receiver.session = "liar";
    sender.master = receiver.master = {"worker", 0};
    Graph source, destination;
    const Output x = feed(source, on_worker, value.dtype(), value.shape());
    if (is_signal) {
      signal(source, sent, x);
    } else {
      send(source, sent, {x});
    }
    const bool is_control = received.dtype == DType::invalid;
    Node& arrival = recv(destination, received,
                         is_control ? std::vector<DType>{} : std::vector<DType>{received.dtype},
                         received.shape);
    if (is_control) {
      destination.insert({.op = "NoOp", .name = "y", .control_inputs = {&arrival}}, on_ps);
    } else {
      destination.insert({.op = "Identity", .name = "y", .inputs = {arrival.output()}}, on_ps);
      receiver.fetches = {"y:0"};
    }
    sender.partitions.emplace(on_worker.to_string(), std::move(source));
    receiver.partitions.emplace(on_ps.to_string(), std::move(destination));
    sender.edges = {sent};
    receiver.edges = {received};
    const Status sends = worker.register_graph(std::move(sender));
    EXPECT_TRUE(sends.is_ok()) << sends.message;
    const uint64_t sending = worker.last();
    const Status receives = ps.register_graph(std::move(receiver));
    EXPECT_TRUE(receives.is_ok()) << receives.message;
    auto there = ps.begin("liar", ps.last(), step, {});
    auto here = worker.begin("liar", sending, step, {{"x:0", value}});
    here.get();
    return there.get().status;
  }
  static CutEdge crossing(DType dtype, Shape shape, int64_t id = 3) {
    return edge(id, dtype, std::move(shape), on_worker, on_ps);
  }
  void expect_refused(const Status& status, const std::string& text) {
    EXPECT_EQ(code_name(status.code), code_name(Code::invalid_argument)) << status.message;
    EXPECT_THAT(status.message, HasSubstr(text));
  }
};

TEST_F(LiesBetweenTasks, ValidValueArrives) {
  const Status status =
      meet(crossing(DType::f64, {2}), crossing(DType::f64, {2}), Tensor::of<double>({2}, {1, 2}));
  EXPECT_TRUE(status.is_ok()) << status.message;
}

TEST_F(LiesBetweenTasks, FrameOfAnotherDtype) {
  expect_refused(
      meet(crossing(DType::i8, {2}), crossing(DType::f64, {2}), Tensor::of<int8_t>({2}, {1, 2})),
      "edge 'edge_3_x' from /job:worker/replica:0/task:0/device:CPU:0 carries "
      "double[2], but brought int8[2]");
}

TEST_F(LiesBetweenTasks, FrameOfStringsForFloats) {
  expect_refused(meet(crossing(DType::string, {2}), crossing(DType::f32, {2}),
                      Tensor::of<std::string>({2}, {"a", "b"})),
                 "carries float[2], but brought string[2]");
}

TEST_F(LiesBetweenTasks, FrameOfAnotherShape) {
  expect_refused(
      meet(crossing(DType::f64, {1}), crossing(DType::f64, {2}), Tensor::of<double>({1}, {1})),
      "carries double[2], but brought double[1]");
}

TEST_F(LiesBetweenTasks, SignalInsteadOfAValue) {
  expect_refused(meet(crossing(DType::invalid, Shape::unknown()), crossing(DType::f64, {2}),
                      Tensor::scalar(1.0f), /*is_signal=*/true),
                 "carries double, but brought no value");
}

TEST_F(LiesBetweenTasks, ValueInsteadOfASignal) {
  expect_refused(meet(crossing(DType::f64, {2}), crossing(DType::invalid, Shape::unknown()),
                      Tensor::of<double>({2}, {1, 2})),
                 "is a control edge, but brought a tensor of double");
}

TEST_F(LiesBetweenTasks, FrameOfAnUnknownEdge) {
  expect_refused(meet(crossing(DType::f64, {2}, 9), crossing(DType::f64, {2}),
                      Tensor::of<double>({2}, {1, 2})),
                 "/job:worker/task:0 sent a value for edge 9 to /job:ps/task:0, which the graph "
                 "does not have");
}

// Not a lie: the graph allows the shape to change (validate_shape = false), in a node that the
// reading step does not have.
TEST(ShapesThatMayChange, CrossTasks) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  {
    const DeviceScope scope(graph, "/job:ps/task:0");
    const Output v =
        graph.add({.op = "VariableV2", .name = "v", .attrs = {{"shape", Shape{2}}, {"dtype", f32}}})
            .output();
    graph.add({.op = "Assign",
               .name = "start",
               .inputs = {v, constant(graph, Tensor::of<float>({2}, {1, 2}))}});
    graph.add({.op = "Assign",
               .name = "grow",
               .inputs = {v, constant(graph, Tensor::of<float>({3}, {1, 2, 3}))},
               .attrs = {{"validate_shape", false}}});
    graph.add({.op = "Neg", .name = "negated", .inputs = {v}});
  }
  {
    const DeviceScope scope(graph, "/job:worker/task:0");
    graph.add({.op = "Square", .name = "y", .inputs = {graph.output("negated")}});
  }
  const auto session = cluster.session(graph);
  session->run({}, {}, {"start"});
  EXPECT_EQ(session->run({}, {"y:0"}, {})[0].to_string(), "float[2] [1, 4]");
  session->run({}, {}, {"grow"});
  EXPECT_EQ(session->run({}, {"y:0"}, {})[0].to_string(), "float[3] [1, 4, 9]");
}

}  // namespace
}  // namespace leat
