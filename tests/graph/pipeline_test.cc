// The whole list of passes on one training step, and verify() on graphs as a broken pass would
// leave them.
#include "graph/passes/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "graph/passes/placer.h"
#include "graph/text.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using testing::HasSubstr;
using testing::Not;

DeviceSpec cpu(std::string_view task) {
  return {DeviceName::parse(concat(task, "/device:CPU:0")), DeviceType::cpu};
}

// One worker's view of between-graph replication: the variable on the parameter server, the work on
// the worker.
const char* const training = R"(
  w = VariableV2(dtype=float, shape=[2,2]) @/job:ps
  w/read = Identity(w, _class={"loc:@w"})
  x = Placeholder(dtype=float, shape=[?,2])
  one = Const(dtype=float, value=float[1,1] [1])
  two = AddV2(one, one)
  y = MatMul(x, w/read) @/job:worker
  z = Identity(y) @/job:worker
  loss = Softmax(z) @/job:worker
  gradient = MatMul(x, loss, transpose_a=true) @/job:worker
  scaled = Mul(gradient, two) @/job:worker
  update = AssignSub(w, scaled, _class={"loc:@w"})
  train = NoOp(), ^update
  summary = Softmax(y)
)";

TEST(Pipeline, TrainingStepHasTwoPartsAndThreeEdges) {
  const Graph graph = parse(training);
  PipelineOptions options;
  options.signature = {.feeds = {"x:0"}, .fetches = {"loss:0"}, .targets = {"train"}};
  options.placement.devices = {cpu("/job:ps/task:0"), cpu("/job:worker/task:0")};
  options.placement.default_device = DeviceName::parse("/job:worker/task:0");
  std::vector<std::string> passes;
  options.after_pass = [&](std::string_view pass, const Graph&) { passes.emplace_back(pass); };

  const PartitionedGraph out = run_pipeline(graph, options);

  EXPECT_EQ(passes,
            (std::vector<std::string>{"prune", "structure_loops", "split_identity_n", "infer",
                                      "read_late", "simplify", "place", "simplify_placed",
                                      "spread_loops", "fuse", "partition", "partition"}));
  const DumpOptions plain = {.devices = false, .attrs = false};
  ASSERT_EQ(out.partitions.size(), 2u);
  EXPECT_EQ(dump(out.partitions.at("/job:ps/task:0/device:CPU:0"), plain),
            R"(scaled/_recv_2 = _Recv()
w = VariableV2()
update = AssignSub(w, scaled/_recv_2)
update/_send_1 = _Send(), ^update
w/read = Identity(w)
w/read/_send_0 = _Send(w/read)
)");
  EXPECT_EQ(dump(out.partitions.at("/job:worker/task:0/device:CPU:0"), plain), R"(two = Const()
update/_recv_1 = _Recv()
train = NoOp(), ^update/_recv_1
w/read/_recv_0 = _Recv()
x = _Feed()
loss = _Fused(x, w/read/_recv_0)
gradient = MatMul(x, loss)
scaled = Mul(gradient, two)
scaled/_send_2 = _Send(scaled)
)");
  EXPECT_EQ(out.feed_devices.at("x:0"),
            std::vector<std::string>{"/job:worker/task:0/device:CPU:0"});
  EXPECT_EQ(out.fetch_devices.at("loss:0"), "/job:worker/task:0/device:CPU:0");
}

