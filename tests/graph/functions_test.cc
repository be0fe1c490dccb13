// GraphDefs whose nodes call functions: which nodes replace the calls, and mistakes.
#include "graph/functions/functions.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/import/graph_def.h"
#include "graph/text.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

std::string node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs = {}, const std::string& rest = "") {
  std::string text = concat("name: '", name, "' op: '", op, "' ");
  for (const std::string& input : inputs) text += concat("input: '", input, "' ");
  return text + rest;
}
std::string in_graph(const std::string& node) { return "node { " + node + " } "; }
std::string in_function(const std::string& node) { return "node_def { " + node + " } "; }

std::string attr(const std::string& name, const std::string& value) {
  return concat("attr { key: '", name, "' value { ", value, " } } ");
}
std::string called(const std::string& name, const std::string& function) {
  return attr(name, concat("func { name: '", function, "' }"));
}
std::string types(const std::string& name, int count, const std::string& type = "DT_FLOAT") {
  std::string list;
  for (int i = 0; i < count; ++i) list += "type: " + type + " ";
  return attr(name, concat("list { ", list, "}"));
}
const std::string float_type = attr("T", "type: DT_FLOAT");

std::string arg(const std::string& kind, const std::string& name,
                const std::string& type = "DT_FLOAT") {
  return concat(kind, " { name: '", name, "' type: ", type, " } ");
}

// A function of floats x0, x1, … with these nodes and results.
std::string function(const std::string& name, int arguments, const std::string& nodes,
                     const std::vector<std::string>& results, const std::string& rest = "",
                     const std::string& result_type = "DT_FLOAT") {
  std::string signature = concat("name: '", name, "' ");
  for (int i = 0; i < arguments; ++i) signature += arg("input_arg", concat("x", i));
  std::string ret;
  for (size_t i = 0; i < results.size(); ++i) {
    signature += arg("output_arg", concat("y", i), result_type);
    ret += concat("ret { key: 'y", i, "' value: '", results[i], "' } ");
  }
  return concat("function { signature { ", signature, "} ", nodes, ret, rest, "} ");
}

const std::string x = in_graph(node("x", "Placeholder", {}, attr("dtype", "type: DT_FLOAT")));
const std::string p = in_graph(node("p", "Placeholder", {}, attr("dtype", "type: DT_BOOL")));
const std::string square =
    function("square", 1, in_function(node("mul", "Mul", {"x0", "x0"}, float_type)), {"mul:z:0"});

std::string call(const std::string& name, const std::string& f,
                 const std::vector<std::string>& inputs, int results = 1) {
  const auto count = std::count_if(inputs.begin(), inputs.end(),
                                   [](const std::string& input) { return input[0] != '^'; });
  return in_graph(
      node(name, "PartitionedCall", inputs,
           called("f", f) + types("Tin", static_cast<int>(count)) + types("Tout", results)));
}

std::string graph_def(const std::string& nodes, const std::string& functions) {
  return concat(nodes, "library { ", functions, "} ");
}

std::string imported(const std::string& nodes, const std::string& functions) {
  Graph graph;
  from_graph_def_text(graph_def(nodes, functions), graph);
  return dump(graph);
}

void expect_refused(const std::string& nodes, const std::string& functions,
                    const std::string& message) {
  Graph graph;
  expect_error([&] { from_graph_def_text(graph_def(nodes, functions), graph); },
               Code::invalid_argument, message);
  EXPECT_EQ(graph.size(), 0u);
}

TEST(Functions, AcceptsALibrary) {
  Graph graph;
  from_graph_def_text(graph_def(in_graph(node("a", "NoOp")), square), graph);
  // An extension repeats the library.
  from_graph_def_text(graph_def(in_graph(node("b", "NoOp")), square), graph);
  EXPECT_EQ(graph.size(), 2u);
}

TEST(Functions, CallsAreInlined) {
  EXPECT_EQ(imported(x + call("y", "square", {"x"}), square),
            "x = Placeholder(dtype=float)\n"
            "y/call/mul = Mul(x, x)\n"
            "y = Identity(y/call/mul)\n");
  // A call by the function's name, and a call on another call's result.
  EXPECT_EQ(
      imported(x + in_graph(node("y", "square", {"x"})) + in_graph(node("z", "square", {"y"})),
               square),
      "x = Placeholder(dtype=float)\n"
      "y/call/mul = Mul(x, x)\n"
      "y = Identity(y/call/mul)\n"
      "z/call/mul = Mul(y, y)\n"
      "z = Identity(z/call/mul)\n");
}

