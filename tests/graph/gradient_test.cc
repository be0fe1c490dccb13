// Which nodes gradients() makes, and where. The tests of tests/kernels check the gradients of
// single ops.
#include "graph/gradient.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

// What gradients() adds: the dump without the nodes of the text it starts from.
std::string added(std::string_view forward, const std::vector<std::string>& ys,
                  const std::vector<std::string>& xs, const std::vector<std::string>& grad_ys,
                  std::string& names) {
  Graph graph = parse(forward);
  const size_t before = graph.size();
  const auto outputs = [&](const std::vector<std::string>& wanted) {
    std::vector<Output> out;
    for (const std::string& name : wanted)
      out.push_back(name.empty() ? Output{} : graph.output(name));
    return out;
  };
  names.clear();
  for (const Output& dx : gradients(outputs(ys), outputs(xs), outputs(grad_ys)))
    names += dx.name() + " ";
  std::string out;
  std::istringstream lines(dump(graph));
  for (std::string line; std::getline(lines, line);) {
    if (graph.find(line.substr(0, line.find(' ')))->id >= static_cast<int>(before))
      out += line + "\n";
  }
  return out;
}

TEST(Gradients, FollowTheChainRule) {
  std::string names;
  EXPECT_EQ(added("x = TestValue(dtype=float, shape=[])\n"
                  "a = TestScale(x, factor=3.0)\n"
                  "layer/b = TestScale(a, factor=5.0)\n",
                  {"layer/b"}, {"x", "a"}, {}, names),
            "gradients/grad_ys/ones = Const(dtype=float, value=float[] [1.0])\n"
            "gradients/layer/b/TestScale = TestScale(gradients/grad_ys/ones, factor=5.0)\n"
            "gradients/a/TestScale = TestScale(gradients/layer/b/TestScale, factor=3.0)\n");
  EXPECT_EQ(names, "gradients/a/TestScale:0 gradients/layer/b/TestScale:0 ");
}

TEST(Gradients, AreSummedWhenAValueIsUsedTwice) {
  std::string names;
  EXPECT_EQ(added("x = TestValue(dtype=float, shape=[]) @A\n"
                  "a = TestScale(x) @B\n"
                  "b = TestScale(x) @C\n"
                  "g = TestValue(dtype=float, shape=[]) @A\n",
                  {"a", "b"}, {"x"}, {"g", "g"}, names),
            "gradients/a/TestScale = TestScale(g) @B\n"
            "gradients/b/TestScale = TestScale(g) @C\n"
            "gradients/x/AddN = AddN(gradients/b/TestScale, gradients/a/TestScale) @C\n");
  EXPECT_EQ(names, "gradients/x/AddN:0 ");
}

TEST(Gradients, AreEmptyWithoutAPath) {
  std::string names;
  EXPECT_EQ(added("x = TestValue(dtype=float, shape=[])\n"
                  "n = TestValue(dtype=int32, shape=[])\n"
                  "cut = TestCut(x)\n"
                  "other = TestScale(x)\n"
                  "y = TestScale(cut)\n",
                  {"y"}, {"x", "n", "other", "cut", "y"}, {}, names),
            "gradients/grad_ys/ones = Const(dtype=float, value=float[] [1.0])\n"
            "gradients/y/TestScale = TestScale(gradients/grad_ys/ones)\n");
  EXPECT_EQ(names, "<none> <none> <none> gradients/y/TestScale:0 gradients/grad_ys/ones:0 ");
}

TEST(Gradients, TreatUnneededOutputsAsZero) {
  std::string names;
  EXPECT_EQ(added("x = TestValue(dtype=float, shape=[])\n"
                  "t = TestTuple(x, x)\n"
                  "y = TestScale(t:1)\n",
                  {"y"}, {"x"}, {}, names),
            "gradients/grad_ys/ones = Const(dtype=float, value=float[] [1.0])\n"
            "gradients/y/TestScale = TestScale(gradients/grad_ys/ones)\n"
            "gradients/t/ZerosLike = ZerosLike(t)\n"
            "gradients/x/AddN = AddN(gradients/t/ZerosLike, gradients/y/TestScale)\n");
}

TEST(Gradients, UseOnesLikeForUnknownShapes) {
  std::string names;
  EXPECT_EQ(added("x = TestValue(dtype=float, shape=[?,2])\n"
                  "y = TestScale(x)\n",
                  {"y"}, {"x"}, {}, names),
            "gradients/grad_ys/OnesLike = OnesLike(y)\n"
            "gradients/y/TestScale = TestScale(gradients/grad_ys/OnesLike)\n");
}

