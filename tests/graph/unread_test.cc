// drop_unread: what nobody reads is not computed, and everybody waits for what they waited for.
#include <gtest/gtest.h>

#include "tests/graph/simplified.h"

namespace leat {
namespace {

const std::string feeds =
    "x = _Feed(dtype=float, name='x:0', shape=[2]); p = _Feed(dtype=bool, name='p:0', shape=[]); ";
const std::string variable = "w = VariableV2(dtype=float, shape=[2]); ";

// Of a group that waits for gradients, two of which are read by nobody.
TEST(Unread, PassesWaitingOn) {
  EXPECT_EQ(
      simplified_text(feeds + variable +
                          "a = Exp(x); b = Softmax(a); c = Log(b); d = Neg(a); group = NoOp(), "
                          "^c, ^d; set = AssignAdd(w, d), ^group",
                      {.targets = {"set"}}),
      "w = VariableV2()\nx = _Feed()\na = Exp(x)\nd = Neg(a)\nset = AssignAdd(w, d), ^a\n");
}

TEST(Unread, KeepsTheOrderOfReadsAndWrites) {
  EXPECT_EQ(simplified_text(
                feeds + variable + "r = Identity(w); y = Mul(r, x); set = AssignAdd(w, x), ^y",
                {.targets = {"set"}}),
            "w = VariableV2()\nr = Identity(w)\nx = _Feed()\nset = AssignAdd(w, x), ^r\n");
}

// Of nodes that take variables by value: here nobody waits for the variable, which is there.
TEST(Unread, DropsUsersOfVariables) {
  EXPECT_EQ(simplified_text(feeds + variable + "y = Mul(w, x); set = AssignAdd(w, x), ^y",
                            {.targets = {"set"}}),
            "w = VariableV2()\nx = _Feed()\nset = AssignAdd(w, x)\n");
  EXPECT_EQ(
      simplified_text(feeds + variable + "a = AssignAdd(w, x); n = NoOp(), ^a", {.targets = {"n"}}),
      "w = VariableV2()\nx = _Feed()\na = AssignAdd(w, x)\nn = NoOp(), ^a\n");
}

TEST(Unread, RunsTargetsAndFetches) {
  const std::string text = feeds + "a = Exp(x); b = Log(a); n = NoOp(), ^b";
  EXPECT_EQ(simplified_text(text, {.targets = {"b", "n"}}),
            "x = _Feed()\na = Exp(x)\nb = Log(a)\nn = NoOp(), ^b\n");
  EXPECT_EQ(simplified_text(text, {.fetches = {"b:0"}, .targets = {"n"}}),
            "x = _Feed()\na = Exp(x)\nb = Log(a)\nn = NoOp(), ^b\n");
  EXPECT_EQ(simplified_text(text, {.targets = {"n"}}), "x = _Feed()\nn = NoOp(), ^x\n");
}

TEST(Unread, KeepsEffectsAndChecks) {
  for (const char* op :
       {"CheckNumerics(x, message='m')", "EnsureShape(u, shape=[2])", "PrintV2(t)", "Assert(p, x)",
        "RandomUniform(s, dtype=float)", "ReadVariableOp(v, dtype=float)"}) {
    const std::string text =
        concat(feeds,
               "u = _Feed(dtype=float, name='u:0'); t = _Feed(dtype=string, name='t:0', shape=[]);"
               "s = _Feed(dtype=int32, name='s:0', shape=[1]);"
               "v = VarHandleOp(dtype=float, shape=[2]); c = ",
               op, "; e = Exp(x); n = NoOp(), ^c, ^e");
    const std::string out = simplified_text(text, {.targets = {"n"}});
    EXPECT_NE(out.find("c = "), std::string::npos) << out;
    EXPECT_NE(out.find("n = NoOp(), ^c"), std::string::npos) << out;
    EXPECT_EQ(out.find("Exp"), std::string::npos) << out;
  }
}

// The Switch itself always runs; its value does not always arrive.
TEST(Unread, KeepsTheSignalOfABranch) {
  EXPECT_EQ(
      simplified_text(feeds + "s = Switch(x, p); a = Exp(s:1); b = Softmax(a); n = NoOp(), ^b",
                      {.targets = {"n"}}),
      "p = _Feed()\nx = _Feed()\ns = Switch(x, p)\na = Identity(s:1)\nn = NoOp(), ^a\n");
  EXPECT_EQ(simplified_text(feeds + "s = Switch(x, p); q = Switch(x, p); e = Exp(x);"
                                    "a = Mul(s:1, q:1); n = NoOp(), ^a, ^e",
                            {.targets = {"n"}}),
            "p = _Feed()\nx = _Feed()\nq = Switch(x, p)\ns = Switch(x, p)\na = Mul(s:1, q:1)\n"
            "n = NoOp(), ^a, ^x\n");
}

// A gathering on one device for many elsewhere saves edges between devices.
TEST(Unread, GathersForOthers) {
  EXPECT_EQ(simplified_text("x = _Feed(dtype=float, name='x:0', shape=[2]);"
                            "y = _Feed(dtype=float, name='y:0', shape=[2]); a = Mul(x, y) @/job:a;"
                            "m = NoOp() @/job:b, ^a; n = NoOp() @/job:c, ^a",
                            {.targets = {"m", "n"}}),
            "x = _Feed()\ny = _Feed()\na = NoOp() @/job:a, ^x, ^y\nm = NoOp() @/job:b, ^a\n"
            "n = NoOp() @/job:c, ^a\n");
}

}  // namespace
}  // namespace leat
