// The measured α and B of a cluster, and what strategies do without them.
#include "frontends/cpp/strategies/parts/link_speed.h"

#include <gtest/gtest.h>

#include "tests/support/in_process_cluster.h"
#include "tests/support/strategy_programs.h"

namespace leat {
namespace {

using strategy_programs::member;

TEST(LinkSpeed, IsMeasuredOncePerPairOfTasks) {
  InProcessCluster cluster({{"worker", 3}});
  const LinkSpeed speed = link_speed(Replicas(member(cluster, 0)));
  EXPECT_TRUE(speed.is_measured);
  EXPECT_GE(speed.trip_us, 1);
  EXPECT_GT(speed.megabytes_per_second, 0);
  EXPECT_GT(speed.trip_bytes(), 0);
  const LinkSpeed again = link_speed(Replicas(member(cluster, 0)));
  EXPECT_EQ(again.trip_us, speed.trip_us);
  EXPECT_EQ(again.megabytes_per_second, speed.megabytes_per_second);
}

TEST(LinkSpeed, IsTheUsualOneWhereNothingCanBeMeasured) {
  const LinkSpeed usual;
  const auto expect_usual = [&](const StrategyCluster& cluster) {
    const LinkSpeed speed = link_speed(Replicas(cluster));
    EXPECT_FALSE(speed.is_measured);
    EXPECT_EQ(speed.trip_bytes(), usual.trip_bytes());
  };
  InProcessCluster cluster({{"worker", 2}}), alone({{"worker", 1}});
  expect_usual({});
  expect_usual(cluster.spec());      // a description
  expect_usual(member(cluster, 1));  // not the chief
  expect_usual(member(alone, 0));
  expect_usual({cluster.spec(), TaskName{"worker", 0}, "grpc://127.0.0.1:1"});  // nobody answers
}

}  // namespace
}  // namespace leat
