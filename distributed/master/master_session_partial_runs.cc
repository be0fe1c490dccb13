// The partial runs of a session.
#include "distributed/master/master_session.h"
#include "graph/endpoint.h"

namespace leat {

void MasterSession::partial_run_setup(const StepSignature& signature,
                                      std::function<void(const Status&, std::string)> done) {
  StepSignature partial;
  try {
    check(!signature.fetches.empty() || !signature.targets.empty(),
          "Must specify at least one target to fetch or execute.");
    partial = signature.normalised();
    std::set<std::string> fed;
    for (const std::string& name : signature.feeds) {
      const std::string feed = Endpoint::complete(name);
      check(fed.insert(feed).second, "Endpoint \"", feed, "\" fed more than once.");
    }
    partial.is_partial = true;
    std::lock_guard lock(mutex_);
    throw_if_error(closed_);
  } catch (...) {
    return done(status_of_current_exception(), "");
  }
  program(partial, [self = shared_from_this(), partial, done = std::move(done)](
                       const Status& status, const ClusterProgramCache::Program& program) {
    if (!status.is_ok()) return done(status, "");
    std::string handle;
    {
      std::lock_guard lock(self->mutex_);
      handle = std::to_string(++self->last_partial_run_);
      const auto forget = [kept = self->weak_from_this(), handle] {
        if (const auto session = kept.lock()) session->forget_partial_run(handle);
      };
      const auto run =
          std::make_shared<PartialRun>(handle, partial, program->fetch_feeds, *self->peers_->timer,
                                       call_timeout(self->options_), forget);
      run->begin_patience();
      self->partial_runs_[handle] = run;
    }
    done({}, handle);
  });
}

MasterSession::Cancel MasterSession::partial_run(const std::string& handle, ClientRequest request,
                                                 ClusterStep::Done done) {
  std::shared_ptr<PartialRun> run;
  PartialRun::Call call;
  try {
    {
      std::lock_guard lock(mutex_);
      throw_if_error(closed_);
      last_used_ = std::chrono::steady_clock::now();
      const auto found = partial_runs_.find(handle);
      check(found != partial_runs_.end(),
            "Must run PartialRunSetup before performing partial runs: there is no partial run ",
            handle, ", or it is over: it ends if it is not continued within ",
            seconds_text(call_timeout(options_)));
      run = found->second;
    }
    call = run->accept(std::move(request.feeds), request.fetches);
  } catch (...) {
    done({.status = status_of_current_exception()});
    return [](const Status&) {};
  }
  if (call.is_first) {
    ClusterStep::Request step;
    step.feeds.emplace(Endpoint::complete(std::string(deferred_values)), run->values());
    step.trace = request.options.trace;
    run->begun(start(run->signature(), std::move(step), request.options.partition_graphs,
                     [run](StepOutcome outcome) { run->ended(std::move(outcome)); }));
  }
  // The step itself has no deadline: it lasts as long as its client goes on.
  const Timer::Id too_late = end_call_at(request.times, handle, run, call);
  const bool is_last = call.is_last;
  run->exchange(std::move(call), [self = shared_from_this(), handle, too_late, is_last,
                                  done = std::move(done)](StepOutcome outcome) {
    self->peers_->timer->cancel(too_late);
    if (is_last || !outcome.status.is_ok()) self->forget_partial_run(handle);
    done(std::move(outcome));
  });
  return [run](const Status& status) { run->cancel(status); };
}

void MasterSession::forget_partial_run(const std::string& handle) {
  std::shared_ptr<PartialRun> last;  // goes after the lock
  std::lock_guard lock(mutex_);
  const auto found = partial_runs_.find(handle);
  if (found == partial_runs_.end()) return;
  last = std::move(found->second);
  partial_runs_.erase(found);
}

// Ends the whole run: nobody knows what a step would do with the rest.
Timer::Id MasterSession::end_call_at(const StepTimes& times, const std::string& handle,
                                     const std::shared_ptr<PartialRun>& run,
                                     const PartialRun::Call& call) {
  if (!times.deadline) return 0;
  std::string wanted;
  for (const std::string& fetch : call.fetches) wanted += (wanted.empty() ? "" : ", ") + fetch;
  const std::string text =
      concat("partial run ", handle, " did not ", wanted.empty() ? "end" : concat("reach ", wanted),
             " within the deadline of the call (", seconds_text(times.limit), ")");
  return peers_->timer->at(*times.deadline, [run, text] {
    run->cancel({Code::deadline_exceeded, text, false});
  });
}

}  // namespace leat
