// recompute: which nodes run again for the backward part, when, and which must not.
#include "graph/passes/recompute/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "graph/passes/pipeline.h"
#include "graph/passes/recompute/recompute_plan.h"
#include "graph/text.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view cpu = "/job:localhost/replica:0/task:0/device:CPU:0";

Graph placed(const std::string& text) {
  Graph graph = parse(text);
  for (const auto& node : graph.nodes()) {
    if (node->requested_device->is_empty())
      node->assigned_device = DeviceName::parse(cpu);
    else
      node->assigned_device = node->requested_device;
  }
  return graph;
}

// h1 = op(x), h2 = op(h1), …, and gradients that read each of them, in the order of gradients().
std::string chain(int layers, const std::string& op = "Tanh",
                  const std::string& scope = "gradients", const std::string& device = "") {
  std::string out = "x = _Feed(dtype=float, name='x:0', shape=[64,64])" + device + "\n";
  for (int i = 1; i <= layers; ++i)
    out += concat("h", i, " = ", op, "(", i == 1 ? "x" : concat("h", i - 1), ")", device, "\n");
  out += concat(scope, "/g", layers, " = Mul(h", layers, ", h", layers, ")", device, "\n");
  for (int i = layers; i >= 1; --i)
    out += concat(scope, "/g", i - 1, " = TanhGrad(h", i, ", ", scope, "/g", i, ")", device, "\n");
  return out;
}

// A line for each node that recompute() has changed or made.
std::string changes(const std::string& text, const StepSignature& signature,
                    Recompute extent = Recompute::automatic) {
  Graph graph = placed(text);
  const DumpOptions plain = {.devices = false, .attrs = false};
  const std::string before = dump(graph, plain);
  const bool has_changed = recompute(graph, signature, extent);
  verify(graph, "recompute");
  std::string out;
  std::istringstream lines(dump(graph, plain));
  for (std::string line; std::getline(lines, line);) {
    if (before.find(line + "\n") == std::string::npos) out += line + "\n";
  }
  EXPECT_EQ(has_changed, !out.empty());
  return out;
}

const StepSignature step = {.fetches = {"gradients/g0:0"}};

TEST(RecomputePass, ReadsCopiesThatWaitForTheBackwardPart) {
  EXPECT_EQ(changes(chain(8), step), R"(Recomputed/h7 = Tanh(h6), ^gradients/g7
gradients/g6 = TanhGrad(Recomputed/h7, gradients/g7)
Recomputed/h4 = Tanh(h3), ^gradients/g5
Recomputed/h5 = Tanh(Recomputed/h4)
gradients/g4 = TanhGrad(Recomputed/h5, gradients/g5)
gradients/g3 = TanhGrad(Recomputed/h4, gradients/g4)
Recomputed/h1 = Tanh(x), ^gradients/g2
Recomputed/h2 = Tanh(Recomputed/h1)
gradients/g1 = TanhGrad(Recomputed/h2, gradients/g2)
gradients/g0 = TanhGrad(Recomputed/h1, gradients/g1)
)");
}

TEST(RecomputePass, CopiesNothingForReadersThatComeBeforeTheRestOfASegment) {
  // So small that there is no segment of it alone.
  const std::string first =
      "y = _Feed(dtype=float, name='y:0', shape=[16,32])\nsmall = Tanh(y)\n"
      "gradients_1/s1 = Mul(small, small)\ngradients_1/s0 = TanhGrad(small, gradients_1/s1)\n";
  const StepSignature both = {.fetches = {"gradients/g0:0", "gradients_1/s0:0"}};
  const std::string made = changes(first + chain(8), both);
  EXPECT_THAT(made, Not(HasSubstr("gradients_1/s0 =")));
  EXPECT_THAT(made, HasSubstr("gradients/g0 = TanhGrad(Recomputed/h1, gradients/g1)\n"));
}

TEST(RecomputePass, KnowsTheBackwardPartByItsNames) {
  const auto changes_in = [](const std::string& scope) {
    return changes(chain(8, "Tanh", scope), {.fetches = {scope + "/g0:0"}});
  };
  for (const char* scope : {"gradients", "gradients_12", "replica_1/gradients", "gradients/outer"})
    EXPECT_THAT(changes_in(scope), HasSubstr("Recomputed/")) << scope;
  for (const char* scope : {"gradients_", "gradients_x", "my_gradients", "layer"})
    EXPECT_EQ(changes_in(scope), "") << scope;
}

TEST(RecomputePass, LeavesShortNetworksAndOtherStepsAsTheyAre) {
  EXPECT_EQ(changes(chain(1), step), "");
  EXPECT_EQ(changes(chain(8), {.fetches = {"h8:0"}}, Recompute::nothing), "");
}

