#include "frontends/cpp/training/training_hooks.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <utility>

#include "core/visit_dtype.h"
#include "graph/formats/event_file.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

Output checked_loss(Output loss, std::string_view hook) {
  check(bool{loss}, hook,
        " needs a loss, got an empty Output: it was never set to a result of the graph");
  const bool is_number = is_floating(loss.dtype()) || is_integer(loss.dtype());
  check(is_number && (!loss.shape().has_rank() || loss.shape().rank() == 0), hook,
        " needs a loss that is one number; '", loss.name(), "' is ", loss.dtype(), loss.shape());
  return loss;
}

double number(const Tensor& tensor) {
  double out = 0;
  visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_convertible_v<T, double>) out = static_cast<double>(tensor.item<T>());
  });
  return out;
}

// A full disk does not stop the training. What is in the writer's memory is tried again with what
// comes next.
template <class Action>
void unless_disk_is_full(int64_t step, Action&& write) {
  try {
    write();
  } catch (const Error& error) {
    if (error.code() != Code::resource_exhausted) throw;
    std::cerr << "leat: cannot write summaries at step " << step << ": " << error.message()
              << std::endl;
  }
}

}  // namespace

NanGuard::NanGuard(Output loss, bool fails)
    : loss_(checked_loss(loss, "NanGuard")), fails_(fails) {}

void NanGuard::after_step(TrainingSession& training, std::span<const Tensor> values) {
  if (!std::isnan(number(values[0]))) return;
  const std::string text = concat("'", loss_.name(), "' is NaN at step ", training.global_step());
  if (fails_) {
    fail(Code::failed_precondition, text, "; this step was not saved. Restore a checkpoint",
         training.directory().empty() ? "" : " of " + training.directory(),
         " from before its variables became NaN, which may be some steps earlier");
  }
  std::cerr << "leat: " << text << "; the training ends" << std::endl;
  training.request_stop();
}

LogValues::LogValues(std::vector<std::pair<std::string, Output>> values, int64_t every_steps,
                     Location at)
    : values_(std::move(values)), every_steps_(every_steps) {
  check(every_steps > 0, "log_values (", at, "): every_steps must be positive, got ", every_steps);
  for (const auto& [name, value] : values_)
    check(bool{value}, "log_values (", at, "): '", name, "' is an empty Output");
}

std::vector<Output> LogValues::fetches() {
  std::vector<Output> out;
  for (const auto& [name, value] : values_) out.push_back(value);
  return out;
}

bool LogValues::is_due(int64_t step) {
  return !written_step_ || step - *written_step_ >= every_steps_;
}

void LogValues::after_step(TrainingSession& training, std::span<const Tensor> values) {
  if (values.empty()) return;
  std::string line = concat("step ", training.global_step());
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor& value = values[i];
    line += concat(i == 0 ? ": " : ", ", values_[i].first, " = ");
    const bool is_number = value.elements() == 1 && value.shape().rank() == 0 &&
                           (is_floating(value.dtype()) || is_integer(value.dtype()));
    line += is_number ? concat(number(value)) : value.to_string();
  }
  std::cerr << line << std::endl;
  written_step_ = training.global_step();
}

ShowProgress::ShowProgress(Output loss, int64_t steps, int64_t samples_per_step,
                           std::vector<std::pair<std::string, Output>> metrics)
    : loss_(checked_loss(loss, "ShowProgress")),
      metrics_(std::move(metrics)),
      progress_(steps, samples_per_step) {
  for (const auto& [name, metric] : metrics_) checked_loss(metric, "ShowProgress");
}

std::vector<Output> ShowProgress::fetches() {
  std::vector<Output> out = {loss_};
  for (const auto& [name, metric] : metrics_) out.push_back(metric);
  return out;
}

