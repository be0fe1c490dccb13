// Queues, accumulators, clocks, tables, counters and staging areas of the C++ API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>

#include "frontends/cpp/include/leat/leat.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using namespace std::chrono_literals;

template <class T>
std::vector<T> list(const Tensor& tensor) {
  const auto span = tensor.span<T>();
  return {span.begin(), span.end()};
}

template <class T>
T value(Session& session, Output output, const Feeds& feeds = {}) {
  return session.run(feeds, {output})[0].template item<T>();
}

// ---- Queues

TEST(QueueBuilder, IsFirstInFirstOut) {
  Graph g;
  const Output step = placeholder(g, "step", i64, {});
  Queue tokens(g, "tokens", {i64}, {.capacity = 100, .shapes = {Shape{}}});
  Node& put = tokens.enqueue({step});
  Node& put_seven = tokens.enqueue({7});
  const Output token = tokens.dequeue()[0], size = tokens.size();
  const Output three = tokens.dequeue_many(3)[0];
  EXPECT_EQ(token.shape(), Shape{});
  EXPECT_EQ(three.shape(), Shape{3});
  Session session(g);
  for (const int64_t i : {10, 11, 12}) session.run({{step, Tensor::scalar(i)}}, {put});
  session.run({put_seven});
  EXPECT_EQ(value<int32_t>(session, size), 4);
  EXPECT_EQ(value<int64_t>(session, token), 10);
  EXPECT_THAT(list<int64_t>(session.run({}, {three})[0]), ElementsAre(11, 12, 7));
}

TEST(QueueBuilder, SupportsSeveralComponents) {
  Graph g;
  Queue from(g, "from", {f32, i32}, {.shapes = {Shape{2}, Shape{}}});
  Queue to(g, "to", {f32, i32});
  Node& fill = from.enqueue_many({constant(g, {{1.5, 2}, {3, 4}}), constant(g, {5, 6})});
  Node& move = to.enqueue(from.dequeue());
  const std::vector<Output> element = to.dequeue();
  Session session(g);
  session.run({fill});
  session.run({move});
  const std::vector<Tensor> first = session.run({}, element);
  EXPECT_THAT(list<float>(first[0]), ElementsAre(1.5, 2));
  EXPECT_EQ(first[1].item<int32_t>(), 5);
}

TEST(QueueBuilder, DrainsAfterClose) {
  Graph g;
  Queue queue(g, "epoch", {f32}, {.capacity = 5, .shapes = {Shape{}}});
  Node& fill = queue.enqueue_many({constant(g, {1.0, 2.0, 3.0})});
  Node &close = queue.close(), &more = queue.enqueue({4});
  const Output one = queue.dequeue()[0], two = queue.dequeue_up_to(2)[0],
               closed = queue.is_closed();
  EXPECT_EQ(two.shape(), Shape{any});
  Session session(g);
  session.run({fill});
  EXPECT_FALSE(value<bool>(session, closed));
  session.run({close});
  EXPECT_TRUE(value<bool>(session, closed));
  EXPECT_THAT(list<float>(session.run({}, {two})[0]), ElementsAre(1, 2));
  EXPECT_THAT(list<float>(session.run({}, {two})[0]), ElementsAre(3));
  expect_error_with(Code::out_of_range, "is closed and has insufficient elements",
                    [&] { session.run({}, {one}); });
  expect_error_with(Code::out_of_range, "state_test.cc", [&] { session.run({}, {one}); });
  expect_error_with(Code::cancelled, "is closed", [&] { session.run({more}); });
}

TEST(QueueBuilder, DequeueWaitsUntilClose) {
  Graph g;
  Queue queue(g, "q", {f32}, {.capacity = 1});
  Node &put = queue.enqueue({1}), &close = queue.close({.cancel_pending = true});
  const Output one = queue.dequeue()[0];
  Session session(g);
  auto taken = std::async(std::launch::async, [&] { return value<float>(session, one); });
  EXPECT_EQ(taken.wait_for(50ms), std::future_status::timeout);
  session.run({put});
  EXPECT_EQ(taken.get(), 1);
  auto waiting =
      std::async(std::launch::async, [&] { return error_of([&] { session.run({}, {one}); }); });
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  session.run({close});
  const Status status = waiting.get();
  EXPECT_EQ(status.code, Code::out_of_range);
  EXPECT_THAT(status.message, HasSubstr("'q' is closed and has insufficient elements"));
}

