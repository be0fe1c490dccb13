// GraphDef: what is written can be read again, and every mistake in a foreign graph is reported.
#include "graph/import/graph_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/passes/pipeline.h"
#include "graph/text.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

// Nodes as .pbtxt, shortened: "name op input… | attrs".
std::string node(std::string_view name, std::string_view op,
                 const std::vector<std::string>& inputs = {}, std::string_view more = "") {
  std::string out = concat("node { name: '", name, "' op: '", op, "'");
  for (const std::string& input : inputs) out += concat(" input: '", input, "'");
  return concat(out, " ", more, " }\n");
}

std::string attr(std::string_view name, std::string_view value) {
  return concat("attr { key: '", name, "' value { ", value, " } } ");
}

const std::string float_type = attr("T", "type: DT_FLOAT");
const std::string float_dtype = attr("dtype", "type: DT_FLOAT");

std::vector<std::string> import(std::string_view text, Graph& graph) {
  return from_graph_def_text(text, graph);
}

void expect_refused(std::string_view text, std::string_view message,
                    Code code = Code::invalid_argument) {
  Graph graph;
  graph.add({.op = "Placeholder", .name = "mine", .attrs = {{"dtype", f32}}});
  expect_error([&] { import(text, graph); }, code, message);
  EXPECT_EQ(graph.size(), 1u) << "a refused GraphDef must not leave anything behind";
  EXPECT_EQ(graph.find("a"), nullptr);
}

const char* const model = R"(
  x = Placeholder(dtype=float, shape=[?,2]) @/job:worker/task:0
  w = VariableV2(dtype=float, shape=[2,2]) @/job:ps
  split_dim = Const(dtype=int32, value=int32[] [0])
  init = Const(dtype=float, value=float[2,2] [1, 2, 3, 4])
  assign = Assign(w, init)
  y = MatMul(x, w, transpose_b=true), ^assign
  parts = Split(split_dim, y, num_split=2)
  z = Softmax(parts:1), ^assign, ^init
)";

TEST(GraphDef, RoundTripsInBothForms) {
  const Graph graph = parse(model);
  Graph binary, text;
  EXPECT_TRUE(from_graph_def(to_graph_def(graph), binary).empty());
  EXPECT_TRUE(from_graph_def_text(to_graph_def_text(graph), text).empty());
  const DumpOptions all = {.shapes = true};
  EXPECT_EQ(dump(binary, all), dump(graph, all));
  EXPECT_EQ(dump(text, all), dump(graph, all));
  EXPECT_EQ(to_graph_def(binary), to_graph_def(graph)) << "the same graph, the same bytes";
  verify(binary, "import");
}

TEST(GraphDef, TextEqualsTensorFlow) {
  const Graph graph =
      parse("a = Placeholder(dtype=float, shape=[?,2]) @/job:ps/task:1; b = Softmax(a), ^a");
  EXPECT_EQ(to_graph_def_text(graph), R"(node {
  name: "a"
  op: "Placeholder"
  device: "/job:ps/task:1"
  attr {
    key: "dtype"
    value {
      type: DT_FLOAT
    }
  }
  attr {
    key: "shape"
    value {
      shape {
        dim {
          size: -1
        }
        dim {
          size: 2
        }
      }
    }
  }
}
node {
  name: "b"
  op: "Softmax"
  input: "a"
  input: "^a"
  attr {
    key: "T"
    value {
      type: DT_FLOAT
    }
  }
}
versions {
  producer: 987
}
)");
}

TEST(GraphDef, WritesTheAssignedDeviceOnRequest) {
  const Graph graph = parse("a = NoOp() @A");
  const std::string text = to_graph_def_text(graph, true);
  EXPECT_NE(text.find("device: \"/job:A/task:0/device:CPU:0\""), std::string::npos) << text;
}