std::string gradient_of(const std::string& function) {
  return in_graph(node("dx", "SymbolicGradient", {"x", "dy"},
                       called("f", function) + types("Tin", 2) + types("Tout", 1)));
}
const std::string dy = in_graph(node("dy", "Placeholder", {}, attr("dtype", "type: DT_FLOAT")));

TEST(Functions, BuildsSymbolicGradients) {
  const std::string neg =
      function("neg", 1, in_function(node("neg", "Neg", {"x0"}, float_type)), {"neg:y:0"});
  EXPECT_EQ(imported(x + dy + gradient_of("neg"), neg),
            "dy = Placeholder(dtype=float)\n"
            "dx/gradient/gradients/forward/neg/Neg = Neg(dy)\n"
            "dx = Identity(dx/gradient/gradients/forward/neg/Neg)\n"
            "x = Placeholder(dtype=float)\n"
            "dx/gradient/forward/neg = Neg(x)\n");
  const std::string constant = function(
      "constant", 1, in_function(node("zero", "ZerosLike", {"x0"}, float_type)), {"zero:y:0"});
  EXPECT_EQ(imported(x + dy + gradient_of("constant"), constant),
            "dy = Placeholder(dtype=float)\n"
            "x = Placeholder(dtype=float)\n"
            "dx/gradient/forward/zero = ZerosLike(x)\n"
            "dx/zeros = ZerosLike(x)\n"
            "dx = Identity(dx/zeros)\n");
}

TEST(Functions, UsesGradientsFromTheLibrary) {
  const std::string own =
      function("own", 2, in_function(node("mul", "Mul", {"x0", "x1"}, float_type)), {"mul:z:0"}) +
      "gradient { function_name: 'square' gradient_func: 'own' } ";
  EXPECT_EQ(imported(x + dy + gradient_of("square"), square + own),
            "dy = Placeholder(dtype=float)\n"
            "x = Placeholder(dtype=float)\n"
            "dx/call/mul = Mul(x, dy)\n"
            "dx = Identity(dx/call/mul)\n");
  const std::string outer =
      function("outer", 1, in_function(node("inner", "square", {"x0"})), {"inner:y0:0"});
  expect_refused(
      x + dy + gradient_of("outer"), square + own + outer,
      "node 'forward/inner' (square): the gradient of 'dx' goes through function "
      "'square', which has a gradient function of its own (grad_func): call it outside of "
      "other functions\n\t [[{{node forward/inner}}]]");
  expect_refused(x + dy + gradient_of("two"), function("two", 1, "", {"x0", "x0"}),
                 "node 'dx' (SymbolicGradient): passes 1 gradients for the 2 results of 'two'\n\t "
                 "[[{{node dx}}]]");
}

TEST(Functions, InlinesNestedCalls) {
  const std::string fourth = function("fourth", 1,
                                      in_function(node("inner", "square", {"x0"})) +
                                          in_function(node("outer", "square", {"inner:y0:0"})),
                                      {"outer:y0:0", "inner:y0:0"});
  EXPECT_EQ(imported(x + call("y", "fourth", {"x"}, 2), square + fourth),
            "x = Placeholder(dtype=float)\n"
            "y/call/inner/call/mul = Mul(x, x)\n"
            "y/call/inner = Identity(y/call/inner/call/mul)\n"
            "y/call/outer/call/mul = Mul(y/call/inner, y/call/inner)\n"
            "y/call/outer = Identity(y/call/outer/call/mul)\n"
            "y = IdentityN(y/call/outer, y/call/inner)\n");
}

// The function waits for whatever the call waits for; the call also runs what the function does
// beside its results.
TEST(Functions, CallKeepsItsControlEdges) {
  const std::string f = function("f", 1,
                                 in_function(node("seen", "NoOp", {"^x0"})) +
                                     in_function(node("neg", "Neg", {"x0"}, float_type)) +
                                     in_function(node("late", "NoOp", {"^neg"})),
                                 {"neg:y:0"}, "control_ret { key: 'late' value: 'late' } ");
  EXPECT_EQ(imported(x + in_graph(node("before", "NoOp")) + call("y", "f", {"x", "^before"}), f),
            "before = NoOp()\n"
            "x = Placeholder(dtype=float)\n"
            "y/call/neg = Neg(x), ^before\n"
            "y/call/late = NoOp(), ^y/call/neg\n"
            "y = Identity(y/call/neg), ^before, ^y/call/late\n"
            "y/call/seen = NoOp(), ^before, ^x\n");
}

