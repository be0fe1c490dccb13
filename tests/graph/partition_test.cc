// partition, by golden text: a letter places each node.
#include <gtest/gtest.h>

#include <set>

#include "graph/passes/pipeline.h"
#include "graph/text.h"

namespace leat {
namespace {

std::string device(char letter) { return concat("/job:", letter, "/task:0/device:CPU:0"); }

// The graph's parts by letter.
std::map<char, std::string> parts_of(const PartitionedGraph& cut) {
  std::map<char, std::string> out;
  for (const auto& [name, part] : cut.partitions) {
    verify(part, "partition");
    std::string text = dump(part, {.attrs = true});
    out[name.at(5)] = text;
  }
  return out;
}

PartitionedGraph cut(std::string_view text, const StepSignature& signature = {}) {
  const Graph graph = parse(text);
  return partition(graph, signature);
}

TEST(Partition, OneEdgeHasOneSendAndOneRecv) {
  const PartitionedGraph out =
      cut("a = Placeholder(dtype=float, shape=[2]) @A;  b = Softmax(a) @B");
  const auto parts = parts_of(out);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts.at('A'), R"(a = Placeholder(dtype=float, shape=[2]) @A
a/_send_0 = _Send(a, edge=0, recv_device="/job:B/task:0/device:CPU:0", send_device="/job:A/task:0/device:CPU:0", tensor_name="edge_0_a") @A
)");
  EXPECT_EQ(
      parts.at('B'),
      R"(a/_recv_0 = _Recv(edge=0, recv_device="/job:B/task:0/device:CPU:0", send_device="/job:A/task:0/device:CPU:0", shape=[2], tensor_name="edge_0_a", tensor_type={float}) @B
b = Softmax(a/_recv_0) @B
)");
  ASSERT_EQ(out.edges.size(), 1u);
  const CutEdge& edge = out.edges[0];
  EXPECT_EQ(edge.id, 0);
  EXPECT_EQ(edge.tensor_name, "edge_0_a");
  EXPECT_EQ(edge.source.to_string(), device('A'));
  EXPECT_EQ(edge.destination.to_string(), device('B'));
  EXPECT_EQ(edge.dtype, f32);
  EXPECT_EQ(edge.shape, (Shape{2}));
  EXPECT_EQ(edge.producer, "a");
  EXPECT_EQ(edge.wave, 0);
  EXPECT_FALSE(edge.may_be_dead);
}

// Only the structure: op, inputs, device.
std::map<char, std::string> structure(const PartitionedGraph& cut) {
  std::map<char, std::string> out;
  for (const auto& [name, part] : cut.partitions) {
    verify(part, "partition");
    out[name.at(5)] = dump(part, {.devices = false, .attrs = false});
  }
  return out;
}

TEST(Partition, OneRecvServesAllConsumersOnADevice) {
  const auto parts = structure(cut(
      "a = Placeholder(dtype=float) @A; b = Softmax(a) @B; c = Softmax(a) @B; d = Softmax(a) @C"));
  EXPECT_EQ(parts.at('A'), R"(a = Placeholder()
a/_send_0 = _Send(a)
a/_send_1 = _Send(a)
)");
  EXPECT_EQ(parts.at('B'), R"(a/_recv_0 = _Recv()
b = Softmax(a/_recv_0)
c = Softmax(a/_recv_0)
)");
  EXPECT_EQ(parts.at('C'), R"(a/_recv_1 = _Recv()
d = Softmax(a/_recv_1)
)");
}

TEST(Partition, EveryOutputHasItsOwnEdge) {
  const auto parts =
      structure(cut("d = Placeholder(dtype=int32) @A; a = Placeholder(dtype=float) @A;"
                    "s = Split(d, a, num_split=2) @A; p = Pack(s:1, s) @B"));
  EXPECT_EQ(parts.at('B'), R"(s/_recv_0 = _Recv()
s/_recv_1 = _Recv()
p = Pack(s/_recv_1, s/_recv_0)
)");
}

TEST(Partition, ControlEdgesCrossWithoutPayload) {
  const PartitionedGraph out = cut("a = NoOp() @A; b = NoOp() @B, ^a; c = NoOp() @B, ^a");
  const auto parts = structure(out);
  EXPECT_EQ(parts.at('A'), "a = NoOp()\na/_send_0 = _Send(), ^a\n");
  EXPECT_EQ(parts.at('B'), "a/_recv_0 = _Recv()\nb = NoOp(), ^a/_recv_0\nc = NoOp(), ^a/_recv_0\n");
  ASSERT_EQ(out.edges.size(), 1u);
  EXPECT_EQ(out.edges[0].dtype, DType::invalid);
}

TEST(Partition, WavesCountCrossingsBeforeAnEdge) {
  const PartitionedGraph out = cut(
      "a = Placeholder(dtype=float) @A; b = Softmax(a) @B; c = Softmax(b) @A; d = Softmax(c) @B;"
      "e = Softmax(a) @A; f = Softmax(e) @B");
  std::map<std::string, int> waves;
  for (const CutEdge& edge : out.edges) waves[edge.producer] = edge.wave;
  EXPECT_EQ(waves, (std::map<std::string, int>{{"a", 0}, {"b", 1}, {"c", 2}, {"e", 0}}));
  // Numbers follow source, destination and wave.
  std::vector<std::string> order;
  for (const CutEdge& edge : out.edges) order.push_back(edge.producer);
  EXPECT_EQ(order, (std::vector<std::string>{"a", "e", "c", "b"}));
}

TEST(Partition, SmallConstantsAreCopiedToTheirUsers) {
  const auto parts = structure(
      cut("c = Const(dtype=float, value=float[1] [1]) @A; b = Softmax(c) @B; d = Softmax(c) @C"));
  EXPECT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts.at('B'), "c = Const()\nb = Softmax(c)\n");
  EXPECT_EQ(parts.at('C'), "c = Const()\nd = Softmax(c)\n");
}