// Layers of a product and a tanh, and their updates.
std::string perceptron(int layers, const std::string& before = "") {
  std::string out =
      "x = _Feed(dtype=float, name='x:0', shape=[64,64])\nlr = Const(dtype=float, value=float[] "
      "[1])\n";
  for (int i = 1; i <= layers; ++i)
    out += concat("w", i, " = VariableV2(dtype=float, shape=[64,64])\n");
  out += before;
  for (int i = 1; i <= layers; ++i) {
    out += concat("m", i, " = MatMul(", i == 1 ? "x" : concat("h", i - 1), ", w", i, ")\nh", i,
                  " = Tanh(m", i, ")\n");
  }
  out += concat("gradients/g", layers, " = Mul(h", layers, ", h", layers, ")\n");
  for (int i = layers; i >= 1; --i) {
    out += concat("gradients/t", i, " = TanhGrad(h", i, ", gradients/g", i, ")\n");
    out += concat("gradients/w", i, " = MatMul(", i == 1 ? "x" : concat("h", i - 1),
                  ", gradients/t", i, ", transpose_a=true)\n");
    out +=
        concat("gradients/g", i - 1, " = MatMul(gradients/t", i, ", w", i, ", transpose_b=true)\n");
  }
  for (int i = 1; i <= layers; ++i)
    out += concat("u", i, " = ApplyGradientDescent(w", i, ", lr, gradients/w", i, ")\n");
  return out;
}

const StepSignature updates = {.targets = {"u1", "u2", "u3", "u4", "u5", "u6"}};

TEST(RecomputePass, UpdatesVariablesAfterCopiesHaveReadThem) {
  const std::string made = changes(perceptron(6), updates);
  EXPECT_THAT(made, HasSubstr("Recomputed/m5 = MatMul(h4, w5), ^gradients/t6\n"
                              "Recomputed/h5 = Tanh(Recomputed/m5)\n"
                              "gradients/t5 = TanhGrad(Recomputed/h5, gradients/g5)\n"));
  EXPECT_THAT(made, HasSubstr("u5 = ApplyGradientDescent(w5, lr, gradients/w5), ^Recomputed/m5\n"));
  EXPECT_THAT(made, Not(HasSubstr("u6 =")));
}

TEST(RecomputePass, KeepsWhatEntersLayers) {
  StepSignature all;
  for (int i = 1; i <= 12; ++i) all.targets.push_back(concat("u", i));
  const std::string made = changes(perceptron(12), all, Recompute::layers);
  for (int i = 1; i <= 12; i += 2) {
    EXPECT_THAT(made, HasSubstr(concat("Recomputed/h", i, " = "))) << "from what enters it";
    EXPECT_THAT(made, Not(HasSubstr(concat("Recomputed/h", i + 1, " = ")))) << "enters a layer";
  }
}

TEST(RecomputePass, RepeatsNoReadOfAVariableThatTheStepChangesBefore) {
  EXPECT_THAT(changes(perceptron(6, "again = AssignAdd(w1, x)\n"), updates),
              Not(HasSubstr("Recomputed/m1")));
  EXPECT_THAT(changes(perceptron(6), updates), HasSubstr("Recomputed/m1"));
}

TEST(RecomputePass, RepeatsNothingThatIsStateful) {
  std::string text =
      "x = _Feed(dtype=float, name='x:0', shape=[64,64])\n"
      "s = Const(dtype=int32, value=int32[2] [64,64])\nhalf = Const(dtype=float, value=float[] "
      "[0.5])\n";
  for (int i = 1; i <= 8; ++i) {
    text += concat("r", i, " = RandomUniform(s, dtype=float)\nb", i, " = Greater(r", i,
                   ", half)\nc", i, " = Cast(b", i, ", DstT=float)\nh", i, " = Mul(",
                   i == 1 ? "x" : concat("h", i - 1), ", c", i, ")\n");
  }
  text += "gradients/g8 = Mul(h8, h8)\n";
  for (int i = 8; i >= 1; --i)
    text += concat("gradients/g", i - 1, " = Mul(gradients/g", i, ", c", i, ")\n");
  const std::string made = changes(text, step);
  // The masks of bools stay.
  EXPECT_THAT(made, Not(HasSubstr("Recomputed/r")));
  EXPECT_THAT(made, Not(HasSubstr("Recomputed/b")));
  EXPECT_THAT(made, HasSubstr("Recomputed/c1 = Cast(b1), ^gradients/g1\n"));
}

TEST(RecomputePass, RepeatsNoFetchNorWhatIsReadForItsShapeAlone) {
  const std::string made =
      changes(chain(8), {.fetches = {"gradients/g0:0", "h4:0", "h5:0", "h7:0"}});
  for (const char* fetched : {"Recomputed/h4", "Recomputed/h5", "Recomputed/h7"})
    EXPECT_THAT(made, Not(HasSubstr(fetched)));
  EXPECT_THAT(made, HasSubstr("Recomputed/h1"));
  std::string shapes = chain(8, "Relu", "layer") + "gradients/g = Mul(layer/g0, layer/g0)\n";
  for (int i = 1; i <= 8; ++i) shapes += concat("gradients/s", i, " = Shape(h", i, ")\n");
  EXPECT_THAT(changes(shapes, {.targets = {"gradients/g", "gradients/s1", "gradients/s2"}}),
              Not(HasSubstr("Recomputed/")));
}

