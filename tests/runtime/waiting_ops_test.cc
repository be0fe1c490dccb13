// Queues and accumulators in sessions: which step waits, which is served, what ends a wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "graph/ops.h"
#include "runtime/local_session.h"
#include "tests/runtime/ops_for_tests.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

const LocalDevices one_cpu{.cpus = 1, .gpus = false};

Output value(Graph& graph, Tensor tensor) { return constant(graph, std::move(tensor)); }

// A queue of floats and the usual operations on it.
struct QueueGraph {
  explicit QueueGraph(AttrMap attrs = {}, const std::string& kind = "FIFOQueueV2") {
    attrs.emplace("component_types", std::vector<DType>{f32});
    attrs.emplace("shapes", std::vector<Shape>{Shape{}});
    attrs.emplace("shared_name", "q");
    const Output q = graph.add({.op = kind, .name = "q", .attrs = std::move(attrs)}).output();
    x = placeholder(graph, "x", f32, {});
    xs = placeholder(graph, "xs", f32, {any});
    n = placeholder(graph, "n", i32, {});
    const auto operation = [&](const char* op, const char* name, std::vector<Output> inputs,
                               AttrMap a = {}) {
      return &graph.add(
          {.op = op, .name = name, .inputs = std::move(inputs), .attrs = std::move(a)});
    };
    const AttrMap types = {{"component_types", std::vector<DType>{f32}}};
    operation("QueueEnqueueV2", "put", {q, x});
    operation("QueueEnqueueManyV2", "put_many", {q, xs});
    operation("QueueDequeueV2", "take", {q}, types);
    operation("QueueDequeueManyV2", "take_many", {q, n}, types);
    operation("QueueDequeueUpToV2", "take_up_to", {q, n}, types);
    operation("QueueCloseV2", "close", {q});
    operation("QueueCloseV2", "cancel", {q}, {{"cancel_pending_enqueues", true}});
    operation("QueueSizeV2", "size", {q});
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
  std::vector<float> take_many(int count, const char* op = "take_many") {
    return floats(session.run({{"n", Tensor::scalar(count)}}, {concat(op, ":0")}, {})[0]);
  }
  int size() { return session.run({}, {"size:0"}, {})[0].item<int32_t>(); }
  void run(const char* target) { session.run({}, {}, {target}); }

  Graph graph;
  Output x, xs, n;
  LocalSession session{{.timeout = 20s}, one_cpu};
};

TEST(Queues, AreFirstInFirstOut) {
  QueueGraph q;
  for (const float v : {1.0f, 2.0f, 3.0f}) q.put(v);
  EXPECT_EQ(q.size(), 3);
  EXPECT_EQ(q.take(), 1);
  EXPECT_EQ(q.take_many(2), (std::vector<float>{2, 3}));
  q.session.run({{"xs", Tensor::of<float>({2}, {4, 5})}}, {}, {"put_many"});
  EXPECT_EQ(q.take_many(2), (std::vector<float>{4, 5}));
  EXPECT_TRUE(q.take_many(0).empty());
}

TEST(Queues, DequeueWaitsForAnElement) {
  QueueGraph q;
  std::future<float> taken = q.taking();
  EXPECT_EQ(taken.wait_for(50ms), std::future_status::timeout);
  q.put(7);
  EXPECT_EQ(taken.get(), 7);
}

TEST(Queues, EnqueueWaitsForSpace) {
  QueueGraph q({{"capacity", 1}});
  q.put(1);
  std::future<void> second = q.putting(2);
  EXPECT_EQ(second.wait_for(50ms), std::future_status::timeout);
  EXPECT_EQ(q.take(), 1);
  second.get();
  EXPECT_EQ(q.take(), 2);
}

TEST(Queues, DequeueMayExceedTheCapacity) {
  QueueGraph q({{"capacity", 2}});
  auto taken = std::async(std::launch::async, [&] { return q.take_many(3); });
  for (const float v : {1.0f, 2.0f, 3.0f}) q.put(v);
  EXPECT_EQ(taken.get(), (std::vector<float>{1, 2, 3}));
}

// The step that enqueued the last element is not affected, and the queue remains usable.
TEST(Queues, BatchBeyondMemoryFailsOnlyItsDequeue) {
  Graph graph;
  const AttrMap types = {{"component_types", std::vector<DType>{f32}}};
  AttrMap attrs = types;
  attrs.emplace("shapes", std::vector<Shape>{Shape{any, any}});
  const Output q =
      graph.add({.op = "PaddingFIFOQueueV2", .name = "q", .attrs = std::move(attrs)}).output();
  const Output x = placeholder(graph, "x", f32, {any, any});
  graph.add({.op = "QueueEnqueueV2", .name = "put", .inputs = {q, x}});
  graph.add({.op = "QueueDequeueManyV2",
             .name = "take_many",
             .inputs = {q, value(graph, Tensor::scalar(3))},
             .attrs = types});
  graph.add({.op = "QueueDequeueV2", .name = "take", .inputs = {q}, .attrs = types});
  LocalSession session({.timeout = 20s}, one_cpu);
  session.extend(graph);
  const auto put = [&](const Shape& shape) {
    session.run({{"x", Tensor(f32, shape)}}, {}, {"put"});
  };
  auto taken = std::async(std::launch::async,
                          [&] { return error_of([&] { session.run({}, {"take_many:0"}, {}); }); });
  put({1, 10'000'000});
  put({10'000'000, 1});
  put({1, 1});
  EXPECT_EQ(taken.get().code, Code::resource_exhausted);
  put({2, 3});
  EXPECT_EQ(session.run({}, {"take:0"}, {})[0].shape(), (Shape{2, 3}));
}

TEST(Queues, DrainAfterClose) {
  QueueGraph q;
  for (const float v : {1.0f, 2.0f, 3.0f}) q.put(v);
  q.run("close");
  expect_error_with(Code::cancelled, "FIFOQueue 'q' is closed.", [&] { q.put(4); });
  expect_error_with(Code::cancelled, "[[{{node put}}]]", [&] { q.put(4); });
  expect_error_with(Code::cancelled, "is already closed", [&] { q.run("close"); });
  EXPECT_EQ(q.take(), 1);
  expect_error_with(Code::out_of_range,
                    "FIFOQueue 'q' is closed and has insufficient elements (requested 3, current "
                    "size 2)",
                    [&] { q.take_many(3); });
  EXPECT_EQ(q.take_many(3, "take_up_to"), (std::vector<float>{2, 3})) << "kept by the failed one";
  expect_error_with(Code::out_of_range, "current size 0", [&] { q.take(); });
  expect_error_with(Code::out_of_range, "current size 0", [&] { q.take_many(3, "take_up_to"); });
}

TEST(Queues, CloseWaitsForEnqueuesOrCancelsThem) {
  for (const bool cancels : {false, true}) {
    QueueGraph q({{"capacity", 1}});
    q.put(1);
    std::future<void> second = q.putting(2);
    EXPECT_EQ(second.wait_for(50ms), std::future_status::timeout);
    auto closing = std::async(std::launch::async, [&] { q.run(cancels ? "cancel" : "close"); });
    if (cancels) {
      closing.get();
      expect_error_with(Code::cancelled, "Enqueue operation was cancelled", [&] { second.get(); });
      EXPECT_EQ(q.take(), 1);
    } else {
      EXPECT_EQ(closing.wait_for(50ms), std::future_status::timeout);
      EXPECT_EQ(q.take(), 1);
      closing.get();
      second.get();
      EXPECT_EQ(q.take(), 2);
    }
    expect_error_with(Code::out_of_range, "closed", [&] { q.take(); });
  }
}

TEST(Queues, EndedStepsReturnTheirElements) {
  QueueGraph q;
  q.put(1);
  // The step takes one element of three and waits; its deadline passes, and the element is back in
  // its place.
  expect_error_with(Code::deadline_exceeded, "", [&] {
    q.session.run({{"n", Tensor::scalar(3)}}, {"take_many:0"}, {}, {.timeout = 100ms});
  });
  EXPECT_EQ(q.take(), 1);
  q.put(2);
  EXPECT_EQ(q.take(), 2);
}

TEST(Queues, ClosingTheSessionEndsAllWaits) {
  QueueGraph q;
  std::vector<std::future<float>> taken;
  for (int i = 0; i < 20; ++i) taken.push_back(q.taking());
  EXPECT_EQ(taken[0].wait_for(50ms), std::future_status::timeout);
  q.session.close();
  for (auto& waiting : taken) expect_ended_by_close([&] { waiting.get(); });
}

// More signatures than a session keeps: the session no longer knows the waiting one.
TEST(Queues, ClosingTheSessionEndsStepsOfEvictedGraphs) {
  QueueGraph q;
  auto taken = q.taking();
  EXPECT_EQ(taken.wait_for(50ms), std::future_status::timeout);
  std::vector<std::string> others;
  for (int i = 0; i < 100; ++i) others.push_back(value(q.graph, Tensor::scalar(i)).name());
  q.session.extend(q.graph);
  for (const std::string& other : others) q.session.run({}, {other}, {});
  ASSERT_LT(q.session.prepared_graphs(), others.size());
  q.session.close();
  expect_error_with(Code::cancelled, "explicit call to `Session::Close()`", [&] { taken.get(); });
}

TEST(Queues, ErrorElsewhereInTheStepEndsTheWait) {
  QueueGraph q;
  Graph& graph = q.graph;
  const Node& checked = assert_that(greater(q.x, 0), {q.x});
  q.session.extend(graph);
  const Error error = thrown_by([&] {
    q.session.run({{"x", Tensor::scalar(-1.0f)}}, {"take:0"}, {checked.name});
  });
  EXPECT_EQ(error.code(), Code::invalid_argument) << error.message();
  EXPECT_THAT(error.message(), HasSubstr("assertion failed"));
  q.put(5);
  EXPECT_EQ(q.take(), 5) << "the one that waited is not in the line any more";
}

TEST(Queues, ShuffleQueueKeepsSomeElementsUntilClose) {
  QueueGraph q({{"capacity", 100}, {"min_after_dequeue", 10}, {"seed", 1}}, "RandomShuffleQueueV2");
  std::vector<float> in(50), out;
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  q.session.run({{"xs", Tensor::of<float>({50}, std::span<const float>(in))}}, {}, {"put_many"});
  for (int i = 0; i < 40; ++i) out.push_back(q.take());
  std::future<float> next = q.taking();
  EXPECT_EQ(next.wait_for(50ms), std::future_status::timeout);
  q.run("close");
  out.push_back(next.get());
  for (const float v : q.take_many(9)) out.push_back(v);
  EXPECT_NE(out, in);
  std::sort(out.begin(), out.end());
  EXPECT_EQ(out, in);
}

TEST(Queues, RejectMismatchedElements) {
  QueueGraph q;
  Graph& graph = q.graph;
  const Output handle = graph.find("q")->output();
  graph.add({.op = "QueueEnqueueV2",
             .name = "shape",
             .inputs = {handle, value(graph, Tensor(f32, {2}))}});
  graph.add({.op = "QueueEnqueueV2",
             .name = "type",
             .inputs = {handle, value(graph, Tensor::scalar(1))}});
  q.session.extend(graph);
  expect_error_with(Code::invalid_argument,
                    "Shape mismatch in tuple component 0. Expected [], got [2]",
                    [&] { q.run("shape"); });
  expect_error_with(Code::invalid_argument, "Type mismatch in tuple component 0",
                    [&] { q.run("type"); });
}

TEST(Queues, NodesOfOneNameMustAgree) {
  QueueGraph q;
  q.put(1);
  Graph& graph = q.graph;
  const Output other =
      graph
          .add({.op = "FIFOQueueV2",
                .name = "other",
                .attrs = {{"component_types", std::vector<DType>{i32}}, {"shared_name", "q"}}})
          .output();
  graph.add({.op = "QueueSizeV2", .name = "other_size", .inputs = {other}});
  q.session.extend(graph);
  expect_error_with(Code::invalid_argument, "Shared queue 'q' is a FIFOQueue",
                    [&] { q.session.run({}, {"other_size:0"}, {}); });
}

// QueueBase.from_list, and graphs that it would not build.
TEST(Queues, SelectAQueueByNumber) {
  QueueGraph q;
  q.put(1);
  Graph& graph = q.graph;
  const AttrMap attrs = {{"component_types", std::vector<DType>{f32}}};
  const Output other = graph.add({.op = "FIFOQueueV2", .name = "other", .attrs = attrs}).output();
  const auto pack = [&](const std::string& name, std::vector<Output> handles) {
    return graph.add({.op = "Pack", .name = name, .inputs = std::move(handles)}).output();
  };
  const auto size_of = [&](const std::string& name, Output handle) {
    graph.add({.op = "QueueSizeV2", .name = name, .inputs = {handle}});
  };
  const auto choose = [&](const std::string& name, Output handles, const Tensor& number) {
    const Output axis = constant(graph, Tensor::scalar(0));
    const Output chosen =
        graph.add({.op = "GatherV2", .inputs = {handles, constant(graph, number), axis}}).output();
    size_of(name, chosen);
  };
  const Output queue = graph.output("q:0"), both = pack("both", {queue, other});
  choose("first", both, Tensor::scalar(0));
  choose("second", both, Tensor::scalar(1));
  choose("third", both, Tensor::scalar(2));
  choose("two", both, Tensor::of<int32_t>({2}, {0, 1}));
  choose("of_one", queue, Tensor::scalar(0));
  choose("of_packs", pack("packs", {both, both}), Tensor::scalar(0));
  size_of("of_both", both);
  q.session.extend(graph);
  const auto size = [&](const char* name) {
    return q.session.run({}, {concat(name, ":0")}, {})[0].item<int32_t>();
  };
  EXPECT_EQ(size("first"), 1);
  EXPECT_EQ(size("second"), 0);
  const auto expect_refused = [&](const char* name, const char* text) {
    expect_error_with(Code::invalid_argument, text, [&] { size(name); });
  };
  expect_refused("third", "indices = 2 is not in [0, 2)");
  expect_refused("two", "the tensor has 2");
  expect_refused("of_one", "input 0 is a resource handle, not a value");
  expect_refused("of_packs", "the tensor has 2");
  expect_refused("of_both", "the tensor has 2");
}

// ---- Accumulators ----

struct AccumulatorGraph {
  explicit AccumulatorGraph(const std::string& prefix, const char* reduction = "MEAN") {
    const Output a =
        graph
            .add({.op = prefix + "ConditionalAccumulator",
                  .name = "a",
                  .attrs = {{"dtype", f32}, {"shape", Shape{2}}, {"reduction_type", reduction}}})
            .output();
    const Output step = placeholder(graph, "step", i64, {});
    const Output gradient = placeholder(graph, "gradient", f32, Shape::unknown());
    const Output n = placeholder(graph, "n", i32, {});
    graph.add({.op = prefix + "AccumulatorApplyGradient",
               .name = "apply",
               .inputs = {a, step, gradient}});
    graph.add({.op = prefix + "AccumulatorTakeGradient",
               .name = "take",
               .inputs = {a, n},
               .attrs = {{"dtype", f32}}});
    graph.add({.op = prefix + "AccumulatorSetGlobalStep", .name = "set_step", .inputs = {a, step}});
    graph.add({.op = prefix + "AccumulatorNumAccumulated", .name = "count", .inputs = {a}});
    session.extend(graph);
  }
  void apply(int64_t step, std::initializer_list<float> gradient) {
    session.run(
        {{"step", Tensor::scalar(step)},
         {"gradient", Tensor::of<float>({static_cast<int64_t>(gradient.size())}, gradient)}},
        {}, {"apply"});
  }
  std::vector<float> take(int n) {
    return floats(session.run({{"n", Tensor::scalar(n)}}, {"take:0"}, {})[0]);
  }
  int count() { return session.run({}, {"count:0"}, {})[0].item<int32_t>(); }