TEST(Partition, ConstantsWithControlInputsAreSent) {
  const auto parts = structure(
      cut("n = NoOp() @A; c = Const(dtype=float, value=float[1] [1]) @A, ^n; b = Softmax(c) @B"));
  EXPECT_EQ(parts.at('B'), "c/_recv_0 = _Recv()\nb = Softmax(c/_recv_0)\n");
}

TEST(Partition, FeedsGoToAllDevicesThatUseThem) {
  const PartitionedGraph out =
      cut("x = _Feed(dtype=float, name='x:0') @A; b = Softmax(x) @B; c = Softmax(x) @C; d = NoOp() "
          "@C, ^x",
          {.feeds = {"x:0", "unused:0"}, .fetches = {"b:0", "c"}});
  const auto parts = structure(out);
  EXPECT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts.at('B'), "x = _Feed()\nb = Softmax(x)\n");
  EXPECT_EQ(parts.at('C'), "x = _Feed()\nc = Softmax(x)\nd = NoOp(), ^x\n");
  EXPECT_TRUE(out.edges.empty());
  EXPECT_EQ(out.feed_devices.at("x:0"), (std::vector<std::string>{device('B'), device('C')}));
  EXPECT_TRUE(out.feed_devices.at("unused:0").empty());
  EXPECT_EQ(out.fetch_devices.at("b:0"), device('B'));
  EXPECT_EQ(out.fetch_devices.at("c:0"), device('C'));
}

TEST(Partition, SendReadsTheVariable) {
  const auto parts = structure(
      cut("w = VariableV2(dtype=float, shape=[2]) @A; b = Softmax(w) @B; c = Softmax(w) @B"));
  EXPECT_EQ(parts.at('A'), "w = VariableV2()\nw/_send_0 = _Send(w)\n");
  EXPECT_EQ(parts.at('B'), "w/_recv_0 = _Recv()\nb = Softmax(w/_recv_0)\nc = Softmax(w/_recv_0)\n");
}

