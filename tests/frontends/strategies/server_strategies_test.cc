// Strategies with variables on servers: asynchronous, of bounded staleness, with backup workers.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "frontends/cpp/optimizers/schedules.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/strategy_programs.h"

namespace leat {
namespace {

using namespace strategy_programs;

TEST(Strategies, DownpourFetchesAndPushesAtItsOwnPace) {
  constexpr int n = 1;
  InProcessCluster cluster({{"ps", 1}, {"worker", n}});
  constexpr float local = 0.05F;
  float server = start, w = start, sum = 0;
  for (int i = 0; i < 12; ++i) {
    const float g = w - x_of(n, 0, i);
    w -= local * g;
    sum += g;
    if ((i + 1) % 2 == 0) {
      server -= rate * sum;
      sum = 0;
    }
    if ((i + 1) % 3 == 0) w = server;
  }
  EXPECT_NEAR(Program("downpour:push=2:fetch=3:local_rate=0.05", member(cluster, 0)).train(12),
              server, 1e-6);
}

TEST(Strategies, CompressedGradientsAreRounded) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  for (const char* kind : {"", ":staleness=0", ":staleness=1"}) {
    const std::string strategy = concat("parameter_server:compress=bf16", kind);
    const float w = Program(strategy, member(cluster, 0)).train(7);
    EXPECT_NEAR(w, descended(7), 0.01) << strategy;
    EXPECT_NE(w, descended(7)) << strategy;
  }
}

TEST(Strategies, DownpourPushesWhatIsLeftAtTheEnd) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  // Without fetches the gradients are those of the first value.
  float server = start;
  for (int i = 0; i < 7; ++i) server -= rate * (start - x_of(1, 0, i));
  Program program("downpour:push=5:fetch=100:local_rate=0", member(cluster, 0));
  EXPECT_NEAR(program.train(7), server, 1e-6);
  Session session(program.graph, {.target = cluster.target("worker", 0)});
  EXPECT_EQ(
      session.run(program.made->replicas().copy_of(variable_named(program.graph, "global_step"), 0))
          .item<int64_t>(),
      7);
  EXPECT_EQ(session.run(variable_named(program.graph, "global_step")).item<int64_t>(), 7);
}

TEST(Strategies, FiltersThatSendAllChangeNothing) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  for (const char* filter :
       {"filter=significant:threshold=0", "filter=random_skip:ratio=1", "filter=kkt:l1=0"}) {
    for (const char* kind : {"", "staleness=0:", "staleness=1:"}) {
      const std::string strategy = concat("parameter_server:", kind, filter);
      EXPECT_FLOAT_EQ(Program(strategy, member(cluster, 0)).train(7), descended(7)) << strategy;
    }
  }
}

// What the filter skips, the penalty would hold at 0.
TEST(Strategies, TheKktFilterKeepsWhatAnL1PenaltyMakes) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  const auto follow_some = [](const Batch& batch) {
    Graph& g = batch[0].graph();
    Output w = variable(g, "w", {8}, initializers::zeros());
    const Output scales = constant(g, {0.0F, 0.1F, 0.3F, 0.5F, 0.7F, 0.9F, 2.0F, 4.0F});
    return Losses{.loss = sum(square(w - scales * (1 + 0.5F * batch[0]))) * 0.5F};
  };
  const auto trained = [&](const std::string& strategy) {
    Program program(strategy, member(cluster, 0), ProximalGradientDescent{0.1, {.l1 = 0.5}},
                    follow_some);
    TrainingSession session(program.training);
    for (int i = 0; i < 20; ++i) session.step({});
    const Tensor w = session.session().run(variable_named(program.graph, "w"));
    const auto values = w.span<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> plain = trained("parameter_server");
  EXPECT_EQ(plain[1], 0);
  EXPECT_NE(plain[6], 0);
  EXPECT_EQ(trained("parameter_server:filter=kkt:l1=0.5"), plain);
  EXPECT_NE(trained("parameter_server:filter=kkt:l1=1.5"), plain);
}

