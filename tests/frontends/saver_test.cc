#include "frontends/cpp/training/saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/strategies/parts/partitioned_variables.h"
#include "graph/formats/checkpoint.h"
#include "graph/formats/file.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

TEST(Saver, SavesOnlyTheGivenVariables) {
  Graph graph;
  const Output a = variable(graph, "a", {}, initializers::constant(1.0)),
               b = variable(graph, "b", {}, initializers::constant(2.0));
  Node& init = initialize_variables(graph);
  Saver only_b(graph, {.variables = {{"other", b}}});
  const ScratchDirectory directory;
  Session session(graph);
  session.run({init});
  const std::string prefix = only_b.save(session, directory.path(), 1);
  const CheckpointReader reader(prefix);
  ASSERT_EQ(reader.variables().size(), 1U);
  EXPECT_EQ(reader.variables()[0].name, "other");
  session.run({*assign(b, a).node});
  only_b.restore(session, prefix);
  EXPECT_EQ(session.run({}, {b})[0].item<float>(), 2);
  EXPECT_THROW(Saver(graph, {.variables = {{"sum", a + b}}}), Error);
}

// A variable that identifies which of the directory's checkpoints 1 to 3 it came from.
struct Numbered {
  Graph graph;
  Output number = variable(graph, "number", {});
  Saver saver{graph, {.max_to_keep = 3}};
  Session session{graph};

  std::string save(const std::string& directory, int step) {
    session.run({assign(number, constant(graph, Tensor::scalar(static_cast<float>(step))))});
    return saver.save(session, directory, step);
  }
  float restored(const std::string& directory) {
    saver.restore_latest(session, directory);
    return session.run({}, {number})[0].item<float>();
  }
};

TEST(Saver, ReadsAHandWrittenState) {
  const ScratchDirectory directory;
  Numbered program;
  for (const int step : {1, 2, 3}) program.save(directory.path(), step);
  const auto restored_by = [&](const std::string& state) {
    replace_file(directory / "checkpoint", state);
    return program.restored(directory.path());
  };
  EXPECT_EQ(restored_by("model_checkpoint_path: \"model.ckpt-2\""), 2);
  const std::string rolled_back =
      "model_checkpoint_path: \"model.ckpt-1\"\n"
      "all_model_checkpoint_paths: \"model.ckpt-1\"\n"
      "all_model_checkpoint_paths: \"model.ckpt-3\"\n";
  EXPECT_EQ(restored_by(rolled_back), 1);
  std::filesystem::remove(directory / "model.ckpt-1.data-00000-of-00001");
  EXPECT_EQ(program.restored(directory.path()), 3);
}

TEST(Saver, SaysWhereThereIsNoCheckpoint) {
  const ScratchDirectory directory;
  Numbered program;
  expect_error_with(Code::not_found, "latest_checkpoint() returns if the directory has none", [&] {
    program.saver.restore(program.session, latest_checkpoint(directory.path()));
  });
  EXPECT_EQ(latest_checkpoint(directory / "missing"), "");
  const std::string prefix = program.save(directory.path(), 1);
  EXPECT_EQ(latest_checkpoint(directory.path()), prefix);
  expect_error_with(Code::invalid_argument, "is a checkpoint, not a directory of them",
                    [&] { latest_checkpoint(prefix); });
  expect_error_with(Code::invalid_argument, "give the directory that it is in",
                    [&] { latest_checkpoint(directory / "checkpoint"); });
}

TEST(Saver, WritesToAPathAsTensorFlowDoes) {
  const ScratchDirectory directory;
  Numbered program;
  const std::string path = directory / "new/model";
  EXPECT_EQ(program.save(path, 7), path + "-7");
  EXPECT_TRUE(std::filesystem::exists(path + "-7.index"));
  program.save(path, 8);
  program.save(directory / "new/model-a", 9);  // another path of that directory
  EXPECT_EQ(latest_checkpoint(path), path + "-8");
  EXPECT_EQ(latest_checkpoint(directory / "new"), path + "-a-9");
  EXPECT_EQ(program.restored(path), 8);
  EXPECT_EQ(program.restored(directory / "new"), 9);
  const std::string last = program.saver.save(program.session, path);
  EXPECT_EQ(last, path);
  program.saver.restore(program.session, last);
  EXPECT_EQ(program.saver.save(program.session, directory / "new", 3),
            directory / "new/model.ckpt-3");
  EXPECT_EQ(program.saver.save(program.session, directory / "newer/"),
            directory / "newer/model.ckpt");
}

TEST(Saver, ReportsATornStateAndWritesItAnew) {
  const ScratchDirectory directory;
  Numbered program;
  program.save(directory.path(), 1);
  replace_file(directory / "checkpoint", "");
  expect_error_with(Code::data_loss, directory / "model.ckpt-1'",
                    [&] { program.restored(directory.path()); });
  program.save(directory.path(), 2);
  EXPECT_EQ(program.restored(directory.path()), 2);
}

TEST(Saver, KeepsCheckpointsOfOtherDirectories) {
  const ScratchDirectory directory;
  Numbered program;
  const std::string original = program.save(directory / "original/", 1);
  std::filesystem::create_directory(directory / "copy");
  replace_file(directory / "copy/checkpoint", "model_checkpoint_path: \"" + original + "\"\n" +
                                                  "all_model_checkpoint_paths: \"" + original +
                                                  "\"\n");
  EXPECT_EQ(program.restored(directory / "copy/"), 1);
  for (const int step : {2, 3, 4, 5}) program.save(directory / "copy/", step);
  CheckpointReader(original).verify();
  EXPECT_FALSE(std::filesystem::exists(directory / "copy/model.ckpt-2.index"));
}