// As in TensorFlow, where w/read is the variable's memory and a sent value is a copy.
TEST(Pipeline, ReadsAfterAnUpdateSeeItUnlessTheValueWasSentBefore) {
  Graph step = parse(R"(
    w = VariableV2(dtype=float, shape=[2,2]) @/job:ps
    w/read = Identity(w, _class={"loc:@w"})
    y = Relu(w/read) @/job:worker
    update = AssignSub(w, y, _class={"loc:@w"})
    near = Neg(w/read, _class={"loc:@w"}), ^update
    far = Neg(w/read) @/job:worker, ^update
    copy = Identity(w/read) @/job:worker
    back = Neg(copy, _class={"loc:@w"}), ^update
  )");
  PlacementOptions placement;
  placement.devices = {cpu("/job:ps/task:0"), cpu("/job:worker/task:0")};
  placement.default_device = DeviceName::parse("/job:worker/task:0");
  const auto read = [&](const PlacementOptions* options) {
    Graph out = step.clone();
    read_late(out, options);
    return out;
  };
  const std::string before = dump(step);
  const Graph late = read(&placement);
  EXPECT_EQ(dump(step), before);
  EXPECT_EQ(late.find("near")->inputs[0].name(), "w:0");
  EXPECT_EQ(late.find("far")->inputs[0].name(), "w/read:0");
  EXPECT_EQ(late.find("back")->inputs[0].name(), "copy:0");
  EXPECT_TRUE(late.find("near")->assigned_device->is_empty());
  EXPECT_EQ(read(nullptr).find("far")->inputs[0].name(), "w:0");
  // If the update waits for nothing slower than the value, the value may or may not show it; here
  // it does.
  step.find("y")->requested_device = DeviceName::parse("/job:ps");
  EXPECT_EQ(read(&placement).find("far")->inputs[0].name(), "w:0");
}

TEST(Pipeline, FetchPrecedesAnUpdateThatWaitsForAnotherTask) {
  PipelineOptions options;
  options.signature = {.feeds = {"x:0"}, .fetches = {"w:0", "w/read:0"}, .targets = {"train"}};
  options.placement.devices = {cpu("/job:ps/task:0"), cpu("/job:worker/task:0")};
  const auto on_ps = [&](std::string_view master) {
    options.placement.default_device = DeviceName::parse(master);
    const PartitionedGraph out = run_pipeline(parse(training), options);
    return dump(out.partitions.at("/job:ps/task:0/device:CPU:0"), {.devices = false});
  };
  const std::string early = on_ps("/job:worker/task:0");
  EXPECT_THAT(early,
              HasSubstr("w/_fetched = Identity(w, _early_fetches={\"w/read:0\", \"w:0\"})\n"));
  EXPECT_THAT(early, HasSubstr("^w/_fetched\n"));
  EXPECT_THAT(on_ps("/job:ps/task:0"), Not(HasSubstr("_fetched")));
}

TEST(Pipeline, PartialRunMeetsItsClientOnTheMaster) {
  PipelineOptions options;
  options.signature = {.feeds = {"x:0"},
                       .fetches = {"w/read:0", "loss:0"},
                       .targets = {"train"},
                       .is_partial = true};
  options.placement.devices = {cpu("/job:ps/task:0"), cpu("/job:worker/task:0")};
  options.placement.default_device = DeviceName::parse("/job:worker/task:0/device:CPU:0");
  const PartitionedGraph out = run_pipeline(parse(training), options);
  const Graph& master = out.partitions.at("/job:worker/task:0/device:CPU:0");
  const DumpOptions plain = {.devices = false, .attrs = false};
  EXPECT_EQ(dump(out.partitions.at("/job:ps/task:0/device:CPU:0"), plain),
            R"(scaled/_recv_2 = _Recv()
w = VariableV2()
update = AssignSub(w, scaled/_recv_2)
update/_send_1 = _Send(), ^update
w/read = Identity(w)
w/read/_send_0 = _Send(w/read)
)");
  for (const char* line :
       {"x = _AwaitFeed(_partial_run)\n", "loss/_fetch_0 = _DeliverFetch(_partial_run, loss)\n",
        "w/read/_fetch_0 = _DeliverFetch(_partial_run, w/read/_recv_0)\n"})
    EXPECT_THAT(dump(master, plain), HasSubstr(line));
  EXPECT_EQ(out.feed_devices.size(), 1u);
  EXPECT_TRUE(out.fetch_devices.empty());
  EXPECT_EQ(out.fetch_feeds, (FetchFeeds{{"loss:0", {"x:0"}}, {"w/read:0", {}}}));
}

