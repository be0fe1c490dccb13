// Charts as SVG: ticks that people read, lines where the numbers say.
#include "tools/leat/compare/line_chart.h"
#include "tools/markup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

std::vector<std::string> texts(const Axis& axis) {
  std::vector<std::string> out;
  for (const double tick : axis.ticks) out.push_back(tick_text(tick));
  return out;
}

// The points of the n-th line.
std::vector<std::pair<double, double>> path(const std::string& svg, size_t n = 0) {
  const std::regex lines("class=\"line[^\"]*\" d=\"([^\"]*)\""),
      points("[ML]([0-9.-]+) ([0-9.-]+)");
  std::sregex_iterator line(svg.begin(), svg.end(), lines);
  std::advance(line, n);
  const std::string d = (*line)[1];
  std::vector<std::pair<double, double>> out;
  for (std::sregex_iterator at(d.begin(), d.end(), points), end; at != end; ++at)
    out.emplace_back(std::stod((*at)[1]), std::stod((*at)[2]));
  return out;
}

LineChart chart(std::vector<ChartLine> lines) {
  LineChart out{.title = "t", .x_label = "x", .lines = std::move(lines)};
  std::vector<double> values;
  for (const ChartLine& line : out.lines) {
    for (const auto& [x, y] : line.points) values.push_back(y);
  }
  out.y = axis_for(values);
  out.width = 166, out.height = 180;  // the plot: 100 × 100
  return out;
}

TEST(LineChart, LinearTicksAreRound) {
  EXPECT_THAT(texts(linear_axis(0, 4.6)), ElementsAre("0", "1", "2", "3", "4"));
  EXPECT_THAT(texts(linear_axis(0, 10)), ElementsAre("0", "2", "4", "6", "8", "10"));
  EXPECT_THAT(texts(linear_axis(0, 40150)), ElementsAre("0", "10k", "20k", "30k", "40k"));
  EXPECT_THAT(texts(linear_axis(0, 0.003)),
              ElementsAre("0", "0.0005", "0.001", "0.0015", "0.002", "0.0025", "0.003"));
  EXPECT_THAT(texts(linear_axis(95, 100)), ElementsAre("95", "96", "97", "98", "99", "100"));
  EXPECT_EQ(linear_axis(1, 10).low, 0) << "0 is near";
}

TEST(LineChart, LinearAxisOfOneValueHasARange) {
  for (const double value : {0.0, 5.0, -2.0}) {
    const Axis axis = linear_axis(value, value);
    EXPECT_LT(axis.low, axis.high) << value;
    EXPECT_FALSE(axis.ticks.empty()) << value;
    EXPECT_TRUE(std::isfinite(axis.place(value)));
  }
}

TEST(LineChart, LogTicksThinWithTheNumberOfDecades) {
  EXPECT_THAT(texts(log_axis(0.11, 2.3)), ElementsAre("0.2", "0.5", "1", "2"));
  EXPECT_THAT(texts(log_axis(2, 8)), ElementsAre("2", "3", "4", "5", "6", "7", "8"));
  EXPECT_THAT(texts(log_axis(5e4, 7e8)), ElementsAre("100k", "1M", "10M", "100M"));
  EXPECT_DOUBLE_EQ(log_axis(0.01, 100).place(1), 0.5);
  EXPECT_GT(log_axis(3, 3).high, 3);
}

TEST(LineChart, AxisIsLogarithmicIfTheRangeNeedsIt) {
  EXPECT_TRUE(axis_for({2.3, 0.1}).is_log);
  EXPECT_FALSE(axis_for({2.3, 0.5}).is_log);
  EXPECT_FALSE(axis_for({100, -1}).is_log) << "no logarithm";
  EXPECT_FALSE(axis_for({100, 0}).is_log);
  const Axis axis = axis_for({NAN, 3, INFINITY, 2});
  EXPECT_EQ(axis.low, 2);
  EXPECT_EQ(axis.high, 3);
  EXPECT_FALSE(axis_for({}).ticks.empty());
  EXPECT_FALSE(axis_for({NAN}).ticks.empty());
}