TEST(RecomputePass, CopiesRunWhereTheirOriginalsDo) {
  const std::string text = chain(8, "Tanh", "gradients", " @/job:worker/task:1/device:CPU:0");
  Graph graph = placed(text);
  // The first half is elsewhere, but for one gradient.
  for (const char* name : {"h1", "h2", "h3", "h4", "gradients/g0", "gradients/g1", "gradients/g3"})
    graph.find(name)->assigned_device = DeviceName::parse(cpu);
  ASSERT_TRUE(recompute(graph, step, Recompute::automatic));
  verify(graph, "recompute");
  int copies = 0;
  for (const auto& node : graph.nodes()) {
    if (!node->name.starts_with("Recomputed/")) continue;
    ++copies;
    EXPECT_EQ(node->assigned_device, graph.find(node->name.substr(11))->assigned_device);
    for (const Node* control : node->control_inputs)
      EXPECT_EQ(node->assigned_device, control->assigned_device);
  }
  EXPECT_GE(copies, 3);
}

TEST(RecomputePass, CopiesInABranchWaitForNodesOfThatBranch) {
  std::string text =
      "x = _Feed(dtype=float, name='x:0', shape=[64,64])\n"
      "p = _Feed(dtype=bool, name='p:0', shape=[])\ns = Switch(x, p)\n";
  for (int i = 1; i <= 8; ++i)
    text += concat("h", i, " = Tanh(", i == 1 ? "s:1" : concat("h", i - 1), ")\n");
  text +=
      "y = Merge(s:0, h8)\ngradients/y = Mul(y, y)\n"
      "gradients/g8 = Switch(gradients/y, p)\n";
  for (int i = 8; i >= 1; --i)
    text += concat("gradients/g", i - 1, " = TanhGrad(h", i, ", gradients/g",
                   i == 8 ? "8:1" : std::to_string(i), ")\n");
  EXPECT_EQ(changes(text, step), R"(Recomputed/h6 = Tanh(h5), ^gradients/g6
gradients/g5 = TanhGrad(Recomputed/h6, gradients/g6)
Recomputed/h2 = Tanh(h1), ^gradients/g4
Recomputed/h3 = Tanh(Recomputed/h2)
Recomputed/h4 = Tanh(Recomputed/h3)
gradients/g3 = TanhGrad(Recomputed/h4, gradients/g4)
gradients/g2 = TanhGrad(Recomputed/h3, gradients/g3)
gradients/g1 = TanhGrad(Recomputed/h2, gradients/g2)
)");
}

TEST(RecomputePlan, NeedsTheRootOfTheMemory) {
  constexpr int layers = 100;
  ForwardPart part;
  for (int i = 0; i < layers; ++i) {
    ForwardPart::Step layer{.read = {i}, .may_repeat = true};
    if (i > 0) layer.inputs = {{i - 1, i - 1}};
    part.steps.push_back(std::move(layer));
    part.values.push_back({1, i});
  }
  const RecomputePlan whole = plan_recompute(part, Recompute::nothing);
  EXPECT_EQ(whole.peak, layers);
  EXPECT_EQ(whole.cost, 0);
  EXPECT_THAT(whole.is_again, testing::Each(false));
  const RecomputePlan plan = plan_recompute(part, Recompute::automatic);
  EXPECT_LE(plan.peak, 2 * 10);
  EXPECT_LE(plan.cost, layers - plan.segments.back() / 2);
  EXPECT_GE(plan.segments.back(), 8);
  EXPECT_TRUE(plan_recompute({}, Recompute::automatic).is_again.empty());
}

TEST(RecomputePlan, CutsWhereLittleCrosses) {
  // Blocks of four steps: one byte between them, 100 inside.
  ForwardPart part;
  for (int i = 0; i < 80; ++i) {
    ForwardPart::Step step{.read = {i}, .may_repeat = true};
    if (i > 0) step.inputs = {{i - 1, i - 1}};
    part.steps.push_back(std::move(step));
    part.values.push_back({i % 4 == 3 ? 1.0 : 100.0, i});
  }
  const RecomputePlan plan = plan_recompute(part, Recompute::automatic);
  for (size_t i = 0; i + 1 < part.steps.size(); ++i) {
    const bool is_cut = plan.segments[i] != plan.segments[i + 1];
    EXPECT_TRUE(!is_cut || i % 4 == 3) << i;
  }
  EXPECT_LE(plan.peak, 0.12 * (20 * 1 + 60 * 100));
}

TEST(RecomputeOption, IsReadFromText) {
  EXPECT_EQ(recompute_from_text("none"), Recompute::nothing);
  EXPECT_EQ(recompute_from_text("layers"), Recompute::layers);
  EXPECT_EQ(recompute_from_text("auto"), Recompute::automatic);
  expect_error([] { recompute_from_text("all"); }, Code::invalid_argument,
               "recompute = 'all': it is none, layers or auto");
}

}  // namespace
}  // namespace leat
