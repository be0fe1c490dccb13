#include "distributed/master/cluster_step.h"

#include <algorithm>
#include <set>

#include "distributed/loss_text.h"
#include "distributed/random_id.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

// The time that tasks have to confirm that a failed step has ended there.
constexpr auto abort_grace = std::chrono::milliseconds(1'000);
constexpr auto abort_limit = std::chrono::seconds(10);  // of the call that tells them
constexpr auto answers_grace = std::chrono::milliseconds(250);
constexpr size_t lines_shown = 4;  // of one task
constexpr size_t targets_shown = 3;
constexpr std::string_view waits_for = "waits for ";

// 56 bits, as in TensorFlow.
int64_t random_step_id() { return static_cast<int64_t>(random_id() >> 8) | 1; }

uint64_t request_id_of(int64_t step, size_t part) {
  return static_cast<uint64_t>(step) * 1'000'003 + part + 1;
}

}  // namespace

ClusterStep::ClusterStep(std::shared_ptr<const Peers> peers,
                         std::shared_ptr<const ClusterProgram> program, Request request, Done done)
    : peers_(std::move(peers)),
      program_(std::move(program)),
      request_(std::move(request)),
      id_(random_step_id()),
      done_(std::move(done)),
      parts_(program_->parts.size()),
      running_(program_->parts.size()) {}

void ClusterStep::start() {
  const auto self = shared_from_this();
  if (request_.times.deadline) {
    std::lock_guard lock(mutex_);
    deadline_timer_ = peers_->timer->at(*request_.times.deadline, [weak = weak_from_this()] {
      const auto step = weak.lock();
      if (step == nullptr) return;
      {
        std::lock_guard lock(step->mutex_);
        if (step->is_finished_) return;
        if (step->status_.is_ok() || step->status_.derived) {
          step->is_deadline_ = true;
          step->status_ = {Code::deadline_exceeded, "", false};
        }
      }
      step->abort_others();
    });
  }
  // The own part last: it may run on this thread.
  std::vector<size_t> order;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (program_->parts[i].task != peers_->self) order.push_back(i);
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (program_->parts[i].task == peers_->self) order.push_back(i);
  }
  if (order.empty()) return finish();
  for (const size_t i : order) {
    const ClusterProgram::Part& part = program_->parts[i];
    RunGraph run;
    run.request_id = request_id_of(id_, i);
    run.worker_incarnation = part.incarnation;
    run.session = program_->session;
    run.graph = part.graph;
    run.step = id_;
    run.trace = request_.trace;
    run.any_size = request_.any_size;
    for (const std::string& feed : part.feeds)
      run.feeds.emplace_back(feed, request_.feeds.at(feed));
    part.worker->run_graph(std::move(run), std::nullopt,
                           [self, i](const Status& call, RunGraphResult result) {
                             self->part_ended(i, call, std::move(result));
                           });
  }
}

void ClusterStep::part_ended(size_t index, const Status& call, RunGraphResult result) {
  const TaskName& task = program_->parts[index].task;
  bool is_last = false;
  bool is_failing = false;
  {
    std::lock_guard lock(mutex_);
    if (is_finished_ || parts_[index].has_ended) return;
    parts_[index].has_ended = parts_[index].has_answered = true;
    is_last = --running_ == 0;
    if (result.activity.empty()) result.activity = std::move(parts_[index].result.activity);
    if (!call.is_ok()) {
      if (call.code == Code::aborted) restarted_.push_back(task);
      record_error(call, call.code == Code::unavailable ? &task : nullptr);
    } else if (!result.status.is_ok()) {
      record_error(result.status, nullptr);
    }
    is_failing = !status_.is_ok();
    parts_[index].result = std::move(result);
  }
  if (is_last) return finish();
  if (is_failing) abort_others();
}

// Under the lock.
void ClusterStep::record_error(Status status, const TaskName* lost) {
  if (!status_.is_ok() && !(status_.derived && !status.derived)) return;
  status_ = std::move(status);
  lost_ = lost == nullptr ? std::nullopt : std::optional<TaskName>(*lost);
}