// The first program computes with variables that the second one has changed three times since.
struct Late {
  explicit Late(const std::string& strategy)
      : late(strategy, member(cluster, 0)), other(strategy, member(cluster, 1)) {
    TrainingSession session(late.training), fast(other.training, {.is_chief = false});
    for (int i = 0; i < 3; ++i) fast.step({});
    session.step({});
    w = session.session().run(variable_named(late.graph, "w")).item<float>();
  }
  InProcessCluster cluster{{{"ps", 1}, {"worker", 2}}};
  Program late, other;
  float w = 0;
};

TEST(Strategies, DelayCompensationMovesALateGradient) {
  float w = start;
  for (int i = 0; i < 3; ++i) w -= rate * (w - x_of(2, 1, i));
  const float g = start - x_of(2, 0, 0);
  const float late = w - rate * (g + 0.5F * g * g * (w - start));
  EXPECT_NEAR(Late("parameter_server:delay_aware=dc_asgd:lambda=0.5").w, late, 1e-6);
  EXPECT_NEAR(Late("parameter_server:delay_aware=dc_asgd:lambda=0").w, w - rate * g, 1e-6);
}

// w, and what the servers keep for it.
struct Revised {
  void push(float g, float sum_of_weights) {
    const float b = sum - sum_of_weights;
    const float before = largest;
    z += g * g + 2 * g * b;
    largest = std::max(largest, z);
    const auto eta = [](float of) { return rate / (2 + std::sqrt(of)); };
    w -= eta(largest) * g;
    w += (eta(before) - eta(largest)) * b;
    sum += g;
  }
  float w = start, sum = 0, z = 0, largest = 0;
};

TEST(Strategies, AdaptiveRevisionCorrectsWhatWasAddedAtAnOldRate) {
  Revised rule;
  for (int i = 0; i < 3; ++i) rule.push(rule.w - x_of(2, 1, i), rule.sum);
  rule.push(start - x_of(2, 0, 0), 0);
  EXPECT_NEAR(Late("parameter_server:delay_aware=adaptive_revision:beta=2").w, rule.w, 1e-6);
}

// Without delay it is Adagrad.
TEST(Strategies, AdaptiveRevisionOfOneWorkerIsAdagrad) {
  float w = start, squares = 0;
  for (int i = 0; i < 9; ++i) {
    const float g = w - x(i);
    squares += g * g;
    w -= rate / (1 + std::sqrt(squares)) * g;
  }
  EXPECT_NEAR(Program("parameter_server:delay_aware=adaptive_revision", {}).train(9), w, 1e-6);
}

TEST(Strategies, AdaDelayShrinksALateGradient) {
  const float beta = 2;
  float w = start;
  for (int i = 0; i < 3; ++i)
    w -= rate * (w - x_of(2, 1, i)) / (beta + std::sqrt(static_cast<float>(i)));
  w -= rate * (start - x_of(2, 0, 0)) / (beta + std::sqrt(3.0F + 3.0F));
  EXPECT_NEAR(Late("parameter_server:delay_aware=adadelay:beta=2").w, w, 1e-6);
}

TEST(Strategies, GradientsThatAreTooLateAreDropped) {
  float w = start;
  for (int i = 0; i < 3; ++i) w -= rate * (w - x_of(2, 1, i));
  Late dropped("parameter_server:drop_stale=2");
  EXPECT_FLOAT_EQ(dropped.w, w);
  Session session(dropped.late.graph, {.target = dropped.cluster.target("worker", 0)});
  EXPECT_EQ(session.run(variable_named(dropped.late.graph, "dropped_gradients")).item<int64_t>(),
            1);
  EXPECT_FLOAT_EQ(Late("parameter_server:drop_stale=3").w, w - rate * (start - x_of(2, 0, 0)));
}

