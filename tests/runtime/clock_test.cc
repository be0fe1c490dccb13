// Clocks in sessions: which member waits for which, what ends a wait, and how stale a read can be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <random>
#include <thread>

#include "graph/ops.h"
#include "runtime/local_session.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

const LocalDevices one_cpu{.cpus = 1, .gpus = false};

// A clock "c", and its operations by the names below.
struct ClockGraph {
  explicit ClockGraph(int64_t members) {
    const Output c =
        graph.add({.op = "Clock", .name = "c", .attrs = {{"members", members}}}).output();
    const Output rank = placeholder(graph, "rank", i32), staleness = placeholder(graph, "s", i64);
    const auto operation = [&](const char* op, const char* name, std::vector<Output> inputs) {
      inputs.insert(inputs.begin(), c);
      graph.add({.op = op, .name = name, .inputs = std::move(inputs)});
    };
    operation("ClockTick", "tick", {rank});
    operation("ClockWait", "wait", {rank, staleness});
    operation("ClockJoin", "join", {rank});
    operation("ClockLeave", "leave", {rank});
    operation("ClockRead", "read", {});
    session.extend(graph);
  }
  ~ClockGraph() { session.close(); }  // ends the waits of a test that has failed

  int64_t call(const char* op, int rank) {
    return session.run({{"rank", Tensor::scalar(rank)}}, {concat(op, ":0")}, {})[0].item<int64_t>();
  }
  int64_t tick(int rank) { return call("tick", rank); }
  int64_t join(int rank) { return call("join", rank); }
  void leave(int rank) { session.run({{"rank", Tensor::scalar(rank)}}, {}, {"leave"}); }
  void advance(int rank, int ticks) {
    for (int i = 0; i < ticks; ++i) tick(rank);
  }
  int64_t wait(int rank, int64_t staleness, const RunOptions& options = {}) {
    return session
        .run({{"rank", Tensor::scalar(rank)}, {"s", Tensor::scalar(staleness)}}, {"wait:0"}, {},
             options)[0]
        .item<int64_t>();
  }
  std::future<int64_t> waiting(int rank, int64_t staleness) {
    return std::async(std::launch::async, [=, this] { return wait(rank, staleness); });
  }
  std::vector<int64_t> read() {
    const Tensor clocks = session.run({}, {"read:0"}, {})[0];
    return {clocks.data<int64_t>(), clocks.data<int64_t>() + clocks.elements()};
  }
  // The message of a wait that does not end.
  std::string awaited(int rank, int64_t staleness) {
    const Status status = error_of([&] { wait(rank, staleness, {.timeout = 100ms}); });
    EXPECT_EQ(status.code, Code::deadline_exceeded);
    return status.message;
  }

  Graph graph;
  LocalSession session{{.timeout = 20s}, one_cpu};
};

void expect_blocked(std::future<int64_t>& wait) {
  EXPECT_EQ(wait.wait_for(50ms), std::future_status::timeout);
}

TEST(Clocks, CountTheTicksOfEachMember) {
  ClockGraph c(3);
  EXPECT_THAT(c.read(), ElementsAre(0, 0, 0));
  EXPECT_EQ(c.tick(1), 1);
  EXPECT_EQ(c.tick(1), 2);
  EXPECT_EQ(c.tick(2), 1);
  EXPECT_THAT(c.read(), ElementsAre(0, 2, 1));
}

TEST(Clocks, WaitReturnsAtOnceWithinTheStaleness) {
  ClockGraph c(3);
  EXPECT_EQ(c.wait(0, 0), 0);
  c.advance(0, 5);
  c.advance(1, 3);
  c.advance(2, 4);
  EXPECT_EQ(c.wait(0, 2), 3);
  EXPECT_EQ(c.wait(1, 0), 3);
  EXPECT_EQ(c.wait(2, 1), 3);
  EXPECT_EQ(c.wait(0, std::numeric_limits<int64_t>::max()), 3);
}

TEST(Clocks, WaitEndsWhenTheSlowestTicks) {
  ClockGraph c(3);
  c.advance(0, 4);
  std::future<int64_t> wait = c.waiting(0, 2);
  expect_blocked(wait);
  c.advance(1, 2);
  expect_blocked(wait);
  c.tick(2);
  expect_blocked(wait);
  c.tick(2);
  EXPECT_EQ(wait.get(), 2);
}

// The one behind is admitted though it came later.
TEST(Clocks, WaitsDoNotHoldUpEachOther) {
  ClockGraph c(3);
  c.advance(0, 4);
  c.advance(1, 2);
  std::future<int64_t> first = c.waiting(0, 2);
  expect_blocked(first);
  std::future<int64_t> second = c.waiting(1, 1);
  expect_blocked(second);
  c.tick(2);
  EXPECT_EQ(second.get(), 1);
  expect_blocked(first);
  c.advance(2, 3);
  EXPECT_EQ(first.get(), 2);
}

