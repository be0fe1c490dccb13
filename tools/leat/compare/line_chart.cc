#include "tools/leat/compare/line_chart.h"
#include "tools/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace leat {
namespace {

// Of the lines, in light and in dark; those after the last one have the same again, dashed.
constexpr std::pair<const char*, const char*> colours[] = {
    {"#2a78d6", "#4b97ee"}, {"#e2611f", "#e8743c"}, {"#149a68", "#2bb782"}, {"#c98700", "#d99a1c"},
    {"#c2408f", "#e06bb0"}, {"#5b4bc4", "#9a8df0"}, {"#5f8a00", "#94bd2f"}, {"#d03b3b", "#f07070"}};
constexpr size_t colour_count = std::size(colours);

// Around the plot.
constexpr double left = 52, right = 14, top = 34, bottom = 46;
constexpr double letter = 7.2;  // about the width of one, at the size of the legend

std::string line_class(size_t i) {
  return fmt::format("line c{}{}", i % colour_count, i / colour_count % 2 == 1 ? " dashed" : "");
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value), high = std::max(high, value);
  }
  bool is_empty() const { return low > high; }
};

// Logarithmic if the lines end far apart. It then begins at a hundredth of the nearest end: what
// lies before is the wide empty start of the others.
Axis x_axis_of(const LineChart& chart) {
  Range ends, all;
  for (const ChartLine& line : chart.lines) {
    Range own;
    for (const auto& [x, y] : line.points) {
      if (std::isfinite(y)) own.add(x);
    }
    if (own.is_empty()) continue;
    all.add(own.high);
    if (own.high > 0) ends.add(own.high);
  }
  if (!ends.is_empty() && ends.high > 12 * ends.low) return log_axis(ends.low / 100, ends.high);
  return linear_axis(0, all.is_empty() ? 1 : all.high);
}

std::string path_of(const ChartLine& line, const Axis& x, const Axis& y, double width,
                    double height) {
  std::string out;
  bool is_drawing = false;
  for (const auto& [at, value] : line.points) {
    if (!std::isfinite(at) || !std::isfinite(value) || at < x.low || (y.is_log && value <= 0)) {
      is_drawing = false;
      continue;
    }
    out += fmt::format("{}{:.1f} {:.1f}", is_drawing ? "L" : "M", x.place(at) * width,
                       (1 - y.place(value)) * height);
    is_drawing = true;
  }
  return out;
}

}  // namespace

double Axis::place(double value) const {
  if (!is_log) return (value - low) / (high - low);
  return std::log(value / low) / std::log(high / low);
}

Axis linear_axis(double low, double high, int count) {
  if (low > 0 && low < high / 3) low = 0;
  if (!(high > low)) high = low + (low == 0 ? 1 : std::abs(low) / 10);
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5, 2, 1}) {
    if (rough <= factor * power) step = factor * power;
  }
  Axis out{.low = low, .high = high};
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i)
    out.ticks.push_back(i * step);
  return out;
}

Axis log_axis(double low, double high) {
  if (!(high > low)) high = low * 10;
  Axis out{.low = low, .high = high, .is_log = true};
  const double decades = std::log10(high / low);
  std::vector<double> digits{1};
  if (decades <= 3) digits = {1, 2, 5};
  if (decades <= 0.7) digits = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (double power = std::floor(std::log10(low)); power <= std::ceil(std::log10(high)); ++power) {
    for (const double digit : digits) {
      const double tick = digit * std::pow(10, power);
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) out.ticks.push_back(tick);
    }
  }
  return out;
}

Axis axis_for(const std::vector<double>& values) {
  Range range;
  for (const double value : values) range.add(value);
  if (range.is_empty()) return linear_axis(0, 1);
  if (range.low > 0 && range.high >= 10 * range.low) return log_axis(range.low * 0.9, range.high);
  return linear_axis(range.low, range.high);
}

