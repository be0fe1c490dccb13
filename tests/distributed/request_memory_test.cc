#include "distributed/request_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace leat {
namespace {

using Memory = RequestMemory<std::string>;

Memory::Done note(std::vector<std::string>& answers) {
  return [&answers](const std::shared_ptr<const std::string>& answer) {
    answers.push_back(answer == nullptr ? "gone" : *answer);
  };
}

TEST(RequestMemory, RepeatGetsTheFirstAnswer) {
  Memory memory({.requests = 10, .bytes = 1'000});
  std::vector<std::string> first, second;
  EXPECT_TRUE(memory.begin(7, note(first)));
  memory.answer(7, std::make_shared<const std::string>("one"), 3);
  EXPECT_FALSE(memory.begin(7, note(second)));
  EXPECT_EQ(first, std::vector<std::string>{"one"});
  EXPECT_EQ(second, std::vector<std::string>{"one"});
}

TEST(RequestMemory, RepeatJoinsTheRunningRequest) {
  Memory memory({.requests = 10, .bytes = 1'000});
  std::vector<std::string> first, second;
  EXPECT_TRUE(memory.begin(7, note(first)));
  EXPECT_FALSE(memory.begin(7, note(second)));
  EXPECT_TRUE(second.empty());
  memory.answer(7, std::make_shared<const std::string>("one"), 3);
  EXPECT_EQ(first.size(), 1u);
  EXPECT_EQ(second, std::vector<std::string>{"one"});
}

TEST(RequestMemory, DropsAnOldAnswerBeforeItsId) {
  Memory memory({.requests = 10, .bytes = 5});  // bytes for one answer
  std::vector<std::string> answers;
  for (const uint64_t id : {1, 2}) {
    EXPECT_TRUE(memory.begin(id, note(answers)));
    memory.answer(id, std::make_shared<const std::string>("value"), 5);
  }
  answers.clear();
  EXPECT_FALSE(memory.begin(1, note(answers))) << "the step must not run again";
  EXPECT_FALSE(memory.begin(2, note(answers)));
  EXPECT_EQ(answers, (std::vector<std::string>{"gone", "value"}));
}

TEST(RequestMemory, TooLargeAnswerDropsNoOther) {
  Memory memory({.requests = 10, .bytes = 10});
  std::vector<std::string> answers;
  EXPECT_TRUE(memory.begin(1, note(answers)));
  memory.answer(1, std::make_shared<const std::string>("small"), 5);
  EXPECT_TRUE(memory.begin(2, note(answers)));
  memory.answer(2, std::make_shared<const std::string>("large"), 11);
  EXPECT_EQ(answers, (std::vector<std::string>{"small", "large"}));
  answers.clear();
  EXPECT_FALSE(memory.begin(1, note(answers)));
  EXPECT_FALSE(memory.begin(2, note(answers)));
  EXPECT_EQ(answers, (std::vector<std::string>{"small", "gone"}));
}

TEST(RequestMemory, KeepsAnswersUpToItsLimit) {
  Memory memory({.requests = 10, .answers = 1});
  std::vector<std::string> answers;
  for (const uint64_t id : {1, 2}) {
    EXPECT_TRUE(memory.begin(id, note(answers)));
    memory.answer(id, std::make_shared<const std::string>("value"), 5);
  }
  answers.clear();
  EXPECT_FALSE(memory.begin(1, note(answers)));
  EXPECT_FALSE(memory.begin(2, note(answers)));
  EXPECT_EQ(answers, (std::vector<std::string>{"gone", "value"}));
}

TEST(RequestMemory, DropsExpiredAnswersWhenAnotherComes) {
  Memory memory({.requests = 10, .age = std::chrono::milliseconds(1)});
  std::vector<std::string> answers;
  const auto kept = std::make_shared<const std::string>("old");
  EXPECT_TRUE(memory.begin(1, note(answers)));
  memory.answer(1, kept, 3);
  EXPECT_EQ(kept.use_count(), 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(memory.begin(2, note(answers)));
  memory.answer(2, std::make_shared<const std::string>("new"), 3);
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_FALSE(memory.begin(1, note(answers))) << "its id is remembered";
}

TEST(RequestMemory, ForgetsTheOldestIds) {
  Memory memory({.requests = 2, .bytes = 1'000});
  std::vector<std::string> answers;
  for (const uint64_t id : {1, 2, 3}) {
    EXPECT_TRUE(memory.begin(id, note(answers)));
    memory.answer(id, std::make_shared<const std::string>("value"), 5);
  }
  EXPECT_FALSE(memory.begin(3, note(answers)));
  EXPECT_TRUE(memory.begin(1, note(answers))) << "forgotten: a new request";
}

}  // namespace
}  // namespace leat