// On a NoOp, because attributes that start with _ may hold anything.
TEST(GraphDef, EveryKindOfAttributeRoundTrips) {
  const FunctionRef function{"f", std::make_shared<const AttrMap>(AttrMap{{"T", f32}})};
  const AttrMap attrs = {
      {"_s", std::string("a\0\xff", 3)},
      {"_i", int64_t{-5}},
      {"_f", 0.1f},
      {"_b", true},
      {"_type", bf16},
      {"_shape", Shape{any, 3}},
      {"_unknown_shape", Shape::unknown()},
      {"_tensor", Tensor::of<int32_t>({2}, {1, 2})},
      {"_func", function},
      {"_ls", std::vector<std::string>{"x", ""}},
      {"_li", std::vector<int64_t>{1, -1}},
      {"_lf", std::vector<float>{0.5f, 2}},
      {"_lb", std::vector<bool>{true, false, true}},
      {"_lt", std::vector<DType>{f32, DType::string}},
      {"_lshape", std::vector<Shape>{Shape{}, Shape{2}, Shape::unknown()}},
      {"_ltensor", std::vector<Tensor>{Tensor::scalar("s"), Tensor::scalar(true)}},
      {"_lfunc", std::vector<FunctionRef>{function}},
  };
  Graph graph;
  graph.add({.op = "NoOp", .name = "n", .attrs = attrs});
  for (const bool is_text : {false, true}) {
    Graph back;
    if (is_text) {
      from_graph_def_text(to_graph_def_text(graph), back);
    } else {
      from_graph_def(to_graph_def(graph), back);
    }
    const Node& n = *back.find("n");
    for (const auto& [name, value] : attrs) {
      ASSERT_TRUE(n.view().has(name)) << name;
      EXPECT_EQ(n.attrs.at(name), value) << name;
    }
    const auto& f = n.attr<FunctionRef>("_func");
    ASSERT_TRUE(f.attrs);
    EXPECT_EQ(f.attrs->at("T"), AttrValue(f32));
  }
}

TEST(GraphDef, WritesEqualElementsOnce) {
  Graph graph;
  graph.add({.op = "Const",
             .name = "zeros",
             .attrs = {{"value",
                        [] {
                          Tensor t(f32, {1000, 100});
                          std::fill_n(t.data<float>(), 100000, 2.5f);
                          return t;
                        }()},
                       {"dtype", f32}}});
  const std::string bytes = to_graph_def(graph);
  EXPECT_LT(bytes.size(), 200u);
  Graph back;
  from_graph_def(bytes, back);
  EXPECT_EQ(back.find("zeros")->attrs.at("value"), graph.find("zeros")->attrs.at("value"));
}

TEST(GraphDef, ReadsNodesInAnyOrder) {
  Graph graph;
  import(node("c", "Softmax", {"b", "^d"}, float_type) + node("b", "Softmax", {"a:0"}, float_type) +
             node("d", "NoOp") + node("a", "Placeholder", {}, float_dtype),
         graph);
  EXPECT_EQ(dump(graph, {.attrs = false}),
            "a = Placeholder()\nb = Softmax(a)\nd = NoOp()\nc = Softmax(b), ^d\n");
  verify(graph, "import");
}

TEST(GraphDef, ExtensionRefersToExistingNodes) {
  Graph graph;
  import(node("a", "Placeholder", {}, float_dtype), graph);
  const Node* before = graph.find("a");
  import(node("b", "Softmax", {"a"}, float_type), graph);
  EXPECT_EQ(graph.find("a"), before);
  EXPECT_EQ(graph.find("b")->inputs[0].node, before);
}

// A node takes over the inference of the node before it only if both say the same.
TEST(GraphDef, SimilarNeighboursAreInferredSeparately) {
  const Graph graph = parse(R"(
    a = Placeholder(dtype=float, shape=[2,2])
    b = Placeholder(dtype=double, shape=[2,2])
    c = Placeholder(dtype=float, shape=[2,3])
    v = VariableV2(dtype=float, shape=[2,2])
    c0 = Const(dtype=int32, value=int32[] [0])
    c1 = Const(dtype=int32, value=int32[] [1])
    m0 = MatMul(a, a)
    m1 = MatMul(a, a)
    m2 = MatMul(a, a, transpose_a=true)
    m3 = MatMul(b, b, transpose_a=true)
    m4 = MatMul(a, c, transpose_a=true)
    m5 = MatMul(v, c, transpose_a=true)
    l0 = LeakyRelu(a, alpha=0.0)
    l1 = LeakyRelu(a, alpha=-0.0)
    l2 = LeakyRelu(b, alpha=-0.0)
    n0 = AddN(a, a)
    n1 = AddN(a, a, a)
    s0 = Sum(c, c0, keep_dims=true)
    s1 = Sum(c, c0)
    s2 = Sum(c, c1)
    i0 = Identity(v)
    i1 = Identity(i0)
  )");
  const auto check = [](const Graph& g) {
    const auto node = [&](const char* name) -> const Node& { return *g.find(name); };
    EXPECT_FALSE(node("m1").attr<bool>("transpose_a"));
    EXPECT_TRUE(node("m2").attr<bool>("transpose_a"));
    EXPECT_EQ(node("m2").outputs[0].dtype, f32);
    EXPECT_EQ(node("m3").attr<DType>("T"), f64);
    EXPECT_EQ(node("m3").outputs[0].dtype, f64);
    EXPECT_EQ(node("m4").outputs[0].shape, Shape({2, 3}));
    EXPECT_EQ(node("m3").outputs[0].shape, Shape({2, 2}));
    EXPECT_FALSE(std::signbit(node("l0").attr<float>("alpha")));
    EXPECT_TRUE(std::signbit(node("l1").attr<float>("alpha")));
    EXPECT_EQ(node("l2").outputs[0].dtype, f64);
    EXPECT_EQ(node("n0").attr<int64_t>("N"), 2);
    EXPECT_EQ(node("n1").attr<int64_t>("N"), 3);
    EXPECT_EQ(node("s0").outputs[0].shape, Shape({1, 3}));
    EXPECT_EQ(node("s1").outputs[0].shape, Shape({3}));
    EXPECT_EQ(node("s2").outputs[0].shape, Shape({2}));
    EXPECT_EQ(*node("c1").attr<Tensor>("value").data<int32_t>(), 1);
    verify(g, "import");
  };
  check(graph);
  Graph read;
  from_graph_def(to_graph_def(graph), read);
  check(read);
}

