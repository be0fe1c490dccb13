// fuse: which nodes become one, and which must not.
#include <gtest/gtest.h>

#include "graph/fused.h"
#include "graph/import/graph_def.h"
#include "graph/loops/loops.h"
#include "graph/passes/pipeline.h"
#include "graph/text.h"

namespace leat {
namespace {

constexpr std::string_view cpu = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr std::string_view gpu = "/job:localhost/replica:0/task:0/device:GPU:0";

// x and y have rows of 100, w turns such rows into others, b is added to each.
std::string with_feeds(std::string_view text) {
  return std::string(
             "x = _Feed(dtype=float, name='x:0', shape=[?,100])\n"
             "y = _Feed(dtype=float, name='y:0', shape=[?,100])\n"
             "w = _Feed(dtype=float, name='w:0', shape=[100,100])\n"
             "b = _Feed(dtype=float, name='b:0', shape=[100])\n") +
         std::string(text);
}

Graph placed(std::string_view text, std::string_view device = cpu) {
  Graph graph = parse(with_feeds(text));
  for (const auto& node : graph.nodes()) node->assigned_device = DeviceName::parse(device);
  return graph;
}

// A line for each node that is no feed: its inputs, and what it computes.
std::string fused(Graph graph, const StepSignature& signature) {
  fuse(graph, signature, {});
  verify(graph, "fuse");
  std::string out;
  for (const auto& node : graph.nodes()) {
    if (node->is("_Feed")) continue;
    out += node->name + " =";
    for (const Output& input : node->inputs) out += " " + input.name();
    for (const Node* control : node->control_inputs) out += " ^" + control->name;
    out += "; " + op_title(node->view()) + "\n";
  }
  return out;
}

std::string fused(std::string_view text, const StepSignature& signature) {
  return fused(placed(text), signature);
}

TEST(Fuse, MakesOneNodeOfAChain) {
  EXPECT_EQ(fused("s = BiasAdd(x, b); r = Relu(s); p = Softmax(r)", {.fetches = {"p:0"}}),
            "p = x:0 b:0; BiasAdd + Relu + Softmax\n");
}

TEST(Fuse, GivesAllValuesThatOthersUse) {
  EXPECT_EQ(fused("s = BiasAdd(x, b); t = Tanh(s); m = MatMul(s, w); n = MatMul(t, w)",
                  {.fetches = {"m:0", "n:0"}}),
            "t/fused = x:0 b:0; BiasAdd + Tanh\nm = t/fused:0 w:0; MatMul\n"
            "n = t/fused:1 w:0; MatMul\n");
}

TEST(Fuse, KeepsTheNamesOfEndpoints) {
  EXPECT_EQ(fused("s = BiasAdd(x, b); t = Tanh(s); u = Neg(t)", {.fetches = {"s:0", "t:0", "u:0"}}),
            "s = x:0 b:0; BiasAdd + Tanh + Neg\nt = s:1; Identity\nu = s:2; Identity\n");
}

TEST(Fuse, LeavesWhatOtherNodesSeparate) {
  // r is needed before the product, the sum behind it.
  const char* const text = "r = Relu(x); m = MatMul(r, w); s = Add(r, m); t = Tanh(s)";
  EXPECT_EQ(fused(text, {.fetches = {"t:0"}}), "r = x:0; Relu\nt = r:0 w:0; MatMul + Add + Tanh\n");
}

TEST(Fuse, ComputesWhatIsNotYetNeededWithItsUsers) {
  EXPECT_EQ(fused("q = Square(x); m = MatMul(x, w); s = Mul(q, m)", {.fetches = {"s:0"}}),
            "s = x:0 w:0; MatMul + Square + Mul\n");
}

TEST(Fuse, ComputesEarlyWhatIsSmallerThanItsInputs) {
  EXPECT_EQ(fused("g = Greater(x, y); m = MatMul(x, w); n = Neg(m); s = SelectV2(g, n, y)",
                  {.fetches = {"s:0"}}),
            "g = x:0 y:0; Greater\ns = x:0 w:0 g:0 y:0; MatMul + Neg + SelectV2\n");
}

TEST(Fuse, ComputesAFactorOfAGradientWithTheBackwardPart) {
  const auto fused_in = [](const std::string& scope) {
    return fused(concat("t = Tanh(x); ", scope, "/f = Square(t); h = MatMul(t, w); ", scope,
                        "/l = MatMul(h, w); ", scope, "/g = MatMul(", scope, "/f, ", scope, "/l)"),
                 {.fetches = {scope + "/g:0"}});
  };
  EXPECT_NE(fused_in("layer").find("; Tanh + Square\n"), std::string::npos);
  EXPECT_NE(fused_in("gradients").find("gradients/f = t:0; Square"), std::string::npos);
}

TEST(Fuse, PutsAProductThatNobodyElseUsesAtTheHead) {
  EXPECT_EQ(fused("m = MatMul(x, w); s = BiasAdd(m, b); r = Relu(s)", {.fetches = {"r:0"}}),
            "r = x:0 w:0 b:0; MatMul + BiasAdd + Relu\n");
  // One head for each node; what else uses a product gets it as before.
  EXPECT_EQ(
      fused("m = MatMul(x, w); n = MatMul(y, w); s = Add(m, n); r = Relu(s)", {.fetches = {"r:0"}}),
      "n = y:0 w:0; MatMul\nr = x:0 w:0 n:0; MatMul + Add + Relu\n");
  // A product that is only added to a value rounds once less in one node: what is behind another
  // device's border must not change that.
  EXPECT_EQ(fused("m = MatMul(x, w); n = MatMul(y, w); s = Add(m, n)", {.fetches = {"s:0"}}),
            "m = x:0 w:0; MatMul\nn = y:0 w:0; MatMul\ns = m:0 n:0; Add\n");
  EXPECT_EQ(fused("m = MatMul(x, w); s = Add(m, x)", {.fetches = {"s:0"}}),
            "s = x:0 w:0; MatMul + Add\n");
  EXPECT_EQ(fused("m = MatMul(x, w); r = Relu(m); n = MatMul(m, w)", {.fetches = {"r:0", "n:0"}}),
            "m = x:0 w:0; MatMul\nr = m:0; Relu\nn = m:0 w:0; MatMul\n");
  EXPECT_EQ(fused("m = MatMul(x, w); r = Relu(m)", {.fetches = {"m:0", "r:0"}}),
            "m = x:0 w:0; MatMul\nr = m:0; Relu\n");
}

TEST(Fuse, TakesReductionsOfRowsWithTheirAxes) {
  EXPECT_EQ(fused("a = Const(dtype=int32, value=int32[] [1]); q = Square(x);"
                  "m = Mean(q, a, keep_dims=true); r = Rsqrt(m); z = Mul(x, r)",
                  {.fetches = {"z:0"}}),
            "a =; Const\nz = x:0; Square + Mean + Rsqrt + Mul\n");
}

TEST(Fuse, SumsRowsLast) {
  // Nobody in the group uses a sum of all rows.
  EXPECT_EQ(fused("r = ReluGrad(x, y); g = BiasAddGrad(r); n = Neg(g); z = Mul(r, n)",
                  {.fetches = {"z:0"}}),
            "g/fused = x:0 y:0; ReluGrad + BiasAddGrad\nn = g/fused:1; Neg\n"
            "z = g/fused:0 n:0; Mul\n");
}

TEST(Fuse, LeavesOtherShapesTypesAndDevices) {
  const StepSignature signature{.fetches = {"z:0"}};
  // A vector is no value of rows, small values are in the cache, and integers may divide by zero.
  EXPECT_EQ(fused("n = Neg(b); z = Add(x, n)", signature), "n = b:0; Neg\nz = x:0 n:0; Add\n");
  EXPECT_EQ(
      fused("v = _Feed(dtype=float, name='v:0', shape=[8]); n = Neg(v); z = Tanh(n)", signature),
      "n = v:0; Neg\nz = n:0; Tanh\n");
  EXPECT_EQ(fused("v = _Feed(dtype=int32, name='v:0', shape=[?,100]); n = Neg(v); z = Square(n)",
                  signature),
            "n = v:0; Neg\nz = n:0; Square\n");
  EXPECT_EQ(fused(placed("n = Neg(x); z = Tanh(n)", gpu), signature),
            "n = x:0; Neg\nz = n:0; Tanh\n");
}

TEST(Fuse, LeavesValuesOfOtherBranches) {
  const char* const text =
      "p = _Feed(dtype=bool, name='p:0', shape=[]); s = Switch(x, p); v = Switch(y, p);"
      "a = Neg(s:1); c = Add(a, v:1); d = Tanh(c); e = Neg(x); f = Add(e, d)";
  // What is in one branch may be one node. e is computed in any case.
  EXPECT_EQ(fused(text, {.fetches = {"e:0", "f:0"}}),
            "s = x:0 p:0; Switch\nv = y:0 p:0; Switch\ne = x:0; Neg\n"
            "f = s:1 v:1 e:0; Neg + Add + Tanh + Add\n");
}

TEST(Fuse, LeavesWhatRunsAfterUpdatesOrWaits) {
  const StepSignature signature{.fetches = {"z:0"}};
  EXPECT_EQ(fused("q = VariableV2(dtype=float, shape=[100,100]); u = AssignAdd(q, w); n = Neg(u);"
                  "z = Tanh(n)",
                  signature),
            "q =; VariableV2\nu = q:0 w:0; AssignAdd\nn = u:0; Neg\nz = n:0; Tanh\n");
  EXPECT_EQ(fused("n = Neg(x); z = Tanh(n), ^y", signature), "n = x:0; Neg\nz = n:0 ^y; Tanh\n");
}

TEST(Fuse, LetsOthersWaitForAll) {
  EXPECT_EQ(fused("n = Neg(x); t = Tanh(n); z = NoOp(), ^n, ^t", {.targets = {"z"}}),
            "t = x:0; Neg + Tanh\nz = ^t; NoOp\n");
}

TEST(Fuse, FusesTheBodiesOfLoops) {
  Graph graph = parse(R"(
    x = _Feed(dtype=float, name='x:0', shape=[400])
    n = Const(dtype=int32, value=int32[] [3])
    zero = Const(dtype=int32, value=int32[] [0])
    one = Const(dtype=int32, value=int32[] [1])
    i = Enter(zero, frame_name='f')
    v = Enter(x, frame_name='f')
    limit = Enter(n, frame_name='f', is_constant=true)
    step = Enter(one, frame_name='f', is_constant=true)
    im = Merge(i, _leat_back_edge='in')
    vm = Merge(v, _leat_back_edge='vn')
    less = Less(im, limit)
    go = LoopCond(less)
    is = Switch(im, go)
    vs = Switch(vm, go)
    a = Neg(vs:1)
    b = Tanh(a)
    j = Add(is:1, step)
    in = NextIteration(j)
    vn = NextIteration(b)
    out = Exit(vs)
  )");
  const StepSignature signature{.fetches = {"out:0"}};
  ASSERT_TRUE(structure_loops(graph, signature));
  for (const auto& node : graph.nodes()) node->assigned_device = DeviceName::parse(cpu);
  fuse(graph, signature, {});
  for (const auto& node : graph.nodes()) {
    if (!node->is("_Loop")) continue;
    Graph body;
    from_graph_def(node->attr<std::string>("body"), body);
    EXPECT_EQ(fused(std::move(body), {}),
              "one =; Const\nb = go/variable_1:0; Neg + Tanh\nj = go/variable_0:0 one:0; Add\n");
  }
}

TEST(Fuse, HasATitleOfAFewOps) {
  std::string text = "n0 = Neg(x);";
  for (int i = 1; i < 7; ++i) text += concat("n", i, " = Neg(n", i - 1, ");");
  EXPECT_EQ(fused(text, {.fetches = {"n6:0"}}), "n6 = x:0; Neg + Neg + Neg + Neg + 3 more\n");
}

}  // namespace
}  // namespace leat
