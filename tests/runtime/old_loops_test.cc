// While loops as TensorFlow made them until 2017, and as people wrote them by hand: stacks of
// version 1, references as loop variables, updates that run once more when the loop ends. The
// values are those of TensorFlow 2.21.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/import/graph_def.h"
#include "runtime/local_session.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

const LocalDevices one_cpu{.cpus = 1, .gpus = false};

std::string attr(std::string_view name, std::string_view value) {
  return concat(" attr { key: '", name, "' value { ", value, " } }");
}

std::string node(std::string_view name, std::string_view op, const std::vector<std::string>& inputs,
                 std::string_view attrs = "") {
  std::string out = concat("node { name: '", name, "' op: '", op, "'");
  for (const std::string& input : inputs) out += concat(" input: '", input, "'");
  return concat(out, attrs, " }\n");
}

const std::string floats = attr("T", "type: DT_FLOAT"), ints = attr("T", "type: DT_INT32");

std::string frame(std::string_view name, bool is_constant = true) {
  return attr("frame_name", concat("s: '", name, "'")) +
         attr("is_constant", is_constant ? "b: true" : "b: false");
}

std::string constant(std::string_view name, float value) {
  return node(
      name, "Const", {},
      attr("dtype", "type: DT_FLOAT") +
          attr("value",
               concat("tensor { dtype: DT_FLOAT tensor_shape { } float_val: ", value, " }")));
}
std::string constant(std::string_view name, int value) {
  return node(name, "Const", {},
              attr("dtype", "type: DT_INT32") +
                  attr("value",
                       concat("tensor { dtype: DT_INT32 tensor_shape { } int_val: ", value, " }")));
}
std::string variable(std::string_view name) {
  return node(name, "VariableV2", {}, attr("dtype", "type: DT_FLOAT") + attr("shape", "shape { }"));
}

// k = 0; while (k < n) k += 1, as "k/exit". `before_next`: what an iteration waits for at its end.
std::string counter(std::string_view name, int n,
                    const std::vector<std::string>& before_next = {}) {
  const std::string k(name);
  std::vector<std::string> sum = {k + "/switch:1", k + "/step"};
  for (const std::string& before : before_next) sum.push_back("^" + before);
  return constant(k + "/zero", 0) + constant(k + "/n", n) + constant(k + "/one", 1) +
         node(k + "/enter", "Enter", {k + "/zero"}, ints + frame(name, false)) +
         node(k + "/top", "Enter", {k + "/n"}, ints + frame(name)) +
         node(k + "/step", "Enter", {k + "/one"}, ints + frame(name)) +
         node(k + "/merge", "Merge", {k + "/enter", k + "/next"}, ints + attr("N", "i: 2")) +
         node(k + "/less", "Less", {k + "/merge", k + "/top"}, ints) +
         node(k + "/cond", "LoopCond", {k + "/less"}) +
         node(k + "/switch", "Switch", {k + "/merge", k + "/cond"}, ints) +
         node(k + "/sum", "Add", sum, ints) +
         node(k + "/next", "NextIteration", {k + "/sum"}, ints) +
         node(k + "/exit", "Exit", {k + "/switch"}, ints);
}

std::unique_ptr<LocalSession> session_of(const std::string& text) {
  Graph graph;
  from_graph_def_text(text + "versions { producer: 20 }", graph);
  auto out = std::make_unique<LocalSession>(SessionOptions{.timeout = 20s}, one_cpu);
  out->extend(graph);
  return out;
}

float number(SessionInterface& session, const std::string& fetch) {
  return session.run({}, {fetch}, {})[0].item<float>();
}

// ---- Stacks of version 1 ----

const std::string element = attr("elem_type", "type: DT_FLOAT");

