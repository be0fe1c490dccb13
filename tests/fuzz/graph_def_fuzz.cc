// GraphDefs, binary and text: the import, then all passes on accepted graphs, with every node as
// the target. An exported graph must be accepted again.
#include "distributed/cluster/cluster_spec.h"
#include "frontends/cpp/control_flow/while_loop.h"
#include "graph/import/graph_def.h"
#include "graph/ops.h"
#include "graph/passes/pipeline.h"
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
  const Output g = matmul(x, y, {.transpose_a = true});
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

// A loop that contains another loop and changes a variable.
Graph loops() {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {});
  const Output v =
      graph.add({.op = "VariableV2", .name = "v", .attrs = {{"shape", Shape{}}, {"dtype", f32}}})
          .output();
  using Outputs = std::vector<Output>;
  while_loop([&](const Outputs& outer) { return less(outer[0], x); },
             [&](const Outputs& outer) {
               const Outputs inner =
                   while_loop([&](const Outputs& i) { return less(i[0], outer[0]); },
                              [&](const Outputs& i) { return Outputs{i[0] + assign_add(v, x)}; },
                              Outputs{outer[0]}, {.name = "inner"});
               return Outputs{inner[0], outer[1] + 1};
             },
             Outputs{x, constant(graph, Tensor::scalar(0))});
  return graph;
}

// A call, a condition and a loop of functions.
constexpr char functions[] = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_BOOL } } }
node { name: 'i' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } } }
node { name: 'call' op: 'PartitionedCall' input: 'x' input: '^p'
  attr { key: 'f' value { func { name: 'twice' } } }
  attr { key: 'Tin' value { list { type: DT_FLOAT } } }
  attr { key: 'Tout' value { list { type: DT_FLOAT } } } }
node { name: 'legacy' op: 'negative' input: 'call' attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'if' op: 'If' input: 'p' input: 'legacy'
  attr { key: 'then_branch' value { func { name: 'twice' } } }
  attr { key: 'else_branch'
    value { func { name: 'negative' attr { key: 'T' value { type: DT_FLOAT } } } } }
  attr { key: 'Tcond' value { type: DT_BOOL } }
  attr { key: 'Tin' value { list { type: DT_FLOAT } } }
  attr { key: 'Tout' value { list { type: DT_FLOAT } } } }
node { name: 'case' op: 'Case' input: 'i' input: 'if'
  attr { key: 'branches' value { list { func { name: 'twice' } func { name: 'twice' } } } }
  attr { key: 'Tin' value { list { type: DT_FLOAT } } }
  attr { key: 'Tout' value { list { type: DT_FLOAT } } } }
node { name: 'while' op: 'While' input: 'case' input: 'x'
  attr { key: 'cond' value { func { name: 'less' } } }
  attr { key: 'body' value { func { name: 'next' } } }
  attr { key: 'T' value { list { type: DT_FLOAT type: DT_FLOAT } } } }
library {
  function {
    signature { name: 'negative' input_arg { name: 'x' type_attr: 'T' }
      output_arg { name: 'y' type_attr: 'T' } attr { name: 'T' type: 'type' } }
    node_def { name: 'n' op: 'Neg' input: 'x' attr { key: 'T' value { placeholder: 'T' } } }
    ret { key: 'y' value: 'n:y:0' } }
  function {
    signature { name: 'twice' input_arg { name: 'x' type: DT_FLOAT }
      output_arg { name: 'y' type: DT_FLOAT } control_output: 'done' }
    node_def { name: 'a' op: 'negative' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }
    node_def { name: 'b' op: 'Neg' input: 'a:y:0' attr { key: 'T' value { type: DT_FLOAT } } }
    ret { key: 'y' value: 'b:y:0' } control_ret { key: 'done' value: 'a' } }
  function {
    signature { name: 'less' input_arg { name: 'x' type: DT_FLOAT }
      input_arg { name: 'most' type: DT_FLOAT } output_arg { name: 'z' type: DT_BOOL } }
    node_def { name: 'l' op: 'Less' input: 'x' input: 'most'
      attr { key: 'T' value { type: DT_FLOAT } } }
    ret { key: 'z' value: 'l:z:0' } }
  function {
    signature { name: 'next' input_arg { name: 'x' type: DT_FLOAT }
      input_arg { name: 'most' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT }
      output_arg { name: 'same' type: DT_FLOAT } }
    node_def { name: 's' op: 'Add' input: 'x' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }
    ret { key: 'y' value: 's:z:0' } ret { key: 'same' value: 'most' } }
})";

// Checks that a seed is accepted: a rejected one finds nothing.
std::string accepted(const char* text) {
  Graph graph;
  from_graph_def_text(text, graph, {.allow_internal = false});
  return text;
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> out = {accepted(functions)};
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
