#include "distributed/master/partial_run.h"

#include <algorithm>
#include <utility>

#include "graph/endpoint.h"

namespace leat {
namespace {

std::map<std::string, bool> none_yet(const std::vector<std::string>& names) {
  std::map<std::string, bool> out;
  for (const std::string& name : names) out[name] = false;
  return out;
}

bool are_all_done(const std::map<std::string, bool>& names) {
  return std::ranges::all_of(names, [](const auto& entry) { return entry.second; });
}

// Marks all names, or throws and marks none.
void mark(std::map<std::string, bool>& known, const std::vector<std::string>& names,
          std::string_view what, std::string_view participle) {
  std::map<std::string, bool> marked = known;
  for (const std::string& name : names) {
    const auto found = marked.find(name);
    check(found != marked.end(), "The ", what, " ", name,
          " was not specified in partial_run_setup.");
    check(!found->second, "The ", what, " ", name, " has already been ", participle, ".");
    found->second = true;
  }
  known = std::move(marked);
}

}  // namespace

PartialRun::PartialRun(const std::string& handle, StepSignature signature, FetchFeeds fetch_feeds,
                       Timer& timer, std::chrono::milliseconds patience,
                       std::function<void()> forget)
    : handle_(handle),
      timer_(timer),
      patience_(patience),
      forget_(std::move(forget)),
      signature_(std::move(signature)),
      fetch_feeds_(std::move(fetch_feeds)),
      values_(std::make_shared<DeferredValues>("partial run " + handle)),
      feeds_(none_yet(signature_.feeds)),
      fetches_(none_yet(signature_.fetches)) {
  cancellation_.begin(0);
}

PartialRun::~PartialRun() { timer_.cancel(patience_ends_); }

void PartialRun::begin_patience() {
  const std::lock_guard lock(mutex_);
  wait_for_client();
}

PartialRun::Call PartialRun::accept(NamedTensors feeds, const std::vector<std::string>& fetches) {
  Call call;
  std::vector<std::string> fed;
  for (auto& [name, value] : feeds) {
    fed.push_back(Endpoint::complete(std::move(name)));
    call.feeds.emplace_back(fed.back(), std::move(value));
  }
  for (const std::string& fetch : fetches) call.fetches.push_back(Endpoint::complete(fetch));
  std::vector<std::string> fetched = call.fetches;  // a call may ask for one twice
  std::sort(fetched.begin(), fetched.end());
  fetched.erase(std::unique(fetched.begin(), fetched.end()), fetched.end());

  std::lock_guard lock(mutex_);
  std::map<std::string, bool> feeds_then = feeds_, fetches_then = fetches_;
  mark(feeds_then, fed, "feed", "fed");
  mark(fetches_then, fetched, "fetch", "fetched");
  for (const std::string& fetch : fetched) {
    const auto behind = fetch_feeds_.find(fetch);
    if (behind == fetch_feeds_.end()) continue;
    for (const std::string& feed : behind->second) {
      check(feeds_then.at(feed), "Fetch ", fetch,
            " can't be computed from the feeds that have been fed so far. It needs ", feed);
    }
  }
  feeds_ = std::move(feeds_then);
  fetches_ = std::move(fetches_then);
  call.is_first = !has_begun_;
  call.is_last = are_all_done(feeds_) && are_all_done(fetches_);
  has_begun_ = true;
  ++calls_;
  timer_.cancel(std::exchange(patience_ends_, 0));
  return call;
}

void PartialRun::call_ended(bool is_over) {
  std::lock_guard lock(mutex_);
  if (--calls_ == 0 && !is_over) wait_for_client();
}

void PartialRun::wait_for_client() {
  patience_ends_ = timer_.after(patience_, [weak = weak_from_this(), pause = ++pauses_] {
    if (const auto self = weak.lock()) self->abandon(pause);
  });
}

// Who comes late is told so; who does not come at all is forgotten.
void PartialRun::abandon(int64_t pause) {
  bool is_known_to_be = false;
  {
    std::lock_guard lock(mutex_);
    if (calls_ > 0 || pauses_ != pause) return;  // a call came just now
    is_known_to_be = std::exchange(is_abandoned_, true);
    if (!is_known_to_be) wait_for_client();
  }
  if (is_known_to_be) return forget_();
  cancel({Code::deadline_exceeded,
          concat("the partial run ", handle_, " was not continued for ", seconds_text(patience_),
                 ": its client has gone, or needs a longer operation_timeout_in_ms"),
          false});
}

void PartialRun::exchange(Call call, ClusterStep::Done told) {
  const ClusterStep::Done done = [self = shared_from_this(), told = std::move(told),
                                  is_last = call.is_last](StepOutcome outcome) {
    self->call_ended(is_last || !outcome.status.is_ok());
    told(std::move(outcome));
  };
  values_->give(std::move(call.feeds));
  call.feeds.clear();
  std::vector<std::string> distinct = call.fetches;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  values_->take(distinct, cancellation_,
                [self = shared_from_this(), call, distinct, done](
                    const Status& status, const std::vector<Tensor>& values) {
                  std::vector<Tensor> fetches;
                  if (status.is_ok()) {
                    for (const std::string& fetch : call.fetches) {
                      const auto at = std::ranges::lower_bound(distinct, fetch);
                      fetches.push_back(values[static_cast<size_t>(at - distinct.begin())]);
                    }
                  }
                  self->finish(call, status, std::move(fetches), done);
                });
}

// The last call tells how the step ended, the others only what they asked for.
void PartialRun::finish(const Call& call, const Status& status, std::vector<Tensor> fetches,
                        const ClusterStep::Done& done) {
  if (!status.is_ok() || !call.is_last) return done({.status = status, .fetches = fetches});
  const auto tell = [self = shared_from_this(), fetches = std::move(fetches), done] {
    StepOutcome outcome = *self->outcome_;
    if (outcome.status.is_ok()) outcome.fetches = fetches;
    done(std::move(outcome));
  };
  {
    std::lock_guard lock(mutex_);
    if (!outcome_) {
      last_call_ = tell;
      return;
    }
  }
  tell();
}

void PartialRun::begun(Cancel cancel) {
  std::optional<Status> cancelled;
  {
    std::lock_guard lock(mutex_);
    cancel_ = cancel;
    cancelled = cancelled_;
  }
  if (cancelled) cancel(*cancelled);
}

void PartialRun::cancel(const Status& status) {
  Cancel cancel;
  {
    std::lock_guard lock(mutex_);
    cancel = cancel_;
    if (!cancel) cancelled_ = status;
  }
  if (cancel) cancel(status);
}

void PartialRun::ended(StepOutcome outcome) {
  Status status = outcome.status;
  if (status.is_ok()) {
    status = {Code::invalid_argument,
              "the partial run has ended without the value that was fetched: its node was not run, "
              "because it is in a branch that was not taken",
              false};
  }
  std::function<void()> last_call;
  {
    std::lock_guard lock(mutex_);
    if (outcome_) return;
    outcome_ = std::move(outcome);
    last_call.swap(last_call_);
  }
  cancellation_.cancel(0, status);
  if (last_call) last_call();
}

}  // namespace leat
