// Nodes that run over and over beside the steps of a training.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "frontends/cpp/session.h"

namespace leat {

// Runs each node in a thread of its own, until one of its runs fails or request_stop(). The session
// must outlive this.
class RepeatedRuns {
 public:
  // `on_error` is called by the thread whose run has failed, unless a stop was requested.
  RepeatedRuns(Session& session, const std::vector<Awaited>& nodes,
               std::function<void()> on_error = {});
  // Requests a stop and waits for the runs under way.
  ~RepeatedRuns();
  RepeatedRuns(const RepeatedRuns&) = delete;

  // No further run begins, and an error from now on does not count.
  void request_stop();
  // Why a node has ended by itself: the end of its data only if there is no other reason.
  std::optional<Status> error() const;

 private:
  void stop();
  void repeat(const Callable& run);
  bool is_stopping() const;

  const std::function<void()> on_error_;
  mutable std::mutex mutex_;
  bool is_stopping_ = false;
  std::optional<Status> error_;
  std::vector<std::thread> threads_;
};

}  // namespace leat
