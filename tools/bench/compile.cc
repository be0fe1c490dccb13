// The cost of compiling a large graph, phase by phase: seconds, bytes that stay allocated, peak
// bytes. One process; with many tasks the graph is placed and cut, but not registered.
//   compile --shape chain --nodes 1000000
//   compile --shape chain --nodes 1000000 --tasks 1000
//   compile --shape chain --nodes 1000000 --target grpc://127.0.0.1:2222   # CreateSession, RunStep
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <future>
#include <new>

#include "core/device.h"
#include "core/execution/thread_pool.h"
#include "distributed/worker/worker_wire.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/variables.h"
#include "graph/import/graph_def.h"
#include "graph/ops.h"
#include "graph/passes/placer.h"
#include "runtime/registered_graph.h"

namespace {

std::atomic<int64_t> live{0}, peak{0};

void* counted(void* data) {
  if (data == nullptr) throw std::bad_alloc();
  const int64_t now = live += static_cast<int64_t>(malloc_usable_size(data)) + 8;
  if (now > peak.load(std::memory_order_relaxed)) peak = now;
  return data;
}

void give_back(void* data) {
  if (data == nullptr) return;
  live -= static_cast<int64_t>(malloc_usable_size(data)) + 8;
  std::free(data);
}

}  // namespace

// What is in use, with malloc's own word a block: all that a graph is made of comes this way.
void* operator new(size_t bytes) { return counted(std::malloc(bytes)); }
void operator delete(void* data) noexcept { give_back(data); }
void operator delete(void* data, size_t) noexcept { give_back(data); }

namespace {

using namespace leat;
using Clock = std::chrono::steady_clock;

struct Flags {
  std::string shape = "chain";
  int64_t nodes = 100'000;
  int tasks = 1;
  std::string target;
};

// Prints a line a phase.
class Phases {
 public:
  explicit Phases(int64_t nodes) : nodes_(nodes) {
    std::printf("%-24s %9s %12s %12s\n", "phase", "seconds", "stays B/node", "peak B/node");
  }

  void begin() {
    live_ = live;
    peak = live_;
    start_ = Clock::now();
  }
  double end(const std::string& phase) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    std::printf("%-24s %9.3f %12.0f %12.0f\n", phase.c_str(), seconds, per_node(live - live_),
                per_node(peak - base_));
    std::fflush(stdout);
    most_ = std::max<int64_t>(most_, peak);
    total_ += seconds;
    begin();
    return seconds;
  }
  // What was there before, such as the client's graph, does not count.
  void set_base() {
    base_ = most_ = live;
    total_ = 0;
  }
  void print_total() const {
    std::printf("%-24s %9.3f %12.0f %12.0f\n", "all", total_, per_node(live - base_),
                per_node(most_ - base_));
  }

 private:
  double per_node(int64_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(nodes_);
  }

  const int64_t nodes_;
  int64_t live_ = 0, base_ = 0, most_ = 0;
  double total_ = 0;
  Clock::time_point start_;
};

struct Work {
  StepSignature signature;
  NamedTensors feeds;
};

Node& gather(Graph& graph, std::vector<Node*> after, const std::string& name) {
  return graph.add({.op = "NoOp", .name = name, .control_inputs = std::move(after)});
}

// Nodes that depend on each other one by one.
Work make_chain(Graph& graph, const Flags& flags) {
  const Output x = placeholder(graph, "x", f32, {8});
  Output h = x;
  for (int64_t i = 1; i < flags.nodes; ++i) {
    const DeviceScope on(graph, concat("/job:ps/task:", i * flags.tasks / flags.nodes));
    h = h + x;
  }
  return {{{"x:0"}, {h.name()}, {}}, {{"x:0", Tensor::of<float>({8}, {1, 2, 3, 4, 5, 6, 7, 8})}}};
}

// The same with 100,000 edges from task to task for a million nodes.
Work make_crossings(Graph& graph, const Flags& flags) {
  const Output x = placeholder(graph, "x", f32, {8});
  Output h = x;
  for (int64_t i = 1; i < flags.nodes; ++i) {
    const DeviceScope on(graph, concat("/job:ps/task:", i / 10 * 7 % flags.tasks));
    h = h + x;
  }
  return {{{"x:0"}, {h.name()}, {}}, {{"x:0", Tensor::of<float>({8}, {1, 2, 3, 4, 5, 6, 7, 8})}}};
}

