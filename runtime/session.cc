#include "runtime/session.h"

#include <algorithm>

#include "runtime/run_steps.h"

namespace leat {

std::chrono::milliseconds call_timeout(const SessionOptions& options,
                                       std::chrono::milliseconds asked) {
  constexpr std::chrono::milliseconds usual = std::chrono::minutes(10);
  if (asked.count() <= 0) asked = options.timeout;
  return asked.count() > 0 ? std::min(asked, longest_timeout) : usual;
}

void fail_for_feeds(const StepSignature& signature, size_t values) {
  std::string names;
  for (const std::string& name : signature.feeds) names += (names.empty() ? "" : ", ") + name;
  fail(Code::invalid_argument, "the callable takes ", signature.feeds.size(),
       signature.feeds.size() == 1 ? " feed" : " feeds", names.empty() ? "" : " (" + names + ")",
       ", ", values, values == 1 ? " was given" : " were given");
}

// For sessions without a better way: one step at a time.
void SessionInterface::run_steps(CallableHandle handle, int64_t steps, const StepFeeds& feed,
                                 const StepFetches& result, int) {
  std::vector<Tensor> feeds, fetches;
  for (int64_t step = 0; step < steps; ++step) {
    feeds.clear();
    feed(step, feeds);
    try {
      run_callable(handle, feeds, fetches);
    } catch (...) {
      rethrow_of_step(step);
    }
    result(step, fetches);
  }
}

void rethrow_of_step(int64_t step) {
  try {
    throw;
  } catch (const Error& error) {
    Status status = error.status();
    status.message = concat("step ", step, ": ", status.message);
    throw Error(status);
  }
}

}  // namespace leat
