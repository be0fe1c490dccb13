// State other than queues, in sessions: staging areas and maps and maps of sparse tensors, which
// ops find by their name alone; barriers; and queues that sort. Which step waits, which is served,
// and what ends a wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>

#include "graph/ops.h"
#include "runtime/local_session.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using namespace std::chrono_literals;

const LocalDevices one_cpu{.cpus = 1, .gpus = false};
const AttrMap floats_only = {{"dtypes", std::vector<DType>{f32}}};

// Nodes of a staging area of floats, called "area".
struct StagingGraph {
  explicit StagingGraph(AttrMap limits = {}) {
    for (const auto& [name, value] : floats_only) limits.emplace(name, value);
    limits.emplace("shared_name", "area");
    x = placeholder(graph, "x", f32, {});
    index = placeholder(graph, "index", i32, {});
    graph.add({.op = "Stage", .name = "put", .inputs = {x}, .attrs = limits});
    graph.add({.op = "Unstage", .name = "take", .attrs = limits});
    graph.add({.op = "StagePeek", .name = "peek", .inputs = {index}, .attrs = limits});
    graph.add({.op = "StageSize", .name = "size", .attrs = limits});
    graph.add({.op = "StageClear", .name = "clear", .attrs = limits});
    session.extend(graph);
  }
  void put(float v) { session.run({{"x", Tensor::scalar(v)}}, {}, {"put"}); }
  std::future<void> putting(float v) {
    return std::async(std::launch::async, [this, v] { put(v); });
  }
  float take() { return session.run({}, {"take:0"}, {})[0].item<float>(); }
  std::future<float> taking() {
    return std::async(std::launch::async, [this] { return take(); });
  }
  float peek(int i) {
    return session.run({{"index", Tensor::scalar(i)}}, {"peek:0"}, {})[0].item<float>();
  }
  int size() { return session.run({}, {"size:0"}, {})[0].item<int32_t>(); }

  Graph graph;
  Output x, index;
  LocalSession session{{.timeout = 20s}, one_cpu};
};

TEST(StagingAreas, AreFirstInFirstOut) {
  StagingGraph area;
  for (const float v : {1.0f, 2.0f, 3.0f}) area.put(v);
  EXPECT_EQ(area.peek(2), 3);
  EXPECT_EQ(area.size(), 3);
  EXPECT_EQ(area.take(), 1);
  EXPECT_EQ(area.take(), 2);
  area.session.run({}, {}, {"clear"});
  EXPECT_EQ(area.size(), 0);
}

TEST(StagingAreas, WaitForElementsAndForSpace) {
  StagingGraph area({{"capacity", 1}});
  std::future<float> taken = area.taking();
  EXPECT_EQ(taken.wait_for(50ms), std::future_status::timeout);
  area.put(1);
  EXPECT_EQ(taken.get(), 1);
  area.put(2);
  std::future<void> put = area.putting(3);
  EXPECT_EQ(put.wait_for(50ms), std::future_status::timeout);
  EXPECT_EQ(area.take(), 2);
  put.get();
  EXPECT_EQ(area.take(), 3);
}

TEST(StagingAreas, ClearingMakesSpace) {
  StagingGraph area({{"memory_limit", 4}});
  area.put(1);
  std::future<void> put = area.putting(2);
  EXPECT_EQ(put.wait_for(50ms), std::future_status::timeout);
  area.session.run({}, {}, {"clear"});
  put.get();
  EXPECT_EQ(area.take(), 2);
}

TEST(StagingAreas, RejectElementsBeyondTheLimit) {
  StagingGraph area({{"memory_limit", 3}});
  expect_error_with(Code::resource_exhausted, "'4' bytes", [&] { area.put(1); });
}

// Ending one wait leaves the other waits in order.
TEST(StagingAreas, EndedStepsTakeNoElement) {
  StagingGraph area;
  expect_error_with(Code::deadline_exceeded, "staging area 'area' has 0 elements",
                    [&] { area.session.run({}, {"take:0"}, {}, {.timeout = 100ms}); });
  area.put(5);
  EXPECT_EQ(area.take(), 5);
}