TEST(OldStacks, ReturnElementsInReverseOrder) {
  const auto session =
      session_of(constant("one", 1.0f) + constant("two", 2.0f) + node("s", "Stack", {}, element) +
                 node("push1", "StackPush", {"s", "one"}, floats) +
                 node("push2", "StackPush", {"s", "two", "^push1"}, floats) +
                 node("first", "StackPop", {"s", "^push2"}, element) +
                 node("second", "StackPop", {"s", "^first"}, element) +
                 node("close", "StackClose", {"s", "^second"}));
  for (int step = 0; step < 2; ++step) {
    const auto out = session->run({}, {"first:0", "second:0"}, {"close"});
    EXPECT_EQ(out[0].item<float>(), 2);
    EXPECT_EQ(out[1].item<float>(), 1);
  }
}

TEST(OldStacks, BelongToTheStep) {
  const auto session = session_of(constant("one", 1.0f) + node("s", "Stack", {}, element) +
                                  node("push", "StackPush", {"s", "one"}, floats) +
                                  node("pop", "StackPop", {"s"}, element));
  session->run({}, {"push:0"}, {});
  expect_error_with(Code::invalid_argument, "is empty when calling Pop()",
                    [&] { session->run({}, {"pop:0"}, {}); });
}

// One loop pushes what another one pops, like a gradient's loop.
TEST(OldStacks, ConnectTwoLoops) {
  const auto session = session_of(
      node("s", "Stack", {}, element) + counter("f", 4, {"f/push"}) +
      node("f/s", "RefEnter", {"s"}, attr("T", "type: DT_STRING") + frame("f")) +
      node("f/value", "Cast", {"f/switch:1"},
           attr("SrcT", "type: DT_INT32") + attr("DstT", "type: DT_FLOAT")) +
      node("f/push", "StackPush", {"f/s", "f/value"}, floats) +
      // y = 0; three times: y = 10 y + pop(s)
      constant("y", 0.0f) + constant("ten", 10.0f) + counter("b", 3) +
      node("b/s", "RefEnter", {"s", "^f/exit"}, attr("T", "type: DT_STRING") + frame("b")) +
      node("b/ten", "Enter", {"ten"}, floats + frame("b")) +
      node("b/y", "Enter", {"y"}, floats + frame("b", false)) +
      node("b/y_merge", "Merge", {"b/y", "b/y_next"}, floats + attr("N", "i: 2")) +
      node("b/y_switch", "Switch", {"b/y_merge", "b/cond"}, floats) +
      node("b/pop", "StackPop", {"b/s", "^b/sum"}, element) +
      node("b/more", "Mul", {"b/y_switch:1", "b/ten"}, floats) +
      node("b/all", "Add", {"b/more", "b/pop"}, floats) +
      node("b/y_next", "NextIteration", {"b/all"}, floats) +
      node("b/y_exit", "Exit", {"b/y_switch"}, floats));
  EXPECT_EQ(number(*session, "b/y_exit:0"), 321);
  EXPECT_EQ(number(*session, "b/y_exit:0"), 321) << "each step has a stack of its own";
}

// ---- Control edges from a Switch ----

// v += 1 in the frame of "k", after `after`.
std::string update(const std::string& after) {
  return variable("v") + constant("start", 5.0f) + constant("by", 1.0f) +
         node("assign", "Assign", {"v", "start"}, floats) +
         node("by/in", "Enter", {"by"}, floats + frame("k")) +
         node("v/in", "RefEnter", {"v"}, floats + frame("k")) +
         node("update", "AssignAdd", {"v/in", "by/in", after}, floats);
}

float after_loop(const std::string& text, const std::string& start = "assign") {
  const auto session = session_of(text);
  session->run({}, {}, {start});
  EXPECT_EQ(session->run({}, {"k/exit:0"}, {})[0].item<int32_t>(), 4);
  return number(*session, "v:0");
}

TEST(LoopsByHand, UpdateAfterTheSwitchRunsOnceMoreThanTheBody) {
  EXPECT_EQ(after_loop(update("^k/switch") + counter("k", 4, {"update"})), 10);
}

TEST(LoopsByHand, UpdateAfterTheMergeRunsOnceMoreThanTheBody) {
  EXPECT_EQ(after_loop(update("^k/merge") + counter("k", 4, {"update"})), 10);
}