TEST(Functions, KeepsDevicesAndColocation) {
  const std::string f = function(
      "f", 1,
      in_function(node("a", "Neg", {"x0"}, float_type + "device: '/device:CPU:0' ")) +
          in_function(node("b", "Neg", {"a:y:0"},
                           float_type + attr("_class", "list { s: 'loc:@a' s: 'loc:@x0' }"))),
      {"b:y:0"});
  const std::string y = in_graph(node(
      "y", "PartitionedCall", {"x"},
      "device: '/job:worker/task:1' " + called("f", "f") + types("Tin", 1) + types("Tout", 1)));
  EXPECT_EQ(imported(x + y, f),
            "x = Placeholder(dtype=float)\n"
            "y/call/a = Neg(x) @/job:worker/task:1/device:CPU:0\n"
            "y/call/b = Neg(y/call/a, _class={\"loc:@y/call/a\", \"loc:@x\"}) @/job:worker/task:1\n"
            "y = Identity(y/call/b) @/job:worker/task:1\n");
}

TEST(Functions, CallSetsAttributes) {
  const std::string cast =
      "function { signature { name: 'cast' input_arg { name: 'x0' type: DT_FLOAT } "
      "output_arg { name: 'y0' type_attr: 'To' } attr { name: 'To' type: 'type' } } " +
      in_function(node("c", "Cast", {"x0"},
                       attr("SrcT", "type: DT_FLOAT") + attr("DstT", "placeholder: 'To'"))) +
      "ret { key: 'y0' value: 'c:y:0' } } ";
  const std::string y = node("y", "cast", {"x"});
  EXPECT_EQ(imported(x + in_graph(y + attr("To", "type: DT_INT32")), cast),
            "x = Placeholder(dtype=float)\n"
            "y/call/c = Cast(x, DstT=int32)\n"
            "y = Identity(y/call/c)\n");
  expect_refused(
      x + in_graph(y), cast,
      "node 'y' (cast): attribute 'To' is missing and has no default\n\t [[{{node y}}]]");
}

TEST(Functions, BuildsConditions) {
  const std::string one =
      function("one", 1,
               in_function(node(
                   "c", "Const", {},
                   attr("dtype", "type: DT_FLOAT") +
                       attr("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 }"))),
               {"c:output:0"});
  const std::string y =
      in_graph(node("y", "StatelessIf", {"p", "x"},
                    attr("Tcond", "type: DT_BOOL") + types("Tin", 1) + types("Tout", 1) +
                        called("then_branch", "square") + called("else_branch", "one")));
  EXPECT_EQ(imported(x + p + y, square + one),
            "p = Placeholder(dtype=bool)\n"
            "x = Placeholder(dtype=float)\n"
            "y/switch = Switch(p, p)\n"
            "y/else_pivot = Identity(y/switch)\n"
            "y/else/c = Const(dtype=float, value=float[] [1.0]), ^y/else_pivot\n"
            "y/switch_1 = Switch(x, p)\n"
            "y/then/mul = Mul(y/switch_1:1, y/switch_1:1)\n"
            "y/merge = Merge(y/then/mul, y/else/c)\n"
            "y = Identity(y/merge)\n"
            "y/then_pivot = Identity(y/switch:1)\n");
}

