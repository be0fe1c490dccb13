// Graphs of many nodes, in each shape that is hard for some pass. No pass may recurse as deep as
// the graph, and none may take quadratic time. tools/bench/compile.cc measures the cost.
#include <gtest/gtest.h>

#include "graph/import/graph_def.h"
#include "graph/ops.h"
#include "graph/passes/pipeline.h"
#include "graph/passes/placer.h"

namespace leat {
namespace {

constexpr int many = 100'000;

std::string task(int number) { return concat("/job:ps/replica:0/task:", number); }

// What a session does with a client's graph, for a cluster of so many tasks.
PartitionedGraph compiled(const Graph& client, const StepSignature& signature, int tasks = 1) {
  Graph graph;
  from_graph_def(to_graph_def(client), graph, {.allow_internal = false});
  EXPECT_EQ(graph.size(), client.size());
  PipelineOptions options{.signature = signature, .placement = {}};
  for (int i = 0; i < tasks; ++i)
    options.placement.devices.push_back({DeviceName::parse(task(i) + "/device:CPU:0")});
  options.placement.default_device = options.placement.devices[0].name;
  place_stateful(graph, options.placement);
  return run_pipeline(graph, options);
}

size_t nodes_of(const PartitionedGraph& graph) {
  size_t out = 0;
  for (const auto& [device, part] : graph.partitions) out += part.size();
  return out;
}

TEST(LargeGraph, Chain) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {8});
  Output h = x;
  for (int i = 0; i < many; ++i) h = maximum(h, x);
  EXPECT_EQ(nodes_of(compiled(graph, {{"x"}, {h.name()}, {}})), many + 1u);
}

// Each sum of eight terms is one node.
TEST(LargeGraph, ChainOfSums) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {8});
  Output h = x;
  for (int i = 0; i < many / 7 * 7; ++i) h = h + x;
  EXPECT_EQ(nodes_of(compiled(graph, {{"x"}, {h.name()}, {}})), many / 7 + 1u);
}

TEST(LargeGraph, ChainOverManyTasks) {
  constexpr int tasks = 1000;
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {8});
  Output h = x;
  for (int i = 0; i < many; ++i) {
    const DeviceScope on(graph, task(i / 10 % tasks));
    h = h + x;
  }
  const PartitionedGraph out = compiled(graph, {{"x"}, {h.name()}, {}}, tasks);
  EXPECT_EQ(out.partitions.size(), 1000u);
  EXPECT_EQ(out.edges.size(), many / 10 - 1u);
  EXPECT_EQ(out.feed_devices.at("x:0").size(), 1000u);
}

TEST(LargeGraph, FanOutAndFanIn) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {8});
  std::vector<Output> all;
  for (int i = 1; i <= many; ++i)
    all.push_back(op("LeakyRelu", {x}, {{"alpha", 1 / static_cast<float>(i)}}));
  EXPECT_EQ(nodes_of(compiled(graph, {{"x"}, {add_n(all).name()}, {}})), many + 2u);
}

// The nodes differ in one attribute, or not at all.
TEST(LargeGraph, SimilarNodes) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {8});
  std::vector<Output> all;
  for (int i = 0; i < many; ++i) all.push_back(op(i % 2 == 0 ? "Exp" : "Neg", {x}));
  EXPECT_EQ(nodes_of(compiled(graph, {{"x"}, {add_n(all).name()}, {}})), 4u);
}

// The nodes that remain of a chain by control edges, whose ends wait for all of it.
size_t nodes_of_awaited(const std::string& op_name, const AttrMap& attrs) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {8});
  std::vector<Node*> all{op(op_name, {x}, attrs).node};
  for (int i = 0; i < many / 2; ++i) {
    all.push_back(
        &graph.add({.op = op_name, .inputs = {x}, .attrs = attrs, .control_inputs = {all.back()}}));
  }
  graph.add({.op = "NoOp", .name = "all", .control_inputs = all});
  graph.add({.op = "Identity", .name = "y", .inputs = {x}, .control_inputs = all});
  return nodes_of(compiled(graph, {{"x"}, {"y"}, {"all"}}));
}

TEST(LargeGraph, DeepAndWideControlEdges) {
  EXPECT_EQ(nodes_of_awaited("CheckNumerics", {{"message", "x"}}), many / 2 + 4u);
}

TEST(LargeGraph, DeepAndWideControlEdgesOfUnreadValues) {
  EXPECT_EQ(nodes_of_awaited("Exp", {}), 3u);
}

// Chains of nodes that the passes remove or see through.
TEST(LargeGraph, ChainsOfIdentitiesAndNoOps) {
  Graph graph;
  const Output v =
      graph.add({.op = "VariableV2", .name = "v", .attrs = {{"dtype", f32}, {"shape", Shape{}}}})
          .output();
  Output read = v;
  for (int i = 0; i < many / 4; ++i) read = op("Identity", {read});
  std::vector<Node*> users;
  for (int i = 0; i < many / 4; ++i) users.push_back(op("Neg", {read}).node);
  Node* last = &graph.add({.op = "NoOp", .control_inputs = std::move(users)});
  for (int i = 0; i < many / 4; ++i) last = &graph.add({.op = "NoOp", .control_inputs = {last}});
  graph.add({.op = "Assign",
             .name = "update",
             .inputs = {v, constant(graph, Tensor::scalar(1.0f))},
             .control_inputs = {last}});
  // The Identity of a variable is a read; those of its value disappear, and so do the negatives,
  // which nobody reads.
  EXPECT_EQ(nodes_of(compiled(graph, {{}, {}, {"update"}})), 4u);
}

// Each variable is read after its update through its Identity, which comes late.
TEST(LargeGraph, VariablesReadAfterTheirUpdates) {
  constexpr int variables = many / 5;
  Graph graph;
  const Output one = constant(graph, Tensor::scalar(1.0f));
  std::vector<Node*> last;
  for (int i = 0; i < variables; ++i) {
    const Output v =
        graph.add({.op = "VariableV2", .name = "v", .attrs = {{"dtype", f32}, {"shape", Shape{}}}})
            .output();
    const Output read = op("Identity", {v});
    Node* const update = op("AssignAdd", {v, one}).node;
    last.push_back(&graph.add({.op = "CheckNumerics",
                               .name = "user",
                               .inputs = {read},
                               .attrs = {{"message", ""}},
                               .control_inputs = {update}}));
  }
  graph.add({.op = "NoOp", .name = "all", .control_inputs = std::move(last)});
  const PartitionedGraph out = compiled(graph, {{}, {}, {"all"}});
  const Graph& part = out.partitions.begin()->second;
  EXPECT_TRUE(part.find("user")->inputs[0].node->is("VariableV2"));
  EXPECT_TRUE(part.find("user_1")->inputs[0].node->is("VariableV2"));
}

}  // namespace
}  // namespace leat
