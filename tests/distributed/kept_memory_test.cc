// What tasks keep of a step that ran once: the memory of this process, which holds all tasks.
#include <gtest/gtest.h>

#include "core/memory/host_memory.h"
#include "distributed/master/master.h"
#include "distributed/master/session_graph.h"
#include "distributed/worker/worker.h"
#include "graph/import/graph_def.h"
#include "graph/ops.h"
#include "tests/support/counter_graph.h"
#include "tests/support/eventually.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/sanitizers.h"

namespace leat {
namespace {

constexpr int64_t megabyte = 1 << 20;

// A killed client never closes its session.
TEST(KeptMemory, IdleSessionsProgramsAreDroppedAndRebuilt) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  {
    const DeviceScope on(graph, "/job:ps/task:0");
    add_counter(graph, 1);
  }
  const auto session = cluster.session(graph);
  session->run({}, {}, {"init"});
  session->run({}, {}, {"add"});
  const auto graphs = [&] {
    return cluster.task("ps").worker().current_status().graphs +
           cluster.task("worker").worker().current_status().graphs;
  };
  EXPECT_GT(graphs(), 0);
  cluster.task("worker").master().drop_unused(std::chrono::hours(1));
  EXPECT_GT(graphs(), 0);
  cluster.task("worker").master().drop_unused(std::chrono::seconds(0));
  EXPECT_TRUE(eventually([&] { return graphs() == 0; }));
  EXPECT_EQ(session->run({}, {"add"}, {})[0].item<float>(), 3.0f);
  cluster.task("worker").master().drop_unused(std::chrono::seconds(0));
  identity(graph.output("w"));
  session->extend(graph);
  EXPECT_EQ(session->run({}, {"Identity"}, {})[0].item<float>(), 3.0f);
}

// A program that ran once is dropped; one that runs again and again stays.
TEST(KeptMemory, SessionsKeepUsedPrograms) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  {
    const DeviceScope on(graph, "/job:ps/task:0");
    add_counter(graph);
  }
  const auto session = cluster.session(graph);
  const auto graphs = [&] { return cluster.task("ps").worker().current_status().graphs; };
  session->run({}, {}, {"init"});
  session->run({}, {}, {"add"});
  const int both = graphs();
  EXPECT_TRUE(eventually(
      [&] {
        session->run({}, {}, {"add"});
        return graphs() < both;
      },
      std::chrono::seconds(20)));
  EXPECT_GT(graphs(), 0);
}

TEST(KeptMemory, QuicklyBuiltProgramsAreDroppedSooner) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  {
    const DeviceScope on(graph, "/job:ps/task:0");
    add_counter(graph);
  }
  const auto session = cluster.session(graph);
  session->run({}, {}, {"init"});
  const auto is_asleep = [&] { return cluster.task("ps").worker().current_status().graphs == 0; };
  EXPECT_TRUE(eventually(is_asleep, std::chrono::seconds(20)));
}

TEST(KeptMemory, UnpackedGraphEqualsThePackedOne) {
  auto graph = std::make_shared<Graph>();
  {
    const DeviceScope on(*graph, "/job:ps/task:0");
    add_counter(*graph);
  }
  graph->find("w")->assigned_device = DeviceName::parse("/job:ps/task:0/device:CPU:0");
  graph->find("w")->placement_reason = std::string("explicit");
  const std::string before = to_graph_def(*graph);
  SessionGraph session;
  session.set(std::move(graph));
  for (int i = 0; i < 2; ++i) {
    session.pack();
    EXPECT_TRUE(session.is_packed());
    const std::shared_ptr<const Graph> woken = session.get();
    EXPECT_FALSE(session.is_packed());
    EXPECT_EQ(to_graph_def(*woken), before);
    EXPECT_EQ(woken->find("w")->assigned_device->to_string(), "/job:ps/task:0/device:CPU:0");
    EXPECT_EQ(woken->find("w")->placement_reason, "explicit");
    EXPECT_TRUE(woken->find("add")->assigned_device->is_empty());
  }
}

TEST(KeptMemory, LargeConstantsAreNotCopied) {
  auto graph = std::make_shared<Graph>();
  constant(*graph, Tensor(f32, {5 * megabyte}));
  SessionGraph session;
  session.set(std::move(graph));
  session.pack();
  EXPECT_FALSE(session.is_packed());
}

TEST(KeptMemory, TasksReturnTheMemoryOfAHugeFetch) {
#ifdef LEAT_UNDER_SANITIZER
  GTEST_SKIP() << "a sanitizer keeps what is freed";
#endif
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  Output huge, small;
  {
    const DeviceScope on(graph, "/job:ps/task:0");
    const Output length = placeholder(graph, "length", i32, {1});
    huge = ones(graph, length);
  }
  {
    const DeviceScope on(graph, "/job:worker/task:0");
    const Output x = placeholder(graph, "x", f32, {});
    huge = huge + x;
    small = x + x;
  }
  const auto session = cluster.session(graph);
  const Tensor one = Tensor::scalar(1.0f);
  const auto run_small = [&](int64_t times) {
    for (int64_t i = 0; i < times; ++i) session->run({{"x", one}}, {small.name()}, {});
  };
  run_small(100);
  const int64_t before = resident_host_memory();
  const NamedTensors feeds = {{"x", one},
                              {"length", Tensor::of<int32_t>({1}, {100 * megabyte / 4})}};
  EXPECT_EQ(session->run(feeds, {huge.name()}, {})[0].bytes(), 100u * megabyte);
  EXPECT_GE(resident_host_memory() - before, 100 * megabyte) << "the next step may be the same";
  for (int i = 0; i < 2; ++i) {
    run_small(100);
    cluster.task("ps").worker().drop_unused();
    cluster.task("worker").worker().drop_unused();
  }
  // A stream keeps its last message until the next one, which may be a heartbeat.
  EXPECT_TRUE(eventually([&] { return resident_host_memory() - before < 40 * megabyte; }))
      << resident_host_memory() - before << " bytes are kept";
}

}  // namespace
}  // namespace leat