void ClusterStep::fail(const Status& status) {
  {
    std::lock_guard lock(mutex_);
    if (is_finished_) return;
    record_error(status, nullptr);
  }
  abort_others();
}

// Its streams may end before its answers have come, most of all when it is stopped in order: they
// get a moment.
void ClusterStep::task_lost(const TaskName& task, const std::string& why) {
  peers_->timer->after(answers_grace,
                       [self = shared_from_this(), task, why] { self->declare_lost(task, why); });
}

void ClusterStep::declare_lost(const TaskName& task, const std::string& why) {
  bool is_last = false;
  {
    std::lock_guard lock(mutex_);
    if (is_finished_) return;
    bool has_part = false;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (program_->parts[i].task != task || parts_[i].has_ended) continue;
      has_part = true;
      parts_[i].has_ended = parts_[i].has_answered = true;
      is_last = --running_ == 0;
    }
    if (!has_part) return;
    const std::string label = peers_->describe(task);
    record_error({Code::unavailable, why.starts_with(label) ? why : label + ": " + why, false},
                 &task);
  }
  if (is_last) return finish();
  abort_others();
}

void ClusterStep::abort_others() {
  std::vector<size_t> running;
  Status status;
  {
    std::lock_guard lock(mutex_);
    if (is_aborting_ || is_finished_) return;
    is_aborting_ = true;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i].has_ended) running.push_back(i);
    }
    // The own part first: it says what it waits for before others, aborted, end it.
    std::stable_partition(running.begin(), running.end(),
                          [&](size_t i) { return program_->parts[i].task == peers_->self; });
    status = {Code::cancelled, "the step was aborted: " + status_.message, true, status_.node};
    if (is_deadline_) status.message += "its deadline has passed";
    grace_timer_ =
        peers_->timer->at(abort_deadline(), [self = shared_from_this()] { self->finish(); });
  }
  for (const size_t i : running) {
    program_->parts[i].worker->abort_step(
        id_, status, Clock::now() + abort_limit,
        [self = shared_from_this(), i](const Status& call, std::vector<StepActivity> activity) {
          std::lock_guard lock(self->mutex_);
          PartState& part = self->parts_[i];
          if (!call.is_ok() || self->is_finished_ || part.has_ended) return;
          part.has_answered = true;
          part.result.activity = std::move(activity);
        });
  }
}

// Until when the tasks may confirm that the step has ended. The client shall hear the outcome, so
// it is a little before it stops listening.
Clock::time_point ClusterStep::abort_deadline() const {
  const Clock::time_point now = Clock::now();
  if (!request_.times.answer_by || *request_.times.answer_by >= now + abort_grace)
    return now + abort_grace;
  return now + std::max(*request_.times.answer_by - now, Clock::duration::zero()) * 3 / 4;
}

void ClusterStep::finish() {
  StepOutcome outcome;
  Done done;
  {
    std::lock_guard lock(mutex_);
    if (is_finished_) return;
    is_finished_ = true;
    done = std::move(done_);
    peers_->timer->cancel(deadline_timer_);
    peers_->timer->cancel(grace_timer_);
    outcome.restarted = std::move(restarted_);
    outcome.status = status_;
    outcome.status.derived = false;
    if (!lost_ && status_.code == Code::unavailable) {  // another task heard of the loss first
      for (const ClusterProgram::Part& part : program_->parts) {
        if (status_.message.find(peers_->describe(part.task)) != std::string::npos)
          lost_ = part.task;
      }
    }
    if (lost_) {
      const std::string owed = owed_by(*lost_);
      const std::string heard = peers_->last_heard ? peers_->last_heard(*lost_) : std::string();
      if (!heard.empty() && !tells_when_heard(outcome.status.message)) {
        outcome.status.message += ", " + heard;
      }
      if (!owed.empty() && !tells_debt(outcome.status.message))
        outcome.status.message += "; " + owed;
    }
    if (is_deadline_) {
      outcome.status.message = concat("the step did not end within its deadline (",
                                      seconds_text(request_.times.limit), ")", all_activity());
    }
    for (PartState& part : parts_) {
      for (TraceEvent& event : part.result.events)
        outcome.metadata.events.push_back(std::move(event));
    }
  }
  if (outcome.status.is_ok()) {
    std::map<std::string, Tensor> values;
    for (size_t i = 0; i < parts_.size(); ++i) {
      for (auto& [name, value] : parts_[i].result.fetches) {
        const auto owner = program_->fetch_tasks.find(name);
        if (owner != program_->fetch_tasks.end() && owner->second == program_->parts[i].task)
          values[name] = std::move(value);
      }
    }
    for (const std::string& fetch : request_.fetches) {
      const auto value = values.find(fetch);
      // TensorFlow's client would take a missing one for an empty tensor.
      if (value == values.end()) {
        outcome.status = {Code::internal, concat("no task returned the fetch ", fetch), false};
        break;
      }
      const DType declared = program_->fetch_dtypes.at(fetch), got = value->second.dtype();
      if (got != declared) {
        outcome.status = {Code::invalid_argument,
                          concat(program_->fetch_tasks.at(fetch), " returned the fetch ", fetch,
                                 " as a tensor of ", got, "; the graph declares ", declared),
                          false};
        break;
      }
      outcome.fetches.push_back(value->second);
    }
  }
  done(std::move(outcome));
}

