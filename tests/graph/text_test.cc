// The line form of graphs, written and read, and DOT.
#include "graph/text.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace leat {
namespace {

void expect_round_trip(std::string_view text, const DumpOptions& options = {}) {
  EXPECT_EQ(dump(parse(text), options), text);
}

TEST(Dump, OmitsInferredTypesAndDefaults) {
  const Graph graph = parse(
      "a = TestValue(dtype=float, shape=[2,?])\n"
      "m = TestMatMul(a, a, T=float, transpose_a=true);  n = TestMatMul(a, m, transpose_a=false) # "
      "a comment\n");
  EXPECT_EQ(dump(graph),
            "a = TestValue(dtype=float, shape=[2,?])\n"
            "m = TestMatMul(a, a, transpose_a=true)\n"
            "n = TestMatMul(a, m)\n");
  EXPECT_EQ(dump(graph, {.shapes = true, .attrs = false}),
            "a = TestValue() : float[2,?]\n"
            "m = TestMatMul(a, a) : float[?,?]\n"
            "n = TestMatMul(a, m) : float[2,?]\n");
}

TEST(Dump, SortsTopologicallyThenByName) {
  EXPECT_EQ(dump(parse("z = TestValue(dtype=float)\n"
                       "b = TestTuple(z)\n"
                       "y = TestValue(dtype=float)\n"
                       "a = TestTuple(y), ^z, ^b\n")),
            "y = TestValue(dtype=float)\n"
            "z = TestValue(dtype=float)\n"
            "b = TestTuple(z)\n"
            "a = TestTuple(y), ^b, ^z\n");
}

TEST(Dump, ReadsBack) {
  expect_round_trip(
      "w = TestVariable(dtype=float, shape=[2,2]) @/job:ps/task:1\n"
      "x = TestValue(dtype=float) @A\n"
      "layer/pool = TestPool(x, ksize={2, 2}, padding=\"SAME\", scale=0.25) "
      "@/job:worker/task:0/device:GPU:1, ^w\n"
      "t = TestTuple(x, layer/pool)\n"
      "m = TestMatMul(t:1, w, _class={\"loc:@w\", \"loc:@x\"}, _note=\"a, \\\"b\\\")\", _number=3) "
      "@B\n");
  expect_round_trip(
      "r = _Recv(edge=3, recv_device=\"B\", send_device=\"A\", tensor_name=\"edge_3_x\", "
      "tensor_type={float})\n"
      "s = _Send(r, edge=4, recv_device=\"A\", send_device=\"B\", tensor_name=\"edge_4_r\")\n");
  expect_round_trip(
      "w = TestVariable(dtype=int32, shape=[]) : Ref(int32)[]\n"
      "x = TestValue(dtype=string) : string<unknown>\n"
      "t = TestSplit(x, N=2) : string<unknown>, string[?], string[2,3]\n",
      {.shapes = true});
}

TEST(Parse, OneLetterDeviceIsATask) {
  const Graph graph = parse("a = TestValue(dtype=float) @A; b = TestValue(dtype=float) @/job:ps");
  EXPECT_EQ(graph.find("a")->assigned_device, DeviceName::parse("/job:A/task:0/device:CPU:0"));
  EXPECT_EQ(graph.find("a")->requested_device, DeviceName::parse("/job:A/task:0/device:CPU:0"));
  EXPECT_TRUE(graph.find("b")->assigned_device->is_empty());
  EXPECT_EQ(graph.find("b")->requested_device, DeviceName::parse("/job:ps"));
}

TEST(Dump, ElidesLargeTensors) {
  const Graph graph = parse("c = TestValue(dtype=float, _value=\"x\")");
  graph.find("c")->attrs["_value"] = Tensor::of<int32_t>({4}, {1, 2, 3, 4});
  EXPECT_EQ(dump(graph, {.elements = 2}),
            "c = TestValue(_value=int32[4] [1, 2, …], dtype=float)\n");
}

TEST(Parse, ReportsLineColumnAndMistake) {
  const auto expect = [](std::string_view text, std::string_view message,
                         Code code = Code::invalid_argument) {
    expect_error([&] { parse(text); }, code, message);
  };
  expect("a TestValue()", "graph text, line 1, column 3: expected '=', got 'TestValue()'");
  expect("a = TestValue(dtype=float)\nb = TestTuple(a, c)",
         "graph text, line 2, column 19: the graph has no node 'c'");
  expect("a = TestValue(dtype=flaot)",
         "graph text, line 1, column 26: attribute 'dtype': no dtype is called 'flaot'; known: "
         "float, double, half, "
         "bfloat16, int8…int64, uint8…uint64, complex64, complex128, bool, string");
  expect("a = TestValue(dtype=float", "graph text, line 1, column 26: expected ',' or ')'");
  expect("a = TestValue(dtype=float) b",
         "graph text, line 1, column 28: expected the end of the line or ';', got 'b'");
  expect("a = TestValue(dtype=float), ^b",
         "graph text, line 1, column 31: the graph has no node 'b'");
  expect("a = TestValue(dtype=float) @/jb:x",
         "graph text, line 1, column 29: device name '/jb:x' has an unknown part '/jb:x'; a "
         "correct name is "
         "/job:worker/task:1/device:GPU:0");
  expect("\na = TestValue()",
         "TestValue node 'a' (text:2): attributes without a default are missing: 'dtype' (type)");
  expect("a = TestVal()",
         "Op type not registered 'TestVal' (node 'a', text:1); did you mean 'TestValue'?",
         Code::not_found);
  expect("a = TestValue(dtype=float, shape=[2]) : float[3]",
         "graph text, line 1, column 49: shapes [2] and [3] contradict each other");
  expect("a = TestValue(dtype=float) : int32[3]",
         "graph text, line 1, column 35: output 0 is float");
}

TEST(Dot, DrawsDevicesScopesAndCables) {
  const std::string dot = to_dot(
      parse("a = TestValue(dtype=float, shape=[2]) @A\n"
            "s = _Send(a, edge=0, recv_device=\"B\", send_device=\"A\", tensor_name=\"a\") @A\n"
            "r = _Recv(edge=0, recv_device=\"B\", send_device=\"A\", tensor_name=\"a\", "
            "tensor_type=float) @B\n"
            "layer/t = TestTuple(r) @B, ^r\n"));
  EXPECT_EQ(dot,
            R"(digraph leat {
  rankdir=TB;
  node [shape=box, style=rounded, fontname="Helvetica", fontsize=10];
  edge [fontname="Helvetica", fontsize=8];
  subgraph cluster_0 {
    label="/job:A/task:0/device:CPU:0"; style=filled, fillcolor="#f4f6f8";
    n0 [label="a\nTestValue", tooltip="a"];
    n1 [label="s\n_Send", tooltip="s"];
  }
  subgraph cluster_1 {
    label="/job:B/task:0/device:CPU:0"; style=filled, fillcolor="#f4f6f8";
    n2 [label="r\n_Recv", tooltip="r"];
    subgraph cluster_2 {
      label="layer"; style=rounded, color="#a0a8b0";
      n3 [label="t\nTestTuple", tooltip="layer/t"];
    }
  }
  n0 -> n1 [label="float[2]"];
  n2 -> n3 [label="float<unknown>"];
  n2 -> n3 [style=dotted];
  n1 -> n2 [style=dashed, constraint=false];
}
)");
}

}  // namespace
}  // namespace leat
