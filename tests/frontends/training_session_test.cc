// Training sessions in this process: checkpoints, resuming, hooks.
#include "frontends/cpp/training/training_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <thread>

#include "distributed/worker/worker.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/training/training_hooks.h"
#include "graph/formats/checkpoint.h"
#include "graph/formats/checkpoint_state.h"
#include "graph/formats/event_file.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/most_bytes.h"
#include "tests/support/sanitizers.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/tcp_proxy.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::Pair;

// y = 2 x - 1, learnt with momentum from a batch that depends on the step.
struct Program {
  explicit Program(TrainingOptions options = {}, std::string_view device = "") {
    const DeviceScope on(graph, device);
    x = placeholder(graph, "x", f32, {any});
    step = variable(graph, "global_step", {}, initializers::zeros(), i64, {.trainable = false});
    w = variable(graph, "w", {}, initializers::zeros());
    b = variable(graph, "b", {}, initializers::ones());
    loss = mean(square(w * x + b - (x * 2.0 - 1.0)));
    options.train = &Momentum{0.05}.minimize(loss, {.global_step = step});
    options.global_step = step;
    options.inputs = {x};
    options.fetches = {loss};
    training.emplace(graph, std::move(options));
  }
  // The losses of the steps until `last`.
  std::vector<float> run(int64_t last) {
    std::vector<float> out;
    while (!training->should_stop() && training->global_step() < last) {
      const auto n = static_cast<float>(training->global_step());
      const auto fetched = training->step({Tensor::of<float>({2}, {std::sin(n), std::cos(n)})});
      if (fetched) out.push_back((*fetched)[0].item<float>());
    }
    return out;
  }

  Graph graph;
  Output x, step, w, b, loss;
  std::optional<TrainingSession> training;
};

std::vector<std::string> checkpoints(const std::string& directory) {
  std::vector<std::string> out;
  for (const std::string& path : CheckpointState::read(directory).all_model_checkpoint_paths)
    out.push_back(std::filesystem::path(path).filename().string());
  return out;
}

TEST(TrainingSession, ResumesWhereItStopped) {
  const std::vector<float> undisturbed = Program().run(30);
  ASSERT_LT(undisturbed.back(), undisturbed.front());
  const ScratchDirectory directory;
  std::vector<float> resumed;
  for (const int64_t last : {10, 17, 30}) {
    Program program({.directory = directory.path()});
    EXPECT_EQ(program.training->global_step(), static_cast<int64_t>(resumed.size()));
    const std::vector<float> part = program.run(last);
    resumed.insert(resumed.end(), part.begin(), part.end());
  }
  EXPECT_EQ(resumed, undisturbed);
  EXPECT_THAT(checkpoints(directory.path()),
              ElementsAre("model.ckpt-0", "model.ckpt-10", "model.ckpt-17", "model.ckpt-30"));
}

TEST(TrainingSession, KeepsTheLastCheckpoints) {
  const ScratchDirectory directory;
  {
    Program program(
        {.directory = directory.path(), .saver = {.max_to_keep = 2}, .checkpoint_steps = 4});
    program.run(10);
  }
  EXPECT_THAT(checkpoints(directory.path()), ElementsAre("model.ckpt-8", "model.ckpt-10"));
  EXPECT_FALSE(std::filesystem::exists(directory / "model.ckpt-4.index"));
  EXPECT_FALSE(std::filesystem::exists(directory / "model.ckpt-4.data-00000-of-00001"));
  const CheckpointReader reader(directory / "model.ckpt-10");
  EXPECT_EQ(reader.read("global_step").item<int64_t>(), 10);
  EXPECT_TRUE(reader.has("w/Momentum"));
}

