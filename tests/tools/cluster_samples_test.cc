// What `leat compare` sees of a cluster: who is waited for, and bytes over time.
#include "tools/leat/compare/cluster_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace leat {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::vector<std::string> owners(const std::string& what, const std::string& from = "") {
  return owners_of({what, from, 0});
}

// A look at a ps and a worker, with what the worker's step does.
ClusterView view(uint64_t ps_bytes, uint64_t worker_bytes, std::vector<StepActivity> activity) {
  ClusterView out;
  out.tasks.push_back({.task = {"ps", 0}, .sent_bytes = ps_bytes});
  out.tasks.push_back({.task = {"worker", 0}, .sent_bytes = worker_bytes});
  out.tasks[1].activity.steps.push_back({.step = 1, .activity = std::move(activity)});
  return out;
}

TEST(ClusterSamples, NamesWhoOwesATensor) {
  EXPECT_THAT(owners("waits for tensor edge_7_w of node w", "/job:ps/task:0"), ElementsAre("ps:0"));
  EXPECT_THAT(owners("waits for its part of a graph to be compiled", "/job:worker/task:12"),
              ElementsAre("worker:12"));
  EXPECT_THAT(owners("waits for a free thread of the task"),
              ElementsAre("a free thread of the task"));
}

TEST(ClusterSamples, NamesQueuesAndKindsOfAccumulators) {
  EXPECT_THAT(owners("waits in QueueDequeueV2 node take: FIFOQueue 'tokens' has 0 of at most 2 "
                     "elements; no enqueue waits, 1 dequeue waits"),
              ElementsAre("FIFOQueue 'tokens'"));
  EXPECT_THAT(owners("waits in AccumulatorTakeGradient node mean: ConditionalAccumulator 'grad' "
                     "has 1 of 3 gradients at step 0"),
              ElementsAre("ConditionalAccumulator"));
  EXPECT_THAT(owners("waits in IteratorGetNext node next: iterator 'data/iterator' has no element"),
              ElementsAre("iterator 'data/iterator'"));
  EXPECT_THAT(owners("waits in Strange node x: it says nothing of a name"),
              ElementsAre("it says nothing of a name"));
}

TEST(ClusterSamples, NamesTheMembersThatAClockWaitsFor) {
  EXPECT_THAT(owners("waits in ClockWait node wait: clock 'c': member 0, at 7, waits for member 2, "
                     "at 5 (staleness 2)"),
              ElementsAre("clock 'c' member 2"));
  EXPECT_THAT(owners("waits in ClockWait node wait: clock 'c': member 0, at 3, waits for member 1, "
                     "at 0 and member 12, at 0 (staleness 2); member 3, at 4, waits for member 1, "
                     "at 0 (staleness 2)"),
              ElementsAre("clock 'c' member 1", "clock 'c' member 12"));
  EXPECT_THAT(owners("waits in ClockWait node wait: clock 'c': nobody waits"), IsEmpty());
}

TEST(ClusterSamples, WorkIsNoWait) {
  EXPECT_THAT(owners("runs MatMul node layer/MatMul and 3 more, the last Relu node y"), IsEmpty());
  EXPECT_THAT(owners("copies a value between host and device"), IsEmpty());
}

TEST(ClusterSamples, CountsEveryWaitThatWasSeen) {
  const StepActivity for_ps{"waits for tensor a of node a", "/job:ps/task:0", 1};
  const StepActivity for_worker{"waits for tensor b of node b", "/job:worker/task:0", 1};
  const StepActivity work{"runs MatMul node m", "", 1};
  ClusterSamples samples;
  EXPECT_THAT(samples.waits(), IsEmpty());
  samples.add(1, view(0, 0, {for_ps, work}));
  samples.add(2, view(0, 0, {for_worker, for_ps}));
  samples.add(3, view(0, 0, {work}));
  samples.add(4, view(0, 0, {for_ps}));
  EXPECT_THAT(samples.waits(), ElementsAre(Pair("ps:0", 0.75), Pair("worker:0", 0.25)));
}

TEST(ClusterSamples, BytesAreThoseOfAllTasksLinearBetweenLooks) {
  ClusterSamples samples;
  EXPECT_TRUE(std::isnan(samples.bytes_at(1)));
  samples.add(10, view(100, 50, {}));
  EXPECT_EQ(samples.bytes_at(9), 150) << "nothing is known of the time before";
  EXPECT_EQ(samples.bytes_at(11), 150);
  samples.add(12, view(300, 250, {}));
  samples.add(13, view(600, 450, {}));
  EXPECT_DOUBLE_EQ(samples.bytes_at(10), 150);
  EXPECT_DOUBLE_EQ(samples.bytes_at(11), 350);
  EXPECT_DOUBLE_EQ(samples.bytes_at(12), 550);
  EXPECT_DOUBLE_EQ(samples.bytes_at(12.5), 800);
  // At the mean rate, 300 a second.
  EXPECT_DOUBLE_EQ(samples.bytes_at(15), 1050 + 2 * 300);
}

// A total without a task that is gone would fall.
TEST(ClusterSamples, SkipsLooksThatMissATask) {
  ClusterSamples samples;
  samples.add(1, view(100, 100, {}));
  ClusterView incomplete = view(0, 150, {{"waits for tensor a of node a", "/job:ps/task:0", 1}});
  incomplete.tasks[0].problem = "does not answer";
  samples.add(2, incomplete);
  EXPECT_EQ(samples.bytes().size(), 1u);
  EXPECT_THAT(samples.waits(), IsEmpty());
}

TEST(ClusterSamples, PointsGetTheBytesSinceTheTrainingBegan) {
  ClusterSamples samples;
  samples.add(100, view(1000, 0, {}));
  samples.add(110, view(2000, 0, {}));
  TrainingCurve curve = merge({{.start = 101, .steps = {{0, 1, 1}, {4.5, 1, 1}, {9, 1, 1}}}});
  add_bytes(samples, curve);
  std::vector<double> bytes;
  for (const CurvePoint& point : curve.points) bytes.push_back(point.bytes);
  EXPECT_THAT(bytes, ElementsAre(0, 500, 1000)) << "the cluster sent nothing before it trained";
  // The first look came late.
  curve = merge({{.start = 98, .steps = {{0, 1, 1}, {1, 1, 1}, {12, 1, 1}}}});
  add_bytes(samples, curve);
  bytes.clear();
  for (const CurvePoint& point : curve.points) bytes.push_back(point.bytes);
  EXPECT_THAT(bytes, ElementsAre(0, 500, 2000));
  add_bytes({}, curve);
  EXPECT_TRUE(std::isnan(curve.points.back().bytes));
}

}  // namespace
}  // namespace leat
