#include "frontends/cpp/training_session.h"

#include <algorithm>
#include <iostream>
#include <thread>

#include "core/malloc_heap.h"
#include "graph/graph_def.h"
#include "graph/pipeline.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

// What another session can mend.
bool is_loss_of_a_task(const Error& error) {
  return error.code() == Code::aborted || error.code() == Code::unavailable;
}

// Pauses between attempts: 0, 100 ms, 200 ms, … 2 s.
std::chrono::milliseconds longer(std::chrono::milliseconds pause) {
  return std::clamp(2 * pause, std::chrono::milliseconds(100), std::chrono::milliseconds(2'000));
}

const TrainingOptions& checked(const TrainingOptions& options) {
  check(options.train != nullptr, "a training session needs a node to train with");
  check(options.checkpoint_steps >= 0, "a checkpoint every ", options.checkpoint_steps,
        " steps: 0 is none by steps");
  check(options.global_step && options.global_step.dtype() == i64,
        "a training session needs a global_step, an int64 variable that `train` increases");
  return options;
}

// `graph` with the devices of `partitions`, which are what a step ran, and the placer's for the
// rest.
std::string placed_graph_def(const Graph& graph, const std::vector<DeviceDescription>& devices,
                             const std::vector<std::string>& partitions) {
  Graph placed = graph.clone();
  for (const std::string& partition : partitions) {
    for (const WrittenNode& node : read_graph_def(partition, "a partition of the step")) {
      if (Node* same = placed.find(node.name))
        same->assigned_device = DeviceName::parse(node.device);
    }
  }
  PlacementOptions options{.allow_soft_placement = true};
  for (const DeviceDescription& device : devices) {
    options.devices.push_back({DeviceName::parse(device.name), device_type_from_name(device.type)});
  }
  if (!devices.empty()) options.default_device = options.devices.front().name;
  try {
    place(placed, options);
  } catch (const Error&) {  // there are nodes that nothing could run, and no step has needed
    for (const auto& node : placed.nodes()) {
      if (node->assigned_device.is_empty()) node->assigned_device = node->requested_device;
    }
  }
  return to_graph_def(placed, /*assigned_devices=*/true);
}

}  // namespace

TrainingSession::TrainingSession(Graph& graph, TrainingOptions options)
    : graph_(graph), options_(checked(options)), readiness_(graph) {
  if (options_.is_chief && !options_.directory.empty()) saver_.emplace(graph, options_.saver);
  // Behind the update, in the same step.
  const NameScope scope(graph, "training_session");
  const ColocationScope with(graph, {options_.global_step});
  const ControlScope after(graph, {options_.train});
  fetches_ = options_.fetches;
  fetches_.push_back(identity(options_.global_step));
  start();
}

TrainingSession::~TrainingSession() {
  try {
    close();
  } catch (const Error& error) {
    std::cerr << "leat: the end of a training session: " << error.message() << std::endl;
  }
}

void TrainingSession::add(std::unique_ptr<TrainingHook> hook) {
  check(hook != nullptr, "a training session was given an empty hook");
  check(!has_begun_, "hooks are added before the first step");
  hook_fetches_.push_back(fetches_.size());
  wants_placed_graph_ = wants_placed_graph_ || hook->wants_placed_graph();
  for (const Output& output : hook->fetches()) fetches_.push_back(output);
  hooks_.push_back(std::move(hook));
}

// A session with variables that have values.
void TrainingSession::start() {
  run_.reset();
  session_.reset();
  session_ = std::make_unique<Session>(graph_, options_.session);
  std::string restored;
  if (!options_.is_chief) {
    readiness_.wait(*session_, options_.patience);
  } else if (!saver_) {
    readiness_.initialize(*session_);
  } else if (restored = saver_->restore_latest(*session_, options_.directory); restored.empty()) {
    readiness_.initialize(*session_);
  } else {
    std::cerr << "leat: restored " << restored << std::endl;
  }
  step_number_ = session_->run({}, std::vector<Output>{options_.global_step})[0].value<int64_t>();
  same_steps_ = 0;
  tried_at_ = Clock::now();
  saved_step_ = tried_step_ = restored.empty() ? -1 : step_number_;
  // So that there is something to go back to.
  if (saver_ && restored.empty()) save();
}

void TrainingSession::recover(const Error& error) {
  const bool has_checkpoints = saver_.has_value() || !options_.is_chief;
  if (!has_checkpoints || ++recoveries_in_a_row_ > options_.recoveries) throw error;
  std::cerr << "leat: " << error.status().to_string() << "; starting again" << std::endl;
  const auto end = Clock::now() + options_.patience;
  // A step may fail again at once, while a task that has come back is not yet connected to all
  // others: the pauses grow with the recoveries in a row as well.
  std::chrono::milliseconds pause(0);
  for (int i = 1; i < recoveries_in_a_row_; ++i) pause = longer(pause);
  for (;;) {
    std::this_thread::sleep_for(pause);
    pause = longer(pause);
    try {
      start();
      break;
    } catch (const Error& again) {
      const bool may_pass = is_loss_of_a_task(again) || again.code() == Code::deadline_exceeded;
      if (!may_pass || Clock::now() + pause > end) throw;
    }
  }
  give_back_free_heap();  // two sessions were there, and a graph for each
  for (const auto& hook : hooks_) hook->begin(*this);
}

std::optional<std::vector<Tensor>> TrainingSession::step(std::span<const Tensor> feeds) {
  check(!is_closed_, "the training session is closed");
  if (!has_begun_) {
    has_begun_ = true;
    for (const auto& hook : hooks_) hook->begin(*this);
    if (should_stop_) return std::nullopt;
  }
  std::vector<Tensor> values;
  try {
    if (wants_placed_graph_ && placed_graph_.empty()) {
      values = run_first(feeds);
    } else {
      if (!run_) run_ = session_->prepare(options_.inputs, fetches_, {*options_.train});
      run_->run(feeds, values);
    }
    note_step(values[options_.fetches.size()].value<int64_t>());
    for (size_t h = 0; h < hooks_.size(); ++h) {
      const size_t end = h + 1 < hooks_.size() ? hook_fetches_[h + 1] : values.size();
      hooks_[h]->after_step(
          *this, std::span<const Tensor>(values).subspan(hook_fetches_[h], end - hook_fetches_[h]));
    }
    save_if_due();
  } catch (const Error& error) {
    has_failed_ = true;
    if (!is_loss_of_a_task(error)) throw;
    recover(error);
    has_failed_ = false;
    return std::nullopt;
  }
  recoveries_in_a_row_ = 0;
  has_failed_ = false;
  values.resize(options_.fetches.size());
  return values;
}

void TrainingSession::note_step(int64_t step) {
  constexpr int told_after = 5;  // steps of a synchronous strategy may leave it as it is
  same_steps_ = step == step_number_ ? same_steps_ + 1 : 0;
  if (same_steps_ == told_after) {
    std::cerr << "leat: global_step is still " << step << " after " << told_after
              << " more steps: does `train` increase '" << options_.global_step.name()
              << "'? Pass it to minimize()" << std::endl;
  }
  step_number_ = step;
}

// A step that also tells where its nodes ran.
std::vector<Tensor> TrainingSession::run_first(std::span<const Tensor> feeds) {
  check(feeds.size() == options_.inputs.size(), "the step has ", options_.inputs.size(),
        " inputs, but ", feeds.size(), " values were given");
  Feeds named;
  for (size_t i = 0; i < feeds.size(); ++i) named.push_back({options_.inputs[i], feeds[i]});
  RunMetadata ran;
  std::vector<Tensor> values =
      session_->run(named, fetches_, {*options_.train}, {.partition_graphs = true}, &ran);
  placed_graph_ = placed_graph_def(graph_, session_->list_devices(), ran.partition_graphs);
  return values;
}

std::string TrainingSession::placed_graph() const {
  if (placed_graph_.empty()) {
    fail(Code::failed_precondition, "where the nodes of a graph run is known after a first step, ",
         "for hooks that want it");
  }
  return placed_graph_;
}

void TrainingSession::save_if_due() {
  if (!saver_) return;
  const bool by_steps =
      options_.checkpoint_steps > 0 && step_number_ - tried_step_ >= options_.checkpoint_steps;
  const bool by_time =
      options_.checkpoint_time.count() > 0 && Clock::now() - tried_at_ >= options_.checkpoint_time;
  if (!by_steps && !by_time) return;
  try {
    save();
  } catch (const Error& error) {
    // A full disk does not stop the training; the next attempt is as far away as if it had worked.
    if (error.code() != Code::resource_exhausted) throw;
    std::cerr << "leat: no checkpoint at step " << step_number_ << ": " << error.message()
              << std::endl;
  }
}

std::string TrainingSession::save() {
  check(saver_.has_value(), "only the chief saves, and only with a directory");
  tried_at_ = Clock::now();
  tried_step_ = step_number_;
  const std::string prefix = saver_->save(*session_, options_.directory, step_number_);
  tried_at_ = Clock::now();
  saved_step_ = step_number_;
  for (const auto& hook : hooks_) hook->after_save(*this, prefix);
  return prefix;
}

void TrainingSession::close() {
  if (is_closed_) return;
  is_closed_ = true;
  for (const auto& hook : hooks_) {
    if (has_begun_) hook->end(*this);
  }
  if (saver_ && !has_failed_ && saved_step_ != step_number_) save();
  run_.reset();
  session_->close();
}

}  // namespace leat
