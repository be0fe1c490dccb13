// The result of `leat compare`: a training per strategy, in figures.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/leat/compare/cluster_samples.h"
#include "tools/leat/compare/training_record.h"

namespace leat {

struct StrategyResult {
  std::string name;
  std::string problem;  // why it failed, in a few words; the rest is then what there was until then
  TrainingCurve curve;
  std::vector<std::pair<std::string, double>> waits;  // ClusterSamples::waits()
};

struct Comparison {
  std::string title;
  std::string setting;  // "4 workers, 1 parameter server; mnist --epochs 1"
  std::vector<StrategyResult> results;
};

// The final loss of the strategy that ended with the greatest: all others have reached it, too. NaN
// if none has ended.
double common_loss(const Comparison& comparison);

// "12.3 kB"
std::string bytes_text(double bytes);

// The first row has the headings; then a row per strategy, "–" where there is no figure.
std::vector<std::vector<std::string>> figures(const Comparison& comparison);
// The same for the terminal, and a line per failure.
std::string to_text(const Comparison& comparison);

// For each strategy, its figures, its curve (thinned to 500 points) and its waits.
std::string to_json(const Comparison& comparison);

}  // namespace leat
