// The meaning of a GraphDef depends on the version of TensorFlow that wrote it. The values are
// those of TensorFlow 2.21.
#include "graph/import/graph_versions.h"

#include <gtest/gtest.h>

#include "graph/import/graph_def.h"
#include "graph/text.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

Graph graph_of(const std::string& nodes, std::string_view versions) {
  Graph graph;
  from_graph_def_text(concat(nodes, "versions { ", versions, " }"), graph,
                      {.allow_internal = false});
  return graph;
}

void expect_refused(const std::string& nodes, std::string_view versions, Code code,
                    std::string_view message) {
  expect_error([&] { graph_of(nodes, versions); }, code, message);
}

const std::string nothing = "node { name: 'a' op: 'NoOp' }\n";

TEST(GraphVersions, RestrictWhichVersionsMayReadAGraph) {
  graph_of(nothing, "producer: 2474 min_consumer: 2474");
  graph_of(nothing, "producer: 9000 min_consumer: 12 bad_consumers: 2473");
  expect_refused(nothing, "producer: 9000 min_consumer: 2475", Code::invalid_argument,
                 "GraphDef min consumer version 2475 above current version 2474: the graph needs "
                 "features that Leat does not have yet");
  expect_refused(nothing, "producer: 9000 bad_consumers: 7 bad_consumers: 2474",
                 Code::invalid_argument,
                 "GraphDef disallows consumer version 2474, which is Leat's: the graph's "
                 "writer declared that this version runs it wrongly");
  expect_refused(nothing, "producer: -1", Code::invalid_argument,
                 "GraphDef producer version -1 below min producer 0: write the graph again");
}

Shape shape_of_placeholder(std::string_view shape, std::string_view versions) {
  const Graph graph =
      graph_of(concat("node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value "
                      "{ type: DT_FLOAT } } ",
                      shape, " }\n"),
               versions);
  return graph.find("x")->outputs[0].shape;
}

TEST(GraphVersions, EmptyPlaceholderShapeMeansUnknownBefore22) {
  const std::string empty = "attr { key: 'shape' value { shape { } } }";
  const std::string two = "attr { key: 'shape' value { shape { dim { size: 2 } } } }";
  for (const char* versions : {"", "producer: 0", "producer: 21"}) {
    EXPECT_EQ(shape_of_placeholder(empty, versions), Shape::unknown()) << versions;
    EXPECT_EQ(shape_of_placeholder(two, versions), Shape{2}) << versions;
    EXPECT_EQ(shape_of_placeholder("", versions), Shape::unknown()) << versions;
  }
  for (const char* versions : {"producer: 22", "producer: 2474"})
    EXPECT_EQ(shape_of_placeholder(empty, versions), Shape{}) << versions;
}

TEST(GraphVersions, RemovedOpsEndWithTheirVersion) {
  const std::string diag =
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n"
      "node { name: 'y' op: 'BatchMatrixDiag' input: 'x' attr { key: 'T' value { type: DT_FLOAT } "
      "} }\n";
  graph_of(diag, "producer: 13");
  for (const int version : {14, 2474}) {
    expect_refused(diag, concat("producer: ", version), Code::unimplemented,
                   concat("Op BatchMatrixDiag is not available in GraphDef version ", version,
                          ". It has been removed in version 14. Use MatrixDiag."));
  }
}

// Nodes of an old graph are also read in newer ones: in its partitions, and in what a program
// saves.
TEST(GraphVersions, OldNodesCanBeWrittenAndReadAgain) {
  const char* const old =
      "x = Placeholder(dtype=float)\n"
      "a = TensorArrayCloseV2(handle)\n";
  Graph graph = parse(concat("handle = Placeholder(dtype=string)\n", old));
  Graph copy;
  from_graph_def(to_graph_def(graph), copy);
  EXPECT_EQ(dump(copy), dump(graph));
}

// ---- Stacks of version 1 ----

