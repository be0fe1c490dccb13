// How a TrainingSession starts, and starts again when a task is lost.
#include <algorithm>
#include <iostream>
#include <thread>

#include "core/memory/malloc_heap.h"
#include "frontends/cpp/training/repeated_runs.h"
#include "frontends/cpp/training/training_session.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

// Pauses between attempts: 0, 100 ms, 200 ms, … 2 s.
std::chrono::milliseconds longer(std::chrono::milliseconds pause) {
  return std::clamp(2 * pause, std::chrono::milliseconds(100), std::chrono::milliseconds(2'000));
}

}  // namespace

bool TrainingSession::is_loss_of_a_task(const Error& error) {
  return error.code() == Code::aborted || error.code() == Code::unavailable;
}

// A session with variables that have values.
void TrainingSession::start() {
  steps_.clear();
  for (Due& each : periodic_) each.run.reset();
  stop_lanes();
  stop_background();
  session_.reset();
  session_ = std::make_unique<Session>(graph_, options_.session);
  std::string restored;
  const bool goes_on = has_begun_ && options_.is_chief && has_whole_variables();
  if (!options_.is_chief) {
    if (options_.begins_together) begin();  // when it is done, the chief's variables have values
    readiness_.wait(*session_, options_.patience);
    readiness_.fill_tables(*session_);
    readiness_.initialize_own(*session_, false);
  } else if (goes_on) {
    readiness_.fill_tables(*session_);
  } else if (!saver_) {
    readiness_.initialize(*session_);
  } else {
    Saver::remove_remains(options_.directory);
    restored = saver_->restore_latest(*session_, options_.directory + "/");
    if (restored.empty()) {
      readiness_.initialize(*session_);
    } else {
      readiness_.fill_tables(*session_);
      readiness_.initialize_own(*session_, true);
      std::cerr << "leat: restored " << restored << std::endl;
    }
  }
  if (options_.is_chief || !options_.begins_together) begin();
  step_number_ = session_->run({}, std::vector<Output>{options_.global_step})[0].item<int64_t>();
  for (Due& each : periodic_) each.steps = 0;
  if (!restored.empty() || options_.begins_together) skip_data();
  same_steps_ = 0;
  if (!goes_on) {
    tried_at_ = Clock::now();
    saved_step_ = tried_step_ = restored.empty() ? -1 : step_number_;
    // So that there is something to go back to.
    if (saver_ && restored.empty()) save();
  }
  start_background();
}

void TrainingSession::begin() {
  if (options_.begin.node == nullptr) return;
  is_awaited_ = true;
  session_->run(*options_.begin.node);
}

// Whether those of the last session are all there, and no step has changed only some of them.
bool TrainingSession::has_whole_variables() {
  if (!options_.is_torn || !readiness_.uninitialized(*session_).empty()) return false;
  const bool is_torn = session_->run({}, std::vector<Output>{options_.is_torn})[0].item<bool>();
  if (is_torn && !saver_) {
    fail(Code::data_loss, "a step was interrupted while it changed the variables, and there is no ",
         "checkpoint to go back to: give TrainingOptions a directory");
  }
  if (!is_torn) std::cerr << "leat: goes on with the variables as they are" << std::endl;
  return !is_torn;
}

// What the steps until the checkpoint have read.
void TrainingSession::skip_data() {
  if (skip_ == nullptr || step_number_ == 0) return;
  const Callable read = session_->prepare({}, {}, {*skip_});
  for (int64_t i = 0; i < step_number_ * options_.batches_per_step; ++i) read({});
}

void TrainingSession::start_lanes() {
  if (!options_.lanes.empty() && lanes_ == nullptr)
    lanes_ =
        std::make_unique<RepeatedRuns>(*session_, options_.lanes, [this] { run_stop_lanes(); });
}

void TrainingSession::run_stop_lanes() {
  if (options_.stop_lanes.node == nullptr) return;
  try {
    session_->run(*options_.stop_lanes.node);
  } catch (const Error&) {  // they have been stopped before, or the session is lost
  }
}

void TrainingSession::stop_lanes() {
  if (lanes_ == nullptr) return;
  lanes_->request_stop();
  run_stop_lanes();
  lanes_.reset();
}

// A lane whose data has ended is no error.
void TrainingSession::fail_as_a_lane_has() const {
  const std::optional<Status> error = lanes_ == nullptr ? std::nullopt : lanes_->error();
  if (error && error->code != Code::out_of_range) throw Error(*error);
}

void TrainingSession::start_background() {
  if (options_.background.node == nullptr) return;
  // The step that is under way may wait for what does not come any more.
  background_ = std::make_unique<RepeatedRuns>(
      *session_, std::vector<Awaited>{options_.background}, [&session = *session_] {
        try {
          session.close();
        } catch (const Error&) {  // it is being closed already
        }
      });
}

// Its run, which may wait, ends when the session is closed.
void TrainingSession::stop_background() {
  if (background_ == nullptr) return;
  background_->request_stop();
  try {
    if (!background_->error()) close_session();
  } catch (const Error& error) {
    std::cerr << "leat: closing a session failed: " << error.message() << std::endl;
  }
  background_.reset();
}

// Until the tasks are there that it needs.
void TrainingSession::start_patiently(std::chrono::milliseconds pause) {
  const auto end = Clock::now() + options_.patience;
  for (std::string told;;) {
    std::this_thread::sleep_for(pause);
    pause = longer(pause);
    try {
      return start();
    } catch (const Error& error) {
      const bool may_pass = is_loss_of_a_task(error) || error.code() == Code::deadline_exceeded;
      if (!may_pass || Clock::now() + pause > end) throw;
      if (const std::string text = error.status().to_string(); text != told) {
        std::cerr << "leat: " << text << "; starting again" << std::endl;
        told = text;
      }
    }
  }
}

void TrainingSession::recover(const Error& error) {
  const bool can_go_on = saver_.has_value() || !options_.is_chief || options_.is_torn;
  if (!can_go_on || ++recoveries_in_a_row_ > options_.recoveries) throw error;
  std::cerr << "leat: " << error.status().to_string() << "; starting again" << std::endl;
  // A step may fail again at once, while a task that has come back is not yet connected to all
  // others: the pauses grow with the recoveries in a row as well.
  std::chrono::milliseconds pause(0);
  for (int i = 1; i < recoveries_in_a_row_; ++i) pause = longer(pause);
  start_patiently(pause);
  give_back_free_heap();  // two sessions were there, and a graph for each
  for (const Hook& h : hooks_) h.hook->begin(*this);
}

}  // namespace leat
