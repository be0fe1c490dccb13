// A conversation with a task, led by another task's process: it registers graphs, sends frames over
// the data plane, and runs steps. The input is a list of messages, each with a byte for its kind
// and two for its length:
//   G  a RegisterGraph    R  a RunGraph    F  frames from /job:worker/task:0
// At the end every step is aborted. The sanitizers report any read of another step's memory; the
// registration of a wrong graph must never fail with a mistake of ours.
#include <cstring>
#include <memory>

#include "core/device.h"
#include "core/execution/thread_pool.h"
#include "distributed/wire/channel.h"
#include "distributed/worker/rendezvous_router.h"
#include "distributed/worker/worker.h"
#include "distributed/worker/worker_wire.h"
#include "graph/passes/pipeline.h"
#include "tests/fuzz/input_stream.h"
#include "tests/fuzz/target.h"

namespace leat::fuzz {
namespace {

constexpr int64_t step = 77;
constexpr uint64_t incarnation = 5, peer_incarnation = 6;
const TaskName self{"ps", 0}, peer{"worker", 0};
const DeviceName here = DeviceName::parse("/job:ps/replica:0/task:0/device:CPU:0");
const DeviceName there = DeviceName::parse("/job:worker/replica:0/task:0/device:CPU:0");

std::string text_of(const Slices& slices) {
  std::string out;
  for (const ByteSlice& slice : slices)
    out.append(static_cast<const char*>(slice.data), slice.size);
  return out;
}

Bytes bytes_of(std::string text) {
  const auto kept = std::make_shared<const std::string>(std::move(text));
  return Bytes({std::string_view(*kept)}, kept);
}

std::string message(char kind, const std::string& body) {
  const auto size = static_cast<uint16_t>(body.size());
  return std::string(1, kind) + std::string(reinterpret_cast<const char*>(&size), sizeof size) +
         body;
}

// The graph that a master registers with the ps for one step over two tasks.
RegisterGraph part_of(const Graph& graph, const StepSignature& signature) {
  PartitionedGraph parts = run_pipeline(
      graph, {.signature = signature.normalised(),
              .placement = {.devices = {{here, DeviceType::cpu}, {there, DeviceType::cpu}},
                            .default_device = there},
              .after_pass = {}});
  RegisterGraph out;
  out.request_id = 1;
  out.session = "session";
  out.master = peer;
  out.partitions.emplace(here.to_string(), std::move(parts.partitions.at(here.to_string())));
  out.edges = parts.edges;
  for (const auto& [fetch, device] : parts.fetch_devices) {
    if (device == here.to_string()) out.fetches.push_back(fetch);
  }
  return out;
}

std::string run(const NamedTensors& feeds) {
  RunGraph request;
  request.request_id = 2;
  request.session = "session";
  request.graph = 1;
  request.step = step;
  request.feeds = feeds;
  return message('R', text_of(wire::encode_run_graph(request)));
}

// One value from the worker for each edge that leads to the ps.
std::string frames(const RegisterGraph& graph, const Tensor& value) {
  std::string out;
  uint32_t sequence = 0;
  for (const CutEdge& edge : graph.edges) {
    if (edge.destination != here) continue;
    FrameHeader header;
    header.kind = FrameKind::tensor;
    header.sequence = sequence++;
    header.step = step;
    header.edge = edge.id;
    header.incarnation = peer_incarnation;
    std::string_view payload;
    if (edge.dtype != DType::invalid) {
      header.dtype = value.dtype();
      header.rank = static_cast<uint8_t>(value.shape().rank());
      header.total = value.bytes();
      payload = {static_cast<const char*>(value.raw()), value.bytes()};
    }
    out += encode(header, edge.dtype == DType::invalid ? Shape() : value.shape(), payload);
  }
  return message('F', out);
}

std::string conversation(const Graph& graph, const StepSignature& signature,
                         const NamedTensors& feeds, const Tensor& sent) {
  const RegisterGraph part = part_of(graph, signature);
  return message('G', text_of(wire::encode_register_graph(part))) + frames(part, sent) + run(feeds);
}

// y = -(x from the worker) on the ps, fed there with a factor.
std::string products() {
  Graph graph;
  const auto on = [&](const char* device) { return DeviceScope(graph, device); };
  Output x, f;
  {
    const auto scope = on("/job:worker");
    x = graph
            .add({.op = "Placeholder",
                  .name = "x",
                  .attrs = {{"dtype", f32}, {"shape", Shape{2, 2}}}})
            .output();
    x = graph.add({.op = "Square", .name = "square", .inputs = {x}}).output();
  }
  const auto scope = on("/job:ps");
  f = graph
          .add(
              {.op = "Placeholder", .name = "f", .attrs = {{"dtype", f32}, {"shape", Shape{2, 2}}}})
          .output();
  const Output product = graph.add({.op = "MatMul", .name = "product", .inputs = {x, f}}).output();
  graph.add({.op = "Neg", .name = "y", .inputs = {product}});
  const Tensor value = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  return conversation(graph, {{"x:0", "f:0"}, {"y:0"}, {}}, {{"f:0", value}}, value);
}

// A variable that is assigned the received value, read, and gathered from.
std::string variables(bool is_resource) {
  Graph graph;
  Output x;
  {
    const DeviceScope scope(graph, "/job:worker");
    x = graph
            .add({.op = "Placeholder", .name = "x", .attrs = {{"dtype", f32}, {"shape", Shape{3}}}})
            .output();
    x = graph.add({.op = "Square", .name = "square", .inputs = {x}}).output();
  }
  const DeviceScope scope(graph, "/job:ps");
  const Output v = graph
                       .add({.op = is_resource ? "VarHandleOp" : "VariableV2",
                             .name = "v",
                             .attrs = {{"shape", Shape{3}}, {"dtype", f32}}})
                       .output();
  Node& assign = graph.add(
      {.op = is_resource ? "AssignVariableOp" : "Assign", .name = "assign", .inputs = {v, x}});
  const Output at =
      graph.add({.op = "Placeholder", .name = "at", .attrs = {{"dtype", i32}, {"shape", Shape{2}}}})
          .output();
  if (is_resource) {
    graph.add({.op = "ResourceGather",
               .name = "y",
               .inputs = {v, at},
               .attrs = {{"dtype", f32}},
               .control_inputs = {&assign}});
  } else {
    graph.add({.op = "Gather", .name = "y", .inputs = {v, at}, .control_inputs = {&assign}});
  }
  return conversation(graph, {{"x:0", "at:0"}, {"y:0"}, {}},
                      {{"at:0", Tensor::of<int32_t>({2}, {2, 0})}},
                      Tensor::of<float>({3}, {1, 2, 3}));
}

// A branch that depends on the received value, and fed strings.
std::string branches() {
  Graph graph;
  Output x;
  {
    const DeviceScope scope(graph, "/job:worker");
    x = graph
            .add({.op = "Placeholder",
                  .name = "x",
                  .attrs = {{"dtype", DType::boolean}, {"shape", Shape{}}}})
            .output();
    x = graph.add({.op = "LogicalNot", .name = "not", .inputs = {x}}).output();
  }
  const DeviceScope scope(graph, "/job:ps");
  const Output s = graph
                       .add({.op = "Placeholder",
                             .name = "s",
                             .attrs = {{"dtype", DType::string}, {"shape", Shape{any}}}})
                       .output();
  Node& branch = graph.add({.op = "Switch", .name = "switch", .inputs = {s, x}});
  const Output length =
      graph.add({.op = "Identity", .name = "kept", .inputs = {branch.output(1)}}).output();
  graph.add({.op = "Merge", .name = "y", .inputs = {branch.output(0), length}});
  return conversation(
      graph, {{"x:0", "s:0"}, {"y:0"}, {}},
      {{"s:0", Tensor::of<std::string>({2}, {"one", "another that is long enough"})}},
      Tensor::scalar(true));
}

// A queue: received values are enqueued and dequeued.
std::string queues() {
  Graph graph;
  Output x;
  {
    const DeviceScope scope(graph, "/job:worker");
    x = graph
            .add({.op = "Placeholder", .name = "x", .attrs = {{"dtype", f32}, {"shape", Shape{2}}}})
            .output();
    x = graph.add({.op = "Square", .name = "square", .inputs = {x}}).output();
  }
  const DeviceScope scope(graph, "/job:ps");
  const Output queue =
      graph
          .add({.op = "FIFOQueueV2",
                .name = "queue",
                .attrs = {{"component_types", std::vector<DType>{f32}}, {"capacity", int64_t{4}}}})
          .output();
  Node& enqueue = graph.add({.op = "QueueEnqueueV2", .name = "enqueue", .inputs = {queue, x}});
  graph.add({.op = "QueueDequeueV2",
             .name = "y",
             .inputs = {queue},
             .attrs = {{"component_types", std::vector<DType>{f32}}},
             .control_inputs = {&enqueue}});
  return conversation(graph, {{"x:0"}, {"y:0"}, {}}, {}, Tensor::of<float>({2}, {1, 2}));
}

// The task. Each input gets a new one: state from one input must not affect the next.
class Listener {
 public:
  Listener() {
    WorkerOptions options;
    options.task = self;
    options.incarnation = incarnation;
    options.devices = {device().get()};
    options.pool = &pool();
    options.exchange.open = [this](int64_t id, const auto& edges) {
      return router_.open(id, edges);
    };
    options.exchange.close = [this](int64_t id) { router_.close(id); };
    worker_ = std::make_shared<Worker>(std::move(options));
    auto stream = std::make_unique<InputStream>();
    stream_ = stream.get();
    channel_ = Channel::create(
        std::shared_ptr<RpcStream>(std::move(stream)),
        {.incarnation = incarnation, .largest_tensor = 1 << 20},
        {.on_tensor =
             [this](int64_t id, int64_t edge, Tensor value, bool is_dead) {
               router_.received(peer, id, edge, std::move(value), is_dead);
             },
         .on_abort = [this](int64_t id, const Status& why) { router_.aborted(peer, id, why); },
         .on_control = [](FrameKind, const FrameHeader&, const std::string&) {},
         .on_end = [](const Status&, RpcCause) {},
         .phase_of = [this](int64_t id) { return router_.phase_of(id); }});
    channel_->admit(peer_incarnation, 1 << 20);
    router_.connected(peer, peer_incarnation, channel_);
  }
  ~Listener() {
    for (const int64_t id : steps_) worker_->abort(id, {Code::cancelled, "enough", true});
    pool().wait_until_idle();
    worker_->cleanup_session("session");
    stream_->end({});
  }

