// mixed_precision: which nodes compute in 16 bits, and where casts stand.
#include "graph/passes/mixed_precision/mixed_precision.h"

#include <gtest/gtest.h>

#include "graph/endpoint.h"
#include "graph/import/graph_def.h"
#include "graph/kernel_lookup.h"
#include "graph/loops/loops.h"
#include "graph/passes/pipeline.h"
#include "graph/text.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

constexpr std::string_view cpu = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr std::string_view server = "/job:ps/replica:0/task:0/device:CPU:0";

// x and y are fed; v, w and b are variables' values.
constexpr std::string_view given =
    "x = _Feed(dtype=float, name='x:0', shape=[8,16])\n"
    "y = _Feed(dtype=float, name='y:0', shape=[8,16])\n"
    "v_state = VarHandleOp(dtype=float, shape=[16,16])\n"
    "v = ReadVariableOp(v_state, dtype=float)\n"
    "w_state = VarHandleOp(dtype=float, shape=[16,16])\n"
    "w = ReadVariableOp(w_state, dtype=float)\n"
    "b_state = VarHandleOp(dtype=float, shape=[16])\n"
    "b = ReadVariableOp(b_state, dtype=float)\n";

Graph placed(std::string_view text) {
  Graph graph = parse(std::string(given) + std::string(text));
  for (const auto& node : graph.nodes()) {
    if (node->requested_device->is_empty())
      node->assigned_device = DeviceName::parse(cpu);
    else
      node->assigned_device = node->requested_device;
  }
  return graph;
}

// A line for each node that computes: its inputs, and the dtypes of its outputs.
std::string lines(const Graph& graph) {
  std::string out;
  for (const auto& node : graph.nodes()) {
    if (node->is("_Feed") || node->is("VarHandleOp") || node->is("ReadVariableOp")) continue;
    out += concat(node->name, " = ", node->op->name, "(");
    for (size_t i = 0; i < node->inputs.size(); ++i)
      out += concat(i == 0 ? "" : ", ", Endpoint::of(node->inputs[i]).short_name());
    for (const Node* control : node->control_inputs) out += concat(" ^", control->name);
    out += ")";
    for (const OutputSpec& output : node->outputs) out += concat(" ", output.dtype);
    out += "\n";
  }
  return out;
}

std::string mixed(std::string_view text, std::vector<std::string> fetches,
                  MixedPrecision format = MixedPrecision::bfloat16) {
  Graph graph = placed(text);
  mixed_precision(graph, {.fetches = std::move(fetches)}, format);
  verify(graph, "mixed_precision");
  return lines(graph);
}

TEST(MixedPrecision, ComputesProductsAndWhatStandsBetweenThem) {
  EXPECT_EQ(mixed("h = MatMul(x, w); a = BiasAdd(h, b); r = Relu(a); o = MatMul(r, v)", {"o:0"}),
            "x/bfloat16 = Cast(x) bfloat16\n"
            "w/bfloat16 = Cast(w) bfloat16\n"
            "h = MatMul(x/bfloat16, w/bfloat16) bfloat16\n"
            "b/bfloat16 = Cast(b) bfloat16\n"
            "a = BiasAdd(h, b/bfloat16) bfloat16\n"
            "r = Relu(a) bfloat16\n"
            "v/bfloat16 = Cast(v) bfloat16\n"
            "o/bfloat16 = MatMul(r, v/bfloat16) bfloat16\n"
            "o = Cast(o/bfloat16) float\n");
}

TEST(MixedPrecision, LeavesLogitsAndLossesInFloat32) {
  EXPECT_EQ(mixed("h = MatMul(x, w); a = BiasAdd(h, b); p = Softmax(a)", {"p:0"}),
            "x/bfloat16 = Cast(x) bfloat16\n"
            "w/bfloat16 = Cast(w) bfloat16\n"
            "h = MatMul(x/bfloat16, w/bfloat16) bfloat16\n"
            "h/float = Cast(h) float\n"
            "a = BiasAdd(h/float, b) float\n"
            "p = Softmax(a) float\n");
}

