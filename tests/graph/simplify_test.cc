// simplify, part by part: what must stay and what must go.
#include "graph/passes/simplify/simplify.h"

#include <gtest/gtest.h>

#include "graph/evaluate.h"
#include "graph/shape_inference.h"
#include "graph/text.h"
#include "tests/graph/simplified.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

std::string simplified(std::string_view text, const StepSignature& signature) {
  return dump(leat::simplified(parse(text), signature));
}

using Part = void (*)(Graph&, const KeptNames&);

std::string run(Part part, std::string_view text, const StepSignature& signature = {}) {
  Graph graph = parse(text);
  const KeptNames kept(graph, signature);
  part(graph, kept);
  verify(graph, "simplify");
  return dump(graph, {.attrs = false});
}

// ---- Constants ----

TEST(Fold, EvaluatesNodesThatDependOnlyOnConstants) {
  EXPECT_EQ(
      simplified(
          "a = Const(dtype=float, value=float[1,2] [1, 2]); b = MatMul(a, a, transpose_b=true);"
          "c = Identity(b)",
          {.fetches = {"c:0"}}),
      "c = Const(dtype=float, value=float[1,1] [5.0])\n");
}

TEST(Fold, KeepsUsersOfFeedsVariablesRandomNumbersAndSwitches) {
  const char* const text = R"(
    c = Const(dtype=float, value=float[2] [1, 2])
    p = Const(dtype=bool, value=bool[] [true])
    x = _Feed(dtype=float, name='x:0')
    y = Softmax(x)
    w = VariableV2(dtype=float, shape=[2])
    set = Assign(w, c)
    read = Identity(w)
    n = Const(dtype=int32, value=int32[1] [2])
    r = RandomUniform(n, dtype=float)
    s = Switch(c, p)
    m = Merge(s, s:1)
  )";
  EXPECT_EQ(run(fold_constants, text), dump(parse(text), {.attrs = false}));
}

TEST(Fold, KeepsConstantsInTheirBranch) {
  EXPECT_EQ(run(fold_constants, R"(
    p = _Feed(dtype=bool, name='p:0')
    s = Switch(p, p)
    pivot = Identity(s:1)
    a = Const(dtype=float, value=float[2] [1, 2]), ^pivot
    b = Softmax(a)
    c = Softmax(b)
  )"),
            "p = _Feed()\ns = Switch(p, p)\npivot = Identity(s:1)\na = Const(), ^pivot\n"
            "b = Const(), ^pivot\nc = Const(), ^pivot\n");
}

TEST(Fold, MakesEveryOutputAConstant) {
  Graph graph = parse(
      "d = Const(dtype=int32, value=int32[] [0]); x = Const(dtype=float, value=float[2] [1, 2]);"
      "s = Split(d, x, num_split=2); y = _Feed(dtype=float, name='y:0'); z = Pack(s:1, y, s)");
  simplify(graph, {.fetches = {"z:0"}});
  EXPECT_EQ(dump(graph),
            "s/_folded_0 = Const(dtype=float, value=float[1] [1.0])\n"
            "s/_folded_1 = Const(dtype=float, value=float[1] [2.0])\n"
            "y = _Feed(dtype=float, name=\"y:0\")\n"
            "z = Pack(s/_folded_1, y, s/_folded_0)\n");
}

TEST(Fold, FetchedNodeOfManyOutputsKeepsItsName) {
  const char* const text =
      "d = Const(dtype=int32, value=int32[] [0]); x = Const(dtype=float, value=float[2] [1, 2]);"
      "s = Split(d, x, num_split=2)";
  EXPECT_NE(simplified(text, {.fetches = {"s:1"}}).find("s = Split(d, x"), std::string::npos);
}

TEST(Fold, FoldsKnownShapesWithoutTheirTensor) {
  EXPECT_EQ(
      simplified(
          "x = _Feed(dtype=float, name='x:0', shape=[3,4]); s = Shape(x); r = Rank(x); z = Size(x)",
          {.fetches = {"s:0", "r:0", "z:0"}}),
      "r = Const(dtype=int32, value=int32[] [2])\ns = Const(dtype=int32, value=int32[2] [3, 4])\n"
      "z = Const(dtype=int32, value=int32[] [12])\n");
  EXPECT_EQ(run(fold_constants, "x = _Feed(dtype=float, name='x:0', shape=[?,4]); s = Shape(x)"),
            "x = _Feed()\ns = Shape(x)\n");
  EXPECT_EQ(run(fold_constants,
                "x = _Feed(dtype=float, name='x:0', shape=[3]); p = _Feed(dtype=bool, name='p:0');"
                "s = Switch(x, p); y = Shape(s)"),
            "p = _Feed()\nx = _Feed()\ns = Switch(x, p)\ny = Shape(s)\n")
      << "dead if the branch is not taken";
}

TEST(Fold, MakesNoLargeConstants) {
  EXPECT_EQ(run(fold_constants,
                "d = Const(dtype=int32, value=int32[1] [3000000]); v = Const(dtype=float, "
                "value=float[] [1]);"
                "f = Fill(d, v)"),
            "d = Const()\nv = Const()\nf = Fill(d, v)\n");
}

