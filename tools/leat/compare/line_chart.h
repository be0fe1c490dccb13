// Line charts as SVG, without a library: axes with ticks, a grid, one colour per line.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {

// A range with its ticks.
struct Axis {
  double low = 0, high = 1;
  bool is_log = false;
  std::vector<double> ticks;

  double place(double value) const;  // 0 at `low`, 1 at `high`
};

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // a NaN is a gap
};

struct LineChart {
  std::string title, x_label;
  std::vector<ChartLine> lines;  // each in the colour of its number
  Axis y;
  int width = 420, height = 320;
};

// Ticks at 1, 2 or 5 times a power of ten, about `count` of them; the range begins and ends at the
// data, or at 0 if that is near.
Axis linear_axis(double low, double high, int count = 6);
// Both positive. Ticks at powers of ten; within few decades also at 2 and 5 times, or all digits.
Axis log_axis(double low, double high);
// For the finite ones of these values: logarithmic, with a little room below, if all are positive
// and the largest is at least 10 times the smallest.
Axis axis_for(const std::vector<double>& values);

// "0", "250", "1.5k", "20M"
std::string tick_text(double value);

// A <g> of the chart's size, with its corner at (x, y). Its classes need chart_style().
std::string draw(const LineChart& chart, double x, double y);

// The names with their colours in rows of at most `width`; sets its height.
std::string draw_legend(const std::vector<std::string>& names, double x, double y, double width,
                        double& height);

// The rules for light and dark, to be put into a <style>.
std::string chart_style();

}  // namespace leat
