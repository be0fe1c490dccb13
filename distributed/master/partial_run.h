// A partial run: one step of a session whose feeds come, and whose fetches go, in several calls of
// its client. It begins with the first of them, and is over when all has been fed and fetched, or
// with the first error. One whose client does not call again (it may have been killed) would hold
// its step, and what other steps wait for, for ever: after some time without a call it ends with
// DEADLINE_EXCEEDED. Codes and texts are TensorFlow's, but for that.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/deferred_values.h"
#include "core/resource.h"
#include "distributed/master/cluster_step.h"
#include "distributed/timer.h"

namespace leat {

// Thread-safe.
class PartialRun : public std::enable_shared_from_this<PartialRun> {
 public:
  // `signature` is normalised. Between two calls pass `patience` at most; `timer` outlives the run.
  // `forget` is called, on the timer's thread, when so long after its end nobody has asked for it.
  PartialRun(const std::string& handle, StepSignature signature, FetchFeeds fetch_feeds,
             Timer& timer, std::chrono::milliseconds patience, std::function<void()> forget);
  ~PartialRun();
  // To be called once: from now on the client is waited for.
  void begin_patience();

  // One call of the client.
  struct Call {
    NamedTensors feeds;
    std::vector<std::string> fetches;
    bool is_first = false;
    bool is_last = false;  // it waits for the step's end
  };
  // Takes note of a call. INVALID_ARGUMENT if it feeds or fetches what the run does not have, or
  // what an earlier call did, or a fetch that needs what is not fed yet: then the run is as before.
  Call accept(NamedTensors feeds, const std::vector<std::string>& fetches);
  // Gives its feeds to the step, waits for its fetches.
  void exchange(Call call, ClusterStep::Done done);

  const StepSignature& signature() const { return signature_; }
  // What its step is fed: deferred_values.
  Tensor values() const { return deferred_variant(values_); }
  // The step has begun, and is cancelled by this.
  using Cancel = std::function<void(const Status&)>;
  void begun(Cancel cancel);
  void cancel(const Status& status);
  // The step has ended. Calls that wait for a fetch that it did not make end with its error.
  void ended(StepOutcome outcome);

 private:
  void finish(const Call& call, const Status& status, std::vector<Tensor> fetches,
              const ClusterStep::Done& done);

  void call_ended(bool is_over);
  void wait_for_client();  // with the lock held
  void abandon(int64_t pause);

  const std::string handle_;
  Timer& timer_;
  const std::chrono::milliseconds patience_;
  const std::function<void()> forget_;
  const StepSignature signature_;
  const FetchFeeds fetch_feeds_;
  const std::shared_ptr<DeferredValues> values_;
  Cancellation cancellation_;  // of the calls that wait
  std::mutex mutex_;
  std::map<std::string, bool> feeds_, fetches_;  // whether they were given and taken
  bool has_begun_ = false;
  int calls_ = 0;       // under way
  int64_t pauses_ = 0;  // times when there was none
  Timer::Id patience_ends_ = 0;
  bool is_abandoned_ = false;
  Cancel cancel_;
  std::optional<Status> cancelled_;  // before it could be
  std::optional<StepOutcome> outcome_;
  std::function<void()> last_call_;  // waits for the outcome
};

}  // namespace leat
