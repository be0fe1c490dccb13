// How tutorials train: clipping, schedules, hooks, checkpoints, and records as their data.
#include <fstream>

#include "frontends/cpp/data/dataset.h"
#include "frontends/cpp/graph_files.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/moving_average.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/optimizers/schedules.h"
#include "frontends/cpp/training/training_hooks.h"
#include "tests/frontends/tutorials.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// ---- Training ----

TEST_F(Tutorials, MinimizeClipsTheGlobalNorm) {
  const Output w = variable(g, "w", constant(g, {3.0, 0.0})), b = variable(g, "b", 4.0);
  EXPECT_TRUE(variable(g, "unused", 0.0));
  Node& clipped = Sgd{1}.minimize((sum(square(w)) + square(b)) / 2, {.clip_norm = 2.5});
  Node& whole =
      Sgd{1}.minimize((sum(square(w)) + square(b)) / 2, {.variables = {w, b}, .clip_norm = 100});
  Session session(g);
  session.initialize();
  session.run(clipped);
  EXPECT_THAT(session.run(w).to_vector<float>(), ElementsAre(1.5, 0));
  EXPECT_EQ(session.run(b).item<float>(), 2);
  session.run(whole);
  EXPECT_THAT(session.run(w).to_vector<float>(), ElementsAre(0, 0));
  expect_error_with(Code::invalid_argument, "clip_norm must be finite and not negative, got -1",
                    [&] { Sgd{1}.minimize(square(b), {.clip_norm = -1}); });
}

TEST_F(Tutorials, MinimizeRunsTheUpdatesItIsGiven) {
  const Output w = variable(g, "w", 1.0),
               counted = variable(g, "counted", 0.0, {.trainable = false});
  g.add_to_collection("update_ops", assign_add(counted, 100));
  Node& with_one = Sgd{1}.minimize(w, {.update_ops = std::vector<Output>{assign_add(counted, 1)}});
  Node& with_none = Sgd{1}.minimize(w, {.update_ops = std::vector<Output>()});
  Node& with_all = Sgd{1}.minimize(w);
  Session session(g);
  session.initialize();
  session.run(with_one);
  session.run(with_none);
  EXPECT_EQ(session.run(counted).item<float>(), 1);
  session.run(with_all);
  EXPECT_EQ(session.run(counted).item<float>(), 101);
}

TEST_F(Tutorials, SchedulesTakeTheirSteps) {
  const Output step = constant(g, 5, i64);
  expect_near(schedules::cosine_decay(0.5, step, 10), {0.25});
  expect_near(schedules::polynomial_decay(0.5, step, 10), {0.5 * (0.5 + 1e-4)}, 1e-4F);
  expect_near(schedules::inverse_time_decay(0.5, step, 10, 2), {0.25});
}

TEST_F(Tutorials, VariablesByScopeAndOptions) {
  Output a;
  {
    const NameScope scope(g, "generator");
    a = nn::dense(x, 2, {.name = "out"});
  }
  const Output other = variable(g, "generators", {2}, initializers::ones, {.trainable = true}),
               fixed = variable(g, "fixed", {2}, initializers::ones,
                                {.dtype = f64, .trainable = false});
  EXPECT_EQ(fixed.dtype(), f64);
  EXPECT_THAT(values<double>(fixed), ElementsAre(1, 1));
  const std::vector<Output> found = trainable_variables(g, "generator");
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(variable_name(found[0]), "generator/out/kernel");
  EXPECT_EQ(trainable_variables(g).size(), 3);
  EXPECT_TRUE(trainable_variables(g, "none").empty());
  ExponentialMovingAverage average(0.5);
  Node& follow = average.apply({other});
  Session session(g);
  session.initialize();
  session.run(assign(other, {3.0, 3.0}));
  session.run(follow);
  EXPECT_THAT(session.run(average.average(other)).to_vector<float>(), ElementsAre(2, 2));
  expect_error_with(Code::invalid_argument, "apply() needs a variable",
                    [&] { average.apply(std::vector<Output>()); });
}

TEST_F(Tutorials, HooksLogValuesAndStopAtNan) {
  const Output w = variable(g, "w", 1.0);
  const Output loss = w * w, step = global_step(g);
  Node& train = Sgd{0.25}.minimize(loss, {.global_step = step});
  testing::internal::CaptureStderr();
  {
    TrainingSession session(
        g, train,
        {.hooks = {stop_at(5), log_values({{"loss", loss}, {"both", stack({w, w})}}, 2)}});
    while (!session.should_stop()) session.step({});
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::StartsWith("step 1: loss = "));
  EXPECT_THAT(text, HasSubstr("both = float[2] ["));
  EXPECT_THAT(text, HasSubstr("\nstep 3: loss"));
  EXPECT_THAT(text, HasSubstr("\nstep 5: loss"));
  EXPECT_THAT(text, testing::Not(HasSubstr("step 2")));
  expect_error_with(Code::invalid_argument, "'loss' is an empty Output", [] {
    log_values({{"loss", Output()}});
  });
  Node& grows = Sgd{-log(w - 1)}.minimize(loss, {.global_step = step});
  TrainingSession session(g, grows, {.hooks = {nan_guard(loss)}});
  expect_error_with(Code::failed_precondition, "is NaN at step", [&] {
    for (int i = 0; i < 9; ++i) session.step({});
  });
}