TEST(LoopsByHand, UpdateAfterTheSwitchsTrueOutputRunsWithTheBody) {
  EXPECT_EQ(after_loop(update("^pivot") + node("pivot", "Identity", {"k/switch:1"}, ints) +
                       counter("k", 4, {"update"})),
            9);
}

// The condition already has it, once more than the body.
TEST(LoopsByHand, UpdateInTheConditionRunsOncePerTest) {
  const std::string text = update("^k/merge") + counter("k", 4);
  std::string waiting = text;
  const std::string cond = node("k/cond", "LoopCond", {"k/less"});
  waiting.replace(waiting.find(cond), cond.size(),
                  node("k/cond", "LoopCond", {"k/less", "^update"}));
  EXPECT_EQ(after_loop(waiting), 10);
}

TEST(LoopsByHand, LoopWithoutIterationsRunsTheUpdateOnce) {
  const auto session = session_of(update("^k/switch") + counter("k", 0, {"update"}));
  session->run({}, {}, {"assign"});
  session->run({}, {"k/exit:0"}, {});
  EXPECT_EQ(number(*session, "v:0"), 6);
}

// ---- References as loop variables ----

std::string reference_loop(const std::string& next) {
  return variable("v") + variable("other") + constant("start", 1.0f) + constant("by", 0.5f) +
         node("assign", "Assign", {"v", "start"}, floats) +
         node("by/in", "Enter", {"by"}, floats + frame("k")) +
         node("other/in", "RefEnter", {"other"}, floats + frame("k")) +
         node("m/in", "RefEnter", {"v"}, floats + frame("k", false)) +
         node("m", "RefMerge", {"m/in", "m/next"}, floats + attr("N", "i: 2")) +
         node("m/switch", "RefSwitch", {"m", "k/cond"}, floats) +
         node("up", "AssignAdd", {"m/switch:1", "by/in"}, floats) +
         node("m/next", "RefNextIteration", {next}, floats) +
         node("m/exit", "RefExit", {"m/switch"}, floats) +
         node("read", "Identity", {"m/exit"}, floats) +
         node("double", "AssignAdd", {"m/exit", "m/exit"}, floats);
}

TEST(LoopsByHand, ReferencesMayBeLoopVariables) {
  const auto session = session_of(reference_loop("up") + counter("k", 3));
  session->run({}, {}, {"assign"});
  EXPECT_EQ(number(*session, "read:0"), 2.5f);
  EXPECT_EQ(number(*session, "v:0"), 2.5f);
  EXPECT_EQ(number(*session, "m/exit:0"), 4);
  // The exit is the variable itself.
  EXPECT_EQ(number(*session, "double:0"), 11);
  EXPECT_EQ(number(*session, "v:0"), 11);
}

TEST(LoopsByHand, ConditionMayReadTheReference) {
  const auto session =
      session_of(variable("v") + constant("start", 1.0f) + constant("top", 100.0f) +
                 node("assign", "Assign", {"v", "start"}, floats) +
                 node("m/in", "RefEnter", {"v"}, floats + frame("k", false)) +
                 node("m/top", "Enter", {"top"}, floats + frame("k")) +
                 node("m", "RefMerge", {"m/in", "m/next"}, floats + attr("N", "i: 2")) +
                 node("less", "Less", {"m", "m/top"}, floats) + node("cond", "LoopCond", {"less"}) +
                 node("m/switch", "RefSwitch", {"m", "cond"}, floats) +
                 node("up", "AssignAdd", {"m/switch:1", "m/switch:1"}, floats) +
                 node("m/next", "RefNextIteration", {"up"}, floats) +
                 node("m/exit", "RefExit", {"m/switch"}, floats));
  session->run({}, {}, {"assign"});
  EXPECT_EQ(number(*session, "m/exit:0"), 128);
}

