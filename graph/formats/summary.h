// Values of event files: Summary messages, encoded. What ScalarSummary and its kin return.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {

std::string scalar_summary(std::span<const std::pair<std::string, float>> values);

// Counts in TensorFlow's buckets: from ±1e-12 to ±1e20, each 10 % wider than the one before.
class Histogram {
 public:
  Histogram();
  void add(double value);
  std::string summary(std::string_view tag) const;

 private:
  double min_, max_, count_ = 0, sum_ = 0, sum_squares_ = 0;
  std::vector<double> counts_;
};

// One message with the values of all. INVALID_ARGUMENT if a tag comes twice, or one of them is no
// Summary.
std::string merge_summaries(std::span<const std::string> summaries);

}  // namespace leat