TEST(TrainingSession, SkipsATornCheckpoint) {
  const ScratchDirectory directory;
  {
    Program program({.directory = directory.path(), .checkpoint_steps = 4});
    program.run(8);
  }
  std::filesystem::resize_file(directory / "model.ckpt-8.data-00000-of-00001", 3);
  EXPECT_EQ(Program({.directory = directory.path()}).training->global_step(), 4);
  for (const char* name : {"model.ckpt-0", "model.ckpt-4"})
    std::filesystem::resize_file(directory / name + ".data-00000-of-00001", 3);
  for (const std::string part : {"none of the 3 checkpoints", "the last one tried is /"}) {
    expect_error_with(Code::data_loss, part, [&] { Program({.directory = directory.path()}); });
  }
  expect_error_with(Code::data_loss,
                    "/model.ckpt-0: ", [&] { Program({.directory = directory.path()}); });
}

// Otherwise the session would remove the complete checkpoint for the torn ones.
TEST(TrainingSession, IgnoresTornCheckpointsWhenPruning) {
  const ScratchDirectory directory;
  const auto options = [&] {
    return TrainingOptions{
        .directory = directory.path(), .saver = {.max_to_keep = 2}, .checkpoint_steps = 1};
  };
  {
    Program program(options());
    program.run(3);
  }
  std::filesystem::resize_file(directory / "model.ckpt-3.data-00000-of-00001", 3);
  Program program(options());
  program.training->step({Tensor::of<float>({1}, {1})});
  program.training->save();
  EXPECT_THAT(checkpoints(directory.path()), ElementsAre("model.ckpt-2", "model.ckpt-3"));
}

TEST(TrainingSession, ForgetsTornCheckpointsWithTheNextSave) {
  const ScratchDirectory directory;
  {
    Program program({.directory = directory.path(), .checkpoint_steps = 2});
    program.run(6);
  }
  std::filesystem::resize_file(directory / "model.ckpt-6.data-00000-of-00001", 3);
  Program program({.directory = directory.path(), .saver = {.max_to_keep = 2}});
  EXPECT_EQ(program.training->global_step(), 4);
  program.training->step({Tensor::of<float>({1}, {1})});
  program.training->save();
  EXPECT_THAT(checkpoints(directory.path()), ElementsAre("model.ckpt-4", "model.ckpt-5"));
}

TEST(TrainingSession, RemovesFilesOfInterruptedSaves) {
  const ScratchDirectory directory;
  const std::vector<std::string> remains = {"model.ckpt-2.index.tempstate12",
                                            "checkpoint.tempstate3"},
                                 others = {"data.tempstate12", "model.ckpt-7.tempstate", "_temp"};
  for (const auto& names : {remains, others}) {
    for (const std::string& name : names) replace_file(directory / name, "x");
  }
  std::filesystem::create_directory(directory / "model.ckpt-2_temp");
  replace_file(directory / "model.ckpt-2_temp/part-00000-of-00002.index", "x");
  Program program({.directory = directory.path()});
  for (const std::string& name : remains)
    EXPECT_FALSE(std::filesystem::exists(directory / name)) << name;
  EXPECT_FALSE(std::filesystem::exists(directory / "model.ckpt-2_temp"));
  for (const std::string& name : others)
    EXPECT_TRUE(std::filesystem::exists(directory / name)) << name;
}

TEST(TrainingSession, AcceptsFileUrlsAsDirectories) {
  const ScratchDirectory directory;
  { Program({.directory = "file://" + directory.path()}).run(1); }
  EXPECT_THAT(checkpoints(directory.path()), ElementsAre("model.ckpt-0", "model.ckpt-1"));
  expect_error_with(Code::unimplemented, "scheme 'gs' not implemented (file: 'gs://bucket/run')",
                    [] { Program({.directory = "gs://bucket/run"}); });
}