TEST(Gradients, ReadReferences) {
  std::string names;
  EXPECT_EQ(added("w = TestVariable(dtype=float, shape=[])\n"
                  "y = TestScale(w)\n",
                  {"y"}, {"w"}, {"w"}, names),
            "gradients/Identity = Identity(w)\n"
            "gradients/y/TestScale = TestScale(gradients/Identity)\n");
  EXPECT_EQ(names, "gradients/y/TestScale:0 ");
}

TEST(Gradients, TakeDeviceColocationLineAndShapeFromTheirNode) {
  Graph graph = parse(
      "x = TestValue(dtype=float, shape=[?,2])\n"
      "y = TestScale(x, _class={\"loc:@x\"}) @/job:worker/task:1\n"
      "g = TestValue(dtype=float)\n");
  const DeviceScope elsewhere(graph, "/job:ps/task:0");
  const NameScope train(graph, "train");
  const Output dx = gradients({graph.output("y")}, {graph.output("x")}, {graph.output("g")}).at(0);
  EXPECT_EQ(dx.name(), "train/gradients/y/TestScale:0");
  EXPECT_EQ(dx.node->requested_device, DeviceName::parse("/job:worker/task:1"));
  EXPECT_EQ(dx.node->attr<std::vector<std::string>>("_class"),
            (std::vector<std::string>{"loc:@x"}));
  EXPECT_EQ(dx.node->location.line, 2);
  EXPECT_EQ(dx.shape(), (Shape{any, 2}));
  EXPECT_EQ(graph.output("g").shape(), Shape::unknown());
  EXPECT_EQ(graph.scopes().device, DeviceName::parse("/job:ps/task:0"));
  EXPECT_EQ(graph.scopes().name, "train/");
}

TEST(Gradients, SecondCallHasItsOwnScope) {
  Graph graph = parse("x = TestValue(dtype=float, shape=[]); y = TestScale(x)");
  gradients({graph.output("y")}, {graph.output("x")});
  EXPECT_EQ(gradients({graph.output("y")}, {graph.output("x")}).at(0).name(),
            "gradients_1/y/TestScale:0");
}

TEST(Gradients, ReportWhyThereIsNone) {
  Graph graph = parse(
      "x = TestValue(dtype=float, shape=[2,2])\n"
      "a = TestScale(x)\n"
      "m = TestMatMul(a, a)\n"
      "loss = TestScale(m)\n"
      "n = TestValue(dtype=int32)\n"
      "wrong = TestWrongGradient(x)\n"
      "g = TestValue(dtype=float, shape=[3])\n");
  const Output x = graph.output("x"), loss = graph.output("loss");
  expect_error([&] { gradients({loss}, {x}); }, Code::invalid_argument,
               "TestMatMul node 'm' (text:3) has no gradient, but lies on the path from 'x:0' to "
               "'loss:0'; end the path "
               "with stop_gradient() if none should flow there");
  expect_error([&] { gradients({graph.output("n")}, {x}); }, Code::invalid_argument,
               "gradients(): 'n:0' (TestValue node 'n' (text:5)) is int32; only floating-point and complex "
               "values have gradients");
  expect_error(
      [&] {
        gradients({loss}, {x, Output{}});
      },
      Code::invalid_argument, "gradients(): xs[1] is an empty Output");
  expect_error([&] { gradients(std::vector<Output>{}, {x}); }, Code::invalid_argument,
               "gradients() needs at least one y");
  expect_error(
      [&] {
        gradients({loss, loss}, {x}, {loss});
      },
      Code::invalid_argument, "gradients() got 1 grad_ys for 2 ys");
  expect_error([&] { gradients({loss}, {x}, {graph.output("g")}); }, Code::invalid_argument,
               "gradients(): 'loss:0' is float[2,2], but grad_ys[0] is float[3]");
  expect_error([&] { gradients({graph.output("wrong")}, {x}); }, Code::internal,
               "gradient of TestWrongGradient node 'wrong' (text:6): input x is float[2,2], but "
               "its gradient "
               "'gradients_1/wrong/TestScale:0' is float[]");
  Graph other = parse("x = TestValue(dtype=float)");
  expect_error([&] { gradients({loss}, {other.output("x")}); }, Code::invalid_argument,
               "gradients(): xs[0], 'x:0', belongs to another graph than ys[0]");
}

}  // namespace
}  // namespace leat
