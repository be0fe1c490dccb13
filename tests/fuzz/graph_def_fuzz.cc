// GraphDefs, binary and text: the import, then all passes on what was accepted, for every node as
// the target; what is exported must be accepted again.
#include "distributed/cluster_spec.h"
#include "frontends/cpp/while_loop.h"
#include "graph/graph_def.h"
#include "graph/ops.h"
#include "graph/pipeline.h"
#include "tests/fuzz/target.h"
#include "tests/support/run_op.h"

namespace leat::fuzz {
namespace {

constexpr const char* devices[] = {"/job:ps/replica:0/task:0/device:CPU:0",
                                   "/job:worker/replica:0/task:0/device:CPU:0"};

PipelineOptions options(std::string target) {
  PipelineOptions out;
  out.signature.targets = {std::move(target)};
  for (const char* device : devices)
    out.placement.devices.push_back({DeviceName::parse(device), DeviceType::cpu});
  out.placement.default_device = DeviceName::parse(devices[1]);
  return out;
}

void check_graph(const Graph& graph) {
  if (graph.size() > 64) return;
  const std::string bytes = to_graph_def(graph);
  Graph again;
  from_graph_def(bytes, again, {.allow_internal = false});
  check_internal(to_graph_def(again) == bytes, "the export of an import differs");
  to_graph_def_text(graph);
  for (const auto& node : graph.nodes())
    expect_no_mistake_of_ours([&] { run_pipeline(graph, options(node->name)); });
}

Graph training() {
  Graph graph;
  Output w;
  {
    const DeviceScope on(graph, "/job:ps/task:0");
    w = graph
            .add({.op = "VariableV2",
                  .name = "w",
                  .attrs = {{"shape", Shape{2, 2}}, {"dtype", f32}}})
            .output();
  }
  const Output x = placeholder(graph, "x", f32, {any, 2});
  const Output y = relu(matmul(x, w) + 1);
  const Output g = matmul(x, y, true);
  graph.add({.op = "ApplyGradientDescent",
             .name = "train",
             .inputs = {w, constant(graph, Tensor::scalar(0.1f)), g}});
  return graph;
}

Graph shapes() {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, Shape::unknown());
  const Output dims = constant(graph, Tensor::of<int32_t>({2}, {2, 3}));
  graph.add({.op = "Reshape", .name = "reshaped", .inputs = {x, dims}});
  graph.add(
      {.op = "Fill", .name = "filled", .inputs = {dims, constant(graph, Tensor::scalar(1.0f))}});
  graph.add({.op = "Tile", .name = "tiled", .inputs = {graph.output("filled"), dims}});
  graph.add({.op = "Sum",
             .name = "sum",
             .inputs = {graph.output("tiled"), constant(graph, Tensor::of<int32_t>({1}, {0}))}});
  graph.add(
      {.op = "Const",
       .name = "text",
       .attrs = {{"value", Tensor::of<std::string>({2}, {"a", "bc"})}, {"dtype", DType::string}}});
  return graph;
}

// A loop, with another one in it and a variable that it changes.
Graph loops() {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {});
  const Output v =
      graph.add({.op = "VariableV2", .name = "v", .attrs = {{"shape", Shape{}}, {"dtype", f32}}})
          .output();
  using Outputs = std::vector<Output>;
  while_loop(
      {x, constant(graph, Tensor::scalar(0))},
      [&](const Outputs& outer) { return less(outer[0], x); },
      [&](const Outputs& outer) {
        const Outputs inner = while_loop(
            {outer[0]}, [&](const Outputs& i) { return less(i[0], outer[0]); },
            [&](const Outputs& i) { return Outputs{i[0] + assign_add(v, x)}; }, "inner");
        return Outputs{inner[0], outer[1] + 1};
      });
  return graph;
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> out;
  for (Graph (*make)() : {training, shapes, loops}) {
    const Graph graph = make();
    out.push_back(to_graph_def(graph));
    out.push_back(to_graph_def_text(graph));
  }
  // Every op: its shape function, and its kernel where the inputs are constants.
  for (const OpDef* op : all_ops()) {
    for (const Example& example : op->examples) {
      Graph graph;
      add_call(graph, op->name, example.inputs, example.attrs);
      out.push_back(to_graph_def(graph));
    }
  }
  return out;
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leat;
  const std::string_view bytes = fuzz::text_of(data, size);
  fuzz::expect_no_mistake_of_ours([&] {
    Graph graph;
    from_graph_def(bytes, graph, {.allow_internal = false});
    fuzz::check_graph(graph);
  });
  fuzz::expect_no_mistake_of_ours([&] {
    Graph graph;
    from_graph_def_text(bytes, graph, {.allow_internal = true});
    fuzz::check_graph(graph);
  });
  fuzz::expect_no_mistake_of_ours([&] { read_graph_def(bytes, "input"); });
  return 0;
}
