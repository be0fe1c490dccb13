// Members of a mailbox that meet: all at the same time, whoever has come before.
#include <gtest/gtest.h>

#include <future>

#include "frontends/cpp/session.h"
#include "graph/ops.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MailboxMeet : public testing::Test {
 protected:
  MailboxMeet() {
    const auto add = [&](const char* op, std::vector<Output> inputs, AttrMap attrs = {}) {
      return &graph_.add({.op = op, .inputs = std::move(inputs), .attrs = std::move(attrs)});
    };
    const Output box =
        add("Mailbox", {}, {{"members", int64_t{3}}, {"shared_name", "m"}})->output();
    rank_ = placeholder(graph_, "rank", i32, {});
    meet_ = add("MailboxMeet", {box, rank_});
    join_ = add("MailboxJoin", {box, rank_});
    leave_ = add("MailboxLeave", {box, rank_}, {{"has_failed", true}});
    session_ = std::make_unique<Session>(graph_);
  }

  void run(Node& node, int rank, milliseconds timeout = seconds(20)) {
    session_->run({{rank_, Tensor::scalar(rank)}}, std::vector<Output>{}, {node},
                  {.timeout = timeout});
  }
  std::future<void> come(int rank) {
    return std::async(std::launch::async, [this, rank] { run(*meet_, rank); });
  }

  Graph graph_;
  Output rank_;
  Node *meet_ = nullptr, *join_ = nullptr, *leave_ = nullptr;
  std::unique_ptr<Session> session_;
};

// Member 2 has come, and given up: the others do not meet it.
TEST_F(MailboxMeet, WaitsForAllAtTheSameTime) {
  for (int round = 0; round < 3; ++round) {
    expect_error_with(Code::deadline_exceeded,
                      "all begin together; not here yet: member 0 and member 1",
                      [&] { run(*meet_, 2, milliseconds(50)); });
    auto first = come(0), second = come(1);
    EXPECT_EQ(first.wait_for(milliseconds(100)), std::future_status::timeout);
    auto third = come(2);
    for (auto* each : {&first, &second, &third}) each->get();
  }
}

TEST_F(MailboxMeet, EndsIfOneWillNotCome) {
  run(*join_, 1);
  auto first = come(0);
  EXPECT_EQ(first.wait_for(milliseconds(50)), std::future_status::timeout);
  run(*leave_, 1);
  expect_error_with(Code::failed_precondition,
                    "the program of member 1 has failed before all had come", [&] { first.get(); });
  run(*join_, 1);
  first = come(0);
  auto second = come(1), third = come(2);
  for (auto* each : {&first, &second, &third}) each->get();
}

}  // namespace
}  // namespace leat
