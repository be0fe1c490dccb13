// The usual hooks of a TrainingSession.
#pragma once

#include <chrono>
#include <iosfwd>
#include <memory>
#include <string>

#include "frontends/cpp/training/progress.h"
#include "frontends/cpp/training/training_session.h"

namespace leat {

class EventWriter;

// Stops when the global step, which all workers increase together, has reached `last`.
class StopAtStep : public TrainingHook {
 public:
  explicit StopAtStep(int64_t last) : last_(last) {}
  void begin(TrainingSession& training) override { look(training); }
  void after_step(TrainingSession& training, std::span<const Tensor>) override { look(training); }
  std::optional<int64_t> last_step() const override { return last_; }

 private:
  void look(TrainingSession& training) const {
    if (training.global_step() >= last_) training.request_stop();
  }
  const int64_t last_;
};
inline std::shared_ptr<TrainingHook> stop_at(int64_t last) {
  return std::make_shared<StopAtStep>(last);
}

// Fails, or only stops the training, once `loss` is NaN.
class NanGuard : public TrainingHook {
 public:
  // INVALID_ARGUMENT if `loss` is not one number.
  explicit NanGuard(Output loss, bool fails = true);
  std::vector<Output> fetches() override { return {loss_}; }
  void after_step(TrainingSession& training, std::span<const Tensor> values) override;

 private:
  const Output loss_;
  const bool fails_;
};
inline std::shared_ptr<TrainingHook> nan_guard(Output loss, bool fails = true) {
  return std::make_shared<NanGuard>(loss, fails);
}

// Writes a line with these values to standard error after the first step, then every
// `every_steps` steps:
//   TrainingSession run(training, {.hooks = {stop_at(1'000), log_values({{"loss", loss}}, 100)}});
// A value has any shape; of a large one the line has the first elements. What no line shows is not
// computed.
class LogValues : public TrainingHook {
 public:
  // INVALID_ARGUMENT if an Output is empty, or every_steps is not positive.
  explicit LogValues(std::vector<std::pair<std::string, Output>> values, int64_t every_steps = 100,
                     Location at = here());
  std::vector<Output> fetches() override;
  bool is_due(int64_t step) override;
  void after_step(TrainingSession& training, std::span<const Tensor> values) override;

 private:
  const std::vector<std::pair<std::string, Output>> values_;
  const int64_t every_steps_;
  std::optional<int64_t> written_step_;
};
inline std::shared_ptr<TrainingHook> log_values(std::vector<std::pair<std::string, Output>> values,
                                                int64_t every_steps = 100, Location at = here()) {
  return std::make_shared<LogValues>(std::move(values), every_steps, at);
}

// A progress line with the loss.
class ShowProgress : public TrainingHook {
 public:
  // INVALID_ARGUMENT if `loss` is not one number. 0 steps or samples: not known (progress.h).
  // `metrics`, scalars by name, follow the loss.
  ShowProgress(Output loss, int64_t steps, int64_t samples_per_step,
               std::vector<std::pair<std::string, Output>> metrics = {});
  std::vector<Output> fetches() override;
  void after_step(TrainingSession& training, std::span<const Tensor> values) override;
  void end(TrainingSession&) override { progress_.finish(); }

 private:
  const Output loss_;
  const std::vector<std::pair<std::string, Output>> metrics_;
  Progress progress_;
};

// Writes what each step was like, for tools that compare trainings: a line of JSON per step,
//   {"step": 12, "seconds": 0.31, "loss": 0.25, "samples": 200}
// with the global step after it, the time since the first step began, and the number of examples in
// this step. A TrainingSession of a strategy's Training adds this hook if the environment variable
// LEAT_TRAINING_RECORD names a directory: the file there is "<pid>.jsonl".
class RecordTraining : public TrainingHook {
 public:
  // `samples`: an integer scalar; none: not written. UNKNOWN if the file cannot be written.
  RecordTraining(const std::string& path, Output loss, Output samples = {});
  ~RecordTraining() override;
  void begin(TrainingSession&) override;
  std::vector<Output> fetches() override;
  void after_step(TrainingSession& training, std::span<const Tensor> values) override;
  void end(TrainingSession&) override;

 private:
  const std::unique_ptr<std::ofstream> file_;
  const Output loss_, samples_;
  std::chrono::steady_clock::time_point start_, flushed_;
};

// Writes summaries (of op ScalarSummary, HistogramSummary or MergeSummary), the number of steps per
// second, where checkpoints were written and, once, the graph with its placement, into an event
// file for TensorBoard. The summaries are computed only in the steps that are written. Every
// process of a cluster that logs needs a directory of its own. If the disk is full, it logs to
// standard error, and training continues.
class WriteSummaries : public TrainingHook {
 public:
  WriteSummaries(std::string directory, std::vector<Output> summaries, int64_t every_steps = 100);
  ~WriteSummaries() override;
  void begin(TrainingSession& training) override;
  std::vector<Output> fetches() override { return summaries_; }
  bool is_due(int64_t step) override { return step - written_step_ >= every_steps_; }
  bool wants_placed_graph() const override { return true; }
  void after_step(TrainingSession& training, std::span<const Tensor> values) override;
  void after_save(TrainingSession& training, const std::string& prefix) override;
  void end(TrainingSession&) override;

 private:
  const std::string directory_;
  const std::vector<Output> summaries_;
  const int64_t every_steps_;
  std::unique_ptr<EventWriter> writer_;
  bool has_graph_ = false;
  int64_t written_step_ = 0;
  std::chrono::steady_clock::time_point written_at_;
};
inline std::shared_ptr<TrainingHook> write_summaries(std::string directory,
                                                     std::vector<Output> summaries,
                                                     int64_t every_steps = 100) {
  return std::make_shared<WriteSummaries>(std::move(directory), std::move(summaries), every_steps);
}

}  // namespace leat
