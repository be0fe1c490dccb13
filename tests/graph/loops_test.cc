// structure_loops turns each while loop into one node and rejects anything else.
#include "graph/loops/loops.h"

#include <gtest/gtest.h>

#include "graph/import/graph_def.h"
#include "graph/passes/pipeline.h"
#include "graph/text.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

// i = 0; while (pred) i = i * x, as a client writes it.
const char* const loop = R"(
  node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
  node { name: 'zero' op: 'Const'
         attr { key: 'dtype' value { type: DT_FLOAT } }
         attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 0 } } } }
  node { name: 'loop/Enter' op: 'Enter' input: 'zero' device: '/job:worker/task:1/device:GPU:0'
         attr { key: 'T' value { type: DT_FLOAT } }
         attr { key: 'frame_name' value { s: 'loop/frame' } } }
  node { name: 'loop/x' op: 'Enter' input: 'x' attr { key: 'T' value { type: DT_FLOAT } }
         attr { key: 'frame_name' value { s: 'loop/frame' } }
         attr { key: 'is_constant' value { b: true } } }
  node { name: 'loop/Merge' op: 'Merge' input: 'loop/Enter' input: 'loop/Next'
         attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'N' value { i: 2 } } }
  node { name: 'loop/Less' op: 'Less' input: 'loop/Merge' input: 'loop/x'
         attr { key: 'T' value { type: DT_FLOAT } } }
  node { name: 'loop/Cond' op: 'LoopCond' input: 'loop/Less'
         device: '/job:worker/task:1/device:GPU:0' }
  node { name: 'loop/Switch' op: 'Switch' input: 'loop/Merge' input: 'loop/Cond'
         attr { key: 'T' value { type: DT_FLOAT } } }
  node { name: 'loop/Mul' op: 'Mul' input: 'loop/Switch:1' input: 'loop/x'
         attr { key: 'T' value { type: DT_FLOAT } } }
  node { name: 'loop/Next' op: 'NextIteration' input: 'loop/Mul'
         attr { key: 'T' value { type: DT_FLOAT } } }
  node { name: 'loop/Exit' op: 'Exit' input: 'loop/Switch'
         attr { key: 'T' value { type: DT_FLOAT } } }
)";

Graph graph_of(std::string text, std::string_view old = "", std::string_view fresh = "") {
  if (!old.empty()) {
    const size_t at = text.find(old);
    check(at != std::string::npos, "the test replaces '", old, "', which is not there");
    text.replace(at, old.size(), fresh);
  }
  Graph graph;
  from_graph_def_text(text, graph);
  return graph;
}

Graph structured(const Graph& graph, std::vector<std::string> fetches = {"loop/Exit:0"}) {
  const StepSignature signature{.fetches = std::move(fetches)};
  Graph step = prune(graph, signature);
  structure_loops(step, signature);
  return step;
}

std::string node(std::string_view name, std::string_view op, std::string_view input) {
  return concat("node { name: '", name, "' op: '", op, "' input: '", input,
                "' attr { key: 'T' value { type: DT_FLOAT } } }\n");
}

TEST(Loops, LoopBecomesOneNode) {
  const Graph graph = structured(graph_of(loop));
  std::string names;
  for (const auto& node : graph.nodes()) names += concat(node->op->name, " ", node->name, ", ");
  EXPECT_EQ(names, "Placeholder x, Const zero, _Loop loop/Cond, Identity loop/Exit, ");
  verify(graph, "structure_loops");
  const Node& node = *graph.find("loop/Cond");
  // Its task is the condition's; loops run on a CPU.
  EXPECT_EQ(node.requested_device->to_string(), "/job:worker/task:1");
  EXPECT_EQ(node.inputs[0].name(), "zero:0");
  EXPECT_EQ(node.inputs[1].name(), "x:0");

  const LoopParts parts(node);
  EXPECT_EQ(dump(parts.condition),
            "loop/Cond/captured_0 = _Feed(dtype=float, name=\"captured:0\")\n"
            "loop/Cond/variable_0 = _Feed(dtype=float, name=\"variable:0\")\n"
            "loop/Less = Less(loop/Cond/variable_0, loop/Cond/captured_0)\n");
  EXPECT_EQ(parts.predicate, "loop/Less:0");
  EXPECT_EQ(dump(parts.body),
            "loop/Cond/captured_0 = _Feed(dtype=float, name=\"captured:0\")\n"
            "loop/Cond/variable_0 = _Feed(dtype=float, name=\"variable:0\")\n"
            "loop/Mul = Mul(loop/Cond/variable_0, loop/Cond/captured_0)\n");
  EXPECT_EQ(parts.next, std::vector<std::string>{"loop/Mul:0"});
}