TEST(QueueBuilder, CloseCancelsWaitingEnqueues) {
  Graph g;
  Queue queue(g, "q", {f32}, {.capacity = 1});
  Node &put = queue.enqueue({1}), &cancel = queue.close({.cancel_pending = true});
  Session session(g);
  session.run({put});
  auto waiting =
      std::async(std::launch::async, [&] { return error_of([&] { session.run({put}); }); });
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  session.run({cancel});
  EXPECT_EQ(waiting.get().code, Code::cancelled);
}

TEST(QueueBuilder, PaddingFillsABatch) {
  Graph g;
  const Output words = placeholder(g, "words", i32, {any});
  PaddingQueue queue(g, "sentences", {i32}, {.shapes = {Shape{any}}});
  Node& put = queue.enqueue({words});
  const Output batch = queue.dequeue_many(2)[0];
  EXPECT_EQ(batch.shape(), (Shape{2, any}));
  Session session(g);
  session.run({{words, Tensor::of<int32_t>({1}, {1})}}, {put});
  session.run({{words, Tensor::of<int32_t>({3}, {2, 3, 4})}}, {put});
  const Tensor got = session.run({}, {batch})[0];
  EXPECT_EQ(got.shape(), (Shape{2, 3}));
  EXPECT_THAT(list<int32_t>(got), ElementsAre(1, 0, 0, 2, 3, 4));
}

TEST(QueueBuilder, ShuffleKeepsElementsBack) {
  const auto drawn = [](int64_t seed) {
    Graph g;
    ShuffleQueue queue(g, "q", {i32}, {.min_after_dequeue = 3, .seed = seed, .shapes = {Shape{}}});
    Node &fill = queue.enqueue_many({arange(g, 20)}), &close = queue.close();
    const Output most = queue.dequeue_many(17)[0], rest = queue.dequeue_up_to(9)[0];
    const Output one = queue.dequeue()[0];
    Session session(g);
    session.run({fill});
    std::vector<int32_t> out = list<int32_t>(session.run({}, {most})[0]);
    EXPECT_EQ(error_of([&] { session.run({}, {one}, {}, {.timeout = 50ms}); }).code,
              Code::deadline_exceeded)
        << "three must stay";
    session.run({close});
    const std::vector<int32_t> last = list<int32_t>(session.run({}, {rest})[0]);
    EXPECT_EQ(last.size(), 3u);
    out.insert(out.end(), last.begin(), last.end());
    return out;
  };
  std::vector<int32_t> a = drawn(5);
  EXPECT_EQ(a, drawn(5));
  EXPECT_NE(a, drawn(6));
  EXPECT_FALSE(std::is_sorted(a.begin(), a.end()));
  std::sort(a.begin(), a.end());
  for (int32_t i = 0; i < 20; ++i) EXPECT_EQ(a[static_cast<size_t>(i)], i);
}

TEST(QueueBuilder, PriorityReturnsTheSmallestFirst) {
  Graph g;
  PriorityQueue queue(g, "jobs", {DType::string}, {.shapes = {Shape{}}});
  Node& fill = queue.enqueue_many({constant(g, Tensor::of<int64_t>({3}, {30, 10, 20})),
                                   constant(g, {"last", "first", "second"})});
  Node& urgent = queue.enqueue({-1, constant(g, "urgent")});
  const std::vector<Output> job = queue.dequeue();
  ASSERT_EQ(job.size(), 2u);
  Session session(g);
  session.run({fill});
  session.run({urgent});
  std::vector<std::string> names;
  std::vector<int64_t> priorities;
  for (int i = 0; i < 4; ++i) {
    const std::vector<Tensor> got = session.run({}, job);
    priorities.push_back(got[0].item<int64_t>());
    names.push_back(got[1].item<std::string>());
  }
  EXPECT_THAT(priorities, ElementsAre(-1, 10, 20, 30));
  EXPECT_THAT(names, ElementsAre("urgent", "first", "second", "last"));
}

