// Collectives: values that every replica gets, and gradients through them.
#include "frontends/cpp/strategies/parts/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "frontends/cpp/session.h"
#include "frontends/cpp/strategies/parts/reduction.h"
#include "graph/gradient.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"

namespace leat::collectives {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr int n = 3;

constexpr Algorithm every_algorithm[] = {
    Algorithm::automatic, Algorithm::direct, Algorithm::chunks,           Algorithm::hierarchical,
    Algorithm::ring,      Algorithm::tree,   Algorithm::halving_doubling,
};

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
  for (const Algorithm algorithm : every_algorithm) {
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

// A bucket takes what fits; the first one ends where it reaches 1 MiB.
TEST(CollectiveAlgorithms, TheFirstBucketIsSentEarly) {
  Graph graph;
  std::vector<Output> tensors;
  for (const int64_t elements : {200'000, 100'000, 10, 300'000, 300'000})
    tensors.push_back(placeholder(graph, "x", f32, {elements}));
  using testing::ElementsAre;
  EXPECT_THAT(make_buckets(tensors, 25 << 20),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4)));
  EXPECT_THAT(make_buckets(tensors, 2'000'000),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
  EXPECT_THAT(make_buckets(tensors, 500'000),
              ElementsAre(ElementsAre(0), ElementsAre(1, 2), ElementsAre(3), ElementsAre(4)));
}

// ---- The order in which each algorithm adds, as a few lines of plain C++ ----

using Values = std::vector<float>;  // element i of all workers

float in_order(const Values& x) {
  float sum = x[0];
  for (size_t k = 1; k < x.size(); ++k) sum += x[k];
  return sum;
}

// Segment s begins at worker s.
float round_the_ring(const Values& x, int64_t i, int64_t elements) {
  const auto count = std::ssize(x);
  int64_t s = 0;
  while (elements * (s + 1) / count <= i) ++s;
  Values turned;
  for (int64_t t = 0; t < count; ++t) turned.push_back(x[static_cast<size_t>((s + t) % count)]);
  return in_order(turned);
}

float by_halves(Values x) {
  const size_t p = std::bit_floor(x.size());
  for (size_t k = p; k < x.size(); ++k) x[k - p] += x[k];
  for (size_t distance = p / 2; distance > 0; distance /= 2)
    for (size_t k = 0; k < distance; ++k) x[k] += x[k + distance];
  return x[0];
}

float up_the_tree(Values x) {
  for (size_t distance = 1; distance < x.size(); distance *= 2)
    for (size_t k = 0; k + distance < x.size(); k += 2 * distance) x[k] += x[k + distance];
  return x[0];
}

float within_pairs_first(const Values& x) {
  Values sums;
  for (size_t k = 0; k < x.size(); k += 2)
    sums.push_back(k + 1 < x.size() ? x[k] + x[k + 1] : x[k]);
  return in_order(sums);
}

float expected_sum(Algorithm algorithm, const Values& x, int64_t i, int64_t elements) {
  if (elements < std::ssize(x)) return in_order(x);
  switch (algorithm) {
    case Algorithm::ring:
      return round_the_ring(x, i, elements);
    case Algorithm::halving_doubling:
      return by_halves(x);
    case Algorithm::tree:
      return up_the_tree(x);
    case Algorithm::hierarchical:
      return x.size() > 2 ? within_pairs_first(x) : in_order(x);
    default:
      return in_order(x);
  }
}

TEST(CollectiveAlgorithms, AddInTheirOrderAndGiveAllTheSameBits) {
  for (int workers = 2; workers <= 9; ++workers) {
    const Replicas replicas(StrategyCluster(),
                            std::vector<std::string>(static_cast<size_t>(workers), "CPU:0"));
    for (const int64_t elements : {1, workers - 1, workers, workers + 1, 61}) {
      Graph graph;
      PerReplica in;
      std::vector<Values> of_element(static_cast<size_t>(elements));
      for (int k = 0; k < workers; ++k) {
        Tensor value(f32, {elements});
        for (int64_t i = 0; i < elements; ++i) {
          // Of different sizes, so that the order shows.
          value.data<float>()[i] = std::ldexp(1.0f + static_cast<float>((7 * i + 3 * k) % 11) / 11,
                                              static_cast<int>((5 * k + i) % 13));
          of_element[static_cast<size_t>(i)].push_back(value.data<float>()[i]);
        }
        in.push_back(constant(graph, value));
      }
      for (const Algorithm algorithm : every_algorithm) {
        for (const Reduction reduction : {Reduction::sum, Reduction::mean}) {
          const PerReplica out =
              all_reduce(replicas, in,
                         {.reduction = reduction, .algorithm = algorithm, .workers_per_group = 2});
          Values expected;
          for (int64_t i = 0; i < elements; ++i) {
            const float sum =
                expected_sum(algorithm, of_element[static_cast<size_t>(i)], i, elements);
            expected.push_back(
                reduction == Reduction::sum ? sum : sum * static_cast<float>(1.0 / workers));
          }
          Session session(graph);
          for (const Tensor& each : session.run({}, out)) {
            const auto span = each.span<float>();
            EXPECT_EQ(Values(span.begin(), span.end()), expected)
                << workers << " workers, algorithm " << static_cast<int>(algorithm);
          }
        }
      }
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

TEST_F(Collectives, WithoutOverlapNothingIsSentBeforeAllIsThere) {
  const std::vector<PerReplica> tensors = {values(2), values(5)};
  const auto sums = all_reduce(replicas_, tensors,
                               {.reduction = Reduction::sum, .bucket_bytes = 1, .overlap = false});
  for (const auto& each : run(sums[1])) EXPECT_THAT(each, ElementsAre(300, 303, 306, 309, 312));
  for (int k = 0; k < n; ++k) {
    const Node& end = *graph_.find(concat("all_reduce/worker_", k, "/all_there"));
    std::vector<std::string> waiting;
    for (const auto& node : graph_.nodes()) {
      if (std::find(node->control_inputs.begin(), node->control_inputs.end(), &end) !=
          node->control_inputs.end())
        waiting.push_back(node->op->name);
    }
    EXPECT_THAT(waiting, ElementsAre("Identity", "Identity"));
    EXPECT_EQ(end.control_inputs.size(), 2u);
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
  for (const Algorithm algorithm : every_algorithm) {
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
  expect_error_with(Code::invalid_argument, "trip_bytes and workers_per_group not negative, got ",
                    [&] { all_reduce(replicas_, in, {.workers_per_group = -1}); });
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
