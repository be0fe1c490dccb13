// What trainings wrote with RecordTraining (frontends/cpp/training/training_hooks.h), as one curve
// per training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

struct RecordedStep {
  double seconds = 0;   // since the program's first step began
  double loss = 0;      // NaN if it was not a finite number
  int64_t samples = 0;  // of this step; 0: not recorded
};

// One program's file.
struct ProgramRecord {
  double start = 0;  // of its first step: seconds since 1970, by this host's clock
  std::vector<RecordedStep> steps;
};

// The lines of a file. Drops a last line without an end: its program was stopped while writing it.
// INVALID_ARGUMENT names the line that is not a step; `name`: the file's, for messages.
std::vector<RecordedStep> parse_record(std::string_view text, const std::string& name);

// Every *.jsonl in a directory that has steps. The start of a program is when its file was last
// written, less the seconds of the last step: a program that writes its last steps late seems to
// start late. NOT_FOUND if a file cannot be read.
std::vector<ProgramRecord> read_records(const std::filesystem::path& directory);

struct CurvePoint {
  double seconds = 0;   // since the first step of the earliest program began
  double loss = 0;      // smoothed; NaN if the window has a NaN
  int64_t samples = 0;  // of all programs so far
  double bytes = 0;     // sent between tasks so far (cluster_samples.h); NaN: not known
};

// One training: the steps of all its programs, by time.
struct TrainingCurve {
  double start = 0;  // of the earliest program, as above
  std::vector<CurvePoint> points;
  int64_t steps = 0;  // of all programs, also after thin()

  bool is_empty() const { return points.empty(); }
  double seconds() const { return is_empty() ? 0 : points.back().seconds; }
  int64_t samples() const { return is_empty() ? 0 : points.back().samples; }
  // The mean of the last 5 % of the steps.
  double final_loss() const;
};

// The loss at a step is the mean over the last 5 % of all steps, up to and including this one; at
// the beginning, of those that there are.
TrainingCurve merge(const std::vector<ProgramRecord>& programs);

// When the smoothed loss was first at most `loss`.
std::optional<double> seconds_to(const TrainingCurve& curve, double loss);

// At most `most` points (at least 2): the first, the last, and between them evenly by number.
std::vector<CurvePoint> thin(const std::vector<CurvePoint>& points, size_t most);

}  // namespace leat