TEST(GraphDef, FillsInDefaults) {
  Graph graph;
  import(node("a", "Placeholder", {}, float_dtype) + node("m", "MatMul", {"a", "a"}, float_type),
         graph);
  EXPECT_FALSE(graph.find("m")->attr<bool>("transpose_a"));
}

TEST(GraphDef, DropsUnknownAttributesWithOneNoteEach) {
  Graph graph;
  const std::string skew = float_type + attr("grad_z", "b: true") + attr("_free", "i: 3");
  const std::vector<std::string> notes =
      import(node("a", "Placeholder", {}, float_dtype) + node("m", "MatMul", {"a", "a"}, skew) +
                 node("n", "MatMul", {"a", "a"}, skew),
             graph);
  EXPECT_EQ(
      notes,
      (std::vector<std::string>{
          "MatMul: attribute 'grad_z' is not known and was ignored; on 'm' it is {b: true}"}));
  EXPECT_FALSE(graph.find("m")->view().has("grad_z"));
  EXPECT_EQ(graph.find("m")->attr<int64_t>("_free"), 3);
}

TEST(GraphDef, AcceptsNodesWithoutKernelWithANote) {
  Graph graph;
  const std::vector<std::string> notes =
      import(node("f", "PyFunc", {},
                  attr("token", "s: 't'") + attr("Tin", "list {}") +
                      attr("Tout", "list { type: DT_FLOAT }")),
             graph);
  EXPECT_EQ(notes,
            (std::vector<std::string>{"PyFunc: no kernel for 1 of its nodes, such as 'f'; steps "
                                      "that need one will fail. Kernels: none"}));
}

// TensorFlow accepts it, too: in a branch that is never taken it is harmless.
TEST(GraphDef, AcceptsMismatchedInputsWithANote) {
  const std::string shape_4_6 = "shape { dim { size: 4 } dim { size: 6 } }";
  const std::string text = node("x", "Placeholder", {}, float_dtype + attr("shape", shape_4_6)) +
                           node("y", "MatMul", {"x", "x"}, float_type) +
                           node("z", "Softmax", {"y"}, float_type);
  Graph graph;
  const std::vector<std::string> notes = import(text, graph);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], testing::HasSubstr("MatMul node 'y': "));
  EXPECT_THAT(notes[0], testing::EndsWith("steps that need it will fail"));
  EXPECT_EQ(graph.output("z:0").shape(), (Shape{any, any}));
  // Mistakes that do not depend on the inputs are rejected.
  expect_refused(node("c", "Const", {}, float_dtype + attr("value", "tensor { dtype: DT_INT32 }")),
                 "Const node 'c': attribute 'value' holds int32, but 'dtype' is float");
}