TEST_F(Tutorials, SaversNameTheUsersLine) {
  variable(g, "w", 1.0);
  const Saver saver(g);
  Session session(g);
  expect_error_with(Code::not_found,
                    "tutorials_test.cc:", [&] { saver.restore(session, "/nowhere/model-3"); });
}

TEST_F(Tutorials, GraphsAsFiles) {
  const ScratchDirectory directory;
  const Output fed = placeholder(g, "fed", f32, {any});
  identity(fed * 2 + 1, "y");
  for (const std::string name : {"graph.pb", "graph.pbtxt"}) {
    write_graph(g, directory / name);
    const Graph again = read_graph(directory / name);
    const Tensor y = Session(again).run(again.output("y"), {{again.output("fed"), {1.0, 2.0}}});
    EXPECT_THAT(y.to_vector<float>(), ElementsAre(3, 5));
  }
  expect_error_with(Code::not_found, "none.pb", [&] { read_graph(directory / "none.pb"); });
  std::ofstream(directory / "bad.pb") << "no graph";
  expect_error_with(Code::invalid_argument, "bad.pb: ", [&] { read_graph(directory / "bad.pb"); });
}

// ---- Data ----

class TutorialData : public testing::Test {
 protected:
  template <class T = int64_t>
  std::vector<T> all(const Dataset& dataset) {
    Graph g;
    const Output next = dataset.next(g)[0];
    Session session(g);
    std::vector<T> out;
    while (true) {
      Tensor value;
      const Status status = error_of([&] { value = session.run(next); });
      if (!status.is_ok()) {
        EXPECT_EQ(status.code, Code::out_of_range) << status.to_string();
        return out;
      }
      for (const T& each : value.span<T>()) out.push_back(each);
    }
  }
};

TEST_F(TutorialData, FunctionsReturnDatasetsOfTheirElements) {
  const Dataset three = datasets::range(1, 4);
  EXPECT_THAT(all(three.flat_map([](Output n) { return datasets::range(n); })),
              ElementsAre(0, 0, 1, 0, 1, 2));
  EXPECT_THAT(all(three.flat_map([](Output n) { return datasets::range(n, 4); })),
              ElementsAre(1, 2, 3, 2, 3, 3));
  EXPECT_THAT(all(three.interleave([](Output n) { return datasets::range(0, cast(n, i32) * 2, n); },
                                   {.cycle_length = 3})),
              ElementsAre(0, 0, 0, 1, 2, 3));
  const Dataset rows = datasets::from_tensor_slices(Tensor::of<int64_t>({2, 2}, {1, 2, 3, 4}));
  EXPECT_THAT(all(rows.flat_map([](Output row) { return datasets::from_tensor_slices(row * 10); })),
              ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(all(rows.flat_map([](Output row) {
                return datasets::from_tensor_slices({row, row + 1}).map([](Output a, Output b) {
                  return a * b;
                });
              })),
              ElementsAre(2, 6, 12, 20));
  expect_error_with(Code::invalid_argument, "the step is 0", [] { datasets::range(0, 3, 0); });
  expect_error_with(Code::invalid_argument, "must be whole numbers", [] { datasets::range(0.5); });
  expect_error_with(Code::invalid_argument, "must have rows", [&] {
    three.flat_map([](Output n) { return datasets::from_tensor_slices(n); });
  });
}

TEST_F(TutorialData, ExamplesHaveNamedFeatures) {
  // features { image: [0.5, 2] label: 7 words: ["a", "bc"] }, as protobuf writes them.
  const auto field = [](int number, const std::string& text) {
    return std::string(1, static_cast<char>(number << 3 | 2)) +
           std::string(1, static_cast<char>(text.size())) + text;
  };
  const auto feature = [&](const std::string& name, const std::string& list) {
    return field(1, field(1, name) + field(2, list));
  };
  const float pixels[] = {0.5F, 2};
  const std::string packed(reinterpret_cast<const char*>(pixels), sizeof pixels);
  const std::string example =
      field(1, feature("image", field(2, field(1, packed))) +
                   feature("label", field(3, field(1, "\x07"))) +
                   feature("words", field(1, field(1, "a") + field(1, "bc"))));
  const Tensor records = Tensor::of<std::string>({2}, {example, example});
  const Dataset parsed = datasets::from_tensor_slices(records).map([](Output record) {
    return parse_example(record, {{"image", f32, {2}}, {"label", i64}, {"words", str, {any}}});
  });
  Graph g;
  const Batch batch = parsed.batch(2).next(g);
  Session session(g);
  const auto [image, label, words] =
      session.run({}, fetch(batch["image"], batch["label"], batch["words"]));
  EXPECT_THAT(image.to_vector<float>(), ElementsAre(0.5, 2, 0.5, 2));
  EXPECT_THAT(label.to_vector<int64_t>(), ElementsAre(7, 7));
  EXPECT_EQ(words.shape(), Shape({2, 2}));
  EXPECT_THAT(words.to_vector<std::string>(), ElementsAre("a", "bc", "a", "bc"));
  expect_error_with(Code::invalid_argument, "parse_example (", [&] {
    parse_example(constant(g, 1), {{"image", f32}});
  });
  expect_error_with(Code::invalid_argument, "'label' must be float, int64 or string, not int32",
                    [&] {
                      parse_example(constant(g, "x"), {{"label", i32}});
                    });
}

}  // namespace
}  // namespace leat
