// Collectives: values that every replica gets, and gradients through them.
#include "frontends/cpp/strategies/parts/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/cpp/session.h"
#include "graph/gradient.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"

namespace leat::collectives {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr int n = 3;

class Collectives : public testing::Test {
 protected:
  // Worker k has value k * 100 + i at i.
  PerReplica values(int64_t rows) {
    PerReplica out;
    for (int k = 0; k < n; ++k) {
      const auto there = replicas_.on_worker(graph_, k);
      Tensor value(f32, {rows});
      for (int64_t i = 0; i < rows; ++i) value.data<float>()[i] = static_cast<float>(k * 100 + i);
      out.push_back(constant(graph_, value));
    }
    return out;
  }
  std::vector<std::vector<float>> run(const PerReplica& outputs) {
    Session session(graph_, {.target = cluster_.target("worker", 0)});
    std::vector<std::vector<float>> out;
    for (const Tensor& each : session.run({}, outputs)) {
      const auto span = each.span<float>();
      out.emplace_back(span.begin(), span.end());
    }
    return out;
  }

  InProcessCluster cluster_{{{"worker", n}}};
  Replicas replicas_{cluster_.spec()};
  Graph graph_;
};

TEST_F(Collectives, AllReduceGivesEachTheSumOrMean) {
  for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::direct, Algorithm::chunks}) {
    for (const int64_t rows : {1, 2, 3, 4, 7}) {
      std::vector<float> sums, means;
      for (int64_t i = 0; i < rows; ++i) {
        sums.push_back(static_cast<float>(300 + 3 * i));
        means.push_back(static_cast<float>(100 + i));
      }
      const PerReplica in = values(rows);
      for (const auto& each :
           run(all_reduce(replicas_, in, {.reduction = Reduction::sum, .algorithm = algorithm})))
        EXPECT_EQ(each, sums);
      for (const auto& each : run(all_reduce(replicas_, in, {.algorithm = algorithm})))
        for (size_t i = 0; i < means.size(); ++i) EXPECT_FLOAT_EQ(each[i], means[i]);
    }
  }
}

TEST_F(Collectives, AllReduceInBucketsKeepsTensorsApart) {
  std::vector<PerReplica> tensors = {values(2), values(5), values(1)};
  for (const int64_t bucket : {4, 28, 1000}) {
    const auto sums =
        all_reduce(replicas_, tensors, {.reduction = Reduction::sum, .bucket_bytes = bucket});
    for (const auto& each : run(sums[1])) EXPECT_THAT(each, ElementsAre(300, 303, 306, 309, 312));
    for (const auto& each : run(sums[2])) EXPECT_THAT(each, ElementsAre(300));
  }
}

TEST_F(Collectives, ReduceScatterGivesEachItsRows) {
  EXPECT_THAT(run(reduce_scatter(replicas_, values(6), Reduction::sum)),
              ElementsAre(ElementsAre(300, 303), ElementsAre(306, 309), ElementsAre(312, 315)));
}

TEST_F(Collectives, AllGatherPutsAllOneAfterTheOther) {
  for (const auto& each : run(all_gather(replicas_, values(2))))
    EXPECT_THAT(each, ElementsAre(0, 1, 100, 101, 200, 201));
}

TEST_F(Collectives, BroadcastGivesEachTheValueOfOne) {
  for (const auto& each : run(broadcast(replicas_, values(2)[1])))
    EXPECT_THAT(each, ElementsAre(100, 101));
}

TEST_F(Collectives, AllToAllTransposes) {
  EXPECT_THAT(
      run(all_to_all(replicas_, values(3))),
      ElementsAre(ElementsAre(0, 100, 200), ElementsAre(1, 101, 201), ElementsAre(2, 102, 202)));
}

// Each replica's loss uses the sum, so each value's gradient is the sum of all weights.
TEST_F(Collectives, HaveGradients) {
  const PerReplica in = values(4);
  for (const Algorithm algorithm : {Algorithm::direct, Algorithm::chunks}) {
    const PerReplica sums =
        all_reduce(replicas_, in, {.reduction = Reduction::sum, .algorithm = algorithm});
    std::vector<Output> losses;
    for (int k = 0; k < n; ++k) losses.push_back(sum(sums[k] * static_cast<float>(k + 1)));
    for (const auto& each : run(gradients({add_n(losses)}, in)))
      EXPECT_THAT(each, ElementsAre(6, 6, 6, 6));
  }
}

TEST_F(Collectives, ReportMistakes) {
  const PerReplica in = values(4);
  expect_error_with(Code::invalid_argument, "needs a value of each of the 3 replicas, got 1",
                    [&] { all_reduce(replicas_, PerReplica{in[0]}); });
  expect_error_with(Code::invalid_argument, "the value of replica 2 is an empty Output", [&] {
    all_gather(replicas_, {in[0], in[1], Output()});
  });
  expect_error_with(Code::invalid_argument, "replica 2 has float[3], but replica 0 has float[4]",
                    [&] {
                      all_reduce(replicas_, PerReplica{in[0], in[1], values(3)[2]});
                    });
  expect_error_with(Code::invalid_argument, "must be a multiple of the 3 replicas, got [4]",
                    [&] { all_to_all(replicas_, in); });
  expect_error_with(Code::invalid_argument, "needs a row for each of the 3 replicas, got [2]",
                    [&] { reduce_scatter(replicas_, values(2)); });
}

}  // namespace
}  // namespace leat::collectives
