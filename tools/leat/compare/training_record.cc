#include "tools/leat/compare/training_record.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace leat {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr size_t window_divisor = 20;  // 5 %

RecordedStep parse_step(std::string_view line) {
  const auto json = nlohmann::json::parse(line);
  const auto& loss = json.at("loss");
  return {.seconds = json.at("seconds").get<double>(),
          .loss = loss.is_null() ? nan : loss.get<double>(),
          .samples = json.value("samples", int64_t{0})};
}

// The mean of up to `window` losses that end with each. Without subtraction, after which a NaN or a
// huge loss would stay in the sum for ever: a window is the end of a block of that size and the
// beginning of the next.
std::vector<double> smoothed(const std::vector<RecordedStep>& steps, size_t window) {
  std::vector<double> to_block_end(steps.size()), out;
  for (size_t i = steps.size(); i-- > 0;) {
    const bool is_last = (i + 1) % window == 0 || i + 1 == steps.size();
    to_block_end[i] = steps[i].loss + (is_last ? 0 : to_block_end[i + 1]);
  }
  double from_block_begin = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    from_block_begin = steps[i].loss + (i % window == 0 ? 0 : from_block_begin);
    const bool has_two_blocks = i >= window && (i + 1) % window != 0;
    const double sum = from_block_begin + (has_two_blocks ? to_block_end[i + 1 - window] : 0);
    out.push_back(sum / static_cast<double>(std::min(i + 1, window)));
  }
  return out;
}

double modified(const std::filesystem::path& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) fail(Code::not_found, "cannot read ", path.string());
  return static_cast<double>(found.st_mtim.tv_sec) +
         static_cast<double>(found.st_mtim.tv_nsec) * 1e-9;
}

}  // namespace

std::vector<RecordedStep> parse_record(std::string_view text, const std::string& name) {
  std::vector<RecordedStep> out;
  for (size_t begin = 0, line = 1, end; (end = text.find('\n', begin)) != text.npos;
       begin = end + 1, ++line) {
    try {
      out.push_back(parse_step(text.substr(begin, end - begin)));
    } catch (const nlohmann::json::exception&) {
      fail(Code::invalid_argument, name, ", line ", line, ", is not a step of a training record: ",
           text.substr(begin, std::min<size_t>(end - begin, 80)));
    }
  }
  return out;
}

std::vector<ProgramRecord> read_records(const std::filesystem::path& directory) {
  std::vector<ProgramRecord> out;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".jsonl") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    if (!file) fail(Code::not_found, "cannot read ", entry.path().string());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    ProgramRecord record{.steps = parse_record(text, entry.path().string())};
    if (record.steps.empty()) continue;
    record.start = modified(entry.path()) - record.steps.back().seconds;
    out.push_back(std::move(record));
  }
  return out;
}

double TrainingCurve::final_loss() const { return is_empty() ? nan : points.back().loss; }

TrainingCurve merge(const std::vector<ProgramRecord>& programs) {
  TrainingCurve out;
  if (programs.empty()) return out;
  out.start = std::min_element(programs.begin(), programs.end(), [](const auto& a, const auto& b) {
                return a.start < b.start;
              })->start;
  std::vector<RecordedStep> steps;
  for (const ProgramRecord& program : programs) {
    for (RecordedStep step : program.steps) {
      step.seconds += program.start - out.start;
      steps.push_back(step);
    }
  }
  std::stable_sort(steps.begin(), steps.end(), [](const RecordedStep& a, const RecordedStep& b) {
    return a.seconds < b.seconds;
  });
  const size_t window = std::max<size_t>(1, steps.size() / window_divisor);
  const std::vector<double> losses = smoothed(steps, window);
  int64_t samples = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    samples += steps[i].samples;
    out.points.push_back(
        {.seconds = steps[i].seconds, .loss = losses[i], .samples = samples, .bytes = nan});
  }
  out.steps = static_cast<int64_t>(steps.size());
  return out;
}

std::optional<double> seconds_to(const TrainingCurve& curve, double loss) {
  for (const CurvePoint& point : curve.points) {
    if (point.loss <= loss) return point.seconds;
  }
  return std::nullopt;
}

std::vector<CurvePoint> thin(const std::vector<CurvePoint>& points, size_t most) {
  if (points.size() <= most) return points;
  std::vector<CurvePoint> out;
  for (size_t i = 0; i < most; ++i) out.push_back(points[i * (points.size() - 1) / (most - 1)]);
  return out;
}

}  // namespace leat