TEST(StagingAreas, ServeManyStepsAtOnce) {
  constexpr int each = 100, threads = 4;
  StagingGraph area({{"capacity", 3}});
  std::vector<std::future<std::vector<float>>> takers;
  std::vector<std::future<void>> putters;
  for (int t = 0; t < threads; ++t) {
    takers.push_back(std::async(std::launch::async, [&] {
      std::vector<float> out;
      for (int i = 0; i < each; ++i) out.push_back(area.take());
      return out;
    }));
    putters.push_back(std::async(std::launch::async, [&, t] {
      for (int i = 0; i < each; ++i) area.put(static_cast<float>(t * each + i));
    }));
  }
  for (auto& putter : putters) putter.get();
  std::set<float> all;
  for (auto& taker : takers)
    for (const float v : taker.get()) EXPECT_TRUE(all.insert(v).second) << v << " came twice";
  EXPECT_EQ(all.size(), static_cast<size_t>(threads * each));
  EXPECT_EQ(area.size(), 0);
}

TEST(StagingMaps, ReturnTheTupleOfAKeyWhenComplete) {
  Graph graph;
  const AttrMap two = {{"dtypes", std::vector<DType>{f32, i32}}, {"shared_name", "map"}};
  const auto with = [&](std::vector<DType> given) {
    AttrMap out = two;
    out.emplace("fake_dtypes", std::move(given));
    return out;
  };
  const Output key = placeholder(graph, "key", i64, {}),
               all = constant(graph, Tensor::of<int32_t>({2}, {0, 1}));
  const auto only = [&](int i) { return constant(graph, Tensor::of<int32_t>({1}, {i})); };
  graph.add({.op = "OrderedMapStage",
             .name = "first",
             .inputs = {key, only(0), constant(graph, Tensor::scalar(1.5F))},
             .attrs = with({f32})});
  graph.add({.op = "OrderedMapStage",
             .name = "second",
             .inputs = {key, only(1), constant(graph, Tensor::scalar(7))},
             .attrs = with({i32})});
  graph.add({.op = "OrderedMapUnstage", .name = "take", .inputs = {key, all}, .attrs = two});
  graph.add({.op = "OrderedMapUnstageNoKey", .name = "any", .inputs = {all}, .attrs = two});
  graph.add({.op = "OrderedMapSize", .name = "size", .attrs = two});
  graph.add({.op = "OrderedMapIncompleteSize", .name = "incomplete", .attrs = two});
  LocalSession session({.timeout = 20s}, one_cpu);
  session.extend(graph);
  const auto run = [&](int64_t k, std::vector<std::string> fetches,
                       std::vector<std::string> targets) {
    return session.run({{"key", Tensor::scalar(k)}}, fetches, targets);
  };

  auto taken = std::async(std::launch::async, [&] { return run(3, {"take:0", "take:1"}, {}); });
  run(3, {}, {"first"});
  EXPECT_EQ(taken.wait_for(50ms), std::future_status::timeout) << "a component is missing";
  EXPECT_EQ(run(0, {"incomplete:0"}, {})[0].item<int32_t>(), 1);
  expect_error_with(Code::invalid_argument,
                    "The tensor for index '0' for key '3' was already initialized",
                    [&] { run(3, {}, {"first"}); });
  run(3, {}, {"second"});
  const std::vector<Tensor> tuple = taken.get();
  EXPECT_EQ(tuple[0].item<float>(), 1.5F);
  EXPECT_EQ(tuple[1].item<int32_t>(), 7);

  for (const int64_t k : {9, 4}) run(k, {}, {"first", "second"});
  EXPECT_EQ(run(0, {"size:0"}, {})[0].item<int32_t>(), 2);
  EXPECT_EQ(run(0, {"any:0"}, {})[0].item<int64_t>(), 4) << "the smallest key";
}