TEST(QueueBuilder, ReportsMistakesAtTheUsersLine) {
  Graph g;
  Queue queue(g, "q", {f32, i32}, {.shapes = {Shape{2}, Shape{}}});
  const Output pair = constant(g, {1.0, 2.0}), three = constant(g, {1.0, 2.0, 3.0});
  const auto expect = [](std::string_view part, auto&& f) {
    expect_error_with(Code::invalid_argument, part, f);
    expect_error_with(Code::invalid_argument, "state_test.cc:", f);
  };
  expect("has 2 components, but 1 value was given", [&] { queue.enqueue({pair}); });
  expect("component 1 is int32, but", [&] { queue.enqueue({pair, pair}); });
  expect("component 0 is [2], but", [&] { queue.enqueue({three, 1}); });
  expect("component 1 is an empty Output", [&] { queue.enqueue({pair, Output()}); });
  expect("it needs a first axis", [&] { queue.enqueue_many({stack({pair, pair}), 1}); });
  expect("needs the shapes of its components", [&] { Queue(g, "free", {f32}).dequeue_many(2); });
  expect("must be an integer", [&] { queue.dequeue_many(2.5); });
  expect("the capacity must be positive", [&] { Queue(g, "no", {f32}, {.capacity = 0}); });
  expect("at least one component", [&] { Queue(g, "no", {}); });
  expect("has 1 dtypes, but 2 shapes", [&] {
    Queue(g, "no", {f32}, {.shapes = {Shape{}, Shape{}}});
  });
  expect("only a PaddingQueue takes", [&] { Queue(g, "no", {f32}, {.shapes = {Shape{any}}}); });
  expect("so it needs their shapes", [&] { PaddingQueue(g, "no", {f32}, {}); });
  expect("needs the shapes of its components", [&] { PriorityQueue(g, "no", {f32}); });
  expect("min_after_dequeue must be from 0 to below",
         [&] { ShuffleQueue(g, "no", {f32}, {.capacity = 3, .min_after_dequeue = 3}); });
}

TEST(QueueBuilder, IsSharedByName) {
  InProcessCluster cluster{{{"worker", 1}}};
  const auto program = [&](Graph& g) {
    return Queue(g, "q", {i32}, {.shapes = {Shape{}}, .shared_name = "shared"});
  };
  Graph a, b;
  Node& put = program(a).enqueue({3});
  const Output got = program(b).dequeue()[0];
  SessionOptions options{.target = cluster.target("worker", 0)};
  Session first(a, options), second(b, options);
  first.run({put});
  EXPECT_EQ(value<int32_t>(second, got), 3);
}

// ---- Accumulators

TEST(AccumulatorBuilder, ReturnsTheMeanAndDropsStaleGradients) {
  Graph g;
  const Output gradient = placeholder(g, "gradient", f32, {2});
  const Output step = placeholder(g, "step", i64, {});
  Accumulator mean(g, "w/acc", f32, {2});
  Accumulator sum(g, "w/sum", f32, {2}, {.result = AccumulatorResult::sum});
  Node& push = group(g, {{&mean.apply(gradient, step), 0}, {&sum.apply(gradient, step), 0}});
  const Output taken = mean.take(3), added = sum.take(3), count = mean.count();
  Node& later = mean.set_global_step(5);
  EXPECT_EQ(taken.shape(), Shape{2});
  Session session(g);
  const auto apply = [&](float a, float b, int64_t at) {
    session.run({{gradient, Tensor::of<float>({2}, {a, b})}, {step, Tensor::scalar(at)}}, {push});
  };
  apply(1, 10, 0);
  apply(2, 20, 0);
  EXPECT_EQ(value<int32_t>(session, count), 2);
  apply(6, 30, 0);
  EXPECT_THAT(list<float>(session.run({}, {taken})[0]), ElementsAre(3, 20));
  EXPECT_THAT(list<float>(session.run({}, {added})[0]), ElementsAre(9, 60));
  apply(1, 1, 0);  // take() advanced to step 1
  EXPECT_EQ(value<int32_t>(session, count), 0);
  apply(1, 1, 1);
  EXPECT_EQ(value<int32_t>(session, count), 1);
  session.run({later});
  apply(1, 1, 4);
  EXPECT_EQ(value<int32_t>(session, count), 1);
  apply(1, 1, 5);
  EXPECT_EQ(value<int32_t>(session, count), 2);
}