  Graph graph;
  LocalSession session{{.timeout = 20s}, one_cpu};
};

class Accumulators : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(ByRefAndResource, Accumulators, testing::Values("", "Resource"));

TEST_P(Accumulators, ReturnTheMeanOfAllGradients) {
  AccumulatorGraph a(GetParam());
  a.apply(0, {1, 2});
  a.apply(0, {3, 6});
  a.apply(5, {5, 10});
  EXPECT_EQ(a.count(), 3);
  EXPECT_EQ(a.take(2), (std::vector<float>{3, 6})) << "of all three";
  EXPECT_EQ(a.count(), 0);
}

TEST_P(Accumulators, DropStaleGradients) {
  AccumulatorGraph a(GetParam(), "SUM");
  a.apply(0, {1, 1});
  a.take(1);  // now at step 1
  a.apply(0, {100, 100});
  EXPECT_EQ(a.count(), 0);
  a.apply(1, {1, 2});
  a.apply(2, {3, 4});
  EXPECT_EQ(a.take(2), (std::vector<float>{4, 6}));
  a.session.run({{"step", Tensor::scalar<int64_t>(9)}}, {}, {"set_step"});
  a.apply(8, {1, 1});
  EXPECT_EQ(a.count(), 0);
}

TEST_P(Accumulators, TakersWaitInOrder) {
  AccumulatorGraph a(GetParam());
  auto taken = std::async(std::launch::async, [&] { return a.take(2); });
  a.apply(0, {1, 1});
  EXPECT_EQ(taken.wait_for(50ms), std::future_status::timeout);
  expect_error_with(Code::deadline_exceeded, "", [&] {
    a.session.run({{"n", Tensor::scalar(1)}}, {"take:0"}, {}, {.timeout = 100ms});
  });
  a.apply(0, {3, 3});
  EXPECT_EQ(taken.get(), (std::vector<float>{2, 2}));
  EXPECT_EQ(a.count(), 0);
}

TEST_P(Accumulators, RejectMismatchedGradients) {
  AccumulatorGraph a(GetParam());
  expect_error_with(Code::invalid_argument, "gradient of shape [3]", [&] {
    a.apply(0, {1, 2, 3});
  });
  expect_error_with(Code::invalid_argument, "num_required must be positive", [&] { a.take(0); });
}

class SparseAccumulatorGraph {
 public:
  explicit SparseAccumulatorGraph(const Shape& shape) : session_({.timeout = 20s}, one_cpu) {
    Graph graph;
    const Output a = graph
                         .add({.op = "SparseConditionalAccumulator",
                               .name = "a",
                               .attrs = {{"dtype", f32}, {"shape", shape}}})
                         .output();
    const Output indices = placeholder(graph, "indices", i64, {any});
    const Output values = placeholder(graph, "values", f32, Shape::unknown());
    graph.add({.op = "SparseAccumulatorApplyGradient",
               .name = "apply",
               .inputs = {a, constant(graph, Tensor::scalar<int64_t>(0)), indices, values,
                          constant(graph, Tensor::of<int64_t>({2}, {5, 2}))},
               .attrs = {{"has_known_shape", true}}});
    graph.add({.op = "SparseAccumulatorTakeGradient",
               .name = "take",
               .inputs = {a, constant(graph, Tensor::scalar<int32_t>(1))},
               .attrs = {{"dtype", f32}}});
    session_.extend(graph);
  }
  void apply(const Tensor& at, const Tensor& rows) {
    session_.run({{"indices", at}, {"values", rows}}, {}, {"apply"});
  }
  void expect_taken(const Tensor& at, const Tensor& rows, const Tensor& shape) {
    const auto taken = session_.run({}, {"take:0", "take:1", "take:2"}, {});
    EXPECT_EQ(taken[0].to_string(), at.to_string());
    EXPECT_EQ(taken[1].to_string(), rows.to_string());
    EXPECT_EQ(taken[2].to_string(), shape.to_string());
  }