// A target of 1000.5 is 1000 in bfloat16.
TEST(MixedPrecision, LeavesWhatMeetsFedValuesInFloat32) {
  EXPECT_EQ(mixed("h = MatMul(x, w); d = Sub(h, y); g = MatMul(d, w)", {"g:0"}),
            "x/bfloat16 = Cast(x) bfloat16\n"
            "w/bfloat16 = Cast(w) bfloat16\n"
            "h = MatMul(x/bfloat16, w/bfloat16) bfloat16\n"
            "h/float = Cast(h) float\n"
            "d = Sub(h/float, y) float\n"
            "d/bfloat16 = Cast(d) bfloat16\n"
            "g/bfloat16 = MatMul(d/bfloat16, w/bfloat16) bfloat16\n"
            "g = Cast(g/bfloat16) float\n");
}

TEST(MixedPrecision, RoundsConstantsOnce) {
  const std::string out = mixed(
      "c = Const(dtype=float, value=float[] [0.1]); h = MatMul(x, w); s = Mul(h, c); "
      "o = MatMul(s, w)",
      {"o:0"});
  EXPECT_NE(out.find("c/bfloat16 = Const() bfloat16\ns = Mul(h, c/bfloat16) bfloat16\n"),
            std::string::npos)
      << out;
}

// In float16 1e9 is infinite and 1e-6 has 5 bits left. bfloat16 has float32's range.
TEST(MixedPrecision, KeepsConstantsThatFloat16CannotHold) {
  for (const char* value : {"1000000000", "-70000", "0.000001"}) {
    const std::string text = concat("c = Const(dtype=float, value=float[] [", value,
                                    "]); h = MatMul(x, w); s = Mul(h, c); o = MatMul(s, w)");
    const std::string half = mixed(text, {"o:0"}, MixedPrecision::float16);
    EXPECT_NE(half.find("s = Mul(h/float, c) float\n"), std::string::npos) << half;
    const std::string brain = mixed(text, {"o:0"});
    EXPECT_NE(brain.find("s = Mul(h, c/bfloat16) bfloat16\n"), std::string::npos) << brain;
  }
  const std::string usual = mixed(
      "c = Const(dtype=float, value=float[] [0.25]); h = MatMul(x, w); s = Mul(h, c); "
      "o = MatMul(s, w)",
      {"o:0"}, MixedPrecision::float16);
  EXPECT_NE(usual.find("s = Mul(h, c/half) half\n"), std::string::npos) << usual;
}

TEST(MixedPrecision, LeavesOtherDtypesAlone) {
  Graph graph =
      placed("i = _Feed(dtype=double, name='i:0', shape=[4,4]); o = MatMul(i, i); r = Relu(x)");
  EXPECT_FALSE(mixed_precision(graph, {.fetches = {"o:0", "r:0"}}, MixedPrecision::bfloat16));
}