TEST(AccumulatorBuilder, SparseRowsHaveTheirOwnMeans) {
  Graph g;
  SparseAccumulator sum(g, "acc", f32, {10, 2});
  Node& first = sum.apply(constant(g, {4, 1}), constant(g, {{1.0, 2.0}, {3.0, 4.0}}));
  // Row 1 occurs twice, which counts as one gradient of row 1: 2 + 3 and 3 + 5.
  Node& second = sum.apply(constant(g, {1, 1}), constant(g, {{2.0, 3.0}, {3.0, 5.0}}), 0);
  const SparseGradient taken = sum.take(2);
  EXPECT_EQ(taken.values.shape(), (Shape{any, 2}));
  Session session(g);
  session.run({first});
  session.run({second});
  const std::vector<Tensor> got = session.run({}, {taken.indices, taken.values, taken.shape});
  EXPECT_THAT(list<int64_t>(got[0]), ElementsAre(1, 4));
  EXPECT_THAT(list<float>(got[1]), ElementsAre(4, 6, 1, 2));
  EXPECT_THAT(list<int64_t>(got[2]), ElementsAre(10, 2));
}

TEST(AccumulatorBuilder, ReportsMistakesAtTheUsersLine) {
  Graph g;
  Accumulator sum(g, "acc", f32, {2});
  const auto expect = [](std::string_view part, auto&& f) {
    expect_error_with(Code::invalid_argument, part, f);
    expect_error_with(Code::invalid_argument, "state_test.cc:", f);
  };
  expect("but the accumulator's dtype is", [&] { sum.apply(constant(g, {1, 2})); });
  expect("but the accumulator's shape is [2]", [&] { sum.apply(constant(g, {1.0})); });
  expect("the gradient is an empty Output", [&] { sum.apply({}); });
  expect("not int64", [&] { sum.apply(constant(g, {1.0, 2.0}), constant(g, 1)); });
  expect("not an integer", [&] { sum.take(constant(g, 1.5)); });
  expect("a scalar has no rows", [&] { SparseAccumulator(g, "no", f32, {}); });
}

// ---- Clocks

TEST(ClockBuilder, AdmitsWhoIsNotTooFarAhead) {
  Graph g;
  const Output rank = placeholder(g, "rank", i32, {}), limit = placeholder(g, "limit", i32, {});
  const Clock clock(g, "clock", 3);
  const Output tick = clock.tick(rank), wait = clock.wait(rank, limit), join = clock.join(rank);
  const Output first = clock.tick(0), counts = clock.read();
  Node& leave = clock.leave(2);
  EXPECT_EQ(tick.shape(), Shape{});
  EXPECT_EQ(wait.dtype(), i64);
  EXPECT_EQ(counts.shape(), Shape{3});
  Session session(g);
  EXPECT_EQ(value<int64_t>(session, first), 1);
  EXPECT_EQ(value<int64_t>(session, tick, {{rank, Tensor::scalar(0)}}), 2);
  EXPECT_EQ(value<int64_t>(session, tick, {{rank, Tensor::scalar(1)}}), 1);
  const Feeds as_first = {{rank, Tensor::scalar(0)}, {limit, Tensor::scalar(1)}};
  const Status status = error_of([&] { session.run(as_first, {wait}, {}, {.timeout = 50ms}); });
  EXPECT_EQ(status.code, Code::deadline_exceeded);
  EXPECT_THAT(status.message,
              HasSubstr("clock 'clock': member 0, at 2, waits for member 2, at 0 (staleness 1)"));
  auto admitted =
      std::async(std::launch::async, [&] { return value<int64_t>(session, wait, as_first); });
  EXPECT_EQ(admitted.wait_for(50ms), std::future_status::timeout);
  session.run({leave});
  EXPECT_EQ(admitted.get(), 1);
  EXPECT_THAT(list<int64_t>(session.run({}, {counts})[0]), ElementsAre(2, 1, -1));
  EXPECT_EQ(value<int64_t>(session, join, {{rank, Tensor::scalar(2)}}), 1);
}