// One value that all the others use, and one node that uses them all.
Work make_fan(Graph& graph, const Flags& flags) {
  const Output x = placeholder(graph, "x", f32, {8});
  const Output y = x * x;
  std::vector<Output> all;
  for (int64_t i = 3; i < flags.nodes; ++i)
    all.push_back(op("LeakyRelu", {y}, {{"alpha", 1 / static_cast<float>(i)}}));
  return {{{"x:0"}, {add_n(all).name()}, {}}, {{"x:0", Tensor(f32, {8})}}};
}

// Pairs of nodes that have nothing to do with each other.
Work make_islands(Graph& graph, const Flags& flags) {
  std::vector<Node*> all;
  for (int64_t i = 0; i + 1 < flags.nodes; i += 2) {
    const Output x = constant(graph, Tensor::scalar(static_cast<float>(i)));
    all.push_back(op("Neg", {x}).node);
  }
  return {{{}, {}, {gather(graph, std::move(all), "all").name}}, {}};
}

// Variables with initial values, and an update of each: five nodes.
Work make_variables(Graph& graph, const Flags& flags, bool initialise) {
  std::vector<Node*> initialisers, updates;
  const Output rate = constant(graph, Tensor::scalar(0.1f));
  for (int64_t i = 0; i + 4 < flags.nodes; i += 5) {
    const DeviceScope on(graph, concat("/job:ps/task:", i / 5 % flags.tasks));
    const Output v =
        graph.add({.op = "VariableV2", .name = "v", .attrs = {{"dtype", f32}, {"shape", Shape{4}}}})
            .output();
    initialisers.push_back(assign(v, constant(graph, Tensor(f32, {4}))).node);
    const Output read = op("Identity", {v});
    updates.push_back(op("ApplyGradientDescent", {v, rate, read}).node);
  }
  const Node& init = gather(graph, std::move(initialisers), "init");
  const Node& train = gather(graph, std::move(updates), "train");
  return {{{}, {}, {initialise ? init.name : train.name}}, {}};
}

// Nodes that wait for each other one by one, and for one that all wait for.
Work make_controls(Graph& graph, const Flags& flags) {
  Node* const first = &no_op(graph, "first");
  Node* last = first;
  const Output x = placeholder(graph, "x", f32, {8});
  for (int64_t i = 2; i < flags.nodes; ++i) {
    const ControlScope after(graph, std::vector<Node*>{last, first});
    last = op("Neg", {x}).node;
  }
  return {{{"x:0"}, {last->name + ":0"}, {}}, {{"x:0", Tensor(f32, {8})}}};
}

// Datasets in one another, each a node between segments: the step is refused.
Work make_datasets(Graph& graph, const Flags& flags) {
  const AttrMap attrs = {{"Toutput_types", std::vector<DType>{DType::variant}},
                         {"output_shapes", std::vector<Shape>{Shape{}}}};
  Output value = graph.add({.op = "OptionalNone"}).output();
  for (int64_t i = 2; i < flags.nodes; ++i)
    value = graph.add({.op = "TensorDataset", .inputs = {value}, .attrs = attrs}).output();
  return {{{}, {op("DatasetCardinality", {value}).name()}, {}}, {}};
}

Work make(Graph& graph, const Flags& flags) {
  if (flags.shape == "chain") return make_chain(graph, flags);
  if (flags.shape == "crossings") return make_crossings(graph, flags);
  if (flags.shape == "fan") return make_fan(graph, flags);
  if (flags.shape == "islands") return make_islands(graph, flags);
  if (flags.shape == "variables") return make_variables(graph, flags, false);
  if (flags.shape == "initialisers") return make_variables(graph, flags, true);
  if (flags.shape == "controls") return make_controls(graph, flags);
  if (flags.shape == "datasets") return make_datasets(graph, flags);
  fail(Code::invalid_argument, "there is no shape '", flags.shape, "'");
}