TEST(Clocks, NobodyWaitsForWhoHasLeft) {
  ClockGraph c(3);
  c.advance(0, 4);
  c.advance(1, 3);
  std::future<int64_t> wait = c.waiting(0, 1);
  expect_blocked(wait);
  c.leave(2);
  EXPECT_EQ(wait.get(), 3);
  EXPECT_THAT(c.read(), ElementsAre(4, 3, -1));
  EXPECT_EQ(c.tick(2), 1) << "present again, with its own count";
  EXPECT_THAT(c.read(), ElementsAre(4, 3, 1));
  for (const int rank : {0, 1, 2}) c.leave(rank);
  EXPECT_EQ(c.wait(0, 0), 4) << "its own, as nobody is present";
}

TEST(Clocks, WhoJoinsBeginsAtTheSlowestOfTheOthers) {
  ClockGraph c(3);
  c.advance(0, 7);
  c.advance(1, 5);
  c.leave(2);
  EXPECT_EQ(c.join(2), 5);
  EXPECT_THAT(c.read(), ElementsAre(7, 5, 5));
  c.leave(0);
  EXPECT_EQ(c.join(0), 5) << "lower than before";
  // Who has not left, as it could not: its old count no longer holds up the others.
  c.advance(1, 4);
  c.advance(2, 3);
  std::future<int64_t> wait = c.waiting(1, 1);
  expect_blocked(wait);
  EXPECT_EQ(c.join(0), 8);
  EXPECT_EQ(wait.get(), 8);
  c.leave(1);
  c.leave(2);
  EXPECT_EQ(c.join(0), 8) << "nobody else is present";
}

TEST(Clocks, DeadlineNamesTheMembersWaitedFor) {
  ClockGraph c(4);
  c.advance(0, 7);
  c.advance(1, 5);
  c.advance(2, 4);
  c.advance(3, 6);
  EXPECT_THAT(c.awaited(0, 2),
              HasSubstr("waits in ClockWait node wait: clock 'c': member 0, at 7, waits for member "
                        "2, at 4 (staleness 2), for "));
  EXPECT_THAT(
      c.awaited(0, 0),
      HasSubstr("clock 'c': member 0, at 7, waits for member 2, at 4 and member 1, at 5 and "
                "member 3, at 6 (staleness 0), for "))
      << "without the wait that has ended";
}

TEST(Clocks, LongListsOfWaitsAreCut) {
  ClockGraph c(20);
  for (int rank = 0; rank < 10; ++rank) c.tick(rank);
  std::vector<std::future<int64_t>> waits;
  for (int rank = 0; rank < 10; ++rank) waits.push_back(c.waiting(rank, 0));
  EXPECT_TRUE(
      eventually([&] { return c.awaited(0, 0).find("; 3 more wait, for") != std::string::npos; }));
  EXPECT_THAT(c.awaited(0, 0), HasSubstr("member 17, at 0 and 2 more (staleness 0); member "));
  for (int rank = 10; rank < 20; ++rank) c.leave(rank);
  for (auto& wait : waits) EXPECT_EQ(wait.get(), 1);
}

TEST(Clocks, EndedStepsLeaveTheOthersWaiting) {
  ClockGraph c(2);
  c.tick(0);
  std::future<int64_t> wait = c.waiting(0, 0);
  c.awaited(0, 0);
  expect_blocked(wait);
  c.tick(1);
  EXPECT_EQ(wait.get(), 1);
}

TEST(Clocks, ClosingTheSessionEndsAllWaits) {
  ClockGraph c(2);
  c.tick(0);
  std::vector<std::future<int64_t>> waits;
  for (int i = 0; i < 20; ++i) waits.push_back(c.waiting(0, 0));
  expect_blocked(waits[0]);
  c.session.close();
  for (auto& wait : waits) expect_ended_by_close([&] { wait.get(); });
}

TEST(Clocks, RejectWrongArguments) {
  ClockGraph c(3);
  const auto expect = [&](std::string_view text, auto&& f) {
    expect_error_with(Code::invalid_argument, text, f);
  };
  const std::string no_member = "clock 'c' has no member 3: its members are 0 to 2";
  expect(no_member, [&] { c.tick(3); });
  expect(no_member, [&] { c.join(3); });
  expect(no_member, [&] { c.leave(3); });
  expect(no_member, [&] { c.wait(3, 0); });
  expect("has no member -1", [&] { c.tick(-1); });
  expect("[[{{node tick}}]]", [&] { c.tick(-1); });
  expect("the staleness of member 1 of clock 'c' must not be negative, got -1",
         [&] { c.wait(1, -1); });
  expect("rank must be a scalar, got shape [1]", [&] {
    c.session.run({{"rank", Tensor::of<int32_t>({1}, {0})}}, {"tick:0"}, {});
  });
  EXPECT_THAT(c.read(), ElementsAre(0, 0, 0));
}