// One program per worker, as in between-graph replication: a wait before the step's read, a tick
// behind its update, in one run. With staleness 0 both take each step together, so each read has
// the updates of all earlier steps, and at most one of the other's.
TEST(ClockBuilder, IsSharedByPrograms) {
  constexpr int steps = 20;
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  const auto work = [&](int task) {
    Graph g;
    std::optional<Clock> clock;
    std::optional<Counter> updates;
    {
      const DeviceScope on(g, "/job:ps/task:0");
      clock.emplace(g, "clock", 2, ClockOptions{.shared_name = "clock"});
      updates.emplace(g, "updates");
    }
    const DeviceScope on(g, concat("/job:worker/task:", task));
    const Output admitted = clock->wait(task, 0);
    Output seen, ticked;
    {
      // Where the variable is: what is sent to another task may leave before the wait has ended.
      const DeviceScope there(g, "/job:ps/task:0");
      const ControlScope after(g, {admitted.node});
      seen = updates->value();
    }
    Node* update = nullptr;
    {
      const ControlScope after(g, {seen.node});
      update = updates->increment().node;
    }
    {
      const ControlScope after(g, {update});
      ticked = clock->tick(task);
    }
    Session session(g, {.target = cluster.target("worker", task), .timeout = 20s});
    if (task == 0) session.run({initialize_variables(g)});
    const bool is_ready = eventually(
        [&] { return error_of([&] { session.run({}, {updates->variable()}); }).is_ok(); });
    std::vector<std::pair<int64_t, int64_t>> out;  // updates that were there, own steps
    for (int step = 0; is_ready && step < steps; ++step) {
      const auto got = session.run({}, {seen, ticked});
      out.emplace_back(got[0].item<int64_t>(), got[1].item<int64_t>());
    }
    return out;
  };
  auto first = std::async(std::launch::async, work, 0),
       second = std::async(std::launch::async, work, 1);
  for (auto* worker : {&first, &second}) {
    const auto got = worker->get();
    ASSERT_EQ(got.size(), size_t{steps});
    for (int step = 0; step < steps; ++step) {
      const auto [seen, own] = got[step];
      EXPECT_EQ(own, step + 1);
      EXPECT_GE(seen, 2 * step);
      EXPECT_LE(seen, 2 * step + 1);
    }
  }
}

TEST(ClockBuilder, ReportsMistakesAtTheUsersLine) {
  Graph g;
  const Clock clock(g, "clock", 3);
  const auto expect = [](std::string_view part, auto&& f) {
    expect_error_with(Code::invalid_argument, part, f);
    expect_error_with(Code::invalid_argument, "state_test.cc:", f);
  };
  expect("there is no member 3, the members are 0 to 2", [&] { clock.tick(3); });
  expect("join of the clock 'clock'", [&] { clock.join(-1); });
  expect("the rank, ", [&] { clock.leave(constant(g, {0, 1})); });
  expect("must be a scalar, got shape [2]", [&] { clock.leave(constant(g, {0, 1})); });
  expect("not an integer", [&] { clock.tick(0.5); });
  expect("the rank is an empty Output", [&] { clock.tick(Output{}); });
  expect("the staleness must not be negative, got -1", [&] { clock.wait(0, -1); });
  expect("it needs at least one member, got 0", [&] { Clock(g, "none", 0); });
  clock.wait(0, int64_t{1} << 40);
  const Output rank = placeholder(g, "rank", i32, {});
  const Output tick = clock.tick(rank);
  Session session(g);
  const auto run = [&] { session.run({{rank, Tensor::scalar(3)}}, {tick}); };
  expect("clock 'clock' has no member 3: its members are 0 to 2", run);
}

// ---- Tables