 private:
  LocalSession session_;
};

TEST(SparseAccumulators, AverageEachRowOverItsGradients) {
  SparseAccumulatorGraph a({5, 2});
  a.apply(Tensor::of<int64_t>({2}, {1, 3}), Tensor::of<float>({2, 2}, {3, 4, 1, 2}));
  a.apply(Tensor::of<int64_t>({2}, {0, 3}), Tensor::of<float>({2, 2}, {7, 8, 3, 6}));
  a.expect_taken(Tensor::of<int64_t>({3}, {0, 1, 3}), Tensor::of<float>({3, 2}, {7, 8, 3, 4, 2, 4}),
                 Tensor::of<int64_t>({2}, {5, 2}));
  expect_error_with(Code::invalid_argument, "index is 5 exceeded 5", [&] {
    a.apply(Tensor::of<int64_t>({1}, {5}), Tensor::of<float>({1, 2}, {3, 6}));
  });
  expect_error_with(Code::invalid_argument, "expected values dim 1 to be 2, got 3", [&] {
    a.apply(Tensor::of<int64_t>({1}, {0}), Tensor::of<float>({1, 3}, {1, 2, 3}));
  });
  expect_error_with(Code::invalid_argument, "Expected 2 non-empty input values, got 1", [&] {
    a.apply(Tensor::of<int64_t>({2}, {0, 1}), Tensor::of<float>({1, 2}, {1, 2}));
  });
}

// SyncReplicasOptimizer asks for shape=().
TEST(SparseAccumulators, WithScalarShapeAcceptRowsOfAnyShape) {
  for (const Shape& shape : {Shape{}, Shape::unknown(), Shape{any, 2}}) {
    SparseAccumulatorGraph a(shape);
    a.apply(Tensor::of<int64_t>({2}, {0, 2}), Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
    a.apply(Tensor::of<int64_t>({2}, {2, 9}), Tensor::of<float>({2, 2}, {10, 20, 30, 40}));
    expect_error_with(Code::invalid_argument, "expected values dim 1 to be 2, got 3", [&] {
      a.apply(Tensor::of<int64_t>({1}, {0}), Tensor::of<float>({1, 3}, {1, 2, 3}));
    });
    a.expect_taken(Tensor::of<int64_t>({3}, {0, 2, 9}),
                   Tensor::of<float>({3, 2}, {1, 2, 6.5, 12, 30, 40}),
                   Tensor::of<int64_t>({2}, {-1, 2}));
  }
}

TEST(SparseAccumulators, KeepRepeatedIndicesOfOneGradient) {
  SparseAccumulatorGraph a(Shape{});
  a.apply(Tensor::of<int64_t>({2}, {1, 2}), Tensor::of<float>({2, 1}, {1, 3}));
  a.apply(Tensor::of<int64_t>({2}, {2, 2}), Tensor::of<float>({2, 1}, {1, 3}));
  a.expect_taken(Tensor::of<int64_t>({3}, {1, 2, 2}), Tensor::of<float>({3, 1}, {1, 2, 3}),
                 Tensor::of<int64_t>({2}, {-1, 1}));
}

}  // namespace
}  // namespace leat
