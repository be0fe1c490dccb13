#include "frontends/cpp/training/training_session.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>

#include "frontends/cpp/outside_control_scopes.h"
#include "frontends/cpp/training/repeated_runs.h"
#include "frontends/cpp/training/training_hooks.h"
#include "graph/import/graph_def.h"
#include "graph/passes/pipeline.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

TrainingOptions checked(TrainingOptions options, const Graph& graph, Location at) {
  const std::vector<Output>& counters = graph.collection("global_step");
  if (!options.global_step && !counters.empty()) options.global_step = counters.front();
  check(options.train.node != nullptr, "TrainingSession (", at,
        ") needs the node that updates the variables, which minimize() returns: "
        "TrainingSession(graph, train, {…})");
  check(options.checkpoint_steps >= 0,
        "checkpoint_steps must be positive, or 0 for none by steps, got ",
        options.checkpoint_steps);
  check(bool{options.global_step}, "TrainingSession (", at,
        ") needs a global step, which counts the updates: write "
        "minimize(loss, {.global_step = global_step(graph)}) where '",
        options.train.node->name, "' (", options.train.node->location, ") is made");
  check(options.global_step.dtype() == i64, "TrainingSession (", at, "): the global step '",
        options.global_step.name(), "' must be an int64 variable, got ",
        options.global_step.dtype());
  return options;
}

TrainingOptions with_train(Awaited train, TrainingOptions options, Location at) {
  check(options.train.node == nullptr || options.train.node == train.node, "TrainingSession (", at,
        ") got two nodes to train: '", train.node != nullptr ? train.node->name : "none",
        "' as its argument, and '", options.train.node != nullptr ? options.train.node->name : "",
        "' as .train");
  options.train = train;
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
      if (node->assigned_device->is_empty()) node->assigned_device = node->requested_device;
    }
  }
  return to_graph_def(placed, /*assigned_devices=*/true);
}

TrainingOptions completed(const Training& training, TrainingOptions options) {
  if (options.train.node == nullptr) options.train = training.step;
  if (!options.global_step) options.global_step = training.global_step;
  if (options.session.target.empty()) options.session.target = training.target;
  options.is_chief = options.is_chief && training.is_chief;
  options.periodic.insert(options.periodic.begin(), training.periodic.begin(),
                          training.periodic.end());
  if (options.data.empty()) {
    options.data = training.inputs;
    options.batches_per_step = training.batches_per_step;
  }
  if (options.lanes.empty()) {
    options.lanes = training.lanes;
    options.stop_lanes = training.stop_lanes;
  }
  if (options.background.node == nullptr) options.background = training.background;
  if (options.begin.node == nullptr) options.begin = training.begin;
  if (!options.is_torn) options.is_torn = training.is_torn;
  options.begins_together = options.begins_together || training.begins_together;
  if (options.end.node == nullptr) options.end = training.end;
  if (options.end_after_error.node == nullptr) options.end_after_error = training.end_after_error;
  if (!options.loss) {
    options.loss = training.loss;
    options.metrics = training.metrics;
  }
  if (const char* directory = std::getenv("LEAT_TRAINING_RECORD"))
    options.hooks.push_back(std::make_shared<RecordTraining>(
        concat(directory, "/", getpid(), ".jsonl"), training.loss, training.samples));
  return options;
}

Graph& graph_of(const Training& training) {
  check(training.graph != nullptr, "the Training is empty: make it with a strategy's minimize()");
  return *training.graph;
}

}  // namespace

TrainingSession::TrainingSession(const Training& training, TrainingOptions options, Location at)
    : graph_(graph_of(training)),
      options_(training.is_idle ? std::move(options)
                                : checked(completed(training, std::move(options)), graph_, at)),
      readiness_(graph_),
      is_idle_(training.is_idle),
      explanation_(training.explanation) {
  if (!is_idle_) {
    prepare(at);
    return;
  }
  std::cerr << "leat: the chief's program drives all workers; this program's task computes for it"
            << std::endl;
  should_stop_ = is_closed_ = true;
}

TrainingSession::TrainingSession(Graph& graph, TrainingOptions options, Location at)
    : graph_(graph), options_(checked(std::move(options), graph, at)), readiness_(graph) {
  prepare(at);
}

TrainingSession::TrainingSession(Graph& graph, Awaited train, TrainingOptions options, Location at)
    : TrainingSession(graph, with_train(train, std::move(options), at), at) {}

