// Partial runs whose client does not come back. master_service_test.cc and tests/tensorflow/ cover
// clients that do.
#include "distributed/master/partial_run.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/eventually.h"

namespace leat {
namespace {

using std::chrono::milliseconds;

struct Begun {
  explicit Begun(milliseconds patience = milliseconds(20))
      : run(std::make_shared<PartialRun>(
            "1", StepSignature{.feeds = {"x:0"}, .fetches = {"y:0", "z:0"}, .targets = {}},
            FetchFeeds{}, timer, patience, [this] { is_forgotten = true; })) {}
  // The status of a call whose fetch the step has made.
  void call(NamedTensors feeds, const std::string& fetch) {
    PartialRun::Call call = run->accept(std::move(feeds), {fetch});
    deferred_values_of(run->values()).deliver(fetch, Tensor::scalar(1.0f));
    run->exchange(std::move(call), [this](StepOutcome outcome) { status = outcome.status; });
  }

  std::atomic<bool> is_forgotten{false};
  Status status;
  Timer timer;
  std::shared_ptr<PartialRun> run;
};

TEST(PartialRun, IsForgottenIfItsClientNeverCalls) {
  Begun run;
  run.run->begin_patience();
  EXPECT_TRUE(eventually([&] { return run.is_forgotten.load(); }));
}

TEST(PartialRun, IsCancelledAndForgottenIfItsClientDoesNotCallAgain) {
  Begun run;
  run.run->begin_patience();
  run.call({}, "y:0");
  EXPECT_TRUE(run.status.is_ok());
  std::atomic<bool> is_cancelled{false};
  run.run->begun([&](const Status& why) {
    EXPECT_EQ(code_name(why.code), code_name(Code::deadline_exceeded));
    is_cancelled = true;
    run.run->ended({.status = why});
  });
  EXPECT_TRUE(eventually([&] { return is_cancelled.load(); }));
  EXPECT_TRUE(eventually([&] { return run.is_forgotten.load(); }));
}

TEST(PartialRun, IsForgottenIfItsStepEndsBetweenTwoCalls) {
  Begun run;
  run.run->begin_patience();
  run.call({}, "y:0");
  run.run->ended({.status = {Code::internal, "broken"}});
  EXPECT_TRUE(eventually([&] { return run.is_forgotten.load(); }));
}

TEST(PartialRun, EndedRunDoesNotWaitForItsClient) {
  Begun run;
  run.run->begin_patience();
  run.call({}, "y:0");
  run.run->ended({});
  run.call({{"x:0", Tensor::scalar(2.0f)}}, "z:0");
  EXPECT_TRUE(run.status.is_ok());
  std::atomic<bool> is_later{false};
  run.timer.after(milliseconds(100), [&] { is_later = true; });  // timers run in order
  EXPECT_TRUE(eventually([&] { return is_later.load(); }));
  EXPECT_FALSE(run.is_forgotten);
}

}  // namespace
}  // namespace leat