TEST(Clocks, NodesOfOneNameMustAgree) {
  Graph graph;
  const auto read = [&](const char* name, int64_t members) {
    const Output c =
        graph.add({.op = "Clock", .attrs = {{"members", members}, {"shared_name", "c"}}}).output();
    graph.add({.op = "ClockRead", .name = name, .inputs = {c}});
  };
  read("two", 2);
  read("three", 3);
  read("too_many", int64_t{1} << 60);
  LocalSession session({.timeout = 20s}, one_cpu);
  session.extend(graph);
  EXPECT_EQ(session.run({}, {"two:0"}, {})[0].shape(), Shape{2});
  expect_error_with(Code::invalid_argument, "clock 'c' has 2 members; node",
                    [&] { session.run({}, {"three:0"}, {}); });
  expect_error_with(Code::resource_exhausted, "out of host memory",
                    [&] { session.run({}, {"too_many:0"}, {}); });
  expect_error_with(Code::invalid_argument, "members", [] {
    Graph other;
    other.add({.op = "Clock", .attrs = {{"members", int64_t{0}}}});
  });
}

// Like nodes are neither merged nor folded, and those without a consumer run as targets.
TEST(Clocks, EachNodeActsOnceInEachStep) {
  Graph graph;
  const Output c = graph.add({.op = "Clock", .name = "c", .attrs = {{"members", 2}}}).output();
  const Output rank = constant(graph, Tensor::scalar(1));
  const auto tick = [&](const char* name) {
    return graph.add({.op = "ClockTick", .name = name, .inputs = {c, rank}}).output();
  };
  const Output ticks[] = {tick("a"), tick("b"), tick("c")};
  graph.add({.op = "Pack", .name = "ticks", .inputs = {std::begin(ticks), std::end(ticks)}});
  graph.add({.op = "ClockRead", .name = "read", .inputs = {c}});
  tick("target");
  LocalSession session({.timeout = 20s}, one_cpu);
  session.extend(graph);
  for (const int64_t before : {0, 4}) {
    const Tensor counts = session.run({}, {"ticks:0"}, {})[0];
    EXPECT_THAT(std::vector<int64_t>(counts.data<int64_t>(), counts.data<int64_t>() + 3),
                testing::UnorderedElementsAre(before + 1, before + 2, before + 3));
    EXPECT_EQ(session.run({}, {"read:0"}, {})[0].data<int64_t>()[1], before + 3);
    session.run({}, {}, {"target"});
  }
}

// The guarantee, with workers that are as fast as chance makes them: an admitted read at clock c
// follows all steps up to c - s - 1 of all members, the bound is reached, and nobody is ever more
// than s + 1 ahead (between a tick and the wait behind it).
TEST(Clocks, KeepTheStalenessBounded) {
  constexpr int members = 4, ticks = 2'000;
  constexpr int64_t s = 3;
  ClockGraph c(members);
  std::array<std::atomic<int64_t>, members> finished{};  // steps of each
  std::atomic<int64_t> most_ahead{0}, broken{0};
  const auto work = [&](int rank) {
    std::mt19937 random(static_cast<unsigned>(rank));
    // The last lets the first get as far ahead as it may.
    if (rank == members - 1 && !eventually([&] { return finished[0] > s; })) ++broken;
    for (int64_t clock = 0; clock < ticks; ++clock) {
      const int64_t slowest = c.wait(rank, s);
      if (clock - slowest > s || slowest > clock) ++broken;
      for (const auto& other : finished) {
        if (other < clock - s) ++broken;
      }
      for (int64_t known = most_ahead; known < clock - slowest;)
        most_ahead.compare_exchange_weak(known, clock - slowest);
      if (const auto delay = random() % 64; delay < 8) {
        std::this_thread::sleep_for(std::chrono::microseconds(10 * delay));
      }
      ++finished[rank];
      if (c.tick(rank) != clock + 1) ++broken;
    }
    c.leave(rank);
  };
  std::vector<std::future<void>> workers;
  for (int rank = 0; rank < members; ++rank)
    workers.push_back(std::async(std::launch::async, work, rank));
  int64_t reads = 0;
  const auto are_done = [&] {
    return std::all_of(workers.begin(), workers.end(), [](const std::future<void>& worker) {
      return worker.wait_for(0s) == std::future_status::ready;
    });
  };
  EXPECT_TRUE(eventually([&] {
    std::vector<int64_t> clocks = c.read();
    std::erase(clocks, -1);  // has left
    if (!clocks.empty()) {
      const auto [low, high] = std::minmax_element(clocks.begin(), clocks.end());
      EXPECT_LE(*high - *low, s + 1);
    }
    ++reads;
    return are_done();
  }));
  for (auto& worker : workers) worker.get();
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(most_ahead, s);
  EXPECT_GT(reads, 0);
  for (const auto& count : finished) EXPECT_EQ(count, ticks);
  EXPECT_THAT(c.read(), ElementsAre(-1, -1, -1, -1));
}

}  // namespace
}  // namespace leat