TEST(TableBuilder, InitializesWithTheVariables) {
  Graph g;
  const Output words = placeholder(g, "words", DType::string, {any, 2});
  Table ids(g, "ids", {"red", "green"}, {7, 8}, -1);
  Table names(g, "names", {7, 8}, {"red", "green"}, "?");
  const Output id = ids.lookup(words), name = names.lookup(id), size = ids.size();
  const Output seven = names.lookup(7);
  EXPECT_EQ(id.shape(), (Shape{any, 2}));
  EXPECT_EQ(id.dtype(), i64);
  Session session(g);
  const Feeds feeds = {{words, Tensor::of<std::string>({1, 2}, {"green", "blue"})}};
  expect_error_with(Code::failed_precondition, "not initialized",
                    [&] { session.run(feeds, {id}); });
  Node& init = initialize_variables(g);
  session.run({init});
  session.run({init});  // a second time is allowed
  EXPECT_EQ(value<int64_t>(session, size), 2);
  EXPECT_THAT(list<int64_t>(session.run(feeds, {id})[0]), ElementsAre(8, -1));
  EXPECT_THAT(list<std::string>(session.run(feeds, {name})[0]), ElementsAre("green", "?"));
  EXPECT_EQ(value<std::string>(session, seven), "red");
}

TEST(TableBuilder, LoadsFromAFile) {
  ScratchDirectory directory;
  std::ofstream(directory / "words.txt") << "the\nof\nand\n";
  std::ofstream(directory / "prices.csv") << "tea,1.5\nmilk,2\n";
  Graph g;
  Table ids = Table::from_file(g, "ids", directory / "words.txt", -1);
  Table prices =
      Table::from_file(g, "prices", directory / "prices.csv", 0,
                       {.values = f32, .key_column = 0, .value_column = 1, .delimiter = ','});
  const Output found = ids.lookup(constant(g, {"and", "the", "or"}));
  const Output cost = prices.lookup(constant(g, {"milk", "tea", "gold"}));
  Session session(g);
  session.run({initialize_variables(g)});
  EXPECT_THAT(list<int64_t>(session.run({}, {found})[0]), ElementsAre(2, 0, -1));
  EXPECT_THAT(list<float>(session.run({}, {cost})[0]), ElementsAre(2, 1.5, 0));
}

// The checkpoint holds the variables; the session still fills the tables.
TEST(TableBuilder, IsFilledByTrainingSessions) {
  ScratchDirectory directory;
  for (int run = 0; run < 2; ++run) {
    Graph g;
    Counter step(g, "global_step");
    Table ids(g, "ids", {"a"}, {5}, -1);
    const Output found = ids.lookup(constant(g, {"a"}));
    Node& train = *step.increment().node;
    TrainingSession session(g, {.train = &train,
                                .global_step = step.variable(),
                                .fetches = {found},
                                .directory = directory.path(),
                                .checkpoint_steps = 1});
    const auto fetched = session.step({});
    ASSERT_TRUE(fetched.has_value());
    EXPECT_EQ((*fetched)[0].span<int64_t>()[0], 5);
    EXPECT_EQ(session.global_step(), run + 1);
  }
}

TEST(TableBuilder, MutableTablesChange) {
  Graph g;
  const Output keys = placeholder(g, "keys", i64, {any});
  MutableTable table(g, "counts", i64, f32, -1);
  Node& insert = table.insert(keys, cast(keys, f32) / 2);
  Node& remove = table.remove(keys);
  const Output found = table.lookup(keys), size = table.size();
  const TableEntries entries = table.entries();
  Session session(g);
  const auto feed = [&](std::vector<int64_t> k) {
    return Feeds{{keys, Tensor::of<int64_t>({static_cast<int64_t>(k.size())}, k)}};
  };
  session.run(feed({1, 2, 3}), {insert});
  session.run(feed({2, 9}), {remove});
  EXPECT_THAT(list<float>(session.run(feed({1, 2, 3}), {found})[0]), ElementsAre(0.5, -1, 1.5));
  EXPECT_EQ(value<int64_t>(session, size), 2);
  const std::vector<Tensor> all = session.run({}, {entries.keys, entries.values});
  EXPECT_THAT(list<int64_t>(all[0]), UnorderedElementsAre(1, 3));
  EXPECT_THAT(list<float>(all[1]), UnorderedElementsAre(0.5, 1.5));
}

TEST(TableBuilder, ValuesMayBeVectors) {
  Graph g;
  MutableTable table(g, "points", DType::string, f32, {0, 0});
  Node& insert = table.insert(constant(g, {"a"}), constant(g, {{1.5, 2.5}}));
  const Output found = table.lookup(constant(g, {"b", "a"}));
  EXPECT_EQ(found.shape(), (Shape{2, 2}));
  Session session(g);
  session.run({insert});
  EXPECT_THAT(list<float>(session.run({}, {found})[0]), ElementsAre(0, 0, 1.5, 2.5));
}