TEST(Functions, BuildsLoops) {
  const std::string less =
      function("less", 2, in_function(node("less", "Less", {"x0", "x1"}, float_type)), {"less:z:0"},
               "", "DT_BOOL");
  const std::string twice = function("twice", 2,
                                     in_function(node("sum", "Add", {"x0", "x0"}, float_type)) +
                                         in_function(node("same", "Identity", {"x1"}, float_type)),
                                     {"sum:z:0", "same:output:0"});
  const std::string y = in_graph(node(
      "y", "While", {"x", "x"}, types("T", 2) + called("cond", "less") + called("body", "twice")));
  EXPECT_EQ(imported(x + y, less + twice),
            "x = Placeholder(dtype=float)\n"
            "y/enter = Enter(x, frame_name=\"y/frame\")\n"
            "y/enter_1 = Enter(x, frame_name=\"y/frame\", is_constant=true)\n"
            "y/merge = Merge(y/enter, y/enter, _leat_back_edge=\"y/next\")\n"
            "y/cond/less = Less(y/merge, y/enter_1)\n"
            "y/loop_cond = LoopCond(y/cond/less)\n"
            "y/switch = Switch(y/merge, y/loop_cond)\n"
            "y/body/sum = Add(y/switch:1, y/switch:1)\n"
            "y/body_pivot = Identity(y/switch:1)\n"
            "y/body/same = Identity(y/enter_1), ^y/body_pivot\n"
            "y/exit = Exit(y/switch)\n"
            "y = IdentityN(y/exit, x), ^y/exit\n"
            "y/next = NextIteration(y/body/sum)\n");
}

// A call that passes on a handle passes on the handle itself.
TEST(Functions, PassesHandlesThrough) {
  const std::string v = in_graph(
      node("v", "VarHandleOp", {}, attr("dtype", "type: DT_FLOAT") + attr("shape", "shape {}")));
  const std::string f =
      "function { signature { name: 'f' input_arg { name: 'h' type: DT_RESOURCE } " +
      arg("output_arg", "y0", "DT_RESOURCE") + "} ret { key: 'y0' value: 'h' } } ";
  EXPECT_EQ(
      imported(v +
                   in_graph(node("c", "StatefulPartitionedCall", {"v"},
                                 called("f", "f") + types("Tin", 1, "DT_RESOURCE") +
                                     types("Tout", 1, "DT_RESOURCE"))) +
                   in_graph(node("r", "ReadVariableOp", {"c"}, attr("dtype", "type: DT_FLOAT"))),
               f),
      "c = NoOp()\n"
      "v = VarHandleOp(dtype=float, shape=[])\n"
      "r = ReadVariableOp(v, dtype=float)\n");
}

// The graph already has the names that its functions' nodes would get.
TEST(Functions, RenamesCollidingNodes) {
  EXPECT_EQ(imported(in_graph(node("y/call/mul", "NoOp")) + x + call("y", "square", {"x"}), square),
            "x = Placeholder(dtype=float)\n"
            "y/call/mul = NoOp()\n"
            "y/call_1/mul = Mul(x, x)\n"
            "y = Identity(y/call_1/mul)\n");
}

TEST(Functions, RejectsMistakes) {
  expect_refused(x + call("y", "square", {"x"}), "",
                 "node 'y' (PartitionedCall) calls the function 'square', which is not in the "
                 "graph's library\n\t [[{{node y}}]]");
  expect_refused(x + call("y", "square", {"x", "x"}), square,
                 "function 'square', which node 'y' (PartitionedCall) calls: it has 1 argument, "
                 "but the call passes 2\n\t [[{{node y}}]]");
  expect_refused(x + call("y", "square", {"x"}, 2), square,
                 "node 'y' (PartitionedCall): asks for 2 results, but the functions return 1\n\t "
                 "[[{{node y}}]]");
  expect_refused(x + in_graph(node("y", "PartitionedCall", {"x"}, types("Tout", 1))), "",
                 "node 'y' (PartitionedCall): attribute 'f' is missing and has no default\n\t "
                 "[[{{node y}}]]");
  expect_refused(in_graph(node("y", "If", {}, attr("Tcond", "type: DT_BOOL"))), "",
                 "node 'y' (If): has no condition\n\t [[{{node y}}]]");
  expect_refused(
      x + call("y", "f", {"x"}), function("f", 1, "", {"z:y:0"}),
      "function 'f', which node 'y' (PartitionedCall) calls: it has no node for 'z:y:0'\n\t "
      "[[{{node y}}]]");
  expect_refused(
      x + in_graph(node("y", "While", {"x"},
                        types("T", 1) + called("cond", "square") + called("body", "missing"))),
      square,
      "node 'y' (While): function 'missing' is not in the graph's library\n\t "
      "[[{{node y}}]]");
}