TEST(Fold, LeavesErrorsToTheStep) {
  const char* const text =
      "x = Const(dtype=float, value=float[2] [1, 2]); i = Const(dtype=int32, value=int32[1] [7]);"
      "a = Const(dtype=int32, value=int32[] [0]); g = GatherV2(x, i, a)";
  EXPECT_EQ(run(fold_constants, text),
            "a = Const()\ni = Const()\nx = Const()\ng = GatherV2(x, i, a)\n");
}

TEST(Fold, KeepsDeviceAndFreeAttributes) {
  Graph graph = parse(
      "a = Const(dtype=float, value=float[2] [1, 2]); b = Softmax(a, _class={'loc:@w'}) @/job:ps");
  simplify(graph, {.fetches = {"b:0"}});
  EXPECT_TRUE(graph.find("b")->is("Const"));
  EXPECT_EQ(graph.find("b")->requested_device, DeviceName::parse("/job:ps"));
  EXPECT_TRUE(graph.find("b")->view().has("_class"));
}

// ---- Common subexpressions ----

const std::string feed = "x = _Feed(dtype=float, name='x:0'); ";

TEST(CommonSubexpressions, MergesEqualNodes) {
  EXPECT_EQ(
      run(merge_common_subexpressions,
          feed + "a = Softmax(x); b = Softmax(x); c = Softmax(b); d = Softmax(a); e = NoOp(), ^d"),
      "x = _Feed()\na = Softmax(x)\nc = Softmax(a)\ne = NoOp(), ^c\n");
}

TEST(CommonSubexpressions, MergesEqualConstants) {
  EXPECT_EQ(run(merge_common_subexpressions,
                "a = Const(dtype=float, value=float[2] [1, 2]); b = Const(dtype=float, "
                "value=float[2] [1, 2]);"
                "c = Const(dtype=float, value=float[2] [1, 3]); d = Pack(a, b, c)"),
            "a = Const()\nc = Const()\nd = Pack(a, a, c)\n");
}

TEST(CommonSubexpressions, KeepsNodesThatDiffer) {
  const std::string text =
      feed +
      "n = NoOp(); a = MatMul(x, x); b = MatMul(x, x, transpose_a=true); c = MatMul(x, x), ^n;"
      "d = MatMul(x, x) @/job:ps; p = Placeholder(dtype=float); q = Placeholder(dtype=float);"
      "w = VariableV2(dtype=float, shape=[2]); r = Identity(w); s = Identity(w);"
      "k = NoOp(); l = NoOp()";
  EXPECT_EQ(run(merge_common_subexpressions, text), dump(parse(text), {.attrs = false}));
}

TEST(CommonSubexpressions, ComparesAssignedDevicesBeforeRequests) {
  Graph graph = parse(feed + "a = Softmax(x) @A; b = Softmax(x) @B; c = Softmax(x) @A");
  const DeviceName one = DeviceName::parse("/job:a/replica:0/task:0/device:CPU:0");
  const DeviceName other = DeviceName::parse("/job:a/replica:0/task:1/device:CPU:0");
  graph.find("a")->assigned_device = graph.find("b")->assigned_device = one;
  graph.find("c")->assigned_device = other;
  EXPECT_TRUE(simplify_placed(graph, {}));
  EXPECT_NE(graph.find("a"), nullptr);
  EXPECT_EQ(graph.find("b"), nullptr);
  EXPECT_NE(graph.find("c"), nullptr);
  EXPECT_FALSE(simplify_placed(graph, {}));
}

TEST(CommonSubexpressions, KeepsNodesThatTheStepNames) {
  EXPECT_EQ(
      run(merge_common_subexpressions, feed + "a = Softmax(x); b = Softmax(x); c = Softmax(x)",
          {.fetches = {"a:0", "b:0"}}),
      "x = _Feed()\na = Softmax(x)\nb = Softmax(x)\n");
}

// ---- Identities ----

TEST(RemoveIdentities, ConnectsValuesAndSignals) {
  EXPECT_EQ(run(remove_identities,
                feed + "a = Identity(x); b = StopGradient(a); c = Softmax(b); d = NoOp(), ^a"
                       "; e = Softmax(c), ^d",
                {.fetches = {"e:0"}}),
            "x = _Feed()\nc = Softmax(x)\ne = Softmax(c), ^x\n");
}

TEST(RemoveIdentities, KeepsReadsOfVariables) {
  const std::string text =
      "w = VariableV2(dtype=float, shape=[2]); r = Identity(w); y = Softmax(r)";
  EXPECT_EQ(run(remove_identities, text), "w = VariableV2()\nr = Identity(w)\ny = Softmax(r)\n");
}

