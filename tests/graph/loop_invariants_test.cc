// hoist_loop_invariants: what leaves a loop, and what stays in it.
#include <gtest/gtest.h>

#include <utility>

#include "graph/import/graph_def.h"
#include "graph/loops/loops.h"
#include "tests/graph/simplified.h"

namespace leat {
namespace {

// `node` in each iteration, of `loop/x`, a matrix that no iteration changes, and `loop/v`, one that
// each does.
Graph loop_with(const std::string& nodes,
                const std::string& shape = "dim { size: 16 } dim { size: 16 }") {
  const auto node = [](const std::string& name, const std::string& op, const std::string& inputs,
                       const std::string& attrs = "") {
    std::string out = concat("node { name: '", name, "' op: '", op, "' ");
    for (size_t begin = 0; begin < inputs.size();) {
      const size_t end = std::min(inputs.find(' ', begin), inputs.size());
      out += concat("input: '", inputs.substr(begin, end - begin), "' ");
      begin = end + 1;
    }
    return concat(out, attrs, " }\n");
  };
  const std::string f = "attr { key: 'T' value { type: DT_FLOAT } } ";
  const std::string b = "attr { key: 'T' value { type: DT_BOOL } } ";
  const std::string frame = "attr { key: 'frame_name' value { s: 'frame' } } ";
  const std::string constant = "attr { key: 'is_constant' value { b: true } } ";
  const auto placeholder = [&](const std::string& name, const std::string& type,
                               const std::string& extents) {
    return node(name, "Placeholder", "",
                concat("attr { key: 'dtype' value { type: ", type,
                       " } } attr { key: 'shape' value { shape { ", extents, " } } }"));
  };
  Graph graph;
  from_graph_def_text(placeholder("x", "DT_FLOAT", shape) + placeholder("p", "DT_BOOL", "") +
                          placeholder("start", "DT_FLOAT", "dim { size: 16 } dim { size: 16 }") +
                          node("loop/Enter", "Enter", "start", f + frame) +
                          node("loop/x", "Enter", "x", f + frame + constant) +
                          node("loop/p", "Enter", "p", b + frame + constant) +
                          node("loop/Merge", "Merge", "loop/Enter loop/Next",
                               f + "attr { key: 'N' value { i: 2 } } ") +
                          node("loop/Cond", "LoopCond", "loop/p") +
                          node("loop/Switch", "Switch", "loop/Merge loop/Cond", f) +
                          node("loop/v", "Identity", "loop/Switch:1", f) + nodes +
                          node("loop/Next", "NextIteration", "loop/z", f) +
                          node("loop/Exit", "Exit", "loop/Switch", f),
                      graph);
  const StepSignature signature{.fetches = {"loop/Exit:0"}};
  graph = prune(graph, signature);
  structure_loops(graph, signature);
  infer(graph);
  return simplified(std::move(graph), signature);
}

std::string floats(const std::string& name, const std::string& op, const std::string& a,
                   const std::string& b = "") {
  return concat("node { name: '", name, "' op: '", op, "' input: '", a, "' ",
                b.empty() ? "" : concat("input: '", b, "' "),
                "attr { key: 'T' value { type: DT_FLOAT } } }\n");
}

std::string body_of(const Graph& graph) {
  return dump(LoopParts(*graph.find("loop/Cond")).body, {.attrs = false});
}

TEST(LoopInvariants, ComputesProductsBeforeTheLoop) {
  const Graph graph =
      loop_with(floats("loop/a", "MatMul", "loop/x", "loop/x") +
                floats("loop/b", "Tanh", "loop/a") + floats("loop/z", "Mul", "loop/v", "loop/b"));
  ASSERT_NE(graph.find("loop/b"), nullptr);
  EXPECT_EQ(graph.find("loop/b")->inputs[0].name(), "loop/a:0");
  EXPECT_EQ(graph.find("loop/a")->inputs[0].name(), "x:0");
  EXPECT_EQ(graph.find("loop/a")->attr<std::vector<std::string>>("_class"),
            std::vector<std::string>{"loc:@loop/Cond"});
  const Node& loop = *graph.find("loop/Cond");
  EXPECT_EQ(loop.inputs.back().name(), "loop/b:0");
  EXPECT_EQ(loop.attr<std::vector<DType>>("Tcaptured").size() + 1, loop.inputs.size());
  EXPECT_EQ(body_of(graph),
            "loop/Cond/variable_0 = _Feed()\nloop/b = _Feed()\n"
            "loop/z = Mul(loop/Cond/variable_0, loop/b)\n");
}

TEST(LoopInvariants, ServesTheNextValueItself) {
  const Graph graph = loop_with(floats("loop/z", "MatMul", "loop/x", "loop/x"));
  EXPECT_NE(graph.find("loop/z"), nullptr);
  EXPECT_EQ(body_of(graph), "loop/z = _Feed()\n");
}

TEST(LoopInvariants, LeavesVariablesAndWhatMayFail) {
  const std::string product = floats("loop/z", "MatMul", "loop/v", "loop/x");
  EXPECT_EQ(loop_with(product).find("loop/z"), nullptr);
  const std::string of_unknown =
      floats("loop/a", "MatMul", "loop/x", "loop/x") + floats("loop/z", "Mul", "loop/v", "loop/a");
  EXPECT_EQ(loop_with(of_unknown, "dim { size: 16 } dim { size: -1 }").find("loop/a"), nullptr)
      << "without an iteration, the step would fail";
  EXPECT_NE(loop_with(of_unknown).find("loop/a"), nullptr);
}

TEST(LoopInvariants, TransposesTheMatrixOfProductsOfFewRows) {
  const auto loop_of_rows = [](int rows) {
    const std::string shaped = concat(
        "node { name: 'loop/r' op: 'EnsureShape' input: 'loop/v' attr { key: 'T' value { type: "
        "DT_FLOAT } } attr { key: 'shape' value { shape { dim { size: ",
        rows, " } dim { size: 256 } } } } }\n");
    std::string product = floats("loop/z", "MatMul", "loop/r", "loop/x");
    product.insert(product.rfind('}'), "attr { key: 'transpose_b' value { b: true } } ");
    return loop_with(shaped + product, "dim { size: 128 } dim { size: 256 }");
  };
  const Graph graph = loop_of_rows(32);
  const Node* turned = graph.find("loop/z/turned");
  ASSERT_NE(turned, nullptr);
  EXPECT_TRUE(turned->is("Transpose"));
  EXPECT_EQ(turned->inputs[0].name(), "x:0");
  EXPECT_EQ(graph.find("loop/Cond")->inputs.back().name(), "loop/z/turned:0");
  const Graph body = LoopParts(*graph.find("loop/Cond")).body;
  EXPECT_FALSE(body.find("loop/z")->attr<bool>("transpose_b"));
  EXPECT_EQ(body.find("loop/z")->inputs[1].name(), "loop/z/turned:0");
  EXPECT_EQ(loop_of_rows(8).find("loop/z/turned"), nullptr) << "no faster";
  EXPECT_EQ(loop_of_rows(512).find("loop/z/turned"), nullptr) << "no faster";
}

TEST(LoopInvariants, LeavesWhatIsSmall) {
  const std::string scalar =
      floats("loop/a", "Tanh", "loop/x") + floats("loop/z", "Mul", "loop/v", "loop/a");
  EXPECT_EQ(loop_with(scalar, "dim { size: 1 }").find("loop/a"), nullptr);
}

}  // namespace
}  // namespace leat