std::vector<float> floats_of(const Tensor& t) {
  return {t.data<float>(), t.data<float>() + t.elements()};
}

// A table [7, 2] of squares that has learned for two steps; in so many parts, 0 = an ordinary
// variable.
struct Program {
  Graph graph;
  Output value;
  Node *train = nullptr, *init = nullptr;

  explicit Program(int64_t parts, int axis = 0) {
    Tensor start(f32, {7, 2});
    for (int i = 0; i < 14; ++i) start.data<float>()[i] = static_cast<float>(i * i);
    const auto initial = initializers::constant(start);
    value = parts == 0 ? variable(graph, "table", {7, 2}, initial)
                       : partitioned_variable(graph, "table", {7, 2},
                                              partitioners::fixed_size(parts, axis), initial)
                             .value();
    train = &Momentum(0.1).minimize(sum(square(value)));
    init = &initialize_variables(graph);
  }
};

TEST(Saver, SavesPartsAsSlicesOfOneTensor) {
  Program program(3);
  Saver saver(program.graph);
  const ScratchDirectory directory;
  Session session(program.graph);
  session.run({*program.init});
  session.run({*program.train});
  const std::string prefix = saver.save(session, directory.path(), 1);
  const CheckpointReader reader(prefix);
  const auto stored = reader.variables();
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_EQ(stored[0].name, "table");
  EXPECT_EQ(stored[1].name, "table/Momentum");
  for (const auto& variable : stored) EXPECT_EQ(variable.shape, Shape({7, 2}));
  EXPECT_EQ(reader.entry("table").slices.size(), 3U);
  EXPECT_EQ(floats_of(reader.read("table")), floats_of(session.run({}, {program.value})[0]));
}

TEST(Saver, RestoresIntoAnyNumberOfParts) {
  // The result of the next step depends on the slots, too.
  const auto next = [](Program& program, Session& session) {
    session.run({*program.train});
    return floats_of(session.run({}, {program.value})[0]);
  };
  const ScratchDirectory directory;
  for (const int64_t written : {0, 1, 2, 7}) {
    Program writer(written);
    Saver saver(writer.graph);
    Session session(writer.graph);
    session.run({*writer.init});
    session.run({*writer.train});
    const std::string prefix = saver.save(session, directory.path(), written);
    const std::vector<float> expected = next(writer, session);
    for (const int64_t read : {0, 1, 2, 3}) {
      for (const int axis : {0, 1}) {
        if (axis == 1 && read > 2) continue;
        Program reader(read, axis);
        const Saver restorer(reader.graph);
        Session fresh(reader.graph);
        restorer.restore(fresh, prefix);
        EXPECT_EQ(next(reader, fresh), expected)
            << written << " parts read as " << read << " along axis " << axis;
      }
    }
  }
}

TEST(Saver, SavesPartsUnderAnotherName) {
  Graph graph;
  const auto table =
      partitioned_variable(graph, "table", {3}, partitioners::fixed_size(2), initializers::ones());
  Saver::Options options;
  for (const Output& part : table.parts()) options.variables.emplace("other", part);
  Node& init = initialize_variables(graph);
  Saver saver(graph, options);
  const ScratchDirectory directory;
  Session session(graph);
  session.run({init});
  const CheckpointReader reader(saver.save(session, directory.path(), 1));
  EXPECT_EQ(floats_of(reader.read("other")), (std::vector<float>{1, 1, 1}));
}

TEST(Saver, RejectsHalfAVariable) {
  Graph graph;
  const auto table = partitioned_variable(graph, "table", {5, 2}, partitioners::fixed_size(2));
  const auto second = partitioned_variable(graph, "table", {5, 2}, partitioners::fixed_size(2));
  const Output plain = variable(graph, "plain", {5, 2});
  const auto save = [&](std::multimap<std::string, Output> variables) {
    return [&graph, variables] { Saver(graph, {.variables = variables}); };
  };
  const auto& parts = table.parts();
  expect_error(save({{"x", parts[1]}}), Code::invalid_argument,
               "'x' [5,2] is partitioned, but the given parts, starting with 'table/part_1', "
               "hold only 4 of its 10 elements: save all parts or none");
  expect_error(save({{"x", parts[0]}, {"x", parts[0]}}), Code::invalid_argument,
               "'table/part_0' and 'table/part_0' hold the same elements of 'x': give each part "
               "once");
  for (const Output& other : {second.parts()[1], plain}) {
    expect_error(save({{"x", parts[0]}, {"x", other}}), Code::invalid_argument,
                 concat("'table/part_0' and '", other.node->name, "' both save as 'x' ",
                        "but are not parts of one variable: give them different names"));
  }
}

TEST(Saver, ReportsAWholeShapeThatDiffers) {
  Graph small, large;
  partitioned_variable(small, "table", {3}, partitioners::fixed_size(2));
  partitioned_variable(large, "table", {4}, partitioners::fixed_size(2));
  Node& init = initialize_variables(small);
  Saver saver(small);
  const Saver other(large);
  const ScratchDirectory directory;
  Session session(small), restored(large);
  session.run({init});
  const std::string prefix = saver.save(session, directory.path(), 1);
  expect_error([&] { other.restore(restored, prefix); }, Code::invalid_argument,
               concat("the checkpoint ", prefix,
                      " does not fit this graph:\n  table is float[3] in the checkpoint but "
                      "float[4] in this graph"));
}

}  // namespace
}  // namespace leat