// The constructor handles what recovery handles: a task that goes away between two of its requests
// and comes back.
TEST(TrainingSession, RestartsIfATaskIsLostDuringConstruction) {
  for (const int recoveries : {0, 1}) {
    InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
    TcpProxy slow(cluster.spec().address({"worker", 0}));
    slow.delay(std::chrono::milliseconds(100));
    std::thread fault([&] {
      const auto has_asked = [&] {
        return cluster.task("ps").worker().current_status().graphs > 0;
      };
      EXPECT_TRUE(eventually(has_asked));
      cluster.kill("ps");
      std::this_thread::sleep_for(std::chrono::seconds(1));
      cluster.restart("ps");
    });
    const auto train = [&] {
      Program program({.session = {.target = "grpc://" + slow.address()}, .recoveries = recoveries},
                      "/job:ps/task:0");
      EXPECT_EQ(program.run(2).size(), 2u);
    };
    if (recoveries == 0) {
      EXPECT_THROW(train(), Error);
    } else {
      train();
    }
    fault.join();
  }
}

TEST(TrainingSession, ToleratesTaskLossAtClose) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  TcpProxy proxy(cluster.spec().address({"worker", 0}));  // prevents a local call
  Program program({.session = {.target = "grpc://" + proxy.address()}}, "/job:ps/task:0");
  EXPECT_EQ(program.run(2).size(), 2u);
  cluster.kill("worker");
  testing::internal::CaptureStderr();
  program.training->close();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("the session was not closed: "));
}

TEST(TrainingSession, RejectsAnotherProgramsCheckpoint) {
  const ScratchDirectory directory;
  {
    Program program({.directory = directory.path()});
    program.run(1);
  }
  Graph graph;
  const Output step =
      variable(graph, "global_step", {}, initializers::zeros(), i64, {.trainable = false});
  variable(graph, "w", {2});
  variable(graph, "b", {}, initializers::zeros(), f64);
  variable(graph, "missing", {});
  variable(graph, "lost", {});
  Node& train = group(graph, {assign_add(step, constant(graph, Tensor::scalar<int64_t>(1)))});
  expect_error_with(Code::invalid_argument,
                    "does not fit this graph:\n"
                    "  w is float[] in the checkpoint but float[2] in this graph\n"
                    "  b is float[] in the checkpoint but double[] in this graph\n"
                    "  missing is missing (this graph has float[])\n"
                    "  lost is missing (this graph has float[])",
                    [&] {
                      TrainingSession(
                          graph,
                          {.train = &train, .global_step = step, .directory = directory.path()});
                    });
}

// While it lives no file can be opened: RESOURCE_EXHAUSTED, as on a full disk.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(STDOUT_FILENO);
    close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

TEST(TrainingSession, RetriesAFailedCheckpointAtTheEnd) {
#ifdef LEAT_UNDER_SANITIZER
  GTEST_SKIP() << "a sanitizer opens a pipe to look at memory, and finds it damaged without one";
#endif
  const ScratchDirectory directory;
  Program program({.directory = directory.path(), .checkpoint_steps = 2});
  {
    const NoMoreFiles full;
    EXPECT_EQ(program.run(4).size(), 4u);
  }
  EXPECT_THAT(checkpoints(directory.path()), ElementsAre("model.ckpt-0"));
  program.training->close();
  EXPECT_THAT(checkpoints(directory.path()), ElementsAre("model.ckpt-0", "model.ckpt-4"));
}

TEST(TrainingSession, SavesTheStepAfterAFailedOne) {
  const ScratchDirectory directory;
  Program program({.directory = directory.path()});
  program.run(1);
  expect_error_with(Code::invalid_argument, "",
                    [&] { program.training->step({Tensor::scalar<int32_t>(1)}); });
  program.run(2);
  program.training->close();
  EXPECT_THAT(checkpoints(directory.path()), ElementsAre("model.ckpt-0", "model.ckpt-2"));
}

TEST(TrainingSession, WarnsThatTheStepDoesNotAdvance) {
  Graph graph;
  const Output step =
      variable(graph, "global_step", {}, initializers::zeros(), i64, {.trainable = false});
  const Output w = variable(graph, "w", {}, initializers::ones());
  Node& train = Sgd{0.1}.minimize(square(w));  // does not advance the step
  TrainingSession training(graph, {.train = &train, .global_step = step});
  testing::internal::CaptureStderr();
  for (int i = 0; i < 20; ++i) training.step({});
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, testing::HasSubstr("global_step is still 0 after 5 more steps"));
  EXPECT_EQ(told.find("still"), told.rfind("still")) << told;
}

