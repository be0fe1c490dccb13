// What `leat compare` makes of its trainings: a table, JSON, a page and a picture.
#include "tools/leat/compare/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "tools/leat/compare/report.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// `count` steps in `seconds`, with a loss that falls linearly from 2 to `last`.
StrategyResult result(const std::string& name, int count, double seconds, double last,
                      double bytes_per_step) {
  ProgramRecord record;
  for (int i = 1; i <= count; ++i) {
    record.steps.push_back(
        {.seconds = seconds * i / count, .loss = 2 - (2 - last) * i / count, .samples = 50});
  }
  StrategyResult out{.name = name, .curve = merge({record})};
  for (size_t i = 0; i < out.curve.points.size(); ++i)
    out.curve.points[i].bytes = bytes_per_step * static_cast<double>(i + 1);
  return out;
}

Comparison example() {
  Comparison out{.title = "MNIST <1>", .setting = "4 workers, 1 parameter server; mnist"};
  out.results.push_back(result("one_device", 1000, 10, 0.1, 0));
  out.results.push_back(result("local_sgd:steps=5", 10, 5, 0.4, 1e6));
  out.results.back().waits = {{"worker:1", 0.625}, {"ps:0", 0.375}};
  return out;
}

StrategyResult failed(const std::string& problem) {
  return {.name = "no_such", .problem = problem};
}

TEST(CompareReport, TableHasAllFigures) {
  const auto rows = figures(example());
  EXPECT_THAT(rows[0],
              ElementsAre("strategy", "steps", "samples", "seconds", "samples/s", "bytes/sample",
                          "final loss", "s to loss 0.4000", "most waited for"));
  // A mean of the last 50 of 1000 steps is 0.1 plus 24.5 steps of 0.0019.
  EXPECT_NEAR(std::stod(rows[1][6]), 0.14655, 1e-4);
  EXPECT_THAT(rows[1], ElementsAre("one_device", "1000", "50000", "10.00", "5000", "0 B",
                                   testing::_, testing::_, "–"));
  EXPECT_NEAR(std::stod(rows[1][7]), 10 * (1.6 / 1.9) + 0.245, 0.02);
  EXPECT_THAT(rows[2], ElementsAre("local_sgd:steps=5", "10", "500", "5.00", "100", "20.0 kB",
                                   "0.4000", "5.00", "worker:1 62 %"));
}

TEST(CompareReport, FailedAndDivergedStrategiesSetNoGoal) {
  Comparison comparison = example();
  comparison.results.push_back(failed("mnist ended with exit status 1"));
  comparison.results.push_back(result("diverged", 100, 1, 1, 0));
  for (CurvePoint& point : comparison.results.back().curve.points) point.loss = NAN;
  comparison.results.push_back(result("late", 100, 1, 1.5, 0));
  comparison.results.back().problem = "it did not end";
  EXPECT_DOUBLE_EQ(common_loss(comparison), 0.4);
  const auto rows = figures(comparison);
  for (size_t column = 1; column < rows[0].size(); ++column) EXPECT_EQ(rows[3][column], "–");
  EXPECT_EQ(rows[4][6], "–") << "the loss is NaN";
  EXPECT_EQ(rows[4][7], "–");
  EXPECT_EQ(rows[5][7], "–") << "it did not get there";
  EXPECT_EQ(rows[5][1], "100") << "what it did before";
  EXPECT_THAT(to_text(comparison), HasSubstr("no_such failed: mnist ended with exit status 1\n"));
}

TEST(CompareReport, OnlyFailuresHaveNoGoal) {
  const Comparison comparison{.results = {failed("why")}};
  EXPECT_TRUE(std::isnan(common_loss(comparison)));
  EXPECT_EQ(figures(comparison)[0][7], "s to the same loss");
  EXPECT_THAT(to_html(comparison), Not(HasSubstr("nan")));
}

