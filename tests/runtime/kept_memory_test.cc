// What a session keeps of a step that ran once, and for how long.
#include <gtest/gtest.h>

#include "graph/ops.h"
#include "runtime/local_session.h"
#include "tests/runtime/ops_for_tests.h"

namespace leat {
namespace {

class KeptMemory : public testing::Test {
 protected:
  KeptMemory() : session_({.threads = 1}, {.cpus = 1, .gpus = false}) {
    const Output x = placeholder(graph_, "x", f32, {any});
    big_ = op("TestAdd", {x, x}).name();
    small_ = constant(graph_, Tensor::scalar(1.0f)).name();
    session_.extend(graph_);
  }
  // A buffer of 1 MB that a tape made and no handle holds.
  std::weak_ptr<Buffer> run_big() {
    Tensor x(f32, {int64_t{1} << 18});
    std::fill_n(x.data<float>(), x.elements(), 1.0f);
    return session_.run({{"x", x}}, {big_}, {})[0].buffer();
  }
  void run_small(int64_t times) {
    for (int64_t i = 0; i < times; ++i) session_.run({}, {small_}, {});
  }

  Graph graph_;
  LocalSession session_;
  std::string big_, small_;
};

TEST_F(KeptMemory, ReturnsMemoryOfABigStepAfterSomeSteps) {
  const std::weak_ptr<Buffer> buffer = run_big();
  EXPECT_FALSE(buffer.expired()) << "the next step may be the same: it is kept for it";
  run_small(2 * LocalSession::calls_of_memory);
  EXPECT_TRUE(buffer.expired());
  EXPECT_NE(run_big().lock(), nullptr) << "it can be run again";
}

TEST_F(KeptMemory, KeepsMemoryUsedNowAndThen) {
  const std::weak_ptr<Buffer> first = run_big();
  for (int i = 0; i < 10; ++i) {
    run_small(LocalSession::calls_of_memory / 2);
    const std::weak_ptr<Buffer> again = run_big();
    EXPECT_EQ(again.lock(), first.lock());
  }
  EXPECT_FALSE(first.expired());
}

}  // namespace
}  // namespace leat