void TrainingSession::prepare(Location at) {
  Graph& graph = graph_;
  if (options_.is_chief && !options_.directory.empty()) saver_.emplace(graph, options_.saver, at);
  // Behind the update, in the same step.
  const NameScope scope(graph, "training_session");
  const ColocationScope with(graph, {options_.global_step});
  const ControlScope after(graph, {options_.train});
  step_after_ = identity(options_.global_step);
  for (const Periodic& each : options_.periodic) {
    check(each.steps > 0 && each.node.node != nullptr,
          "what runs periodically needs a node and a positive number of steps, got ", each.steps);
    const OutsideControlScopes not_in_the_step(graph);
    const ControlScope behind(graph, {each.node});
    periodic_.push_back({each, identity(options_.global_step), {}});
  }
  if (!options_.data.empty()) {
    const OutsideControlScopes not_behind_it(graph);
    skip_ = &group(graph, options_.data, "skip_data");
  }
  for (const std::shared_ptr<TrainingHook>& hook : options_.hooks) add(hook);
  try {
    if (options_.recoveries == 0) {
      start();
    } else {
      start_patiently(std::chrono::milliseconds(0));
    }
  } catch (const Error&) {
    if (session_ != nullptr && is_awaited_) end_after_failure();
    throw;
  }
}

TrainingSession::~TrainingSession() {
  constexpr const char* where = "leat: closing a training session failed: ";
  try {
    close();
  } catch (const std::exception& error) {  // an Error's what() is its message
    std::cerr << where << error.what() << std::endl;
  } catch (...) {
    std::cerr << where << "a hook threw something that is not a std::exception" << std::endl;
  }
}

void TrainingSession::add(std::shared_ptr<TrainingHook> hook) {
  check(hook != nullptr, "a training session needs a hook, got an empty pointer");
  check(!has_begun_, "add hooks before the first step");
  wants_placed_graph_ = wants_placed_graph_ || hook->wants_placed_graph();
  std::vector<Output> fetches = hook->fetches();
  hooks_.push_back({std::move(hook), std::move(fetches)});
}

std::optional<std::vector<Tensor>> TrainingSession::step(std::span<const Tensor> feeds) {
  check(!is_closed_, "the training session is closed");
  has_failed_ = true;  // until it has not
  if (!has_begun_) {
    has_begun_ = true;
    for (const Hook& h : hooks_) h.hook->begin(*this);
    if (should_stop_) {
      has_failed_ = false;
      return std::nullopt;
    }
  }
  std::vector<Tensor> values;
  try {
    start_lanes();
    fail_as_a_lane_has();
    Step& step = next_step();
    if (wants_placed_graph_ && placed_graph_.empty()) {
      values = run_first(step, feeds);
    } else {
      if (!step.run)
        step.run = session_->prepare(options_.inputs, step.fetches, {*options_.train.node});
      step.run->run(feeds, values);
    }
    note_step(values[options_.fetches.size()].item<int64_t>());
    run_periodic();
    tell_hooks(step, values);
    save_if_due();
  } catch (const Error& step_error) {
    const Error error = cause_of(step_error);
    if (!is_loss_of_a_task(error)) throw error;
    recover(error);
    has_failed_ = false;
    return std::nullopt;
  }
  recoveries_in_a_row_ = 0;
  has_failed_ = false;
  values.resize(options_.fetches.size());
  return values;
}

// That of the background or of a lane, if it has ended what the step waited for.
Error TrainingSession::cause_of(const Error& error) const {
  std::optional<Status> first = background_ == nullptr ? std::nullopt : background_->error();
  if (!first && lanes_ != nullptr && options_.stop_lanes.node != nullptr) first = lanes_->error();
  return first ? Error(*first) : error;
}

TrainingSession::Step& TrainingSession::next_step() {
  std::vector<bool> due;
  for (const Hook& h : hooks_)
    due.push_back(!h.fetches.empty() && h.hook->is_due(step_number_ + 1));
  const auto [entry, is_new] = steps_.try_emplace(std::move(due));
  Step& step = entry->second;
  if (is_new) {
    step.fetches = options_.fetches;
    step.fetches.push_back(step_after_);
    for (size_t h = 0; h < hooks_.size(); ++h) {
      if (entry->first[h])
        step.fetches.insert(step.fetches.end(), hooks_[h].fetches.begin(), hooks_[h].fetches.end());
      step.ends.push_back(step.fetches.size());
    }
  }
  return step;
}

void TrainingSession::tell_hooks(const Step& step, std::span<const Tensor> values) {
  size_t begin = options_.fetches.size() + 1;
  for (size_t h = 0; h < hooks_.size(); ++h) {
    hooks_[h].hook->after_step(*this, values.subspan(begin, step.ends[h] - begin));
    begin = step.ends[h];
  }
}

// A step each: what one changes, the next one sees.
void TrainingSession::run_periodic() {
  for (Due& each : periodic_) {
    if (++each.steps < each.what.steps) continue;
    each.steps = 0;
    if (!each.run) each.run = session_->prepare({}, {each.step}, {*each.what.node.node});
    step_number_ = (*each.run)({})[0].item<int64_t>();
  }
}

void TrainingSession::run_at_end() {
  for (Due& each : periodic_) {
    if (!each.what.at_end || each.steps == 0) continue;
    session_->run(*each.what.node.node);
    each.steps = 0;
  }
}

void TrainingSession::end_steps() {
  stop_lanes();
  run_at_end();
  if (options_.end.node != nullptr && !std::exchange(has_ended_, true))
    session_->run(*options_.end.node);
}