TEST(StagingMaps, KeysWaitIndependently) {
  Graph graph;
  const AttrMap attrs = {{"dtypes", std::vector<DType>{f32}}, {"shared_name", "map"}};
  AttrMap stage = attrs;
  stage.emplace("fake_dtypes", std::vector<DType>{f32});
  const Output key = placeholder(graph, "key", i64, {}), x = placeholder(graph, "x", f32, {}),
               first = constant(graph, Tensor::of<int32_t>({1}, {0}));
  graph.add({.op = "OrderedMapStage", .name = "put", .inputs = {key, first, x}, .attrs = stage});
  graph.add({.op = "OrderedMapUnstage", .name = "get", .inputs = {key, first}, .attrs = attrs});
  LocalSession session({.timeout = 20s}, one_cpu);
  session.extend(graph);
  const auto get = [&](int64_t k) {
    return std::async(std::launch::async, [&session, k] {
      return session.run({{"key", Tensor::scalar(k)}}, {"get:0"}, {})[0].item<float>();
    });
  };
  auto one = get(1), two = get(2), three = get(3);
  for (const int64_t k : {3, 1, 2}) {
    session.run({{"key", Tensor::scalar(k)}, {"x", Tensor::scalar(static_cast<float>(10 * k))}}, {},
                {"put"});
  }
  EXPECT_EQ(two.get(), 20);
  EXPECT_EQ(one.get(), 10);
  EXPECT_EQ(three.get(), 30);
}

