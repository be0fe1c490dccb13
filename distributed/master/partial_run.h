// A partial run: one step of a session whose feeds arrive, and whose fetches leave, in several
// calls of its client. It begins with the first call, and ends when all is fed and fetched, or with
// the first error. If the client does not call again (it may have been killed), the step, and steps
// that wait for it, would hang: after some time without a call it ends with DEADLINE_EXCEEDED. All
// other codes and texts are TensorFlow's.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/state/deferred_values.h"
#include "core/state/resource.h"
#include "distributed/master/cluster_step.h"
#include "distributed/timer.h"

namespace leat {

// Thread-safe.
class PartialRun : public std::enable_shared_from_this<PartialRun> {
 public:
  // `signature` is normalised. At most `patience` may pass between two calls; `timer` outlives the
  // run. `forget` is called, on the timer's thread, if nothing asks for the run for that long after
  // its end.
  PartialRun(const std::string& handle, StepSignature signature, FetchFeeds fetch_feeds,
             Timer& timer, std::chrono::milliseconds patience, std::function<void()> forget);
  ~PartialRun();
  // Call once: from now on the run waits for its client.
  void begin_patience();

  // One call of the client.
  struct Call {
    NamedTensors feeds;
    std::vector<std::string> fetches;
    bool is_first = false;
    bool is_last = false;  // it waits for the step's end
  };
  // Records a call. INVALID_ARGUMENT if it feeds or fetches a name that the run does not have, or
  // that an earlier call used, or a fetch that needs a missing feed. The run is then unchanged.
  Call accept(NamedTensors feeds, const std::vector<std::string>& fetches);
  // Gives its feeds to the step, and waits for its fetches.
  void exchange(Call call, ClusterStep::Done done);

  const StepSignature& signature() const { return signature_; }
  // The feed of its step: deferred_values.
  Tensor values() const { return deferred_variant(values_); }
  // The step has begun; `cancel` ends it.
  using Cancel = std::function<void(const Status&)>;
  void begun(Cancel cancel);
  void cancel(const Status& status);
  // The step has ended. Calls that wait for a fetch it did not produce end with its error.
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
  Cancellation cancellation_;  // of the waiting calls
  std::mutex mutex_;
  std::map<std::string, bool> feeds_, fetches_;  // whether given or taken
  bool has_begun_ = false;
  int calls_ = 0;       // under way
  int64_t pauses_ = 0;  // times without a call
  Timer::Id patience_ends_ = 0;
  bool is_abandoned_ = false;
  Cancel cancel_;
  std::optional<Status> cancelled_;  // before the step could be cancelled
  std::optional<StepOutcome> outcome_;
  std::function<void()> last_call_;  // waits for the outcome
};

}  // namespace leat