// Others may wait for this program until their deadline passes, unless it leaves.
void TrainingSession::end_after_failure() {
  const Awaited end =
      options_.end_after_error.node != nullptr ? options_.end_after_error : options_.end;
  if (end.node == nullptr || std::exchange(has_ended_, true)) return;
  constexpr std::chrono::seconds limit(10);  // what has failed may be the task that it runs on
  try {
    session_->run({}, {}, {*end.node}, {.timeout = limit});
  } catch (const Error& error) {
    std::cerr << "leat: could not end this program's part of the training: " << error.message()
              << std::endl;
  }
}

void TrainingSession::run() {
  if (is_idle_) return;
  std::cerr << std::exchange(explanation_, "") << std::flush;
  if (options_.loss && !has_begun_) {
    int64_t last = 0;
    for (const Hook& h : hooks_) {
      const int64_t its = h.hook->last_step().value_or(0);
      if (its > 0 && (last == 0 || its < last)) last = its;
    }
    add(std::make_shared<ShowProgress>(options_.loss, last, 0, options_.metrics));
  }
  try {
    while (!should_stop_) step(std::span<const Tensor>());
  } catch (const Error& error) {
    if (error.code() != Code::out_of_range) throw;
    has_failed_ = false;  // the data has ended
    should_stop_ = true;
  }
  end_steps();
}

Session& TrainingSession::session() {
  if (session_ == nullptr) {
    fail(Code::failed_precondition, "this program has no session: the chief's program trains all ",
         "replicas, so evaluate there (`if (training.is_chief)`)");
  }
  return *session_;
}

void TrainingSession::note_step(int64_t step) {
  constexpr int told_after = 5;  // steps of a synchronous strategy may leave it as it is
  same_steps_ = step == step_number_ ? same_steps_ + 1 : 0;
  if (same_steps_ == told_after && periodic_.empty()) {
    std::cerr << "leat: global_step is still " << step << " after " << told_after
              << " more steps: does `train` increase '" << options_.global_step.name()
              << "'? Pass it to minimize()" << std::endl;
  }
  step_number_ = step;
}

// A step that also tells where its nodes ran.
std::vector<Tensor> TrainingSession::run_first(const Step& step, std::span<const Tensor> feeds) {
  check(feeds.size() == options_.inputs.size(), "the step has ", options_.inputs.size(),
        " inputs, but ", feeds.size(), " values were given");
  Feeds named;
  for (size_t i = 0; i < feeds.size(); ++i) named.push_back({options_.inputs[i], feeds[i]});
  RunMetadata ran;
  std::vector<Tensor> values =
      session_->run(named, step.fetches, {*options_.train.node}, {.partition_graphs = true}, &ran);
  placed_graph_ = placed_graph_def(graph_, session_->list_devices(), ran.partition_graphs);
  return values;
}

std::string TrainingSession::placed_graph() const {
  if (placed_graph_.empty()) {
    fail(Code::failed_precondition, "the placed graph is known only after the first step, ",
         "and only if a hook's wants_placed_graph() is true");
  }
  return placed_graph_;
}

void TrainingSession::save_if_due() {
  if (!saver_) return;
  for (const Due& each : periodic_) {
    // One that is far away runs before the checkpoint instead: see save().
    constexpr int64_t far = 10'000;
    if (each.what.at_end && each.steps > 0 && each.what.steps <= far) return;
  }
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
    std::cerr << "leat: cannot write a checkpoint at step " << step_number_ << ": "
              << error.message() << std::endl;
  }
}

std::string TrainingSession::save() {
  check(saver_.has_value(), "cannot save: only the chief saves, and only if it has a directory");
  run_at_end();
  tried_at_ = Clock::now();
  tried_step_ = step_number_;
  const std::string prefix = saver_->save(*session_, options_.directory + "/", step_number_);
  tried_at_ = Clock::now();
  saved_step_ = step_number_;
  for (const Hook& h : hooks_) h.hook->after_save(*this, prefix);
  return prefix;
}

// A cluster that has gone keeps nothing of the session, and by now all is done that was to be done
// with it.
void TrainingSession::close_session() {
  try {
    session_->close();
  } catch (const Error& error) {
    if (!is_loss_of_a_task(error)) throw;
    std::cerr << "leat: the session was not closed: " << error.message() << std::endl;
  }
}

void TrainingSession::close() {
  if (is_closed_) return;
  is_closed_ = true;
  std::exception_ptr first;
  const auto attempt = [&](auto&& action) {
    try {
      action();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  };
  stop_lanes();
  for (const Hook& h : hooks_) {
    if (has_begun_) attempt([&] { h.hook->end(*this); });
  }
  if (session_) attempt([&] { has_begun_ && !has_failed_ ? end_steps() : end_after_failure(); });
  if (saver_ && !has_failed_ && saved_step_ != step_number_) attempt([&] { save(); });
  steps_.clear();
  for (Due& each : periodic_) each.run.reset();
  if (background_ != nullptr) {
    attempt([&] { stop_background(); });
  } else if (session_) {
    attempt([&] { close_session(); });
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace leat