TEST(Pipeline, ListsItsPasses) {
  std::vector<std::string_view> names;
  for (const Pass& pass : pipeline()) names.push_back(pass.name);
  EXPECT_EQ(names, (std::vector<std::string_view>{
                       "connect", "prune", "defer", "structure_loops", "split_identity_n", "infer",
                       "expand_collectives", "read_late", "simplify", "place", "lower_collectives",
                       "simplify_placed", "mixed_precision", "spread_loops", "fuse_attention",
                       "fuse", "recompute", "partition", "receive_in_place"}));
}

TEST(Pipeline, MergesEqualNodesPlacedOnTheSameDevice) {
  const Graph graph = parse(R"(
    x = Placeholder(dtype=float, shape=[2])
    free = Relu(x)
    job = Relu(x) @/job:worker
    task = Relu(x) @/job:worker/task:0
    other = Relu(x) @/job:ps
    fetched = Relu(x) @/job:worker/device:CPU:0
    sum = AddN(free, job, task, other, fetched) @/job:worker
  )");
  PipelineOptions options;
  options.signature = {.feeds = {"x:0"}, .fetches = {"sum:0", "fetched:0"}};
  options.placement.devices = {cpu("/job:ps/task:0"), cpu("/job:worker/task:0")};
  options.placement.default_device = DeviceName::parse("/job:worker/task:0");
  std::map<std::string, size_t, std::less<>> sizes;
  std::string inputs;
  options.after_pass = [&](std::string_view pass, const Graph& step) {
    sizes.emplace(pass, step.size());
    if (pass != "simplify_placed") return;
    for (const Output& input : step.find("sum")->inputs) inputs += input.name() + " ";
  };
  run_pipeline(graph, options);
  EXPECT_EQ(sizes["simplify"], 7u);
  EXPECT_EQ(sizes["place"], 7u);
  EXPECT_EQ(sizes["simplify_placed"], 5u);
  EXPECT_EQ(inputs, "free:0 free:0 free:0 other:0 fetched:0 ");

  sizes.clear();
  options.after_pass = [&](std::string_view pass, const Graph& step) {
    sizes.emplace(pass, step.size());
  };
  options.simplify = Simplify::nothing;
  run_pipeline(graph, options);
  EXPECT_FALSE(sizes.contains("simplify_placed"));
}

TEST(Pipeline, WithoutSimplifyTheGraphIsUnchanged) {
  PipelineOptions options;
  options.signature = {.feeds = {"x:0"}, .fetches = {"scaled:0"}};
  options.placement.devices = {cpu("/job:ps/task:0"), cpu("/job:worker/task:0")};
  options.simplify = Simplify::nothing;
  const PartitionedGraph out = run_pipeline(parse(training), options);
  EXPECT_NE(out.partitions.at("/job:worker/task:0/device:CPU:0").find("z"), nullptr);
}

TEST(Pipeline, StepKeepsTheSessionsVariablePlacement) {
  Graph graph = parse(
      "w = VariableV2(dtype=float, shape=[2]); x = Placeholder(dtype=float, shape=[2]);"
      "a = AssignAdd(w, x); b = Identity(w, _class={'loc:@far'}); far = NoOp() @/job:ps");
  PipelineOptions options;
  options.placement.devices = {cpu("/job:ps/task:0"), cpu("/job:worker/task:0")};
  options.placement.default_device = DeviceName::parse("/job:worker/task:0");
  place_stateful(graph, options.placement);
  options.signature = {.fetches = {"b:0"}};
  const PartitionedGraph out = run_pipeline(graph, options);
  EXPECT_NE(out.partitions.at("/job:worker/task:0/device:CPU:0").find("w"), nullptr);
  EXPECT_EQ(out.fetch_devices.at("b:0"), "/job:ps/task:0/device:CPU:0") << "far is not in the step";
}