TEST(SparseTensorMaps, ReturnAddedTensorsOnce) {
  Graph graph;
  const AttrMap map = {{"shared_name", "map"}};
  AttrMap typed = map;
  typed.emplace("T", f32);
  AttrMap taken = map;
  taken.emplace("dtype", f32);
  const Output handles = placeholder(graph, "handles", i64, {any});
  graph.add({.op = "AddManySparseToTensorsMap",
             .name = "add",
             .inputs = {constant(graph, Tensor::of<int64_t>({2, 2}, {0, 1, 2, 0})),
                        constant(graph, Tensor::of<float>({2}, {5, 6})),
                        constant(graph, Tensor::of<int64_t>({2}, {3, 2}))},
             .attrs = typed});
  graph.add(
      {.op = "TakeManySparseFromTensorsMap", .name = "take", .inputs = {handles}, .attrs = taken});
  LocalSession session({.timeout = 20s}, one_cpu);
  session.extend(graph);
  const Tensor numbers = session.run({}, {"add:0"}, {})[0];
  ASSERT_EQ(numbers.shape(), Shape({3}));
  const auto take = [&] {
    return session.run({{"handles", numbers}}, {"take:0", "take:1", "take:2"}, {});
  };
  const std::vector<Tensor> back = take();
  EXPECT_THAT(back[0].span<int64_t>(), testing::ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(back[1].span<float>(), testing::ElementsAre(5, 6));
  EXPECT_THAT(back[2].span<int64_t>(), testing::ElementsAre(3, 2));
  expect_error_with(Code::invalid_argument, "it was already taken", [&] { take(); });
}

TEST(PriorityQueues, ReturnTheSmallestFirst) {
  Graph graph;
  const Output q = graph
                       .add({.op = "PriorityQueueV2",
                             .name = "q",
                             .attrs = {{"component_types", std::vector<DType>{f32}},
                                       {"shapes", std::vector<Shape>{Shape{}}}}})
                       .output();
  const Output priorities = placeholder(graph, "priorities", i64, {any}),
               xs = placeholder(graph, "xs", f32, {any});
  graph.add({.op = "QueueEnqueueManyV2", .name = "put", .inputs = {q, priorities, xs}});
  graph.add({.op = "QueueDequeueManyV2",
             .name = "take",
             .inputs = {q, constant(graph, Tensor::scalar(2))},
             .attrs = {{"component_types", std::vector<DType>{i64, f32}}}});
  LocalSession session({.timeout = 20s}, one_cpu);
  session.extend(graph);
  const auto put = [&](std::vector<int64_t> p, std::vector<float> x) {
    const auto n = static_cast<int64_t>(p.size());
    session.run({{"priorities", Tensor::of<int64_t>({n}, std::span<const int64_t>(p))},
                 {"xs", Tensor::of<float>({n}, std::span<const float>(x))}},
                {}, {"put"});
  };
  put({5}, {50});
  auto taken = std::async(std::launch::async, [&] {
    return session.run({}, {"take:0", "take:1"}, {});
  });
  EXPECT_EQ(taken.wait_for(50ms), std::future_status::timeout);
  put({-1, 3}, {10, 30});  // both sort before the waiting 5
  const std::vector<Tensor> first = taken.get();
  EXPECT_THAT(first[0].span<int64_t>(), testing::ElementsAre(-1, 3));
  EXPECT_THAT(first[1].span<float>(), testing::ElementsAre(10, 30));
}

TEST(Barriers, TakersWaitForCompleteElements) {
  Graph graph;
  const AttrMap types = {{"component_types", std::vector<DType>{f32, i32}}};
  AttrMap shaped = types;
  shaped.emplace("shapes", std::vector<Shape>{Shape{}, Shape{}});
  const Output barrier =
      graph.add({.op = "Barrier", .name = "b", .attrs = std::move(shaped)}).output();
  const Output keys = placeholder(graph, "keys", DType::string, {any});
  const auto insert = [&](const char* name, int component, const Output& values) {
    graph.add({.op = "BarrierInsertMany",
               .name = name,
               .inputs = {barrier, keys, values},
               .attrs = {{"component_index", component}}});
  };
  insert("first", 0, constant(graph, Tensor::of<float>({2}, {1.5F, 2.5F})));
  insert("second", 1, constant(graph, Tensor::of<int32_t>({2}, {15, 25})));
  graph.add({.op = "BarrierTakeMany",
             .name = "take",
             .inputs = {barrier, constant(graph, Tensor::scalar(2))},
             .attrs = types});
  graph.add({.op = "BarrierIncompleteSize", .name = "incomplete", .inputs = {barrier}});
  graph.add({.op = "BarrierClose", .name = "close", .inputs = {barrier}});
  LocalSession session({.timeout = 20s}, one_cpu);
  session.extend(graph);
  const auto run = [&](std::vector<std::string> fetches, std::vector<std::string> targets) {
    return session.run({{"keys", Tensor::of<std::string>({2}, {"a", "b"})}}, fetches, targets);
  };
  auto taken = std::async(std::launch::async, [&] {
    return run({"take:1", "take:2", "take:3"}, {});
  });
  run({}, {"first"});
  EXPECT_EQ(taken.wait_for(50ms), std::future_status::timeout) << "a component is missing";
  EXPECT_EQ(run({"incomplete:0"}, {})[0].item<int32_t>(), 2);
  run({}, {"second"});
  const std::vector<Tensor> elements = taken.get();
  EXPECT_THAT(elements[0].span<std::string>(), testing::ElementsAre("a", "b"));
  EXPECT_THAT(elements[1].span<float>(), testing::ElementsAre(1.5F, 2.5F));
  EXPECT_THAT(elements[2].span<int32_t>(), testing::ElementsAre(15, 25));

  auto last = std::async(std::launch::async, [&] { return run({"take:1"}, {}); });
  EXPECT_EQ(last.wait_for(50ms), std::future_status::timeout);
  run({}, {"close"});
  expect_error_with(Code::out_of_range, "is closed", [&] { last.get(); });
}

// ---- Names ----

// State is found by its C++ class, as in TensorFlow: a queue called "stats" does not harm a program
// with a table of that name.
TEST(Names, MayBeSharedByStateOfDifferentKinds) {
  Graph graph;
  const auto add = [&](const std::string& op, std::vector<Output> inputs, AttrMap attrs) {
    return &graph.add(
        {.op = op, .name = op, .inputs = std::move(inputs), .attrs = std::move(attrs)});
  };
  const auto state = [&](const std::string& op, AttrMap attrs) {
    attrs.emplace("shared_name", "stats");
    return add(op, {}, std::move(attrs))->output();
  };
  const AttrMap component = {{"component_types", std::vector<DType>{f32}}};
  const Output queue = state("FIFOQueueV2", component);
  add("QueueEnqueueV2", {queue, constant(graph, Tensor::scalar(1.0f))}, {});
  add("QueueSizeV2", {queue}, {});
  const Output table = state("MutableHashTableV2", {{"key_dtype", i64}, {"value_dtype", i64}});
  const Output two = constant(graph, Tensor::of<int64_t>({2}, {3, 4}));
  add("LookupTableInsertV2", {table, two, two}, {});
  add("LookupTableSizeV2", {table}, {});
  const Output sums = state("ConditionalAccumulator", {{"dtype", f32}, {"shape", Shape{}}});
  add("AccumulatorApplyGradient",
      {sums, constant(graph, Tensor::scalar<int64_t>(0)), constant(graph, Tensor::scalar(1.0f))},
      {});
  add("AccumulatorNumAccumulated", {sums}, {});
  const Output barrier = state("Barrier", {{"component_types", std::vector<DType>{f32}},
                                           {"shapes", std::vector<Shape>{Shape{}}}});
  add("BarrierReadySize", {barrier}, {});
  add("ReaderNumRecordsProducedV2", {state("TextLineReaderV2", {})}, {});
  for (const char* op : {"StageSize", "MapSize", "OrderedMapSize"}) state(op, floats_only);
  add("Stage", {constant(graph, Tensor::scalar(1.0f))}, {{"shared_name", "stats"}});
  const Output reference = state("VariableV2", {{"dtype", f32}, {"shape", Shape{2}}});
  add("Assign", {reference, constant(graph, Tensor::of<float>({2}, {1, 2}))}, {});
  const Output handle = state("VarHandleOp", {{"dtype", i32}, {"shape", Shape{3}}});
  add("AssignVariableOp", {handle, constant(graph, Tensor::of<int32_t>({3}, {5, 6, 7}))}, {});
  add("ReadVariableOp", {handle}, {{"dtype", i32}});

  LocalSession session({.timeout = 20s}, one_cpu);
  session.extend(graph);
  session.run({}, {},
              {"QueueEnqueueV2", "LookupTableInsertV2", "AccumulatorApplyGradient", "Stage",
               "Assign", "AssignVariableOp"});
  const std::vector<Tensor> out =
      session.run({},
                  {"QueueSizeV2:0", "LookupTableSizeV2:0", "AccumulatorNumAccumulated:0",
                   "BarrierReadySize:0", "ReaderNumRecordsProducedV2:0", "StageSize:0", "MapSize:0",
                   "OrderedMapSize:0", "VariableV2:0", "ReadVariableOp:0"},
                  {});
  EXPECT_EQ(out[0].item<int32_t>(), 1);
  EXPECT_EQ(out[1].item<int64_t>(), 2);
  EXPECT_EQ(out[2].item<int32_t>(), 1);
  EXPECT_EQ(out[3].item<int32_t>(), 0);
  EXPECT_EQ(out[4].item<int64_t>(), 0);
  EXPECT_EQ(out[5].item<int32_t>(), 1);
  EXPECT_EQ(out[6].item<int32_t>(), 0);
  EXPECT_EQ(out[7].item<int32_t>(), 0);
  EXPECT_THAT(out[8].span<float>(), testing::ElementsAre(1, 2));
  EXPECT_THAT(out[9].span<int32_t>(), testing::ElementsAre(5, 6, 7));
}

}  // namespace
}  // namespace leat