// A Switch of values reads the reference of the loop.
TEST(LoopsByHand, ReferencesMayExitAsValues) {
  const auto session =
      session_of(variable("v") + constant("start", 1.0f) + constant("by", 0.5f) +
                 node("assign", "Assign", {"v", "start"}, floats) +
                 node("by/in", "Enter", {"by"}, floats + frame("k")) +
                 node("v/in", "RefEnter", {"v"}, floats + frame("k")) +
                 node("m/in", "RefEnter", {"v"}, floats + frame("k", false)) +
                 node("m", "RefMerge", {"m/in", "m/next"}, floats + attr("N", "i: 2")) +
                 node("m/switch", "Switch", {"m", "k/cond"}, floats) +
                 node("more", "Add", {"m/switch:1", "by/in"}, floats) +
                 node("up", "Assign", {"v/in", "more"}, floats) +
                 node("m/next", "RefNextIteration", {"up"}, floats) +
                 node("m/exit", "Exit", {"m/switch"}, floats) + counter("k", 3, {"up"}));
  session->run({}, {}, {"assign"});
  EXPECT_EQ(number(*session, "m/exit:0"), 2.5f);
}

TEST(LoopsByHand, NestedLoopsMayPassReferences) {
  const auto session = session_of(
      variable("v") + constant("start", 1.0f) + constant("by", 0.5f) +
      node("assign", "Assign", {"v", "start"}, floats) +
      node("m/in", "RefEnter", {"v"}, floats + frame("k", false)) +
      node("m", "RefMerge", {"m/in", "m/next"}, floats + attr("N", "i: 2")) +
      node("m/switch", "RefSwitch", {"m", "k/cond"}, floats) +
      node("m/next", "RefNextIteration", {"i/exit"}, floats) +
      node("m/exit", "RefExit", {"m/switch"}, floats) + counter("k", 3) +
      // Twice in each iteration.
      constant("i/zero", 0) + constant("i/two", 2) + constant("i/one", 1) +
      node("k/zero_in", "Enter", {"i/zero"}, ints + frame("k")) +
      node("k/two_in", "Enter", {"i/two"}, ints + frame("k")) +
      node("k/one_in", "Enter", {"i/one"}, ints + frame("k")) +
      node("k/by", "Enter", {"by"}, floats + frame("k")) +
      node("i/start", "Identity", {"k/zero_in", "^k/go"}, ints) +
      node("k/go", "Identity", {"k/switch:1"}, ints) +
      node("i/enter", "Enter", {"i/start"}, ints + frame("i", false)) +
      node("i/top", "Enter", {"k/two_in"}, ints + frame("i")) +
      node("i/step", "Enter", {"k/one_in"}, ints + frame("i")) +
      node("i/by", "Enter", {"k/by"}, floats + frame("i")) +
      node("i/merge", "Merge", {"i/enter", "i/next"}, ints + attr("N", "i: 2")) +
      node("i/less", "Less", {"i/merge", "i/top"}, ints) + node("i/cond", "LoopCond", {"i/less"}) +
      node("i/switch", "Switch", {"i/merge", "i/cond"}, ints) +
      node("i/sum", "Add", {"i/switch:1", "i/step"}, ints) +
      node("i/next", "NextIteration", {"i/sum"}, ints) +
      node("i/m_in", "RefEnter", {"m/switch:1"}, floats + frame("i", false)) +
      node("i/m", "RefMerge", {"i/m_in", "i/m_next"}, floats + attr("N", "i: 2")) +
      node("i/m_switch", "RefSwitch", {"i/m", "i/cond"}, floats) +
      node("up", "AssignAdd", {"i/m_switch:1", "i/by"}, floats) +
      node("i/m_next", "RefNextIteration", {"up"}, floats) +
      node("i/exit", "RefExit", {"i/m_switch"}, floats));
  session->run({}, {}, {"assign"});
  EXPECT_EQ(number(*session, "m/exit:0"), 4);
}

TEST(LoopsByHand, RejectReferencesThatChangeTheirVariable) {
  const auto session = session_of(reference_loop("other/in") + counter("k", 3));
  session->run({}, {}, {"assign"});
  expect_error_with(
      Code::invalid_argument,
      "while loop 'k': the reference to 'v' may refer to another variable in the next "
      "iteration\n\t [[{{node m/next}}]]",
      [&] {
        session->run({}, {"read:0", "k/exit:0"}, {});
      });
}

}  // namespace
}  // namespace leat