TEST(CompareReport, BytesHaveUnits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.0 kB");
  EXPECT_EQ(bytes_text(16'540), "16.5 kB");
  EXPECT_EQ(bytes_text(123'400'000), "123 MB");
  EXPECT_EQ(bytes_text(999'700), "1.0 MB") << "not 1000 kB";
  EXPECT_EQ(bytes_text(5e13), "50.0 TB");
  EXPECT_EQ(bytes_text(NAN), "–");
}

TEST(CompareReport, JsonHasFiguresCurvesAndWaits) {
  Comparison comparison = example();
  comparison.results[1].curve.points[3].loss = NAN;
  comparison.results.push_back(failed("a broken name: \xff"));
  const auto json = nlohmann::json::parse(to_json(comparison));
  EXPECT_EQ(json["title"], "MNIST <1>");
  EXPECT_DOUBLE_EQ(json["common_loss"], 0.4);
  ASSERT_EQ(json["strategies"].size(), 3u);
  const auto& first = json["strategies"][0];
  EXPECT_EQ(first["strategy"], "one_device");
  EXPECT_EQ(first["steps"], 1000);
  EXPECT_EQ(first["samples"], 50'000);
  EXPECT_EQ(first["samples_per_second"], 5000);
  for (const char* series : {"seconds", "loss", "samples", "bytes"})
    EXPECT_EQ(first["curve"][series].size(), 500u) << "thinned";
  EXPECT_EQ(first["curve"]["samples"].back(), 50'000);
  EXPECT_FALSE(first.contains("problem"));
  const auto& second = json["strategies"][1];
  EXPECT_EQ(second["bytes"], 1e7);
  EXPECT_EQ(second["bytes_per_sample"], 20'000);
  EXPECT_TRUE(second["curve"]["loss"][3].is_null());
  EXPECT_EQ(second["waits"][0]["for"], "worker:1");
  EXPECT_EQ(second["waits"][0]["share"], 0.625);
  EXPECT_TRUE(json["strategies"][2]["final_loss"].is_null());
  EXPECT_THAT(std::string(json["strategies"][2]["problem"]), HasSubstr("a broken name"));
}

size_t count(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

TEST(ComparePage, ThePageNeedsNothingElse) {
  const std::string html = to_html(example());
  EXPECT_EQ(count(html, "<script|<link|<img|@import|url\\(|src="), 0u);
  EXPECT_EQ(count(html, "https?://"), count(html, "xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(html, HasSubstr("<title>MNIST &lt;1&gt;</title>"));
}

TEST(ComparePage, HasChartsTablesAndFailures) {
  Comparison comparison = example();
  comparison.results.push_back(failed("<why>"));
  comparison.results[0].waits = {{"FIFOQueue '<q>'", 1}};
  const std::string html = to_html(comparison);
  for (const char* title : {"Loss against time", "Loss against samples", "Loss against bytes"})
    EXPECT_THAT(html, HasSubstr(title));
  EXPECT_EQ(count(html, "<path class=\"line c0\""), 4u) << "the legend and three charts";
  EXPECT_EQ(count(html, "<path class=\"line c1\""), 4u);
  EXPECT_EQ(count(html, "<path class=\"line c2\""), 1u) << "the legend";
  EXPECT_THAT(html, HasSubstr("<td>20.0 kB</td>"));
  EXPECT_THAT(html, HasSubstr("<td>worker:1 62 %, ps:0 38 %</td>"));
  EXPECT_EQ(count(html, "<td>FIFOQueue '&lt;q&gt;' 100 %</td>"), 2u) << "in both tables";
  EXPECT_THAT(html, HasSubstr("no_such failed: &lt;why&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
}

TEST(ComparePage, ThePictureStandsAlone) {
  const std::string svg = to_svg(example());
  EXPECT_THAT(svg, testing::StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_EQ(count(svg, "<path class=\"line c1\""), 4u);
  EXPECT_EQ(count(svg, "<g[ >]"), count(svg, "</g>"));
}

}  // namespace
}  // namespace leat