// What others waited for that the task had not sent; if none of them said so, what it had to send
// in this program, or to do. Empty if it has no part. Under the lock.
std::string ClusterStep::owed_by(const TaskName& task) const {
  struct Debt {
    std::string text;
    int64_t ns = -1;
  } longest;
  size_t count = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    for (const StepActivity& each : parts_[i].result.activity) {
      if (each.from != task.to_string()) continue;
      ++count;
      if (each.ns <= longest.ns) continue;
      const std::string tensor =
          each.what.starts_with(waits_for) ? each.what.substr(waits_for.size()) : each.what;
      longest = {concat(tensor, " to ", program_->parts[i].task, ", which had been waiting for ",
                        seconds_text(std::chrono::nanoseconds(each.ns))),
                 each.ns};
    }
  }
  const auto owed = [&](const auto&... text) {
    if (count++ == 0) longest.text = concat(text...);
  };
  if (count == 0) {
    for (const CutEdge& edge : program_->edges) {
      if (TaskName::of(edge.source) == task && TaskName::of(edge.destination) != task) {
        owed("tensor ", edge.tensor_name, " of node ", edge.producer, " to ",
             TaskName::of(edge.destination));
      }
    }
    for (const auto& [fetch, owner] : program_->fetch_tasks) {
      if (owner == task) owed("the fetch ", fetch);
    }
  }
  if (count == 0) return owed_targets_of(task);
  return debt_text(concat(longest.text, count > 1 ? concat(", and ", count - 1, " more") : ""));
}

std::string ClusterStep::owed_targets_of(const TaskName& task) const {
  const bool has_part = std::any_of(program_->parts.begin(), program_->parts.end(),
                                    [&](const auto& part) { return part.task == task; });
  if (!has_part) return "";
  std::string out = debt_text("its part of the step");
  size_t count = 0;
  for (const auto& [target, owner] : program_->target_tasks) {
    if (owner != task) continue;
    if (count++ < targets_shown) out += (count == 1 ? ": " : ", ") + target;
  }
  if (count > targets_shown) out += concat(", and ", count - targets_shown, " more");
  return out;
}

// Under the lock.
std::string ClusterStep::all_activity() const {
  std::ostringstream out;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const std::string task = peers_->describe(program_->parts[i].task);
    if (!parts_[i].has_answered) {
      const TaskName& silent = program_->parts[i].task;
      out << "; " << task << " does not answer";
      if (peers_->last_heard && silent != peers_->self) out << ", " << peers_->last_heard(silent);
    }
    std::set<std::string> told;  // one line for all that another task owes
    size_t hidden = 0;
    for (const StepActivity& each : parts_[i].result.activity) {
      const bool is_shown =
          told.size() < lines_shown && (each.from.empty() || told.insert(each.from).second);
      if (is_shown) out << "; " << task << ' ' << each.to_string();
      hidden += is_shown ? 0 : 1;
    }
    if (hidden > 0) out << ", and " << hidden << " more";
  }
  return out.str();
}

}  // namespace leat
