// What trainings recorded: lines become steps, programs become one curve.
#include "tools/leat/compare/training_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;

ProgramRecord program(double start, std::vector<RecordedStep> steps) {
  return {.start = start, .steps = std::move(steps)};
}

std::vector<double> losses(const std::vector<CurvePoint>& points) {
  std::vector<double> out;
  for (const CurvePoint& point : points) out.push_back(point.loss);
  return out;
}

// `count` steps, one every 0.1 s, whose loss falls from 1 to almost 0.
TrainingCurve falling(int count) {
  ProgramRecord record;
  for (int i = 0; i < count; ++i)
    record.steps.push_back({.seconds = 0.1 * (i + 1), .loss = 1 - i * 1.0 / count, .samples = 10});
  return merge({record});
}

TEST(TrainingRecord, ReadsWhatRecordTrainingWrites) {
  const auto steps = parse_record(
      "{\"step\": 1, \"seconds\": 0.5, \"loss\": 2.25, \"samples\": 50}\n"
      "{\"step\": 2, \"seconds\": 0.75, \"loss\": null, \"samples\": 50}\n"
      "{\"step\": 3, \"seconds\": 1, \"loss\": 1}\n",
      "1.jsonl");
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].seconds, 0.5);
  EXPECT_EQ(steps[0].loss, 2.25);
  EXPECT_EQ(steps[0].samples, 50);
  EXPECT_TRUE(std::isnan(steps[1].loss));
  EXPECT_EQ(steps[2].samples, 0) << "not recorded";
}

TEST(TrainingRecord, DropsALineThatAStoppedProgramDidNotEnd) {
  EXPECT_EQ(parse_record("{\"seconds\": 1, \"loss\": 1}\n{\"seconds\": 2, \"lo", "r").size(), 1u);
  EXPECT_TRUE(parse_record("", "r").empty());
}

TEST(TrainingRecord, NamesTheLineThatIsNoStep) {
  const std::string good = "{\"seconds\": 1, \"loss\": 1}\n";
  for (const char* bad : {"rubbish", "{\"seconds\": 1}", "{\"seconds\": \"x\", \"loss\": 1}", "[]",
                          "{\"seconds\": 1, \"loss\": \"\\u00", ""}) {
    expect_error([&] { parse_record(good + bad + "\n", "dir/7.jsonl"); }, Code::invalid_argument,
                 std::string("dir/7.jsonl, line 2, is not a step of a training record: ") + bad);
  }
}

TEST(TrainingRecord, ReadsADirectoryAndEstimatesWhenEachProgramBegan) {
  const ScratchDirectory folder;
  const double before = static_cast<double>(time(nullptr));
  std::ofstream(folder / "1.jsonl") << "{\"seconds\": 30, \"loss\": 1, \"samples\": 5}\n";
  std::ofstream(folder / "2.jsonl") << "{\"seconds\": 10, \"loss\": 1, \"samples\": 5}\n";
  std::ofstream(folder / "3.jsonl") << "";  // a program that made no step
  std::ofstream(folder / "notes.txt") << "not a record";
  std::vector<ProgramRecord> records = read_records(folder.path());
  ASSERT_EQ(records.size(), 2u);
  if (records[0].start > records[1].start) std::swap(records[0], records[1]);
  EXPECT_NEAR(records[0].start, before - 30, 20);
  EXPECT_NEAR(records[1].start - records[0].start, 20, 10);
}

TEST(TrainingRecord, MergesStepsOfProgramsByTime) {
  // The second program began 1 s later.
  const TrainingCurve curve = merge({program(101, {{0.5, 4, 20}, {2.5, 2, 20}}),
                                     program(100, {{1, 3, 10}, {3, 1, 10}, {4, 0, 10}})});
  EXPECT_EQ(curve.start, 100);
  EXPECT_EQ(curve.steps, 5);
  std::vector<double> seconds;
  std::vector<int64_t> samples;
  for (const CurvePoint& point : curve.points) {
    seconds.push_back(point.seconds);
    samples.push_back(point.samples);
    EXPECT_TRUE(std::isnan(point.bytes)) << "not known yet";
  }
  EXPECT_THAT(seconds, ElementsAre(1, 1.5, 3, 3.5, 4));
  EXPECT_THAT(samples, ElementsAre(10, 30, 40, 60, 70));
  EXPECT_THAT(losses(curve.points), ElementsAre(3, 4, 1, 2, 0)) << "too few steps to smooth";
  EXPECT_EQ(curve.seconds(), 4);
  EXPECT_EQ(curve.samples(), 70);
}

