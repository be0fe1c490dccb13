// prune: which nodes stay, which become feeds, and TensorFlow's codes and messages for wrong
// endpoints.
#include <gtest/gtest.h>

#include "graph/import/graph_def.h"
#include "graph/passes/pipeline.h"
#include "graph/text.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

const char* const model = R"(
  x = Placeholder(dtype=float, shape=[?,2])
  w = VariableV2(dtype=float, shape=[2,2])
  init = Const(dtype=float, value=float[2,2] [1, 2, 3, 4])
  assign = Assign(w, init)
  y = MatMul(x, w)
  z = Softmax(y)
  split_dim = Const(dtype=int32, value=int32[] [0])
  parts = Split(split_dim, z, num_split=2)
  group = NoOp(), ^assign
)";

std::string pruned(std::string_view text, const StepSignature& signature) {
  const Graph out = prune(parse(text), signature);
  verify(out, "prune");
  return dump(out);
}

TEST(Prune, KeepsInputsOfFetches) {
  EXPECT_EQ(pruned(model, {.fetches = {"assign:0"}}),
            "init = Const(dtype=float, value=float[2,2] [1.0, 2.0, 3.0, 4.0])\n"
            "w = VariableV2(dtype=float, shape=[2,2])\n"
            "assign = Assign(w, init)\n");
}

TEST(Prune, KeepsNodesThatTargetsWaitFor) {
  EXPECT_EQ(pruned(model, {.targets = {"group"}}),
            "init = Const(dtype=float, value=float[2,2] [1.0, 2.0, 3.0, 4.0])\n"
            "w = VariableV2(dtype=float, shape=[2,2])\n"
            "assign = Assign(w, init)\n"
            "group = NoOp(), ^assign\n");
}

TEST(Prune, FeedReplacesItsProducerAndKeepsTheName) {
  EXPECT_EQ(pruned(model, {.feeds = {"x:0"}, .fetches = {"y:0"}}),
            "w = VariableV2(dtype=float, shape=[2,2])\n"
            "x = _Feed(dtype=float, name=\"x:0\", shape=[?,2])\n"
            "y = MatMul(x, w)\n");
  EXPECT_EQ(pruned(model, {.feeds = {"y:0"}, .fetches = {"z:0"}}),
            "y = _Feed(dtype=float, name=\"y:0\", shape=[?,2])\n"
            "z = Softmax(y)\n");
}

TEST(Prune, FeedsOneOfSeveralOutputs) {
  EXPECT_EQ(pruned("a = _Feed(dtype=float, name='a:0'); d = Const(dtype=int32, value=int32[] [0]);"
                   "s = Split(d, a, num_split=2); p = Pack(s, s:1)",
                   {.feeds = {"s:1"}, .fetches = {"p:0"}}),
            "a = _Feed(dtype=float, name=\"a:0\")\n"
            "d = Const(dtype=int32, value=int32[] [0])\n"
            "s = Split(d, a, num_split=2)\n"
            "s/_feed_1 = _Feed(dtype=float, name=\"s:1\")\n"
            "p = Pack(s, s/_feed_1)\n");
}

TEST(Prune, WaitingForAFedPlaceholderWaitsForTheFeed) {
  EXPECT_EQ(pruned("x = Placeholder(dtype=float); after = NoOp(), ^x",
                   {.feeds = {"x"}, .targets = {"after"}}),
            "x = _Feed(dtype=float, name=\"x:0\")\n"
            "after = NoOp(), ^x\n");
}

TEST(Prune, OtherFedNodesRunIfSomethingWaitsForThem) {
  EXPECT_EQ(pruned("x = Const(dtype=float, value=float[1] [1]); y = Softmax(x);"
                   "z = Softmax(y), ^y",
                   {.feeds = {"y:0"}, .fetches = {"z:0"}}),
            "x = Const(dtype=float, value=float[1] [1.0])\n"
            "y = Softmax(x)\n"
            "y/_feed_0 = _Feed(dtype=float, name=\"y:0\", shape=[1])\n"
            "z = Softmax(y/_feed_0), ^y\n");
}

TEST(Prune, AcceptsUnneededFeeds) {
  EXPECT_EQ(pruned(model, {.feeds = {"x:0"}, .fetches = {"init:0"}}),
            "init = Const(dtype=float, value=float[2,2] [1.0, 2.0, 3.0, 4.0])\n");
}