// The consumer waits for a write, so its read must follow the write, though the variable node has
// no inputs.
TEST(Partition, ReadFollowsWritesThatItsConsumerWaitsFor) {
  const auto parts = structure(cut(R"(
      w = VariableV2(dtype=float, shape=[2]) @A
      one = Placeholder(dtype=float, shape=[2]) @A
      add = AssignAdd(w, one) @A
      before = Softmax(w) @B
      after = Softmax(w) @B, ^add
  )"));
  EXPECT_EQ(parts.at('A'), R"(one = Placeholder()
w = VariableV2()
add = AssignAdd(w, one)
add/_send_2 = _Send(), ^add
w/_send_0 = _Send(w)
w/_send_1 = _Send(w), ^add
)");
  EXPECT_EQ(parts.at('B'), R"(add/_recv_2 = _Recv()
w/_recv_0 = _Recv()
before = Softmax(w/_recv_0)
w/_recv_1 = _Recv()
after = Softmax(w/_recv_1), ^add/_recv_2
)");
}

TEST(Partition, IsVariableInitializedIsNotAWrite) {
  const auto parts = structure(cut(R"(
      w = VariableV2(dtype=float, shape=[2]) @A
      there = IsVariableInitialized(w) @A
      before = Softmax(w) @B
      after = Softmax(w) @B, ^there
  )"));
  EXPECT_EQ(parts.at('A'), R"(w = VariableV2()
there = IsVariableInitialized(w)
there/_send_1 = _Send(), ^there
w/_send_0 = _Send(w)
)");
}

// Only a third device reports that the write has happened.
TEST(Partition, ReadFollowsWritesReportedByAThirdDevice) {
  const PartitionedGraph out = cut(R"(
      w = VariableV2(dtype=float, shape=[2]) @A
      one = Placeholder(dtype=float, shape=[2]) @A
      add = AssignAdd(w, one) @A
      told = NoOp() @C, ^add
      after = Softmax(w) @B, ^told
  )");
  const auto parts = structure(out);
  EXPECT_EQ(parts.at('C'), R"(add/_recv_1 = _Recv()
told = NoOp(), ^add/_recv_1
told/_send_2 = _Send(), ^told
told/_send_3 = _Send(), ^told
)");
  EXPECT_EQ(parts.at('A'), R"(one = Placeholder()
told/_recv_2 = _Recv()
w = VariableV2()
add = AssignAdd(w, one)
add/_send_1 = _Send(), ^add
w/_send_0 = _Send(w), ^told/_recv_2
)");
  EXPECT_EQ(out.edges[0].wave, 2) << "after add → told and told → A";
}

TEST(Partition, ReadsTheValueAfterAnAssignFromItsOutput) {
  const auto parts = structure(
      cut("w = VariableV2(dtype=float, shape=[2]) @A; v = Placeholder(dtype=float, shape=[2]) @A;"
          "set = Assign(w, v) @A; b = Softmax(set) @B"));
  EXPECT_EQ(parts.at('A'),
            "v = Placeholder()\nw = VariableV2()\nset = Assign(w, v)\nset/_send_0 = _Send(set)\n");
}

TEST(Partition, ValuesBehindASwitchMayBeDead) {
  const PartitionedGraph out = cut(R"(
      p = Placeholder(dtype=bool, shape=[]) @A
      x = Placeholder(dtype=float, shape=[2]) @A
      s = Switch(x, p) @A
      y = Softmax(s:1) @A
      z = Softmax(y) @B
      u = Softmax(x) @B
  )");
  std::map<std::string, bool> dead;
  for (const CutEdge& edge : out.edges) dead[edge.producer] = edge.may_be_dead;
  EXPECT_EQ(dead, (std::map<std::string, bool>{{"x", false}, {"y", true}}));
  const Node& recv = *out.partitions.at(device('B')).find("y/_recv_1");
  EXPECT_TRUE(recv.attr<bool>("may_be_dead"));
}

TEST(Partition, SendsFloatsAsBfloat16OnRequest) {
  const Graph graph = parse(
      "a = Placeholder(dtype=float, shape=[2]) @A; n = Placeholder(dtype=int32) @A;"
      "b = Softmax(a) @B; c = Softmax(a) @B; r = Range(n, n, n) @B");
  const PartitionedGraph out = partition(graph, {}, {.bfloat16_edges = true});
  const auto parts = structure(out);
  EXPECT_EQ(parts.at('A'), R"(a = Placeholder()
a/_bfloat16_0 = Cast(a)
a/_send_0 = _Send(a/_bfloat16_0)
n = Placeholder()
n/_send_1 = _Send(n)
)");
  EXPECT_EQ(parts.at('B'), R"(a/_recv_0 = _Recv()
a/_float_0 = Cast(a/_recv_0)
b = Softmax(a/_float_0)
c = Softmax(a/_float_0)
n/_recv_1 = _Recv()
r = Range(n/_recv_1, n/_recv_1, n/_recv_1)
)");
  EXPECT_EQ(out.edges[0].dtype, bf16);
  EXPECT_EQ(out.edges[1].dtype, i32);
}

// Two chains that alternate between two devices.
TEST(Partition, TenThousandCrossingNodes) {
  constexpr int length = 5000;
  Graph graph;
  const DeviceName a = DeviceName::parse(device('A')), b = DeviceName::parse(device('B'));
  for (const char chain : {'l', 'r'}) {
    Output value =
        graph
            .insert({.op = "Placeholder", .name = concat(chain, "_0"), .attrs = {{"dtype", f32}}},
                    a)
            .output();
    for (int i = 1; i < length; ++i) {
      value = graph
                  .insert({.op = "Softmax", .name = concat(chain, "_", i), .inputs = {value}},
                          i % 2 == 0 ? a : b)
                  .output();
    }
  }
  const PartitionedGraph out = partition(graph, {});
  EXPECT_EQ(out.edges.size(), 2u * (length - 1));
  EXPECT_EQ(out.edges.back().wave % 2, 1);
}

// Few of them, and so many that their sets would not fit.
TEST(Partition, ValuesBehindDifferentWaitsComeInDifferentWaves) {
  for (const int count : {3, 2500}) {
    Graph graph;
    const DeviceName a = DeviceName::parse(device('A')), b = DeviceName::parse(device('B'));
    const Output queue = graph
                             .insert({.op = "FIFOQueueV2",
                                      .name = "q",
                                      .attrs = {{"component_types", std::vector<DType>{f32}}}},
                                     a)
                             .output();
    Node* last = queue.node;
    for (int i = 0; i < count; ++i) {
      last = &graph.insert({.op = "QueueDequeueV2",
                            .name = concat("take_", i),
                            .inputs = {queue},
                            .attrs = {{"component_types", std::vector<DType>{f32}}},
                            .control_inputs = {last}},
                           a);
      graph.insert({.op = "Softmax", .name = concat("use_", i), .inputs = {last->output()}}, b);
    }
    const PartitionedGraph out = partition(graph, {});
    std::set<int> waves;
    for (const CutEdge& edge : out.edges) waves.insert(edge.wave);
    EXPECT_EQ(waves.size(), static_cast<size_t>(count));
  }
}

}  // namespace
}  // namespace leat