// A node with wrong attributes is accepted, too, as long as no step needs it.
TEST(GraphDef, InvalidNodesFailOnlyTheStepsThatNeedThem) {
  const std::string attrs = float_type + attr("ksize", "list { i: 1 i: 0 i: 2 i: 1 }") +
                            attr("strides", "list { i: 1 i: 1 i: 1 i: 1 }") +
                            attr("padding", "s: 'SAME'");
  const std::string text =
      node("x", "Placeholder", {}, float_dtype) + node("bad", "AvgPool", {"x"}, attrs) +
      node("behind", "Neg", {"bad"}, float_type) + node("good", "Neg", {"x"}, float_type);
  Graph graph;
  const std::vector<std::string> notes = import(text, graph);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], testing::HasSubstr("AvgPool node 'bad': "));
  EXPECT_THAT(notes[0], testing::EndsWith("steps that need it will fail"));
  EXPECT_EQ(graph.output("bad:0").shape(), Shape::unknown());

  const auto step = [&](std::string fetch) {
    PipelineOptions options;
    options.signature = {.feeds = {"x:0"}, .fetches = {std::move(fetch)}, .targets = {}};
    options.placement.devices = {
        {DeviceName::parse("/job:worker/replica:0/task:0/device:CPU:0"), DeviceType::cpu}};
    options.placement.default_device = options.placement.devices[0].name;
    run_pipeline(graph, options);
  };
  EXPECT_NO_THROW(step("good:0"));
  for (const char* fetch : {"bad:0", "behind:0"}) {
    expect_error_with(Code::invalid_argument, "AvgPool node 'bad'", [&] { step(fetch); });
  }
  // A program that builds the graph gets the error at once.
  Graph built;
  Node& x = built.add({.op = "Placeholder", .attrs = {{"dtype", f32}}});
  expect_error_with(Code::invalid_argument, "AvgPool node", [&] {
    built.add({.op = "AvgPool",
               .inputs = {x.output()},
               .attrs = {{"ksize", std::vector<int64_t>{1, 0, 2, 1}},
                         {"strides", std::vector<int64_t>{1, 1, 1, 1}},
                         {"padding", "SAME"}}});
  });
}

TEST(GraphDef, NamesAllUnknownOpsInOneMessage) {
  expect_refused(node("a", "Frobnicate") + node("b", "Frobnicate") + node("c", "Blend", {"a"}) +
                     node("d?", "NoOp"),
                 "Op type not registered 'Blend' (node 'c'), 'Frobnicate' (node 'a')\n"
                 "'d?' (NoOp) is not a node name: names consist of letters, digits and _ . - / >, "
                 "and start with a letter, a digit or a dot",
                 Code::not_found);
}

TEST(GraphDef, ReportsAllProblemsAtOnce) {
  expect_refused(
      node("a", "Placeholder", {}, float_dtype) + node("a", "NoOp") + node("mine", "NoOp") +
          node("b", "NoOp", {}, "device: '/job:ps/cpu:x'") + node("c", "NoOp", {"^gone"}),
      "node 'a' (NoOp) comes twice\n"
      "node 'mine' (NoOp) is already in the graph\n"
      "node 'b' (NoOp): " +
          [] {
            try {
              DeviceName::parse("/job:ps/cpu:x");
            } catch (const Error& error) {
              return error.message();
            }
            return std::string();
          }());
  expect_refused(node("b", "Softmax", {"a:1"}, float_type) +
                     node("a", "Placeholder", {}, float_dtype) + node("c", "Softmax", {"a"}) +
                     node("d", "MatMul", {"a", "a"}, attr("T", "i: 1")) +
                     node("e", "Softmax", {"c"}, float_type) +
                     node("f", "NoOp", {}, attr("_x", "placeholder: 'T'")),
                 "node 'b' (Softmax): input 'a:1': Placeholder node 'a' has 1 output\n"
                 "node 'c' (Softmax): attribute 'T' (type) is missing and has no default\n"
                 "MatMul node 'd': attribute 'T' must be of kind type, got the int 1; inputs: a: "
                 "float<unknown>, b: float<unknown>");
}

TEST(GraphDef, RejectsWrongInputs) {
  expect_refused(
      node("b", "Softmax", {"imgaes"}, float_type) + node("images", "Placeholder", {}, float_dtype),
      "node 'b' (Softmax): input 'imgaes' is not in the graph; did you mean 'images'?");
  expect_refused(
      node("a", "Placeholder", {}, float_dtype) + node("b", "Softmax", {"^a", "a"}, float_type),
      "node 'b' (Softmax): input 'a' comes after a control input");
  expect_refused(
      node("b", "Softmax", {"a:x"}, float_type) + node("a", "Placeholder", {}, float_dtype),
      "node 'b' (Softmax): input 'a:x' is not of the form 'node', 'node:1' or '^node'");
  expect_refused(node("b", "NoOp", {"^c"}) + node("c", "NoOp", {"^b"}),
                 "the graph has a cycle that is not a while loop (only a Merge may wait for a "
                 "NextIteration), in or before 2 nodes: b, c");
}

TEST(GraphDef, RejectsTooManyOutputs) {
  expect_refused(
      node("d", "Placeholder", {}, attr("dtype", "type: DT_INT32")) +
          node("a", "Placeholder", {}, float_dtype) +
          node("s", "Split", {"d", "a"}, float_type + attr("num_split", "i: 2000000000")),
      "node 's' (Split): attribute 'num_split' asks for 2000000000 outputs; at most 65536 "
      "are possible");
}

