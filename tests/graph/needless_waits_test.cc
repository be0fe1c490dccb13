// drop_needless_waits: gradients that wait for each other, and all that somebody must wait for.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/graph/simplified.h"

namespace leat {
namespace {

const std::string feeds =
    "x = _Feed(dtype=float, name='x:0', shape=[2,2]); y = _Feed(dtype=float, name='y:0', "
    "shape=[2,2]); p = _Feed(dtype=bool, name='p:0', shape=[]); ";
const std::string variable = "w = VariableV2(dtype=float, shape=[2,2]); r = Identity(w); ";

// All but the feeds and the variable.
std::string simplified(const std::string& text, const StepSignature& signature) {
  std::istringstream lines(simplified_text(feeds + variable + text, signature));
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (!line.ends_with(" = _Feed()") && !line.ends_with(" = VariableV2()")) out += line + "\n";
  }
  return out;
}

// As TensorFlow's gradients of a product do.
TEST(NeedlessWaits, GradientsOfOneOpDoNotWaitForEachOther) {
  EXPECT_EQ(simplified("h = MatMul(x, r); d = Sub(h, y); a = MatMul(d, r); b = MatMul(x, d); "
                       "all = NoOp(), ^a, ^b; a1 = Identity(a), ^all; b1 = Identity(b), ^all; "
                       "set = AssignSub(w, b1); z = Relu(a1), ^set",
                       {.fetches = {"z:0"}}),
            "r = Identity(w)\nh = MatMul(x, r)\nd = Sub(h, y)\na = MatMul(d, r)\n"
            "b = MatMul(x, d)\nset = AssignSub(w, b)\nz = Relu(a), ^set\n");
}

// The update must not come before the read.
TEST(NeedlessWaits, ReadsKeepTheirTime) {
  const std::string text = "a = MatMul(x, r); b = Identity(y), ^a; set = AssignSub(w, b)";
  EXPECT_EQ(simplified(text + "; z = Relu(a)", {.fetches = {"z:0"}, .targets = {"set"}}),
            "r = Identity(w)\na = MatMul(x, r)\nb = Identity(y), ^a\nset = AssignSub(w, b)\n"
            "z = Relu(a)\n");
}

TEST(NeedlessWaits, EffectsAndChecksAreWaitedFor) {
  for (const std::string check :
       {"CheckNumerics(x, message='m')", "Cholesky(x)", "AssignAdd(w, x)", "GatherV2(x, i, i)"}) {
    const std::string text = "i = Const(dtype=int32, value=int32[] [0]); c = " + check +
                             "; b = Relu(y), ^c; k = Exp(c); set = AssignSub(w, b)";
    EXPECT_NE(simplified(text, {.fetches = {"set:0", "k:0"}}).find("b = Relu(y), ^c"),
              std::string::npos)
        << check;
    // Nor may what comes behind it come before it.
    const std::string behind = text + "; b2 = Relu(y), ^k; k2 = Exp(k); set2 = AssignSub(w, b2)";
    EXPECT_NE(simplified(behind, {.fetches = {"set2:0", "k2:0"}}).find("b2 = Relu(y), ^k"),
              std::string::npos)
        << check;
  }
}

// As in a loop's backward body. A stack that two nodes use keeps their order.
TEST(NeedlessWaits, WithoutLastingEffectsOnlySharedStateHasATime) {
  const std::string stacks =
      "s = _Feed(dtype=resource, name='s:0'); k = _Feed(dtype=resource, name='k:0'); "
      "q = StackPopV2(s, elem_type=float); a = Exp(q); b = Identity(y), ^a; ";
  EXPECT_NE(simplified(stacks + "z = Mul(a, b)", {.fetches = {"z:0"}}).find("z = Mul(a, y)"),
            std::string::npos);
  EXPECT_NE(simplified(stacks + "c = StackPushV2(s, b); z = Mul(a, c)", {.fetches = {"z:0"}})
                .find("b = Identity(y), ^a"),
            std::string::npos);
  EXPECT_NE(simplified(stacks + "c = AssignAdd(w, b); z = Mul(a, c)", {.fetches = {"z:0"}})
                .find("b = Identity(y), ^a"),
            std::string::npos);
}

// As what uses no variable of a loop waits for one, so that it is in the loop.
TEST(NeedlessWaits, FeedsAreThere) {
  EXPECT_EQ(simplified("k = Const(dtype=float, value=float[] [2]), ^p; a = Mul(x, k), ^p; "
                       "b = Exp(k), ^y; set = AssignSub(w, a), ^p; z = Mul(a, b), ^set",
                       {.fetches = {"z:0"}}),
            "b = Const()\nk = Const()\na = Mul(x, k)\nset = AssignSub(w, a), ^p\n"
            "z = Mul(a, b), ^set\n");
}

TEST(NeedlessWaits, WhatIsInABranchDiesWithIt) {
  EXPECT_EQ(simplified("s = Switch(x, p); t = Exp(s:1); u = Relu(y), ^t; m = Merge(u, s)",
                       {.fetches = {"m:0"}}),
            "s = Switch(x, p)\nt = Identity(s:1)\nu = Relu(y), ^t\nm = Merge(u, s)\n");
  EXPECT_EQ(simplified("s = Switch(x, p); t = Exp(s:1); v = Sin(s:1); v2 = Tanh(v), ^t; "
                       "u = Relu(t); k = AddN(u, v2); m = Merge(k, s)",
                       {.fetches = {"m:0"}}),
            "s = Switch(x, p)\nt = Exp(s:1)\nu = Relu(t)\nv = Sin(s:1)\nv2 = Tanh(v)\n"
            "k = AddN(u, v2)\nm = Merge(k, s)\n");
}

// A layer that is recomputed when its gradient comes, which saves memory.
TEST(NeedlessWaits, RecomputedLayersWaitForTheirGradient) {
  const std::string loss = "a = Exp(x); b = Sin(a); c = Tanh(b); d = Exp(c); e = Sin(d); ";
  EXPECT_EQ(simplified(loss + "again = Identity(x), ^e; a2 = Exp(again); z = Mul(e, a2)",
                       {.fetches = {"z:0"}}),
            "a = Exp(x)\nb = Sin(a)\nc = Tanh(b)\nd = Exp(c)\ne = Sin(d)\n"
            "again = Identity(x), ^e\na2 = Exp(again)\nz = Mul(e, a2)\n");
}

}  // namespace
}  // namespace leat