// x = a[0] * b[0] in each iteration.
Graph with_lookups(std::string_view device_of_a, std::string_view device_of_b) {
  std::string text = loop;
  text += R"(
    node { name: 'zeroth' op: 'Const'
           attr { key: 'dtype' value { type: DT_INT32 } }
           attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
    node { name: 'loop/index' op: 'Enter' input: 'zeroth' attr { key: 'T' value { type: DT_INT32 } }
           attr { key: 'frame_name' value { s: 'loop/frame' } } }
  )";
  for (const auto& [name, device] : {std::pair{"a", device_of_a}, {"b", device_of_b}}) {
    text += concat("node { name: '", name, "' op: 'VarHandleOp' device: '", device, R"('
           attr { key: 'dtype' value { type: DT_FLOAT } }
           attr { key: 'shape' value { shape { dim { size: 3 } } } } }
    node { name: 'loop/)",
                   name, "' op: 'Enter' input: '", name, R"('
           attr { key: 'T' value { type: DT_RESOURCE } }
           attr { key: 'frame_name' value { s: 'loop/frame' } }
           attr { key: 'is_constant' value { b: true } } }
    node { name: 'loop/)",
                   name, "_0' op: 'ResourceGather' input: 'loop/", name, R"('
           input: 'loop/index' attr { key: 'dtype' value { type: DT_FLOAT } }
           attr { key: 'Tindices' value { type: DT_INT32 } } }
    )");
  }
  return graph_of(text, "'Mul' input: 'loop/Switch:1' input: 'loop/x'",
                  "'Mul' input: 'loop/a_0' input: 'loop/b_0'");
}

TEST(Loops, LoopJoinsVariablesOfOneTask) {
  const Graph graph = structured(with_lookups("/job:ps/task:0", "/job:ps/task:0"));
  verify(graph, "structure_loops");
  const Node& node = *graph.find("loop/Cond");
  EXPECT_EQ(node.attr<std::vector<DType>>("Tcaptured"),
            (std::vector{DType::f32, DType::resource, DType::resource}));
  EXPECT_TRUE(LoopParts(node).body.find("loop/a_0")->is("ResourceGather"));
}

TEST(Loops, VariablesOfSeveralTasksAreReadBeforeTheLoop) {
  const Graph graph = structured(with_lookups("/job:ps/task:0", "/job:ps/task:1"));
  verify(graph, "structure_loops");
  const Node& node = *graph.find("loop/Cond");
  EXPECT_EQ(node.attr<std::vector<DType>>("Tcaptured"),
            (std::vector{DType::f32, DType::f32, DType::f32}));
  for (const char* name : {"a", "b"}) {
    const std::string lookup = concat("loop/", name, "_0");
    ASSERT_NE(graph.find(lookup), nullptr);
    EXPECT_TRUE(graph.find(lookup)->is("ReadVariableOp"));
    EXPECT_EQ(graph.find(lookup)->inputs[0].node->name, name);
    EXPECT_TRUE(LoopParts(node).body.find(lookup)->is("GatherV2"));
  }
}

// The gradient of a nested loop looks like this.
TEST(Loops, NodesBeforeAnExitMoveBehindTheLoop) {
  const Graph graph = structured(
      graph_of(loop + node("loop/Neg", "Neg", "loop/Switch") +
                   "node { name: 'loop/Max' op: 'Maximum' input: 'loop/Neg' input: 'loop/x' "
                   "attr { key: 'T' value { type: DT_FLOAT } } }\n",
               "'Exit' input: 'loop/Switch'", "'Exit' input: 'loop/Max'"));
  EXPECT_EQ(graph.find("loop/Neg")->inputs[0].name(), "loop/Cond:0");
  EXPECT_EQ(graph.find("loop/Max")->inputs[1].name(), "x:0");
  EXPECT_EQ(graph.find("loop/Exit")->inputs[0].name(), "loop/Max:0");
  EXPECT_EQ(LoopParts(*graph.find("loop/Cond")).body.find("loop/Neg"), nullptr);
  verify(graph, "structure_loops");
}