std::string tick_text(double value) {
  if (value == 0) return "0";
  static constexpr std::pair<double, const char*> units[] = {
      {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [unit, letters] : units) {
    if (std::abs(value) >= unit) return fmt::format("{:.4g}{}", value / unit, letters);
  }
  return fmt::format("{:.4g}", value);
}

std::string draw(const LineChart& chart, double x, double y) {
  const double width = chart.width - left - right, height = chart.height - top - bottom;
  const Axis across = x_axis_of(chart), &up = chart.y;
  std::string out = fmt::format("<g transform=\"translate({} {})\">\n", x, y);
  out += fmt::format("<text class=\"title\" x=\"{}\" y=\"18\">{}</text>\n", left,
                     escaped_markup(chart.title));
  out += fmt::format("<g transform=\"translate({} {})\">\n", left, top);
  for (const double tick : up.ticks) {
    const double at = (1 - up.place(tick)) * height;
    out += fmt::format(
        "<path class=\"grid\" d=\"M0 {:.1f}H{:.1f}\"/>"
        "<text class=\"tick\" x=\"-7\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        at, width, at + 4, tick_text(tick));
  }
  double free = -1e9;  // labels that would touch the one before are left out
  for (const double tick : across.ticks) {
    const double at = across.place(tick) * width;
    const std::string text = tick_text(tick);
    const double half = static_cast<double>(text.size()) * letter / 2;
    out += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}v5\"/>", at, height);
    if (at - half < free) continue;
    free = at + half + 6;
    out += fmt::format(
        "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}"
        "</text>\n",
        at, height + 19, text);
  }
  out += fmt::format("<path class=\"axis\" d=\"M0 0V{:.1f}H{:.1f}\"/>\n", height, width);
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const std::string path = path_of(chart.lines[i], across, up, width, height);
    if (path.empty()) continue;
    out += fmt::format("<path class=\"{}\" d=\"{}\"><title>{}</title></path>\n", line_class(i),
                       path, escaped_markup(chart.lines[i].name));
  }
  out += fmt::format(
      "<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}{}"
      "</text>\n",
      width / 2, height + 39, escaped_markup(chart.x_label), across.is_log ? " (logarithmic)" : "");
  return out + "</g>\n</g>\n";
}

std::string draw_legend(const std::vector<std::string>& names, double x, double y, double width,
                        double& height) {
  constexpr double row = 22, mark = 24, gap = 20;
  std::string out;
  double at = 0, down = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const double needed = mark + 6 + static_cast<double>(names[i].size()) * letter;
    if (at > 0 && at + needed > width) at = 0, down += row;
    out += fmt::format(
        "<path class=\"{}\" d=\"M{:.1f} {:.1f}h{:.0f}\"/>"
        "<text class=\"legend\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        line_class(i), x + at, y + down + 11, mark, x + at + mark + 6, y + down + 15,
        escaped_markup(names[i]));
    at += needed + gap;
  }
  height = down + row;
  return out;
}

std::string chart_style() {
  std::string out =
      "text { font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, "
      "sans-serif; font-size: 13px; fill: #24292f; }\n"
      ".title { font-size: 15px; font-weight: 600; }\n"
      ".tick, .label { fill: #59636e; }\n.tick { font-size: 12px; }\n"
      ".grid { stroke: #d1d9e0; fill: none; }\n.axis { stroke: #818b98; fill: none; }\n"
      ".paper { fill: #ffffff; }\n"
      ".line { fill: none; stroke-width: 2; stroke-linejoin: round; }\n"
      ".dashed { stroke-dasharray: 6 4; }\n";
  std::string dark =
      "text { fill: #e6edf3; }\n.tick, .label { fill: #9198a1; }\n"
      ".grid { stroke: #2f3742; }\n.axis { stroke: #6e7681; }\n.paper { fill: #0d1117; }\n";
  for (size_t i = 0; i < colour_count; ++i) {
    out += fmt::format(".c{} {{ stroke: {}; }}\n", i, colours[i].first);
    dark += fmt::format(".c{} {{ stroke: {}; }}\n", i, colours[i].second);
  }
  return out + "@media (prefers-color-scheme: dark) {\n" + dark + "}\n";
}

}  // namespace leat