TEST(TrainingSession, TakesTheNodeToTrainByItselfOrAsAnOption) {
  for (const bool by_itself : {true, false}) {
    Graph graph;
    const Output w = variable(graph, "w", 1.0);
    Node& train = Sgd{0.25}.minimize(square(w), {.global_step = global_step(graph)});
    const auto run = [&](TrainingSession& training) {
      training.run();
      return training.session().run(w).item<float>();
    };
    if (by_itself) {
      TrainingSession training(graph, train, {.hooks = {stop_at(2)}});
      EXPECT_EQ(run(training), 0.25);
    } else {
      TrainingSession training(graph, {.train = train, .hooks = {stop_at(2)}});
      EXPECT_EQ(run(training), 0.25);
    }
  }
}

TEST(TrainingSession, ReportsMistakes) {
  Program program;
  expect_error_with(Code::invalid_argument, "needs a hook, got an empty pointer",
                    [&] { program.training->add(nullptr); });
  expect_error_with(Code::invalid_argument, "takes 1 feed (x:0), 0 were given",
                    [&] { program.training->step({}); });
  Graph graph;
  const Output w = variable(graph, "w", 1.0);
  Node& train = Sgd{0.1}.minimize(square(w));
  const auto without = [&] { TrainingSession(graph, train); };
  expect_error_with(Code::invalid_argument,
                    "write minimize(loss, {.global_step = global_step(graph)}) where", without);
  expect_error_with(Code::invalid_argument, "training_session_test.cc:", without);
  expect_error_with(Code::invalid_argument,
                    "which minimize() returns: TrainingSession(graph, train",
                    [&] { TrainingSession(graph, {.directory = "runs"}); });
  expect_error_with(Code::invalid_argument, "got two nodes to train",
                    [&] { TrainingSession(graph, train, {.train = w}); });
  Saver saver(program.graph);
  expect_error_with(Code::invalid_argument, "the path of checkpoints is \"\"",
                    [&] { saver.save(program.training->session(), "", 1); });
  expect_error_with(Code::invalid_argument,
                    "checkpoint_steps must be positive, or 0 for none by steps, got -5",
                    [] { Program({.checkpoint_steps = -5}); });
}

// A task that has come back may not be connected to all others yet: steps fail at once, though a
// session can be made.
class FailUntil : public TrainingHook {
 public:
  explicit FailUntil(std::chrono::steady_clock::time_point end) : end_(end) {}
  void after_step(TrainingSession&, std::span<const Tensor>) override {
    if (std::chrono::steady_clock::now() < end_)
      fail(Code::unavailable, "/job:ps/task:1 has not been connected to /job:ps/task:0");
  }

 private:
  const std::chrono::steady_clock::time_point end_;
};

TEST(TrainingSession, RetriesStepsUntilAllTasksAreConnected) {
  const ScratchDirectory directory;
  Program program({.directory = directory.path()});
  program.training->add(
      std::make_unique<FailUntil>(std::chrono::steady_clock::now() + std::chrono::seconds(2)));
  EXPECT_EQ(program.run(3).size(), 3u);
}

// A user's hook whose behaviour the test supplies.
struct CalledHook : TrainingHook {
  std::function<void(TrainingSession&, std::span<const Tensor>)> after = [](auto&&...) {};
  std::function<void()> at_end = [] {};
  std::function<bool(int64_t)> due = [](int64_t) { return true; };
  Output fetched;
  std::vector<Output> fetches() override {
    return fetched ? std::vector<Output>{fetched} : std::vector<Output>{};
  }
  bool is_due(int64_t step) override { return due(step); }
  void after_step(TrainingSession& training, std::span<const Tensor> values) override {
    after(training, values);
  }
  void end(TrainingSession&) override { at_end(); }
};