TEST(Functions, RejectsRecursion) {
  const std::string f = function("f", 1, in_function(node("again", "g", {"x0"})), {"again:y0:0"});
  const std::string g = function("g", 1, in_function(node("back", "f", {"x0"})), {"back:y0:0"});
  expect_refused(x + call("y", "f", {"x"}), f + g,
                 "node 'y/call/again/call/back' (f): function 'f' calls itself, which is not "
                 "supported\n\t [[{{node y/call/again/call/back}}]]");
}

// f0 calls f1 twice, which calls f2 twice, …
TEST(Functions, RejectsTooManyNodes) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    const std::string next = concat("f", i + 1);
    text += function(concat("f", i), 1,
                     in_function(node("a", next, {"x0"})) + in_function(node("b", next, {"x0"})),
                     {"a:y0:0"});
  }
  text += function("f40", 1, in_function(node("n", "Neg", {"x0"}, float_type)), {"n:y:0"});
  expect_refused(
      x + call("y", "f0", {"x"}), text,
      "the functions that the graph calls have more than 200000 nodes or 2147483648 bytes, "
      "counted once per call");
}

TEST(Functions, RejectsCallsNestedTooDeep) {
  std::string text;
  for (int i = 0; i < 101; ++i) {
    text +=
        function(concat("f", i), 1, in_function(node("a", concat("f", i + 1), {"x0"})), {"a:y0:0"});
  }
  text += function("f101", 1, in_function(node("n", "Neg", {"x0"}, float_type)), {"n:y:0"});
  Graph graph;
  try {
    from_graph_def_text(graph_def(x + call("y", "f0", {"x"}), text), graph);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("calls are nested deeper than 100 here"), std::string::npos)
        << error.message();
  }
}

// ---- Functions that kernels call ----

const std::string mapped = attr("Targuments", "list {}") +
                           attr("output_types", "list { type: DT_FLOAT }") +
                           attr("output_shapes", "list { shape {} }");
std::string map_node(const std::string& function) {
  return in_graph(node("d", "Placeholder", {}, attr("dtype", "type: DT_VARIANT"))) +
         in_graph(node("m", "MapDataset", {"d"}, called("f", function) + mapped));
}

TEST(Functions, DatasetNodesHoldTheirFunctions) {
  Graph graph;
  from_graph_def_text(
      graph_def(
          map_node("twice"),
          square + function("twice", 1, in_function(node("y", "square", {"x0"})), {"y:y0:0"})),
      graph);
  const Node& map = *graph.find("m");
  Graph part;
  from_graph_def(map.attr<std::string>("_leat_f"), part);
  EXPECT_EQ(map.attr<int64_t>("_leat_f_arguments"), 1);
  EXPECT_EQ(map.attr<std::vector<std::string>>("_leat_f_results"),
            std::vector<std::string>{"m/y:0"});
  EXPECT_TRUE(part.find("argument_0")->is("_Feed"));
  EXPECT_TRUE(part.find("m/y/call/mul")->is("Mul"));
  // A worker has no library: it keeps what the master wrote.
  Graph again;
  from_graph_def(to_graph_def(graph), again);
  EXPECT_EQ(again.find("m")->attr<std::string>("_leat_f"), map.attr<std::string>("_leat_f"));
  // Attributes that a client wrote are ignored: without its library there is no function.
  std::string text = to_graph_def_text(graph);
  Graph from_client;
  from_graph_def_text(text, from_client, {.allow_internal = false});
  EXPECT_NE(from_client.find("m"), nullptr);
  const size_t library = text.find("\nlibrary {"), end = text.find("\nversions {", library);
  ASSERT_NE(end, std::string::npos) << text;
  text.erase(library, end - library);
  Graph without;
  expect_error_with(Code::invalid_argument, "twice", [&] {
    from_graph_def_text(text, without, {.allow_internal = false});
  });
}

TEST(Functions, RejectsDatasetsThatMapThemselves) {
  const std::string self = function(
      "self", 1,
      in_function(node("d", "TensorDataset", {"x0"},
                       types("Toutput_types", 1) + attr("output_shapes", "list { shape {} }"))) +
          in_function(node("m", "MapDataset", {"d:handle:0"}, called("f", "self") + mapped)),
      {"m:handle:0"}, "", "DT_VARIANT");
  expect_refused(map_node("self"), self,
                 "node 'm/m' (MapDataset): function 'self' calls itself, which is not supported\n"
                 "\t [[{{node m/m}}]]");
}

}  // namespace
}  // namespace leat
