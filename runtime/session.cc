#include "runtime/session.h"

namespace leat {

// Sessions that can do no better: one step at a time.
void SessionInterface::run_steps(CallableHandle handle, int64_t steps, const StepFeeds& feed,
                                 const StepFetches& result, int) {
  std::vector<Tensor> feeds, fetches;
  for (int64_t step = 0; step < steps; ++step) {
    feeds.clear();
    feed(step, feeds);
    run_callable(handle, feeds, fetches);
    result(step, fetches);
  }
}

}  // namespace leat