TEST(GraphDef, RejectsInvalidNames) {
  for (const std::string name : {"a", "A.b-c_d/e", "0", ".x", "a/b>c/d", "_internal"}) {
    Graph graph;
    EXPECT_NO_THROW(import(node(name, "NoOp"), graph)) << name;
  }
  for (const std::string name : {"", "-a", "/a", "a b", "a:0", "^a", "a>", ">a", "a>>b", "é"}) {
    Graph graph;
    EXPECT_THROW(import(node(name, "NoOp"), graph), Error) << name;
  }
  Graph graph;
  expect_error(
      [&] {
        from_graph_def_text(node("_x", "NoOp") + node("y", "_Recv"), graph,
                            {.allow_internal = false});
      },
      Code::invalid_argument,
      "'_x' (NoOp) is not a node name: names consist of letters, digits and _ . - / >, and start "
      "with a letter, a digit or a dot\nnode 'y' (_Recv): ops that start with '_' are the "
      "runtime's "
      "own");
}

// The graph holds the loop without its back edge and writes it with the edge.
TEST(GraphDef, KeepsWhileLoops) {
  const std::string frame = float_type + attr("frame_name", "s: 'loop'");
  const std::string text =
      node("x", "Placeholder", {}, float_dtype) +
      node("p", "Placeholder", {}, attr("dtype", "type: DT_BOOL")) +
      node("enter", "Enter", {"x"}, frame) +
      node("merge", "Merge", {"enter", "next"}, float_type + attr("N", "i: 2")) +
      node("cond", "LoopCond", {"p"}) + node("switch", "Switch", {"merge", "cond"}, float_type) +
      node("next", "NextIteration", {"switch:1"}, float_type) +
      node("exit", "Exit", {"switch"}, float_type) + node("y", "Softmax", {"x"}, float_type);
  Graph graph;
  import(text, graph);
  EXPECT_NE(to_graph_def_text(graph).find("input: \"enter\"\n  input: \"next\""),
            std::string::npos);
  Graph again;
  from_graph_def(to_graph_def(graph), again);
  EXPECT_EQ(dump(again), dump(graph));
  EXPECT_EQ(prune(graph, {.feeds = {"x:0"}, .fetches = {"y:0"}}).size(), 2u);
  EXPECT_EQ(prune(graph, {.feeds = {"x:0", "p:0"}, .fetches = {"exit:0"}}).size(), 8u);
}

TEST(GraphDef, RejectsOtherBytes) {
  Graph graph;
  expect_error([&] { from_graph_def("\xff\xff", graph); }, Code::invalid_argument,
               "this is not a GraphDef: its 2 bytes do not parse");
  expect_error([&] { from_graph_def_text("node {\n  name: a\n}", graph); }, Code::invalid_argument,
               "this is not a GraphDef: line 2, column 9: Expected string, got: a");
  EXPECT_TRUE(from_graph_def("", graph).empty());
  EXPECT_EQ(graph.size(), 0u);
}

// node { name: "a" op: "Const" attr { value: tensor float[2] {1, -2} } attr { dtype } device:
// "/cpu:0" }, by hand.
TEST(GraphDef, ReadsBytesWrittenByHand) {
  // Lengths are computed here rather than counted.
  const auto field = [](int number, std::string_view content) {
    return concat(static_cast<char>(number << 3 | 2), static_cast<char>(content.size()), content);
  };
  const std::string content("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);
  const std::string tensor = "\x08\x01" + field(2, field(2, "\x08\x02")) + field(4, content);
  const std::string def = field(1, field(1, "a") + field(2, "Const") + field(4, "/cpu:0") +
                                       field(5, field(1, "dtype") + field(2, "\x30\x01")) +
                                       field(5, field(1, "value") + field(2, field(8, tensor))));
  Graph graph;
  from_graph_def(def, graph);
  EXPECT_EQ(dump(graph), "a = Const(dtype=float, value=float[2] [1.0, -2.0]) @/device:CPU:0\n");
}

TEST(GraphDef, ReadsTenThousandNodesInReverseOrder) {
  std::string text;
  for (int i = 9999; i > 0; --i) {
    text += node(concat("n", i), "NoOp", {concat("^n", i - 1)});
  }
  text += node("n0", "NoOp");
  Graph graph;
  import(text, graph);
  EXPECT_EQ(graph.size(), 10000u);
  EXPECT_EQ(graph.nodes().back()->name, "n9999");
}

}  // namespace
}  // namespace leat
