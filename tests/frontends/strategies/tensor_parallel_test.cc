// Tensor parallelism: what is split, what crosses between the workers, meshes, checkpoints, errors.
#include "frontends/cpp/strategies/tensor_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/optimizers/gradient_clipping.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/optimizers/schedules.h"
#include "graph/passes/pipeline.h"
#include "tests/frontends/strategies/split_models.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat::split_models {
namespace {

using testing::HasSubstr;

// ---- What is split, and what crosses ----

TEST(TensorParallel, AColumnAndARowShareOneSum) {
  InProcessCluster cluster({{"worker", 2}});
  const Program program("tensor_parallel", member(cluster), Sgd{0.1}, examples({6}, 4), perceptron);
  EXPECT_THAT(program.explained(), HasSubstr("dense/kernel [6,12] split 1\n"));
  EXPECT_THAT(program.explained(), HasSubstr("dense/bias [12] split 0\n"));
  EXPECT_THAT(program.explained(), HasSubstr("dense_1/kernel [12,4] split 0\n"));
  EXPECT_THAT(program.explained(), HasSubstr("dense_1/bias [4] replicated\n"));
  // Of the logits; nothing needs the gradient of the images.
  EXPECT_EQ(program.count("all-reduce"), 1);
  EXPECT_EQ(program.count(""), 1);
}

// x + B relu(A layer_norm(x)), of an x that has a gradient.
Losses two_blocks(const Batch& batch) {
  Output x = nn::dense(batch[0], 8, layer(1));
  for (int i = 0; i < 2; ++i) {
    const Output h = nn::dense(nn::layer_norm(x), 16, layer(2 + i, relu));
    x = x + nn::dense(h, 8, layer(4 + i));
  }
  return of_logits(nn::dense(x, 4, layer(7)), batch);
}

TEST(TensorParallel, EachPairHasOneSumForwardAndOneBackward) {
  InProcessCluster cluster({{"worker", 2}});
  const Program program("tensor_parallel", member(cluster), Sgd{0.1}, examples({6}, 4), two_blocks);
  // Two pairs; besides, the first and the last layer are split for themselves.
  const std::string text = program.explained();
  EXPECT_THAT(text, HasSubstr("dense_1/kernel [8,16] split 1\n"));
  EXPECT_THAT(text, HasSubstr("dense_2/kernel [16,8] split 0\n"));
  EXPECT_THAT(text, HasSubstr("dense_3/kernel [8,16] split 1\n"));
  EXPECT_THAT(text, HasSubstr("dense_4/kernel [16,8] split 0\n"));
  for (const char* sum :
       {"* all-reduce of dense_2/MatMul:0: partial -> replicated",
        "* all-reduce of dense_4/MatMul:0: partial -> replicated",
        "* all-reduce of gradients/dense_1/MatMul/MatMul:0: partial -> replicated",
        "* all-reduce of gradients/dense_3/MatMul/MatMul:0: partial -> replicated"})
    EXPECT_THAT(text, HasSubstr(sum));
}

TEST(TensorParallel, AttentionIsSplitByHeads) {
  InProcessCluster cluster({{"worker", 2}});
  const Program program("tensor_parallel:explain_ops=true", member(cluster), Sgd{0.1},
                        examples({4, 8}, 4), attention_block);
  const std::string text = program.explained();
  for (const char* split :
       {"query/kernel [8,8] split 1", "key/kernel [8,8] split 1", "value/kernel [8,8] split 1",
        "output/kernel [8,8] split 0", "Softmax attention/Softmax: split 1 -> split 1"})
    EXPECT_THAT(text, HasSubstr(split));
}

// The cut edges of a step between the workers.
struct Crossing {
  int64_t edges = 0, bytes = 0;
};
Crossing crossing(const Program& program, int workers) {
  PipelineOptions options;
  options.signature.targets = {program.training.step.node->name};
  for (int k = 0; k < workers; ++k) {
    options.placement.devices.push_back(
        {DeviceName::parse(concat("/job:worker/replica:0/task:", k, "/device:CPU:0")),
         DeviceType::cpu});
  }
  options.placement.default_device = options.placement.devices.front().name;
  Crossing out;
  for (const CutEdge& edge : run_pipeline(program.graph, options).edges) {
    if (edge.dtype == DType::invalid) continue;
    ++out.edges;
    out.bytes += edge.shape.elements() * static_cast<int64_t>(dtype_size(edge.dtype));
  }
  return out;
}

TEST(TensorParallel, TheBytesAreThoseOfTheTable) {
  InProcessCluster cluster({{"worker", 2}});
  const Program program("tensor_parallel", member(cluster), Sgd{0.1},
                        examples({6}, 4, {.drop_remainder = true}), perceptron);
  // Each worker sends the other its sum of the logits, and the first one the batch.
  const Crossing crosses = crossing(program, 2);
  EXPECT_EQ(crosses.edges, 2 + 2);
  EXPECT_EQ(crosses.bytes, 2 * batch_size * 4 * 4 + batch_size * (6 + 1) * 4);
  EXPECT_THAT(program.explained(), HasSubstr("each worker sends 128 bytes\n"));
}

TEST(TensorParallel, EachWorkerHasAPartOfVariablesAndSlots) {
  InProcessCluster cluster({{"worker", 4}});
  const Program program("tensor_parallel", member(cluster), Adam{0.1}, examples({6}, 4),
                        [](const Batch& batch) {
                          Output h = nn::dense(batch[0], 400, layer(1, relu));
                          return of_logits(nn::dense(h, 4, layer(2)), batch);
                        });
  std::map<int, int64_t> elements;
  for (const Output& each : program.graph.collection("initializers")) {
    const Output variable = each.node->inputs[0];
    elements[*variable.node->requested_device->task] += variable.shape().elements();
  }
  ASSERT_EQ(elements.size(), 4u);
  // 400 · (6 + 1 + 4) numbers with two slots each, and what is small.
  for (const auto& [task, count] : elements) EXPECT_NEAR(count, 3 * 1100, 20) << task;
}

// The gradient of a split variable is split as it is, also where it is larger than what it is made
// of.
TEST(TensorParallel, AGradientIsMadeWhereItsVariableIs) {
  InProcessCluster cluster({{"worker", 2}});
  const Program program("tensor_parallel", member(cluster), Adam{0.1}, examples({300}, 4),
                        perceptron);
  EXPECT_EQ(program.count(""), 1);
  EXPECT_EQ(program.count("all-reduce of dense_1/MatMul:0"), 1);
}

TEST(TensorParallel, WhatCannotBeCutEvenlyStaysWhole) {
  InProcessCluster cluster({{"worker", 2}});
  const Program program("tensor_parallel", member(cluster), Sgd{0.1}, examples({5}, 3), uneven);
  EXPECT_THAT(program.explained(), HasSubstr("dense/kernel [5,7] replicated\n"));
  EXPECT_THAT(program.explained(), HasSubstr("\n0 collectives"));
}

// ---- A mesh ----

TEST(TensorParallel, GroupsAverageTheirGradients) {
  for (const ModelFunction& model : {ModelFunction(perceptron), ModelFunction(two_blocks)}) {
    InProcessCluster two({{"worker", 2}}), four({{"worker", 4}});
    // Two copies read the same shares of the data as two groups.
    Program copies("all_reduce", member(two), Adam{0.01}, examples({6}, 4), model);
    Program mesh("tensor_parallel:shards=2:data=2", member(four), Adam{0.01}, examples({6}, 4),
                 model);
    EXPECT_EQ(mesh.training.replicas, 2);
    expect_equal(mesh.train(5), copies.train(5), 1e-5);
  }
}

TEST(TensorParallel, GroupsOfOneWorkerAreAnAllReduce) {
  InProcessCluster two({{"worker", 2}});
  Program copies("all_reduce", member(two), Sgd{0.1}, examples({6}, 4), perceptron);
  Program mesh("tensor_parallel:data=2", member(two), Sgd{0.1}, examples({6}, 4), perceptron);
  expect_equal(mesh.train(5), copies.train(5));
}

// ---- Optimizers ----

TEST(TensorParallel, RowsAreUpdatedWhereTheyAre) {
  const Adagrad adagrad{0.1};
  // Of 11 rows no half can be had, nor of 5 columns.
  for (const auto& [rows, columns, state] :
       {std::tuple{11, 6, "[11,6] split 1"}, {12, 5, "[12,5] split 0"}}) {
    InProcessCluster cluster({{"worker", 2}});
    const auto table = [rows = rows, columns = columns](const Batch& batch) {
      const Output ids = cast(abs(batch[0] * 9.99F), i32);
      const Output found = nn::embedding(ids, rows, columns,
                                         {.initializer = initializers::random_normal(0, 0.5, 3)});
      return Losses{.loss = mean(square(sum(found, 1) - 1))};
    };
    const auto program = [&](const char* name) {
      return Program(name, member(cluster), adagrad, examples({5}, 4), table);
    };
    const Result expected = program("one_device").train(5);
    Program split = program("tensor_parallel:explain_ops=true");
    EXPECT_THAT(split.explained(), HasSubstr(concat("embedding/embeddings ", state, "\n")));
    EXPECT_THAT(split.explained(), HasSubstr("SparseApplyAdagrad"));
    expect_equal(split.train(5), expected);
  }
}

TEST(TensorParallel, TheNormOfAllGradientsIsClipped) {
  InProcessCluster cluster({{"worker", 2}});
  Momentum momentum{0.1, 0.9};
  momentum.set_gradient_transform([](std::vector<GradientAndVariable> gradients) {
    return clip_by_global_norm(std::move(gradients), 0.1);
  });
  const auto train = [&](const char* strategy) {
    return Program(strategy, member(cluster), momentum, examples({6}, 4), perceptron).train(5);
  };
  expect_equal(train("tensor_parallel"), train("one_device"), 2e-6);
}

TEST(TensorParallel, ARateMayBeAScheduleOfTheCallersGraph) {
  InProcessCluster cluster({{"worker", 2}});
  const auto train = [&](const char* name) {
    Graph graph;
    const auto strategy = make_strategy(name, member(cluster));
    const Sgd sgd{schedules::exponential_decay(0.5, global_step(graph),
                                               {.decay_steps = 2, .decay_rate = 0.5})};
    const Training training = strategy->minimize(graph, sgd, examples({6}, 4), perceptron);
    TrainingSession session(training, {.hooks = {stop_at(4)}});
    session.run();
    return session.session().run(identity(variable_named(graph, "dense/kernel")));
  };
  expect_near(train("tensor_parallel"), train("one_device"), "dense/kernel", 4e-6);
}

// ---- Checkpoints and evaluation ----

TEST(TensorParallel, ACheckpointIsThatOfOneDevice) {
  InProcessCluster two({{"worker", 2}}), four({{"worker", 4}});
  const Adam adam{0.01};
  const auto program = [&](const std::string& name, InProcessCluster& cluster) {
    return Program(name, member(cluster), adam, examples({6}, 4), perceptron);
  };
  const Result undisturbed = program("one_device", two).train(8);
  const ScratchDirectory directory;
  const TrainingOptions options{.directory = directory.path()};
  program("tensor_parallel", two).train(4, options);
  for (const char* next : {"one_device", "tensor_parallel:shards=4", "all_reduce"}) {
    const ScratchDirectory copy;
    std::filesystem::copy(directory.path(), copy.path(),
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::overwrite_existing);
    Program resumed = program(next, std::string(next).ends_with("4") ? four : two);
    const Result result = resumed.train(8, {.directory = copy.path()});
    EXPECT_EQ(result.losses.size(), 4u) << next;
    if (std::string(next) == "all_reduce") continue;  // other data
    expect_near(result.variables.at("dense/kernel"), undisturbed.variables.at("dense/kernel"), next,
                4e-5);
    expect_near(result.variables.at("dense/kernel/Adam"),
                undisturbed.variables.at("dense/kernel/Adam"), next, 4e-5);
  }
}

TEST(TensorParallel, EvaluationReadsTheWholeModel) {
  InProcessCluster cluster({{"worker", 2}});
  std::vector<float> losses;
  for (const char* name : {"one_device", "tensor_parallel"}) {
    for (const ModelFunction& model : {ModelFunction(perceptron), ModelFunction(resources)}) {
      Program program(name, member(cluster), Sgd{0.1}, examples({6}, 4), model);
      const Losses test =
          program.strategy->evaluate(program.graph, examples({6}, 4).next(program.graph), model);
      TrainingSession session(program.training, {.hooks = {stop_at(3)}});
      session.run();
      losses.push_back(session.session().run(test.loss).item<float>());
    }
  }
  EXPECT_NEAR(losses[2], losses[0], 4e-6);
  EXPECT_NEAR(losses[3], losses[1], 4e-6);
}

// ---- Mistakes ----

TEST(TensorParallel, ReportsMistakes) {
  InProcessCluster cluster({{"worker", 2}});
  const auto make = [&](const char* text) {
    return [&, text] { make_strategy(text, member(cluster)); };
  };
  expect_error_with(Code::invalid_argument,
                    "shards=4 times data=1 must be the number of workers, but the cluster has 2",
                    make("tensor_parallel:shards=4"));
  expect_error_with(Code::invalid_argument, "shards=2 times data=2 must be the number of workers",
                    make("tensor_parallel:shards=2:data=2"));
  expect_error_with(Code::invalid_argument, "must be positive, got shards=0 and data=0",
                    make("tensor_parallel:data=0"));
  const auto minimize = [&](const ModelFunction& model) {
    return [&, model] {
      Program("tensor_parallel", member(cluster), Sgd{0.1}, examples({6}, 4), model);
    };
  };
  expect_error_with(Code::invalid_argument, "makes no trainable variable",
                    minimize([](const Batch& batch) { return Losses{.loss = mean(batch[0])}; }));
  expect_error_with(Code::invalid_argument, "returns no loss",
                    minimize([](const Batch&) { return Losses{}; }));
  expect_error_with(
      Code::unimplemented, "is part of a while loop or a condition",
      minimize([](const Batch& batch) {
        const Output w = variable(batch[0].graph(), "w", {6, 4}, initializers::ones());
        const auto [i, x] = while_loop([](Output i, Output) { return i < 3; },
                                       [&](Output i, Output x) {
                                         return std::tuple{i + 1, x * 2.0F};
                                       },
                                       0, matmul(batch[0], w));
        return Losses{.loss = mean(x)};
      }));
}

TEST(TensorParallel, LeavesNothingOfTheUnsplitModel) {
  InProcessCluster cluster({{"worker", 2}});
  const Program program("tensor_parallel", member(cluster), Adam{0.1}, examples({6}, 4),
                        perceptron);
  EXPECT_EQ(program.graph.find("dense/kernel"), nullptr);
  for (const Output& each : program.graph.collection("variables"))
    EXPECT_EQ(program.graph.find(each.node->name), each.node);
}

TEST(TensorParallel, AClusterMayBeADescriptionAlone) {
  Program program("tensor_parallel", ClusterSpec::parse(R"({"worker": ["h:1", "h:2"]})"), Sgd{0.1},
                  examples({6}, 4), perceptron);
  EXPECT_TRUE(program.training.loss);
  EXPECT_EQ(program.training.metrics.size(), 1u);
}

TEST(TensorParallel, TheOtherProgramsLendTheirTasks) {
  InProcessCluster cluster({{"worker", 2}});
  const Program other("tensor_parallel", member(cluster, 1), Sgd{0.1}, examples({6}, 4),
                      perceptron);
  EXPECT_TRUE(other.training.is_idle);
}

}  // namespace
}  // namespace leat::split_models