// Restarted with another number of workers, the training goes on with a rate that moves to theirs.
TEST(Strategies, TheScaledRateFollowsTheNumberOfWorkers) {
  const ScratchDirectory directory;
  struct Run {
    int workers;
    int64_t until;
    float sum_of_rates;
  };
  for (const Run& run : {Run{2, 8, 1 + 1.25F + 1.5F + 1.75F + 4 * 2},
                         Run{4, 14, 13.5F + 2 + 2.5F + 3 + 3.5F + 2 * 4}}) {
    InProcessCluster cluster({{"ps", 1}, {"worker", run.workers}});
    Graph graph;
    const auto made = make_strategy("parameter_server:staleness=0", member(cluster, 0));
    const Output rate = [&] {
      const auto servers = made->replicas().on_servers(graph, 0);
      return schedules::linear_scaling(1, made->replicas().count(), global_step(graph),
                                       {.warmup_steps = 4, .follows_changes = true});
    }();
    const Training training = made->minimize(graph, Sgd{rate}, numbers(), count_updates);
    TrainingSession session(training,
                            {.directory = directory.path(), .hooks = {stop_at(run.until)}});
    session.run();
    EXPECT_NEAR(session.session().run(variable_named(graph, "w")).item<float>(), -run.sum_of_rates,
                1e-4)
        << run.workers << " workers";
  }
}

// ---- Programs that run at the same time ----

TEST(Strategies, BackupWorkersDropWhatComesTooLate) {
  constexpr int n = 3, rounds = 3, steps = 30;
  InProcessCluster cluster({{"ps", 2}, {"worker", n}});
  float w = start;
  for (int i = 0; i < steps; ++i) {
    float sum = 0;
    for (int k = 0; k < n - 1; ++k) sum += w - x_of(n, k, i);
    w -= rate * sum / (n - 1);
  }
  const std::string strategy = "parameter_server:staleness=0:backup_workers=1";
  float end = 0;
  int64_t dropped = 0;
  std::barrier all(n);
  const auto run = [&](int k) {
    Program program(strategy, member(cluster, k));
    EXPECT_EQ(program.training.replicas, n - 1);
    TrainingSession session(program.training);
    for (int round = 0; round < rounds; ++round) {
      all.arrive_and_wait();
      for (int i = 0; k < n - 1 && i < steps / rounds; ++i) session.step({});
      all.arrive_and_wait();
      if (k == n - 1) session.step({});  // with variables of before
    }
    all.arrive_and_wait();
    if (k == 0) {
      const auto read = [&](const char* name) {
        return session.session().run(variable_named(program.graph, name));
      };
      end = read("w").item<float>();
      dropped = read("dropped_gradients").item<int64_t>();
    }
    all.arrive_and_wait();
  };
  std::vector<std::thread> threads;
  for (int k = 0; k < n; ++k) threads.emplace_back(run, k);
  for (std::thread& each : threads) each.join();
  EXPECT_NEAR(end, w, 1e-5);
  EXPECT_EQ(dropped, rounds);
}

TEST(Strategies, MultiversoGivesAllWorkersTheSameVariables) {
  constexpr int n = 3, steps = 20;
  InProcessCluster cluster({{"ps", 1}, {"worker", n}});
  float w = start;
  for (int i = 0; i < steps; ++i) {
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += w - x_of(n, k, i);
    w -= rate * sum;
  }
  std::barrier all_have_joined(n);
  std::vector<float> ends(n);
  std::vector<std::thread> threads;
  for (int k = 0; k < n; ++k) {
    threads.emplace_back([&, k] {
      Program program("multiverso", member(cluster, k));
      TrainingSession session(program.training);
      all_have_joined.arrive_and_wait();
      for (int i = 0; i < steps; ++i) session.step({});
      const Output copy = program.made->replicas().copy_of(variable_named(program.graph, "w"), k);
      ends[static_cast<size_t>(k)] = session.session().run(copy).item<float>();
    });
  }
  for (std::thread& each : threads) each.join();
  for (const float end : ends) EXPECT_NEAR(end, w, 1e-5);
}