TEST(MixedPrecision, StatisticsOfABatchNormStayFloat32) {
  const std::string out = mixed(
      "i = _Feed(dtype=float, name='i:0', shape=[2,4,4,3])\n"
      "f = _Feed(dtype=float, name='f:0', shape=[1,1,3,16])\n"
      "f2 = _Feed(dtype=float, name='f2:0', shape=[1,1,16,16])\n"
      "c = Conv2D(i, f, strides=[1,1,1,1], padding='SAME')\n"
      "n = FusedBatchNormV3(c, b, b, b, b)\n"
      "r = Relu(n)\n"
      "g = Conv2D(r, f2, strides=[1,1,1,1], padding='SAME')\n"
      "m = Mul(n:1, b)",
      {"g:0", "m:0"});
  EXPECT_NE(out.find("n = FusedBatchNormV3(c, b, b, b, b) bfloat16 float float float float float"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("m = Mul(n:1, b) float\n"), std::string::npos) << out;
}

TEST(MixedPrecision, ReadsShapesOfWhatIsThere) {
  const std::string out = mixed("h = MatMul(x, w); s = Shape(h); o = MatMul(h, w)", {"o:0", "s:0"});
  EXPECT_NE(out.find("s = Shape(h) int32\n"), std::string::npos) << out;
}

// The value is rounded where it is made, and becomes float32 where it is used.
TEST(MixedPrecision, SendsSixteenBits) {
  Graph graph = placed(
      "u_state = VarHandleOp(dtype=float, shape=[16,16]) @/job:ps/replica:0/task:0/device:CPU:0\n"
      "u = ReadVariableOp(u_state, dtype=float) @/job:ps/replica:0/task:0/device:CPU:0\n"
      "h = MatMul(u, u)\n"
      "a = AssignAddVariableOp(u_state, h) @/job:ps/replica:0/task:0/device:CPU:0\n");
  ASSERT_TRUE(mixed_precision(graph, {.targets = {"a"}}, MixedPrecision::bfloat16));
  verify(graph, "mixed_precision");
  EXPECT_EQ(graph.find("u/bfloat16")->assigned_device->to_string(), server);
  EXPECT_EQ(graph.find("h/float")->assigned_device->to_string(), server);
  EXPECT_EQ(graph.find("h")->assigned_device->to_string(), cpu);
}

// `h` reads the variable after the update, so the cast does, too.
TEST(MixedPrecision, ReadsAReferenceWhenItsUserMay) {
  const std::string out = mixed(
      "r = VariableV2(dtype=float, shape=[16,16]); u = AssignAdd(r, w); h = MatMul(x, r), ^u; "
      "p = MatMul(x, r)",
      {"h:0", "p:0"});
  EXPECT_NE(out.find("r/bfloat16 = Cast(r ^u) bfloat16\n"), std::string::npos) << out;
  EXPECT_NE(out.find("r/bfloat16_1 = Cast(r) bfloat16\n"), std::string::npos) << out;
}

TEST(MixedPrecision, KeepsFloat32WithoutAKernel) {
  const auto table = std::make_shared<KernelTable>(KernelTable{
      {"MatMul", {{{"T", {f32}}}}}, {"Cast", {{}}}, {"BatchMatMulV2", {{{"T", {f32, bf16}}}}}});
  const std::string gpu = "/job:localhost/replica:0/task:0/device:GPU:0";
  Graph graph = placed("h = MatMul(w, w) @" + gpu + "\no = BatchMatMulV2(h, h) @" + gpu);
  const std::vector<DeviceSpec> devices = {{DeviceName::parse(cpu), DeviceType::cpu, nullptr},
                                           {DeviceName::parse(gpu), DeviceType::gpu, table}};
  ASSERT_TRUE(mixed_precision(graph, {.fetches = {"o:0"}}, MixedPrecision::bfloat16, devices));
  EXPECT_EQ(graph.find("h")->outputs[0].dtype, f32);
  EXPECT_EQ(graph.find("o/bfloat16")->outputs[0].dtype, bf16);
}

TEST(MixedPrecision, OnGpusAloneLeavesCpusAlone) {
  Graph graph = placed("h = MatMul(x, w)");
  EXPECT_FALSE(mixed_precision(graph, {.fetches = {"h:0"}}, MixedPrecision::float16_on_gpus));
}

TEST(MixedPrecision, Text) {
  EXPECT_EQ(mixed_precision_from_text("none"), MixedPrecision::nothing);
  EXPECT_EQ(mixed_precision_from_text("bf16"), MixedPrecision::bfloat16);
  EXPECT_EQ(mixed_precision_from_text("f16"), MixedPrecision::float16);
  EXPECT_EQ(mixed_precision_from_text("gpu_f16"), MixedPrecision::float16_on_gpus);
  EXPECT_EQ(mixed_precision_from_text("tf32"), MixedPrecision::tensor_float_32);
  expect_error(
      [] { mixed_precision_from_text("fp8"); }, Code::invalid_argument,
      "mixed_precision = 'fp8': it is none, bf16, f16, gpu_f16 (float16 on GPUs alone) or tf32 "
      "(TensorFloat-32 on GPUs)");
}

}  // namespace
}  // namespace leat