TEST(Loops, GraphWithoutALoopIsUnchanged) {
  const Graph graph = graph_of(loop);
  EXPECT_EQ(dump(structured(graph, {"x:0"})), dump(prune(graph, {.fetches = {"x:0"}})));
}

void expect_refused(const Graph& graph, std::string_view message,
                    std::vector<std::string> fetches = {"loop/Exit:0"}) {
  expect_error([&] { structured(graph, std::move(fetches)); }, Code::invalid_argument, message);
}

TEST(Loops, RejectsMalformedLoopsWithFrameAndNode) {
  expect_refused(graph_of(loop),
                 "'loop/Mul' is within the while loop 'loop/frame' and cannot be "
                 "fetched: it has a value in each iteration; take the loop's "
                 "result\n\t [[{{node loop/Mul}}]]",
                 {"loop/Mul:0", "loop/Exit:0"});
  expect_refused(
      graph_of(loop, "'LoopCond' input: 'loop/Less'",
               "'Identity' input: 'loop/Less' attr { key: 'T' value { type: DT_BOOL } }"),
      "while loop 'loop/frame': it has no LoopCond\n\t [[{{node loop/Enter}}]]");
  expect_refused(graph_of(loop, "'Exit' input: 'loop/Switch'", "'Exit' input: 'loop/Mul'"),
                 "while loop 'loop/frame': Exit node 'loop/Exit' does not follow the Switch of a "
                 "loop variable\n\t [[{{node loop/Exit}}]]");
  expect_refused(graph_of(loop, "'Exit' input: 'loop/Switch'", "'Exit' input: 'zero'"),
                 "Exit node 'loop/Exit' leaves a while loop, but its input is in none\n\t "
                 "[[{{node loop/Exit}}]]");
  expect_refused(graph_of(loop + node("after", "Neg", "loop/Mul")),
                 "'after' is within the while loop 'loop/frame' and cannot be fetched: it has a "
                 "value in each iteration; take the loop's result\n\t [[{{node after}}]]",
                 {"after:0"});
  expect_refused(
      graph_of(loop, "'NextIteration' input: 'loop/Mul'", "'NextIteration' input: 'x'"),
      "while loop 'loop/frame': NextIteration node 'loop/Next' takes a value from outside "
      "the loop\n\t [[{{node loop/Next}}]]");
  expect_refused(
      graph_of(loop + node("loop/Neg", "Neg", "loop/Switch") +
                   "node { name: 'loop/Max' op: 'Maximum' input: 'loop/Neg' input: 'loop/Merge' "
                   "attr { key: 'T' value { type: DT_FLOAT } } }\n",
               "'Exit' input: 'loop/Switch'", "'Exit' input: 'loop/Max'"),
      "while loop 'loop/frame': Maximum node 'loop/Max' mixes 'loop/Merge:0', a value of one "
      "iteration, with a value from the end of the loop\n\t [[{{node loop/Max}}]]");
  // Another variable starts from the loop's result.
  const std::string other = R"(
    node { name: 'u' op: 'Enter' input: 'loop/Exit' attr { key: 'T' value { type: DT_FLOAT } }
           attr { key: 'frame_name' value { s: 'loop/frame' } } }
    node { name: 'u/Merge' op: 'Merge' input: 'u' input: 'u/Next'
           attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'N' value { i: 2 } } }
    node { name: 'u/Switch' op: 'Switch' input: 'u/Merge' input: 'loop/Cond'
           attr { key: 'T' value { type: DT_FLOAT } } }
  )" + node("u/Next", "NextIteration", "u/Switch:1") +
                            node("u/Exit", "Exit", "u/Switch");
  expect_refused(graph_of(loop + other),
                 "while loop 'loop/frame' waits for its own result\n\t "
                 "[[{{node loop/Enter}}]]",
                 {"u/Exit:0"});
}

}  // namespace
}  // namespace leat