// x goes from A to B, and from there to C; nobody asked for a way from A to C.
TEST(RemoveIdentities, KeepsTheWayOverADeviceThatTheUserChose) {
  const std::string on_a = "x = _Feed(dtype=float, name='x:0') @/job:a; ";
  const std::string relay = on_a + "r = Identity(x) @/job:b; y = Softmax(r) @/job:c";
  EXPECT_EQ(run(remove_identities, relay), dump(parse(relay), {.attrs = false}));
  EXPECT_EQ(run(remove_identities, on_a + "r = Identity(x) @/job:b; y = Softmax(r) @/job:b"),
            "x = _Feed() @/job:a\ny = Softmax(x) @/job:b\n");
  EXPECT_EQ(run(remove_identities, on_a + "r = Identity(x) @/job:b; y = Softmax(r) @/job:a"),
            "x = _Feed() @/job:a\ny = Softmax(x) @/job:a\n");
  EXPECT_EQ(run(remove_identities, on_a + "r = Identity(x) @/job:b; y = Softmax(r)"),
            "x = _Feed() @/job:a\ny = Softmax(x)\n");
}

TEST(RemoveIdentities, KeepsTheControlNodeOfABranch) {
  EXPECT_EQ(run(remove_identities,
                "p = _Feed(dtype=bool, name='p:0'); s = Switch(p, p); pivot = Identity(s:1);"
                "n = NoOp(), ^pivot; value = Identity(s); y = Identity(value)",
                {.fetches = {"y:0"}, .targets = {"n"}}),
            "p = _Feed()\ns = Switch(p, p)\npivot = Identity(s:1)\nn = NoOp(), ^pivot\ny = "
            "Identity(s)\n");
}

TEST(RemoveIdentities, KeepsFetchesAndColocationAnchors) {
  const std::string text =
      feed + "a = Identity(x); b = Identity(a); c = Softmax(b, _class={'loc:@b'})";
  EXPECT_EQ(run(remove_identities, text, {.fetches = {"a:0"}}),
            "x = _Feed()\na = Identity(x)\nb = Identity(a)\nc = Softmax(b)\n");
}

TEST(RemoveIdentities, KeepsNoOpsThatSaveEdges) {
  const std::string two = "a = NoOp() @A; b = NoOp() @A; ";
  EXPECT_EQ(run(remove_identities, two + "g = NoOp(), ^a, ^b; c = NoOp(), ^g",
                {.targets = {"a", "b", "c"}}),
            "a = NoOp() @A\nb = NoOp() @A\nc = NoOp(), ^a, ^b\n");
  const std::string needed = two + "g = NoOp() @A, ^a, ^b; c = NoOp() @B, ^g";
  EXPECT_EQ(run(remove_identities, needed, {.targets = {"a", "b", "c"}}),
            dump(parse(needed), {.attrs = false}));
}

TEST(RemoveIdentities, DropsSignalsBesideValuesExceptForMerge) {
  EXPECT_EQ(run(remove_identities, feed + "y = Softmax(x), ^x; m = Merge(x, y), ^y"),
            "x = _Feed()\ny = Softmax(x)\nm = Merge(x, y), ^y\n");
}

// ---- All of it ----

TEST(Simplify, RemovesUnneededNodes) {
  EXPECT_EQ(
      simplified(
          "x = _Feed(dtype=float, name='x:0', shape=[2,3]); y = Softmax(x); s = Shape(y);"
          "v = _Feed(dtype=float, name='v:0', shape=[6]); z = Reshape(v, s); unused = Identity(z)",
          {.fetches = {"z:0"}}),
      "s = Const(dtype=int32, value=int32[2] [2, 3])\n"
      "v = _Feed(dtype=float, name=\"v:0\", shape=[6])\n"
      "z = Reshape(v, s)\n");
}

// ---- Evaluation ----

TEST(Evaluate, RunsOneNode) {
  const Graph graph = parse("a = Placeholder(dtype=float); b = MatMul(a, a)");
  const Tensor a = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const std::vector<Tensor> out = evaluate(*graph.find("b"), std::vector<Tensor>{a, a});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(AttrValue(out[0]), AttrValue(Tensor::of<float>({2, 2}, {7, 10, 15, 22})));
}

TEST(Evaluate, CopiesVariables) {
  const Graph graph = parse(
      "w = VariableV2(dtype=float, shape=[2]); v = Placeholder(dtype=float, shape=[2]); a = "
      "AssignAdd(w, v);"
      "i = IsVariableInitialized(w)");
  const Tensor w = Tensor::of<float>({2}, {1, 2});
  const std::vector<Tensor> out =
      evaluate(*graph.find("a"), std::vector<Tensor>{w, Tensor::of<float>({2}, {10, 20})});
  EXPECT_EQ(AttrValue(out[0]), AttrValue(Tensor::of<float>({2}, {11, 22})));
  EXPECT_EQ(w.data<float>()[0], 1);
  EXPECT_TRUE(evaluate(*graph.find("i"), std::vector<Tensor>{w})[0].item<bool>());
}

TEST(Evaluate, RejectsRuntimeOps) {
  const Graph graph = parse("x = _Feed(dtype=float, name='x:0')");
  expect_error([&] { evaluate(*graph.find("x"), {}); }, Code::invalid_argument,
               "_Feed node 'x' (text:1) has no CPU kernel for its types; there is none");
}

}  // namespace
}  // namespace leat
