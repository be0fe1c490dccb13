#include "tools/leat/compare/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/text_table.h"

namespace leat {
namespace {

constexpr const char* none = "–";
constexpr size_t most_points = 500;

double bytes_per_sample(const TrainingCurve& curve) {
  if (curve.samples() == 0) return std::numeric_limits<double>::quiet_NaN();
  return curve.points.back().bytes / static_cast<double>(curve.samples());
}

double samples_per_second(const TrainingCurve& curve) {
  if (curve.samples() == 0 || curve.seconds() <= 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(curve.samples()) / curve.seconds();
}

std::string number(double value, const char* format) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : none;
}

// JSON has no NaN.
nlohmann::ordered_json json_of(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}

}  // namespace

double common_loss(const Comparison& comparison) {
  double out = std::numeric_limits<double>::quiet_NaN();
  for (const StrategyResult& result : comparison.results) {
    const double loss = result.curve.final_loss();
    if (result.problem.empty() && std::isfinite(loss))
      out = std::isnan(out) ? loss : std::max(out, loss);
  }
  return out;
}

std::string bytes_text(double bytes) {
  if (!std::isfinite(bytes)) return none;
  static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (std::abs(bytes) >= 999.5 && unit + 1 < std::size(units)) bytes /= 1000, ++unit;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 99.95 ? 0 : 1, units[unit]);
}

std::vector<std::vector<std::string>> figures(const Comparison& comparison) {
  const double target = common_loss(comparison);
  std::vector<std::vector<std::string>> rows{
      {"strategy", "steps", "samples", "seconds", "samples/s", "bytes/sample", "final loss",
       std::isnan(target) ? "s to the same loss" : fmt::format("s to loss {:.4f}", target),
       "most waited for"}};
  for (const StrategyResult& result : comparison.results) {
    const TrainingCurve& curve = result.curve;
    if (curve.is_empty()) {
      rows.emplace_back(rows.front().size(), none).front() = result.name;
      continue;
    }
    const auto reached = seconds_to(curve, target);
    rows.push_back({result.name, std::to_string(curve.steps),
                    curve.samples() > 0 ? std::to_string(curve.samples()) : none,
                    number(curve.seconds(), "{:.2f}"), number(samples_per_second(curve), "{:.0f}"),
                    bytes_text(bytes_per_sample(curve)), number(curve.final_loss(), "{:.4f}"),
                    reached ? fmt::format("{:.2f}", *reached) : none,
                    result.waits.empty() ? none
                                         : fmt::format("{} {:.0f} %", result.waits.front().first,
                                                       100 * result.waits.front().second)});
  }
  return rows;
}

std::string to_text(const Comparison& comparison) {
  std::string out = aligned(figures(comparison));
  for (const StrategyResult& result : comparison.results) {
    if (!result.problem.empty()) out += fmt::format("{} failed: {}\n", result.name, result.problem);
  }
  return out;
}

std::string to_json(const Comparison& comparison) {
  using Json = nlohmann::ordered_json;
  const double target = common_loss(comparison);
  Json out{{"title", comparison.title},
           {"setting", comparison.setting},
           {"common_loss", json_of(target)},
           {"strategies", Json::array()}};
  for (const StrategyResult& result : comparison.results) {
    const TrainingCurve& curve = result.curve;
    Json entry{{"strategy", result.name}};
    if (!result.problem.empty()) entry["problem"] = result.problem;
    entry["steps"] = curve.steps;
    entry["samples"] = curve.samples();
    entry["seconds"] = curve.seconds();
    entry["samples_per_second"] = json_of(samples_per_second(curve));
    entry["bytes"] = curve.is_empty() ? Json() : json_of(curve.points.back().bytes);
    entry["bytes_per_sample"] = json_of(bytes_per_sample(curve));
    entry["final_loss"] = json_of(curve.final_loss());
    const auto reached = seconds_to(curve, target);
    entry["seconds_to_common_loss"] = reached ? Json(*reached) : Json();
    Json seconds = Json::array(), losses = Json::array(), samples = Json::array(),
         bytes = Json::array();
    for (const CurvePoint& point : thin(curve.points, most_points)) {
      seconds.push_back(point.seconds);
      losses.push_back(json_of(point.loss));
      samples.push_back(point.samples);
      bytes.push_back(json_of(point.bytes));
    }
    entry["curve"] = {
        {"seconds", seconds}, {"loss", losses}, {"samples", samples}, {"bytes", bytes}};
    entry["waits"] = Json::array();
    for (const auto& [owner, share] : result.waits)
      entry["waits"].push_back({{"for", owner}, {"share", share}});
    out["strategies"].push_back(std::move(entry));
  }
  return out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace leat