void expect_refusal(const StepSignature& signature, Code code, std::string_view message) {
  const Graph graph = parse(model);
  expect_error([&] { prune(graph, signature); }, code, message);
}

TEST(Prune, RejectsWrongEndpoints) {
  expect_refusal({}, Code::invalid_argument,
                 "Must specify at least one target to fetch or execute.");
  expect_refusal({.feeds = {"x:0"}}, Code::invalid_argument,
                 "Must specify at least one target to fetch or execute.");
  expect_refusal({.feeds = {"x", "x:0"}, .fetches = {"y:0"}}, Code::invalid_argument,
                 "Endpoint \"x:0\" fed more than once.");
  expect_refusal({.feeds = {"x:0"}, .fetches = {"x:0"}}, Code::invalid_argument,
                 "Endpoint \"x:0\" is both fed and fetched.");
  expect_refusal({.feeds = {"labels:0"}, .fetches = {"y:0"}}, Code::not_found,
                 "FeedInputs: unable to find feed output labels:0");
  expect_refusal({.feeds = {"x:1"}, .fetches = {"y:0"}}, Code::invalid_argument,
                 "FeedInputs: x:1 should have output index < 1");
  expect_refusal({.fetches = {"part:0"}}, Code::not_found,
                 "FetchOutputs node part:0: not found; did you mean 'parts'?");
  expect_refusal({.fetches = {"parts:2"}}, Code::invalid_argument,
                 "FetchOutputs parts:2: output index too large, must be < 2");
  expect_refusal({.fetches = {"group:0"}}, Code::invalid_argument,
                 "Tried to fetch data for 'group:0', which has no output. To run a node without "
                 "fetching anything, pass 'group' as a target");
  expect_refusal(
      {.targets = {"gruop", "train_op"}}, Code::not_found,
      "PruneForTargets: Some target nodes not found: gruop; did you mean 'group'?, train_op");
  expect_refusal({.fetches = {"y:z"}}, Code::invalid_argument,
                 "fetch 'y:z' does not name an output: expected 'node:0'");
}

TEST(Prune, RejectsUpdatesOfFedVariables) {
  expect_refusal({.feeds = {"w:0"}, .fetches = {"assign:0"}}, Code::invalid_argument,
                 "Assign node 'assign' (text:5): input ref is a variable or other state, so 'w:0' "
                 "cannot be fed: "
                 "feed the value that is assigned instead");
}

TEST(Prune, UnsupportedOpsFailOnlyTheStepsThatNeedThem) {
  const Graph graph = parse(
      "x = Const(dtype=float, value=float[1] [1]);"
      "f = PyFunc(x, token='pyfunc_0', Tout={float}); y = Softmax(x); z = Softmax(f)");
  EXPECT_EQ(dump(prune(graph, {.fetches = {"y:0"}})),
            "x = Const(dtype=float, value=float[1] [1.0])\ny = Softmax(x)\n");
  expect_error(
      [&] { prune(graph, {.fetches = {"z:0"}}); }, Code::invalid_argument,
      "the step needs PyFunc node 'f' (text:1): the function lives in the client's process and can "
      "never run on another task: compute it there and feed its result\n\t [[{{node f}}]]");
  EXPECT_EQ(dump(prune(graph, {.feeds = {"f:0"}, .fetches = {"z:0"}})),
            "f = _Feed(dtype=float, name=\"f:0\")\nz = Softmax(f)\n");
}

TEST(Connect, RedirectsUsersToTheReplacement) {
  const Graph graph = parse(R"(
    x = Placeholder(dtype=float, shape=[2])
    doubled = Add(x, x)
    parts = Unpack(doubled, num=2)
    source = Const(dtype=float, value=float[2] [1, 2])
    sum = Add(parts:1, parts)
    part = Const(dtype=float, value=float[] [7])
  )");
  const auto connected = [&](std::map<std::string, std::string> connections) {
    const StepSignature signature = {.fetches = {"sum:0"}, .connections = std::move(connections)};
    const Graph out = connect(graph, signature.normalised());
    verify(out, "connect");
    return dump(prune(out, signature));
  };
  EXPECT_EQ(connected({{"x", "source:0"}}),
            "source = Const(dtype=float, value=float[2] [1.0, 2.0])\n"
            "doubled = Add(source, source)\n"
            "parts = Unpack(doubled, num=2)\n"
            "sum = Add(parts:1, parts)\n");
  EXPECT_EQ(connected({{"parts:1", "part"}, {"x:0", "source"}}),
            "part = Const(dtype=float, value=float[] [7.0])\n"
            "source = Const(dtype=float, value=float[2] [1.0, 2.0])\n"
            "doubled = Add(source, source)\n"
            "parts = Unpack(doubled, num=2)\n"
            "sum = Add(part, parts)\n");
}