void ShowProgress::after_step(TrainingSession& training, std::span<const Tensor> values) {
  std::string more;
  for (size_t i = 0; i < metrics_.size(); ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", number(values[i + 1]));
    more += concat("  ", metrics_[i].first, " ", text);
  }
  progress_.update(training.global_step(), number(values[0]), more);
}

RecordTraining::RecordTraining(const std::string& path, Output loss, Output samples)
    : file_(std::make_unique<std::ofstream>(path)),
      loss_(checked_loss(loss, "RecordTraining")),
      samples_(samples) {
  if (!*file_) fail(Code::unknown, "cannot write ", path, ": check that its directory exists");
}

RecordTraining::~RecordTraining() = default;

std::vector<Output> RecordTraining::fetches() {
  return samples_ ? std::vector<Output>{loss_, samples_} : std::vector<Output>{loss_};
}

void RecordTraining::begin(TrainingSession&) {
  if (start_ == Clock::time_point()) start_ = flushed_ = Clock::now();
}

void RecordTraining::after_step(TrainingSession& training, std::span<const Tensor> values) {
  const auto now = Clock::now();
  *file_ << R"({"step": )" << training.global_step() << R"(, "seconds": )"
         << std::chrono::duration<double>(now - start_).count() << R"(, "loss": )";
  const double loss = number(values[0]);
  // JSON has no NaN or infinity.
  if (std::isfinite(loss)) {
    *file_ << loss;
  } else {
    *file_ << "null";
  }
  if (samples_) *file_ << R"(, "samples": )" << static_cast<int64_t>(number(values[1]));
  *file_ << "}\n";
  if (now - flushed_ < std::chrono::milliseconds(200)) return;
  file_->flush();
  flushed_ = now;
}

void RecordTraining::end(TrainingSession&) { file_->flush(); }

WriteSummaries::WriteSummaries(std::string directory, std::vector<Output> summaries,
                               int64_t every_steps)
    : directory_(std::move(directory)),
      summaries_(std::move(summaries)),
      every_steps_(every_steps) {
  check(every_steps_ > 0, "the number of steps between summaries must be positive, got ",
        every_steps_);
  for (const Output& summary : summaries_) {
    check(summary && summary.dtype() == DType::string, "'", summary.name(),
          "' is not a summary: make it with scalar_summary()");
  }
}

WriteSummaries::~WriteSummaries() = default;

void WriteSummaries::begin(TrainingSession& training) {
  written_step_ = training.global_step();
  written_at_ = Clock::now();
  if (!writer_) writer_ = std::make_unique<EventWriter>(directory_);
  // What was written of the step before stays: it is not done again.
  const int64_t first = training.global_step() + 1;
  unless_disk_is_full(first, [&] { writer_->add_start(first); });
}

void WriteSummaries::after_step(TrainingSession& training, std::span<const Tensor> values) {
  const int64_t step = training.global_step();
  if (!std::exchange(has_graph_, true))
    unless_disk_is_full(step, [&] { writer_->add_graph(training.placed_graph()); });
  // Other workers' steps may have made it due since it was asked: then with the next one.
  if (!is_due(step) || values.size() < summaries_.size()) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - written_at_).count();
  unless_disk_is_full(step, [&] {
    for (const Tensor& summary : values) writer_->add_summary(summary.item<std::string>(), step);
    writer_->add_scalar(
        "global_step/sec",
        static_cast<float>(static_cast<double>(step - written_step_) / std::max(seconds, 1e-9)),
        step);
    writer_->flush();
  });
  written_step_ = step;
  written_at_ = Clock::now();
}

void WriteSummaries::after_save(TrainingSession& training, const std::string& prefix) {
  const int64_t step = training.global_step();
  if (writer_) unless_disk_is_full(step, [&] { writer_->add_checkpoint(prefix, step); });
}

void WriteSummaries::end(TrainingSession& training) {
  if (writer_) unless_disk_is_full(training.global_step(), [&] { writer_->flush(); });
}

}  // namespace leat