TEST(LineChart, TicksAreShort) {
  EXPECT_EQ(tick_text(0), "0");
  EXPECT_EQ(tick_text(250), "250");
  EXPECT_EQ(tick_text(1500), "1.5k");
  EXPECT_EQ(tick_text(20e6), "20M");
  EXPECT_EQ(tick_text(3e9), "3G");
  EXPECT_EQ(tick_text(-0.05), "-0.05");
  EXPECT_EQ(tick_text(3 * 0.1), "0.3") << "no 0.30000000000000004";
}

TEST(LineChart, DrawsLinesWhereTheNumbersSay) {
  const std::string svg = draw(chart({{"a", {{0, 4}, {5, 2}, {10, 0}}}, {"b", {{10, 4}}}}), 0, 0);
  EXPECT_THAT(path(svg, 0), ElementsAre(Pair(0, 0), Pair(50, 50), Pair(100, 100)));
  EXPECT_THAT(path(svg, 1), ElementsAre(Pair(100, 0)));
  EXPECT_THAT(svg, HasSubstr("class=\"line c0\""));
  EXPECT_THAT(svg, HasSubstr("class=\"line c1\""));
  EXPECT_THAT(svg, Not(HasSubstr("logarithmic")));
}

TEST(LineChart, NanIsAGap) {
  const std::string svg = draw(chart({{"a", {{0, 1}, {1, NAN}, {2, 0}, {4, 1}}}}), 0, 0);
  EXPECT_THAT(svg, HasSubstr("d=\"M0.0 0.0M50.0 100.0L100.0 0.0\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

// Lines that end far apart: a linear axis would show the shorter one as a dash.
TEST(LineChart, LinesThatEndFarApartHaveALogarithmicAxis) {
  const std::string svg = draw(chart({{"none", {{0, 2}}},
                                      {"few", {{0, 3}, {1, 1}, {100, 0}}},
                                      {"many", {{0, 2}, {10'000, 1}}}}),
                               0, 0);
  EXPECT_THAT(svg, HasSubstr("x (logarithmic)"));
  EXPECT_THAT(path(svg, 0), ElementsAre(Pair(0, testing::_), Pair(50, 100)));
  EXPECT_THAT(path(svg, 1), ElementsAre(Pair(100, testing::_)));
}

TEST(LineChart, NothingToDrawIsAnEmptyChart) {
  for (const LineChart& empty : {chart({}), chart({{"a", {}}}), chart({{"a", {{NAN, NAN}}}})}) {
    const std::string svg = draw(empty, 0, 0);
    EXPECT_THAT(svg, HasSubstr("class=\"axis\""));
    EXPECT_THAT(svg, Not(HasSubstr("class=\"line")));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
  }
}

TEST(LineChart, LabelsDoNotTouch) {
  LineChart narrow = chart({{"a", {{0, 1}, {600, 2}}}});
  const std::string svg = draw(narrow, 0, 0);
  const std::regex label(
      "class=\"tick\" x=\"([0-9.]+)\" y=\"[0-9.]+\" text-anchor=\"middle\">([^<]*)");
  double end = -100;
  for (std::sregex_iterator at(svg.begin(), svg.end(), label), last; at != last; ++at) {
    const double half = 3.6 * static_cast<double>((*at)[2].length());
    EXPECT_GT(std::stod((*at)[1]) - half, end);
    end = std::stod((*at)[1]) + half;
  }
  EXPECT_GT(end, 0);
}

TEST(LineChart, LegendHasRowsAndAllNames) {
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back("parameter_server:staleness=" + std::to_string(i));
  double one = 0, many = 0;
  draw_legend({"a", "b"}, 0, 0, 800, one);
  const std::string svg = draw_legend(names, 0, 0, 800, many);
  EXPECT_EQ(many, 4 * one);
  for (const std::string& name : names) EXPECT_THAT(svg, HasSubstr(">" + name + "<"));
  EXPECT_THAT(svg, HasSubstr("class=\"line c1 dashed\"")) << "colours are used again";
}

TEST(LineChart, EscapesNames) {
  EXPECT_EQ(escaped_markup("a<b & \"c\">"), "a&lt;b &amp; &quot;c&quot;&gt;");
  EXPECT_THAT(draw(chart({{"<x>", {{0, 1}}}}), 0, 0), HasSubstr("<title>&lt;x&gt;</title>"));
}

TEST(LineChart, StyleHasLightAndDark) {
  EXPECT_THAT(chart_style(), HasSubstr("@media (prefers-color-scheme: dark)"));
}

}  // namespace
}  // namespace leat