TEST(Connect, RejectsMistakes) {
  const Graph graph =
      parse("a = Placeholder(dtype=float); b = Neg(a); i = Const(dtype=int32, value=int32[] [0])");
  const auto connected = [&](std::map<std::string, std::string> connections) {
    connect(graph, {.feeds = {"b:0"}, .fetches = {"b:0"}, .connections = std::move(connections)});
  };
  expect_error_with(Code::invalid_argument, "from unknown node: \"none:0\"", [&] {
    connected({{"a:0", "none:0"}});
  });
  expect_error_with(Code::invalid_argument,
                    "from unknown edge: \"b:1\" (actual number of outputs = 1)", [&] {
                      connected({{"a:0", "b:1"}});
                    });
  expect_error_with(Code::not_found, "unable to find feed output none:0", [&] {
    connected({{"none:0", "a:0"}});
  });
  expect_error_with(Code::invalid_argument, "a:1 should have output index < 1", [&] {
    connected({{"a:1", "b:0"}});
  });
  expect_error_with(Code::invalid_argument, "Endpoint \"b:0\" fed more than once", [&] {
    connected({{"b:0", "a:0"}});
  });
  expect_error_with(Code::invalid_argument, "from 'i:0' (int32) to 'a:0' (float)", [&] {
    connected({{"a:0", "i:0"}});
  });
  expect_error_with(Code::invalid_argument, "create a cycle", [&] { connected({{"a:0", "b:0"}}); });
}

TEST(Prune, DatasetToGraphHoldsTheDatasetsNodes) {
  const Graph graph = parse(R"(
    n = Const(dtype=int64, value=int64[] [3])
    other = Const(dtype=int64, value=int64[] [9])
    numbers = RangeDataset(n, n, n, output_types=[int64], output_shapes=[[]]) @/device:CPU:0
    batches = BatchDataset(numbers, n, output_types=[int64], output_shapes=[[?]])
    written = DatasetToGraphV2(batches)
    bare = DatasetToGraph(numbers, strip_device_assignment=true)
  )");
  for (const char* name : {"written", "bare"}) {
    const Graph out = prune(graph, {.fetches = {concat(name, ":0")}});
    verify(out, "prune");
    ASSERT_EQ(out.size(), 1) << dump(out);
    Graph dataset;
    from_graph_def(out.find(name)->attr<Tensor>("value").item<std::string>(), dataset);
    const bool is_bare = std::string_view(name) == "bare";
    EXPECT_EQ(dump(dataset).find("batches") == std::string::npos, is_bare) << dump(dataset);
    EXPECT_EQ(dataset.find("numbers")->requested_device->is_empty(), is_bare);
    EXPECT_EQ(dataset.find("other"), nullptr);
  }
}

TEST(StepSignature, IsNormalised) {
  const StepSignature signature = {
      .feeds = {"b", "a:1"}, .fetches = {"y:0", "x", "y"}, .targets = {"t", "s", "t"}};
  const StepSignature expected = {
      .feeds = {"a:1", "b:0"}, .fetches = {"x:0", "y:0"}, .targets = {"s", "t"}};
  EXPECT_EQ(signature.normalised(), expected);
  EXPECT_EQ(expected.to_string(), "feeds a:1, b:0; fetches x:0, y:0; targets s, t");
}

TEST(Infer, ForgetsShapesDerivedFromAFedConstant) {
  const Graph graph = parse(
      "x = Placeholder(dtype=float); s = Const(dtype=int32, value=int32[2] [3, 4]);"
      "y = Reshape(x, s)");
  EXPECT_EQ(graph.output("y").shape(), (Shape{3, 4}));
  Graph step = prune(graph, {.feeds = {"x:0", "s:0"}, .fetches = {"y:0"}});
  infer(step);
  EXPECT_EQ(step.output("y").shape(), Shape::of_rank(2));
}

}  // namespace
}  // namespace leat