PipelineOptions pipeline_options(const Flags& flags, const StepSignature& signature) {
  PipelineOptions out{.signature = signature, .placement = {}};
  for (int task = 0; task < flags.tasks; ++task) {
    out.placement.devices.push_back(
        {DeviceName::parse(concat("/job:ps/replica:0/task:", task, "/device:CPU:0"))});
  }
  out.placement.default_device = out.placement.devices[0].name;
  return out;
}

void run_first_step(RegisteredGraph& graph, const NamedTensors& feeds) {
  std::promise<Status> ended;
  graph.run({.step_id = 1, .feeds = feeds},
            [&](const StepResult& result) { ended.set_value(result.status); });
  const Status status = ended.get_future().get();
  if (!status.is_ok()) std::printf("refused: %.120s\n", status.message.c_str());
}

void compile_here(const Flags& flags) {
  Phases phases(flags.nodes);
  phases.begin();
  std::string bytes;
  Work work;
  {
    Graph client;
    work = make(client, flags);
    phases.end("client: make the graph");
    bytes = to_graph_def(client);
    phases.end("client: write it");
  }
  phases.set_base();
  phases.begin();
  auto graph = std::make_unique<Graph>();
  from_graph_def(bytes, *graph, {.allow_internal = false});
  phases.end("read GraphDef");
  PipelineOptions options = pipeline_options(flags, work.signature);
  place_stateful(*graph, options.placement);
  phases.end("place_stateful");
  std::string pass;
  options.after_pass = [&](std::string_view name, const Graph&) {
    if (name != pass || name != "partition") phases.end(std::string(name));
    pass = name;
  };
  PartitionedGraph cut = run_pipeline(*graph, options);
  if (flags.tasks > 1) {
    phases.end("partition, verify");
    return phases.print_total();
  }
  RegisterGraph request;
  request.partitions = std::move(cut.partitions);
  request.fetches = work.signature.fetches;
  request.edges = cut.edges;
  cut = {};

  ThreadPool pool(2);
  const auto device = make_cpu_device(options.placement.devices[0].name, pool);
  phases.begin();
  RegisteredGraph registered(
      std::move(request.partitions), std::move(request.fetches), request.edges,
      {{device.get()}, &pool, std::make_shared<Containers>(), std::make_shared<NodeStates>()});
  phases.end("plan");
  if (flags.shape != "variables") {  // those would have to be initialised
    run_first_step(registered, work.feeds);
    phases.end("compile the tape, run it");
    run_first_step(registered, work.feeds);
    phases.end("run it again");
  }
  phases.print_total();
}

void compile_there(const Flags& flags) {
  Graph graph;
  const Work work = make(graph, flags);
  std::vector<Output> fetches;
  Targets targets;
  Feeds feeds;
  for (const std::string& name : work.signature.fetches) fetches.push_back(graph.output(name));
  for (const std::string& name : work.signature.targets) targets.emplace_back(*graph.find(name));
  for (const auto& [name, value] : work.feeds) feeds.push_back({graph.output(name), value});
  Phases phases(flags.nodes);
  phases.set_base();
  phases.begin();
  Session session(graph, {.target = flags.target});
  phases.end("CreateSession");
  session.run(feeds, fetches, targets);
  phases.end("RunStep, the first");
  session.run(feeds, fetches, targets);
  phases.end("RunStep, the second");
  phases.print_total();
}

}  // namespace

int main(int argc, char** argv) try {
  Flags flags;
  CLI::App app("What it costs to compile a large graph");
  app.add_option("--shape", flags.shape,
                 "chain, crossings, fan, islands, variables, initialisers, controls, datasets");
  app.add_option("--nodes", flags.nodes, "of the graph");
  app.add_option("--tasks", flags.tasks, "on which it is placed")->check(CLI::PositiveNumber);
  app.add_option("--target", flags.target, "a task: measures what a client sees");
  CLI11_PARSE(app, argc, argv);
  flags.target.empty() ? compile_here(flags) : compile_there(flags);
} catch (const std::exception& error) {
  std::fprintf(stderr, "compile: %s\n", error.what());
  return 1;
}
