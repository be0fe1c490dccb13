#include "tools/leat/compare/page.h"

#include <fmt/format.h>

#include <array>

#include "tools/leat/compare/line_chart.h"
#include "tools/markup.h"

namespace leat {
namespace {

constexpr size_t most_points = 250, most_owners = 5;

std::array<LineChart, 3> charts_of(const Comparison& comparison) {
  std::array<LineChart, 3> charts{
      LineChart{.title = "Loss against time", .x_label = "seconds"},
      LineChart{.title = "Loss against samples", .x_label = "samples"},
      LineChart{.title = "Loss against bytes", .x_label = "bytes sent between tasks"}};
  std::vector<double> losses;
  for (const StrategyResult& result : comparison.results) {
    for (LineChart& chart : charts) chart.lines.push_back({.name = result.name});
    for (const CurvePoint& point : thin(result.curve.points, most_points)) {
      losses.push_back(point.loss);
      charts[0].lines.back().points.emplace_back(point.seconds, point.loss);
      if (point.samples > 0)
        charts[1].lines.back().points.emplace_back(static_cast<double>(point.samples), point.loss);
      charts[2].lines.back().points.emplace_back(point.bytes, point.loss);
    }
  }
  for (LineChart& chart : charts) chart.y = axis_for(losses);
  return charts;
}

std::vector<std::string> names_of(const Comparison& comparison) {
  std::vector<std::string> out;
  for (const StrategyResult& result : comparison.results) out.push_back(result.name);
  return out;
}

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=\"wide\"><table>\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    const char* cell = i == 0 ? "th" : "td";
    out += "<tr>";
    for (const std::string& text : rows[i])
      out += fmt::format("<{0}>{1}</{0}>", cell, escaped_markup(text));
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string waits_table(const Comparison& comparison) {
  std::vector<std::vector<std::string>> rows{{"strategy", "waited for, share of the waits seen"}};
  for (const StrategyResult& result : comparison.results) {
    std::string owners;
    for (size_t i = 0; i < std::min(most_owners, result.waits.size()); ++i)
      owners += fmt::format("{}{} {:.0f} %", i > 0 ? ", " : "", result.waits[i].first,
                            100 * result.waits[i].second);
    rows.push_back({result.name, owners.empty() ? "–" : owners});
  }
  return html_table(rows);
}

constexpr const char* page_style = R"(
:root { color-scheme: light dark; }
body { max-width: 860px; margin: 24px auto; padding: 0 16px; background: #ffffff; color: #24292f;
  font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif; }
h1 { font-size: 22px; margin-bottom: 0; }
h2 { font-size: 17px; margin: 28px 0 8px; }
p { margin: 4px 0 12px; }
.setting, .note { color: #59636e; overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: auto; margin: 12px 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 9px; border-bottom: 1px solid #d1d9e0; text-align: right; }
th { vertical-align: bottom; }
th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }
@media (prefers-color-scheme: dark) {
  body { background: #0d1117; color: #e6edf3; }
  .setting, .note { color: #9198a1; }
  th, td { border-color: #2f3742; }
}
)";

std::string svg_element(double width, double height, const std::string& content) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n{2}</svg>\n",
      width, height, content);
}

}  // namespace

std::string to_html(const Comparison& comparison) {
  constexpr int width = 860, height = 380;
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title>\n"
      "<style>{1}{2}</style></head>\n<body>\n<h1>{0}</h1>\n<p class=\"setting\">{3}</p>\n",
      escaped_markup(comparison.title), page_style, chart_style(),
      escaped_markup(comparison.setting));
  double legend_height = 0;
  const std::string legend = draw_legend(names_of(comparison), 0, 0, width, legend_height);
  out += svg_element(width, legend_height, legend);
  for (LineChart& chart : charts_of(comparison)) {
    chart.width = width, chart.height = height;
    out += svg_element(width, height, draw(chart, 0, 0));
  }
  out += "<h2>Figures</h2>\n" + html_table(figures(comparison));
  for (const StrategyResult& result : comparison.results) {
    if (!result.problem.empty())
      out += fmt::format("<p>{} failed: {}</p>\n", escaped_markup(result.name),
                         escaped_markup(result.problem));
  }
  out += "<h2>Who was waited for</h2>\n" + waits_table(comparison);
  return out +
         "<p class=\"note\">The loss at a step is the mean over the last 5 % of all steps. Time "
         "begins with the first step. Bytes are those of tensors that tasks sent each other since "
         "then; a strategy that sends none has no line there. The cluster was looked at several "
         "times a second for what its steps wait for.</p>\n</body></html>\n";
}

std::string to_svg(const Comparison& comparison) {
  constexpr double margin = 16, heading = 30;
  std::string drawn;
  double legend_height = 0, width = 3 * LineChart().width + 2 * margin;
  drawn += fmt::format("<text class=\"heading\" x=\"{0}\" y=\"{1}\">{2}</text>\n", margin, 28,
                       escaped_markup(comparison.title));
  drawn += draw_legend(names_of(comparison), margin, margin + heading, width - 2 * margin,
                       legend_height);
  const double top = margin + heading + legend_height + 10;
  double x = margin, height = 0;
  for (const LineChart& chart : charts_of(comparison)) {
    drawn += draw(chart, x, top);
    x += chart.width;
    height = top + chart.height + margin / 2;
  }
  const std::string begin = fmt::format(
      "<style>\n{}.heading {{ font-size: 18px; font-weight: 600; }}\n</style>\n"
      "<rect class=\"paper\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"6\"/>\n",
      chart_style(), width, height);
  return svg_element(width, height, begin + drawn);
}

}  // namespace leat