TEST(Strategies, AsynchronousOnesLoseNoUpdate) {
  constexpr int n = 3;
  for (const std::string strategy :
       {"parameter_server", "parameter_server:staleness=1", "downpour:local_rate=0"}) {
    InProcessCluster cluster({{"ps", 1}, {"worker", n}});
    std::vector<std::thread> threads;
    std::vector<float> seen(n);
    for (int k = 0; k < n; ++k) {
      threads.emplace_back([&, k] {
        Program program(strategy, member(cluster, k), Sgd{1}, count_updates);
        TrainingSession session(program.training);
        for (int i = 0; i < 40; ++i) session.step({});
        session.close();
      });
    }
    for (std::thread& each : threads) each.join();
    Program reader(strategy, member(cluster, 0), Sgd{1}, count_updates);
    Session session(reader.graph, {.target = cluster.target("worker", 0)});
    EXPECT_EQ(session.run(variable_named(reader.graph, "w")).item<float>(), -40.0F * n) << strategy;
    EXPECT_EQ(session.run(variable_named(reader.graph, "global_step")).item<int64_t>(), 40 * n)
        << strategy;
  }
}

// The second worker's step fails; the first one, which would wait for it, goes on.
TEST(Strategies, AWorkerThatFailsIsNotWaitedFor) {
  constexpr int n = 2;
  for (const std::string strategy : {"parameter_server:staleness=1", "multiverso"}) {
    InProcessCluster cluster({{"ps", 1}, {"worker", n}});
    std::barrier both_have_joined(n);
    const auto fails = [](const Batch& batch) {
      Losses losses = count_updates(batch);
      losses.loss = losses.loss * check_numerics(1 / sum(batch[0] * 0), "the worker's mistake");
      return losses;
    };
    std::jthread other([&] {
      Program program(strategy, member(cluster, 1), Sgd{1}, fails);
      TrainingSession session(program.training);
      both_have_joined.arrive_and_wait();
      expect_error_with(Code::invalid_argument, "the worker's mistake", [&] { session.step({}); });
    });
    Program program(strategy, member(cluster, 0), Sgd{1}, count_updates);
    TrainingSession session(program.training, {.session = {.timeout = std::chrono::seconds(60)}});
    both_have_joined.arrive_and_wait();
    for (int i = 0; i < 10; ++i) session.step({});
    EXPECT_EQ(session.session().run(variable_named(program.graph, "w")).item<float>(), -10)
        << strategy;
    other.join();
  }
}

TEST(Strategies, TheFastestWorkerStaysWithinTheStaleness) {
  constexpr int n = 2, staleness = 3, steps = 40;
  InProcessCluster cluster({{"ps", 1}, {"worker", n}});
  std::atomic<int> slow_steps = 0, fast_steps = 0, most = 0;
  std::barrier both_have_joined(n);
  const auto run = [&](int k) {
    Program program("parameter_server:staleness=3", member(cluster, k));
    TrainingSession session(program.training);
    both_have_joined.arrive_and_wait();
    for (int i = 0; i < steps; ++i) {
      // The slow one goes on when the fast one is as far ahead as it may be.
      if (k == 0) {
        EXPECT_TRUE(eventually([&] { return fast_steps >= std::min(i + staleness, steps); }));
      }
      session.step({});
      if (k == 0) {
        slow_steps = i + 1;
      } else {
        fast_steps = i + 1;
        most = std::max<int>(most, fast_steps - slow_steps);
      }
    }
    session.close();
  };
  std::thread slow(run, 0), fast(run, 1);
  slow.join();
  fast.join();
  // Its step i + 1 ends when the slow one has ticked, just before it counts here.
  EXPECT_LE(most, staleness + 1);
  EXPECT_GE(most, staleness);
}

}  // namespace
}  // namespace leat