TEST(TableBuilder, ReportsMistakesAtTheUsersLine) {
  Graph g;
  const auto expect = [](std::string_view part, auto&& f) {
    expect_error_with(Code::invalid_argument, part, f);
    expect_error_with(Code::invalid_argument, "state_test.cc:", f);
  };
  expect("vectors of one length", [&] { Table(g, "t", {"a", "b"}, {1}, 0); });
  expect("the default value is string", [&] { Table(g, "t", {"a"}, {1}, "none"); });
  expect("cannot hold", [&] { Table(g, "t", {"a"}, {1}, 0.5); });
  Table table(g, "table", {"a"}, {1}, 0);
  expect("but those of the table are string", [&] { table.lookup(constant(g, {1})); });
  expect("the keys are an empty Output", [&] { table.lookup(Output()); });
  expect("there is no column -3", [&] { Table::from_file(g, "t", "file", 0, {.key_column = -3}); });
  expect("name of the file is empty", [&] { Table::from_file(g, "t", "", 0); });
  MutableTable numbers(g, "numbers", i64, f32, 0);
  expect("the values, ", [&] { numbers.insert(1, constant(g, 1)); });
  expect("scalars or vectors", [&] { MutableTable(g, "no", i64, f32, {{0}}); });
}

// ---- Counters

TEST(CounterBuilder, Counts) {
  Graph g;
  Counter seen(g, "seen", {.start = 100});
  const Output more = seen.increment(constant(g, 32)), one = seen.increment(), now = seen.value();
  Counter epochs(g, "epochs");
  const Output epoch = epochs.count_up_to(2);
  Session session(g);
  session.run({initialize_variables(g)});
  EXPECT_EQ(value<int64_t>(session, more), 132);
  EXPECT_EQ(value<int64_t>(session, one), 133);
  EXPECT_EQ(value<int64_t>(session, now), 133);
  EXPECT_EQ(value<int64_t>(session, epoch), 0);
  EXPECT_EQ(value<int64_t>(session, epoch), 1);
  expect_error_with(Code::out_of_range, "limit of 2", [&] { session.run({}, {epoch}); });
  EXPECT_TRUE(g.collection("trainable_variables").empty());
  expect_error_with(Code::invalid_argument,
                    "state_test.cc:", [&] { seen.increment(constant(g, 1.5)); });
}

// ---- Staging areas

TEST(StagingAreaBuilder, StagesElements) {
  Graph g;
  const Output x = placeholder(g, "x", f32, {2});
  StagingArea area(g, "next", {f32, i32}, {.capacity = 2, .shapes = {Shape{2}, Shape{}}});
  StagingArea other(g, "next", {f32, i32});  // the name is taken: a different area
  Node &put = area.put({x, 9}), &clear = area.clear();
  const std::vector<Output> got = area.get(), second = area.peek(1);
  const Output size = area.size(), others = other.size();
  EXPECT_EQ(got[0].shape(), Shape{2});
  Session session(g);
  const auto stage = [&](float a, float b) {
    session.run({{x, Tensor::of<float>({2}, {a, b})}}, {put});
  };
  stage(1, 2);
  stage(3, 4);
  EXPECT_EQ(value<int32_t>(session, size), 2);
  EXPECT_EQ(value<int32_t>(session, others), 0);
  EXPECT_THAT(list<float>(session.run({}, second)[0]), ElementsAre(3, 4));
  auto third = std::async(std::launch::async, [&] { stage(5, 6); });
  EXPECT_EQ(third.wait_for(50ms), std::future_status::timeout) << "it is full";
  const std::vector<Tensor> first = session.run({}, got);
  EXPECT_THAT(list<float>(first[0]), ElementsAre(1, 2));
  EXPECT_EQ(first[1].item<int32_t>(), 9);
  third.get();
  session.run({clear});
  EXPECT_EQ(value<int32_t>(session, size), 0);
  expect_error_with(Code::invalid_argument, "state_test.cc:", [&] { area.put({x}); });
}

}  // namespace
}  // namespace leat