  void hear(char kind, std::string body) {
    if (kind == 'G') {
      RegisterGraph graph = wire::decode_register_graph(bytes_of(std::move(body)));
      worker_->register_graph(std::move(graph), std::nullopt,
                              [](const Status& status, uint64_t) { throw_if_error(status); });
    } else if (kind == 'R') {
      RunGraph run = wire::decode_run_graph(bytes_of(std::move(body)));
      steps_.push_back(run.step);
      worker_->run_graph(std::move(run), std::nullopt, [](const Status&, const RunGraphResult&) {});
      pool().wait_until_idle();
    } else if (kind == 'F') {
      seal(body);
      stream_->bring(bytes_of(std::move(body)));
      pool().wait_until_idle();
    }
  }

 private:
  static ThreadPool& pool() {
    static ThreadPool one(2);
    return one;
  }
  static const std::unique_ptr<Device>& device() {
    static const std::unique_ptr<Device> one = make_cpu_device(here, pool());
    return one;
  }

  RendezvousRouter router_{self};
  std::shared_ptr<Worker> worker_;
  InputStream* stream_ = nullptr;
  std::shared_ptr<Channel> channel_;
  std::vector<int64_t> steps_;
};

}  // namespace

std::vector<std::string> seeds() {
  return {products(), variables(false), variables(true), branches(), queues()};
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leat;
  if (size > 65536) return 0;
  std::string_view bytes = fuzz::text_of(data, size);
  fuzz::Listener listener;
  while (bytes.size() >= 3) {
    uint16_t length = 0;
    std::memcpy(&length, bytes.data() + 1, sizeof length);
    const char kind = bytes[0];
    bytes.remove_prefix(3);
    std::string body(bytes.substr(0, length));
    bytes.remove_prefix(body.size());
    fuzz::expect_no_mistake_of_ours([&] { listener.hear(kind, std::move(body)); });
  }
  return 0;
}