class Verify : public testing::Test {
 protected:
  void expect(std::string_view message) {
    expect_error([&] { verify(graph_, "fold"); }, Code::internal, message);
  }
  Node& node(std::string_view name) { return *graph_.find(name); }

  Graph graph_ = parse(
      "x = Placeholder(dtype=float); i = Placeholder(dtype=int32); y = Softmax(x), ^i;"
      "w = VariableV2(dtype=float, shape=[2]); a = Assign(w, x)");
};

TEST_F(Verify, AcceptsAGoodGraph) { EXPECT_NO_THROW(verify(graph_, "fold")); }

TEST_F(Verify, ReportsAnEmptyInput) {
  node("y").inputs[0] = {};
  expect("after pass 'fold': Softmax node 'y' (text:1) has an input that is none");
}

TEST_F(Verify, ReportsAnInputOfAnotherGraph) {
  Graph other = parse("x = Placeholder(dtype=float)");
  node("y").inputs[0] = other.output("x");
  expect("after pass 'fold': Softmax node 'y' (text:1) has an input that is not in the graph");
}

TEST_F(Verify, ReportsANodeBeforeItsInput) {
  node("i").control_inputs = {&node("y")};
  expect(
      "after pass 'fold': Placeholder node 'i' (text:1) comes before 'y', which is a control input "
      "of it");
}

TEST_F(Verify, ReportsAMissingOutput) {
  node("y").inputs[0].index = 1;
  expect("after pass 'fold': Softmax node 'y' (text:1) uses output 1 of 'x', which has 1");
}

TEST_F(Verify, ReportsADifferentDtype) {
  node("y").inputs[0] = node("i").output();
  expect(
      "after pass 'fold': Softmax node 'y' (text:1) needs float as input logits but gets int32 "
      "from 'i'");
}

TEST_F(Verify, ReportsAValueInsteadOfAVariable) {
  node("a").inputs[0] = node("x").output();
  expect(
      "after pass 'fold': Assign node 'a' (text:1) needs a variable as input ref but gets the "
      "value 'x'");
}

TEST_F(Verify, ReportsMissingInputs) {
  node("a").inputs.pop_back();
  expect("after pass 'fold': Assign node 'a' (text:1) has only 1 inputs");
}

TEST_F(Verify, ReportsDuplicateNames) {
  node("a").name = "x";
  expect("after pass 'fold': Assign node 'x' (text:1) shares its name with another node");
}

TEST_F(Verify, ReportsAnOutputThatContradictsTheOp) {
  node("x").outputs.write()[0].dtype = i32;
  expect(
      "after pass 'fold': Placeholder node 'x' (text:1) has an output 0 that does not follow from "
      "its op "
      "and attributes");
}

TEST(SplitIdentityN, GivesEveryHandleItsOwnNode) {
  const Graph graph = parse(
      "v = VarHandleOp(dtype=float, shape=[]); w = VarHandleOp(dtype=float, shape=[]);"
      "c = Const(dtype=float, value=float[] [1]); n = NoOp(); both = IdentityN(v, c, w), ^n;"
      "values = IdentityN(c, c); read = ReadVariableOp(both:2, dtype=float); end = NoOp(), ^both");
  const auto split = [&](const StepSignature& signature) {
    Graph out = graph.clone();
    split_identity_n(out, signature);
    return dump(out, {.attrs = false});
  };
  EXPECT_EQ(split({}), R"(c = Const()
n = NoOp()
both/part_1 = Identity(c), ^n
v = VarHandleOp()
both/part_0 = Identity(v), ^n
values = IdentityN(c, c)
w = VarHandleOp()
both/part_2 = Identity(w), ^n
end = NoOp(), ^both/part_0, ^both/part_1, ^both/part_2
read = ReadVariableOp(both/part_2)
)");
  EXPECT_NE(split({.fetches = {"both:1"}}).find("both = IdentityN(v, c, v), ^n"),
            std::string::npos);
}

}  // namespace
}  // namespace leat
