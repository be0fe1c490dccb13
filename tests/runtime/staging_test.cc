// Staging areas, staging maps and barriers in sessions: state that is found by its name, and waits
// that hold no thread.
#include <gtest/gtest.h>

#include <future>

#include "graph/ops.h"
#include "runtime/local_session.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using namespace std::chrono_literals;

const LocalDevices one_cpu{.cpus = 1, .gpus = false};

struct StagingGraph {
  explicit StagingGraph(int capacity = 0, std::chrono::milliseconds timeout = 20s)
      : session({.timeout = timeout}, one_cpu) {
    const AttrMap attrs = {
        {"dtypes", std::vector<DType>{f32}}, {"capacity", capacity}, {"shared_name", "area"}};
    const Output x = placeholder(graph, "x", f32, {});
    graph.add({.op = "Stage", .name = "put", .inputs = {x}, .attrs = attrs});
    graph.add({.op = "Unstage", .name = "get", .attrs = attrs});
    graph.add({.op = "StageSize", .name = "size", .attrs = attrs});
    graph.add({.op = "StageClear", .name = "clear", .attrs = attrs});
    session.extend(graph);
  }
  void put(float v) { session.run({{"x", Tensor::scalar(v)}}, {}, {"put"}); }
  float get() { return session.run({}, {"get:0"}, {})[0].value<float>(); }
  int size() { return session.run({}, {"size:0"}, {})[0].value<int32_t>(); }

  Graph graph;
  LocalSession session;
};

TEST(Staging, OpsOfOneNameHaveOneArea) {
  StagingGraph s;
  s.put(1);
  s.put(2);
  EXPECT_EQ(s.size(), 2);
  EXPECT_EQ(s.get(), 1);
  s.session.run({}, {}, {"clear"});
  EXPECT_EQ(s.size(), 0);
}

TEST(Staging, AWaitEndsWithItsStepAndLeavesNothing) {
  StagingGraph s(1, 100ms);
  expect_error_with(Code::deadline_exceeded, "staging area 'area' has 0", [&] { s.get(); });
  s.put(1);
  expect_error_with(Code::deadline_exceeded, "1 elements of at most 1", [&] { s.put(2); });
  EXPECT_EQ(s.get(), 1);
  EXPECT_EQ(s.size(), 0);
}

TEST(Staging, ManyStepsPutAndGetAtOnce) {
  StagingGraph s(2);
  constexpr int threads = 4, each = 50;
  std::vector<std::future<float>> getting;
  std::vector<std::future<void>> putting;
  for (int t = 0; t < threads; ++t) {
    putting.push_back(std::async(std::launch::async, [&s] {
      for (int i = 1; i <= each; ++i) s.put(static_cast<float>(i));
    }));
    getting.push_back(std::async(std::launch::async, [&s] {
      float sum = 0;
      for (int i = 0; i < each; ++i) sum += s.get();
      return sum;
    }));
  }
  for (auto& put : putting) put.get();
  float sum = 0;
  for (auto& get : getting) sum += get.get();
  EXPECT_EQ(sum, threads * each * (each + 1) / 2);
}

TEST(Staging, ANameThatBelongsToOtherStateIsAnError) {
  StagingGraph s;
  s.put(1);

  const AttrMap types = {{"dtypes", std::vector<DType>{f32}}, {"shared_name", "area"}};
  const Output key = placeholder(s.graph, "key", i64, {}),
               indices = placeholder(s.graph, "i", i32, {1});
  s.graph.add({.op = "MapUnstage", .name = "get_key", .inputs = {key, indices}, .attrs = types});
  s.session.extend(s.graph);
  expect_error_with(Code::invalid_argument, "'area' is no staging map", [&] {
    s.session.run({{"key", Tensor::scalar<int64_t>(1)}, {"i", Tensor::of<int32_t>({1}, {0})}},
                  {"get_key:0"}, {});
  });
}

TEST(Staging, AKeyMayWaitBesideOthers) {
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
      return session.run({{"key", Tensor::scalar(k)}}, {"get:0"}, {})[0].value<float>();
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

}  // namespace
}  // namespace leat