TEST(TrainingHooks, ReceiveTheirFetchesInDueSteps) {
  Program program;
  std::vector<int64_t> fetched_at[2];
  for (const int every : {1, 3}) {
    auto hook = std::make_unique<CalledHook>();
    hook->fetched = program.w;
    hook->due = [every](int64_t step) { return step % every == 0; };
    hook->after = [&fetched_at, every](TrainingSession& training, std::span<const Tensor> values) {
      if (!values.empty()) fetched_at[every == 3].push_back(training.global_step());
    };
    program.training->add(std::move(hook));
  }
  EXPECT_EQ(program.run(6).size(), 6u);
  EXPECT_THAT(fetched_at[0], ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(fetched_at[1], ElementsAre(3, 6));
}

// A histogram rejects NaN, but none is due when the loss is NaN.
TEST(TrainingHooks, SummariesNotDueDoNotFail) {
  const ScratchDirectory directory;
  Program program;
  program.training->add(std::make_unique<WriteSummaries>(
      directory.path(), std::vector<Output>{histogram_summary("loss", program.loss)}, 100));
  program.training->add(std::make_unique<NanGuard>(program.loss));
  expect_error_with(Code::failed_precondition, "is NaN at step 1; this step was not saved",
                    [&] { program.training->step({Tensor::of<float>({1}, {NAN})}); });
}

TEST(TrainingHooks, StepWithAThrowingHookIsNotSaved) {
  const ScratchDirectory directory;
  {
    Program program({.directory = directory.path()});
    auto hook = std::make_unique<CalledHook>();
    hook->after = [](TrainingSession& training, auto&&) {
      if (training.global_step() == 2) throw std::runtime_error("I do not like it");
    };
    program.training->add(std::move(hook));
    EXPECT_THROW(program.run(3), std::runtime_error);
  }
  EXPECT_THAT(checkpoints(directory.path()), ElementsAre("model.ckpt-0"));
}

TEST(TrainingHooks, FailingEndDoesNotStopOtherHooks) {
  const ScratchDirectory directory;
  testing::internal::CaptureStderr();
  int ended = 0;
  {
    Program program({.directory = directory.path()});
    for (int i = 0; i < 2; ++i) {
      auto hook = std::make_unique<CalledHook>();
      hook->at_end = [&ended] { throw std::runtime_error(concat("I cannot end ", ++ended)); };
      program.training->add(std::move(hook));
    }
    program.run(3);
  }
  EXPECT_EQ(ended, 2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("closing a training session failed: I cannot end 1"));
  EXPECT_THAT(checkpoints(directory.path()), ElementsAre("model.ckpt-0", "model.ckpt-3"));
}

TEST(TrainingHooks, StopAtTheGivenStep) {
  Program program;
  program.training->add(std::make_unique<StopAtStep>(7));
  EXPECT_EQ(program.run(100).size(), 7u);
  EXPECT_TRUE(program.training->should_stop());
}

TEST(TrainingHooks, NanEndsTheTrainingAndIsNotSaved) {
  for (const bool fails : {true, false}) {
    const ScratchDirectory directory;
    {
      Program program({.directory = directory.path(), .checkpoint_steps = 2});
      program.training->add(std::make_unique<NanGuard>(program.loss, fails));
      program.run(3);
      const auto step = [&] { program.training->step({Tensor::of<float>({1}, {NAN})}); };
      if (fails) {
        expect_error_with(Code::failed_precondition, "is NaN at step 4", step);
      } else {
        step();
        EXPECT_TRUE(program.training->should_stop());
      }
    }
    const std::vector<std::string> saved = checkpoints(directory.path());
    EXPECT_EQ(saved.size(), fails ? 2u : 3u) << saved.back();
  }
}

TEST(TrainingHooks, RejectLossesThatAreNotNumbers) {
  Program program;
  Graph& graph = program.graph;
  const Output vector = identity(program.x),
               text = constant(graph, Tensor::scalar<std::string>(""));
  for (const Output& loss : {vector, text, Output{}}) {
    const auto expect = [&](const char* hook, auto&& make) {
      expect_error_with(Code::invalid_argument, hook, make);
    };
    expect("NanGuard", [&] { NanGuard{loss}; });
    expect("ShowProgress", [&] { ShowProgress(loss, 1, 1); });
  }
}

// The value of the checkpoint's step is not written again, so it must not count as overtaken.
TEST(TrainingHooks, ResumedTrainingOvertakesNoKeptStep) {
  const ScratchDirectory directory;
  int64_t first_overtaken = 0;
  for (const int64_t last : {10, 20}) {
    Program program({.directory = directory / "model"});
    const Output loss = scalar_summary("loss", program.loss);
    program.training->add(std::make_unique<WriteSummaries>(concat(directory.path(), "/", last),
                                                           std::vector<Output>{loss}, 5));
    program.run(last);
  }
  for (const auto& file : std::filesystem::directory_iterator(directory / "20")) {
    for (const LoggedEvent& event : read_events(file.path().string()))
      if (event.is_start) first_overtaken = event.step;
  }
  EXPECT_EQ(first_overtaken, 11);
}

TEST(TrainingHooks, EventFilesNameTheCheckpoints) {
  const ScratchDirectory directory;
  std::vector<std::string> prefixes;
  {
    Program program({.directory = directory / "model"});
    program.training->add(
        std::make_unique<WriteSummaries>(directory / "log", std::vector<Output>{}));
    program.run(1);
    prefixes.push_back(program.training->save());
    program.run(2);  // saves at the end, too
    prefixes.push_back(directory / "model/model.ckpt-2");
  }
  for (const auto& file : std::filesystem::directory_iterator(directory / "log")) {
    std::vector<std::string> named;
    for (const LoggedEvent& event : read_events(file.path().string())) {
      if (!event.checkpoint.empty()) named.push_back(event.checkpoint);
    }
    EXPECT_EQ(named, prefixes);
  }
}

TEST(TrainingHooks, FullDiskForSummariesDoesNotStopTheTraining) {
  const ScratchDirectory directory;
  Program program;
  const Output loss = scalar_summary("loss", program.loss);
  program.training->add(
      std::make_unique<WriteSummaries>(directory.path(), std::vector<Output>{loss}, 2));
  program.run(2);
  {
    const MostBytes full(1);
    EXPECT_EQ(program.run(6).size(), 4u);
  }
  program.run(8);
  program.training->close();
  std::vector<int64_t> steps;
  for (const auto& file : std::filesystem::directory_iterator(directory.path())) {
    for (const LoggedEvent& event : read_events(file.path().string())) {
      for (const auto& [tag, value] : event.scalars)
        if (tag == "loss") steps.push_back(event.step);
    }
  }
  EXPECT_THAT(steps, ElementsAre(2, 4, 6, 8)) << "kept until there was room";
}

TEST(TrainingHooks, WriteSummaries) {
  const ScratchDirectory directory;
  {
    Program program;
    // Made before the session took over the graph, like every node of a program.
    const Output scalar = scalar_summary("loss", program.loss),
                 histogram = histogram_summary("w", program.w);
    program.training->add(std::make_unique<WriteSummaries>(
        directory.path(), std::vector<Output>{merge_summaries({scalar, histogram})}, 5));
    program.run(12);
  }
  std::string path;
  for (const auto& file : std::filesystem::directory_iterator(directory.path()))
    path = file.path().string();
  const std::vector<LoggedEvent> events = read_events(path);
  ASSERT_EQ(events.size(), 7u);  // version, start, graph, and two for each of 2 steps
  EXPECT_TRUE(events[1].is_start);
  EXPECT_EQ(events[1].step, 1);
  EXPECT_FALSE(events[2].graph_def.empty());
  EXPECT_EQ(events[3].step, 5);
  EXPECT_THAT(events[3].scalars, ElementsAre(Pair("loss", testing::_)));
  EXPECT_THAT(events[3].histograms, ElementsAre("w"));
  EXPECT_EQ(events[4].scalars[0].first, "global_step/sec");
  EXPECT_EQ(events[5].step, 10);
}

}  // namespace
}  // namespace leat