std::string attr(std::string_view name, std::string_view value) {
  return concat("attr { key: '", name, "' value { ", value, " } } ");
}
const std::string text_type = attr("T", "type: DT_STRING");
const std::string in_frame = attr("frame_name", "s: 'loop'") + attr("is_constant", "b: true");

TEST(GraphVersions, OldStacksBecomeNewStacks) {
  const Graph graph =
      graph_of("node { name: 's' op: 'Stack' device: '/job:ps' " +
                   attr("elem_type", "type: DT_FLOAT") + attr("stack_name", "s: 'kept'") + "}\n" +
                   "node { name: 's/max_size' op: 'NoOp' }\n"
                   "node { name: 'p' op: 'Placeholder' " +
                   attr("dtype", "type: DT_BOOL") + "}\n" + "node { name: 'x' op: 'Placeholder' " +
                   attr("dtype", "type: DT_FLOAT") + "}\n" +
                   "node { name: 'in' op: 'RefEnter' input: 's' " + text_type + in_frame + "}\n" +
                   "node { name: 'branch' op: 'RefSwitch' input: 'in' input: 'p' " + text_type +
                   "}\n" + "node { name: 'push' op: 'StackPush' input: 'branch:1' input: 'x' " +
                   attr("T", "type: DT_FLOAT") + attr("swap_memory", "b: true") + "}\n" +
                   "node { name: 'pop' op: 'StackPop' input: 's' input: '^push' " +
                   attr("elem_type", "type: DT_FLOAT") + "}\n" +
                   "node { name: 'close' op: 'StackClose' input: 's' input: '^pop' }\n",
               "producer: 15");
  EXPECT_EQ(dump(graph),
            "p = Placeholder(dtype=bool)\n"
            "s/max_size = NoOp()\n"
            "s/max_size_1 = Const(dtype=int32, value=int32[] [-1]) @/job:ps\n"
            "s = StackV2(s/max_size_1, elem_type=float, stack_name=\"kept\") @/job:ps\n"
            "in = Enter(s, frame_name=\"loop\", is_constant=true)\n"
            "branch = Switch(in, p)\n"
            "x = Placeholder(dtype=float)\n"
            "push = StackPushV2(branch:1, x, swap_memory=true)\n"
            "pop = StackPopV2(s, elem_type=float), ^push\n"
            "close = StackCloseV2(s), ^pop\n");
}

// The gradient of a loop comes after the loop has run and gets the stack's handle from there.
TEST(GraphVersions, ExtensionsUseOldStacks) {
  Graph graph =
      graph_of("node { name: 's' op: 'Stack' " + attr("elem_type", "type: DT_FLOAT") + "}\n",
               "producer: 15");
  from_graph_def_text("node { name: 'in' op: 'RefEnter' input: 's' " + text_type + in_frame +
                          "}\n" + "node { name: 'on' op: 'RefIdentity' input: 'in' " + text_type +
                          "}\n" + "node { name: 'pop' op: 'StackPop' input: 'on' " +
                          attr("elem_type", "type: DT_FLOAT") + "}\nversions { producer: 15 }",
                      graph);
  EXPECT_TRUE(graph.find("in")->is("Enter"));
  EXPECT_TRUE(graph.find("on")->is("Identity"));
  EXPECT_TRUE(graph.find("pop")->is("StackPopV2"));
}

TEST(GraphVersions, StringReferencesAreNotStacks) {
  const Graph graph =
      graph_of("node { name: 'v' op: 'VariableV2' " + attr("dtype", "type: DT_STRING") +
                   attr("shape", "shape { }") + "}\n" + "node { name: 's' op: 'Stack' " +
                   attr("elem_type", "type: DT_FLOAT") + "}\n" +
                   "node { name: 'in' op: 'RefEnter' input: 'v' " + text_type + in_frame + "}\n",
               "producer: 15");
  EXPECT_TRUE(graph.find("in")->is("RefEnter"));
}

}  // namespace
}  // namespace leat
