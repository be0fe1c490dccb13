#include "frontends/cpp/training/repeated_runs.h"

namespace leat {

RepeatedRuns::RepeatedRuns(Session& session, const std::vector<Awaited>& nodes,
                           std::function<void()> on_error)
    : on_error_(std::move(on_error)) {
  std::vector<Callable> runs;
  for (const Awaited& each : nodes) runs.push_back(session.prepare({}, {}, {*each.node}));
  try {
    for (Callable& run : runs) threads_.emplace_back([this, run = std::move(run)] { repeat(run); });
  } catch (...) {  // a thread could not start
    stop();
    throw;
  }
}

RepeatedRuns::~RepeatedRuns() { stop(); }

void RepeatedRuns::stop() {
  request_stop();
  for (std::thread& each : threads_) each.join();
}

void RepeatedRuns::repeat(const Callable& run) {
  try {
    while (!is_stopping()) run({});
    return;
  } catch (const Error& error) {
    const std::scoped_lock lock(mutex_);
    if (is_stopping_) return;
    if (!error_ || error_->code == Code::out_of_range) error_ = error.status();
  }
  if (on_error_) on_error_();
}

void RepeatedRuns::request_stop() {
  const std::scoped_lock lock(mutex_);
  is_stopping_ = true;
}

bool RepeatedRuns::is_stopping() const {
  const std::scoped_lock lock(mutex_);
  return is_stopping_;
}

std::optional<Status> RepeatedRuns::error() const {
  const std::scoped_lock lock(mutex_);
  return error_;
}

}  // namespace leat