TEST(TrainingRecord, NoProgramsMakeAnEmptyCurve) {
  const TrainingCurve curve = merge({});
  EXPECT_TRUE(curve.is_empty());
  EXPECT_EQ(curve.seconds(), 0);
  EXPECT_TRUE(std::isnan(curve.final_loss()));
  EXPECT_EQ(seconds_to(curve, 1), std::nullopt);
}

// 60 steps: a window of 3.
TEST(TrainingRecord, SmoothsOverFivePercentOfTheSteps) {
  ProgramRecord record;
  for (int i = 0; i < 60; ++i) record.steps.push_back({i * 1.0, i % 3 * 30.0, 1});
  const TrainingCurve curve = merge({record});
  EXPECT_EQ(curve.points[0].loss, 0);
  EXPECT_EQ(curve.points[1].loss, 15) << "of the steps that there are";
  for (size_t i = 2; i < 60; ++i) EXPECT_DOUBLE_EQ(curve.points[i].loss, 30) << i;
  EXPECT_DOUBLE_EQ(curve.final_loss(), 30);
}

TEST(TrainingRecord, NanIsInTheMeansOfItsWindowOnly) {
  ProgramRecord record;
  for (int i = 0; i < 60; ++i) record.steps.push_back({i * 1.0, i == 20 ? NAN : 1.0, 1});
  const TrainingCurve curve = merge({record});
  for (size_t i = 0; i < 60; ++i)
    EXPECT_EQ(std::isnan(curve.points[i].loss), i >= 20 && i < 23) << i;
  EXPECT_EQ(curve.final_loss(), 1);
  record.steps[20].loss = 1e30;
  EXPECT_EQ(merge({record}).final_loss(), 1) << "huge losses are forgotten, too";
  record.steps.back().loss = NAN;
  EXPECT_TRUE(std::isnan(merge({record}).final_loss())) << "it diverged";
}

TEST(TrainingRecord, FindsWhenALossWasReached) {
  const TrainingCurve curve = falling(100);
  const double half = *seconds_to(curve, 0.5);
  // The mean of the last 5 steps lags by 2.
  EXPECT_NEAR(half, 0.1 * 53, 0.11);
  EXPECT_EQ(seconds_to(curve, 1), 0.1) << "the first step";
  EXPECT_EQ(seconds_to(curve, curve.final_loss()), curve.seconds()) << "its own end";
  EXPECT_EQ(seconds_to(curve, 0), std::nullopt);
  EXPECT_EQ(seconds_to(curve, NAN), std::nullopt);
}

TEST(TrainingRecord, ThinsToEvenlySpacedPointsWithBothEnds) {
  const std::vector<CurvePoint> points = falling(1001).points;
  for (const size_t most : {size_t{2}, size_t{11}, size_t{500}, size_t{1000}}) {
    const std::vector<CurvePoint> few = thin(points, most);
    ASSERT_EQ(few.size(), most);
    EXPECT_EQ(few.front().seconds, points.front().seconds);
    EXPECT_EQ(few.back().seconds, points.back().seconds);
    for (size_t i = 1; i < most; ++i)
      EXPECT_NEAR(few[i].seconds - few[i - 1].seconds, 100.0 / static_cast<double>(most - 1), 0.11);
  }
  EXPECT_EQ(thin(points, 1001).size(), 1001u);
  EXPECT_EQ(thin(points, 5000).size(), 1001u);
  EXPECT_TRUE(thin({}, 500).empty());
}

}  // namespace
}  // namespace leat
