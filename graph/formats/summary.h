// Values of event files: Summary messages, encoded. What ScalarSummary and its kin return.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "graph/formats/image_file.h"

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

// Each image as PNG: "TAG/image/0", "TAG/image/1" …, or "TAG/image" for an unnumbered one.
std::string image_summary(std::string_view tag, bool is_numbered, std::span<const Image> images);

// Each clip as WAV, with `rate` samples a second: "TAG/audio/0" and so on, as images. The clips are
// contiguous.
struct AudioClips {
  int64_t count, frames, channels;
  const float* samples;
  float rate;
};
std::string audio_summary(std::string_view tag, bool is_numbered, const AudioClips& clips);

// `metadata` is a serialized SummaryMetadata, which says what the tensor means to which plugin; it
// may be empty. INVALID_ARGUMENT if it is malformed.
std::string tensor_summary(std::string_view tag, const Tensor& tensor, const std::string& metadata);

// One message with the values of all. INVALID_ARGUMENT if a tag repeats or one of them is not a
// Summary.
std::string merge_summaries(std::span<const std::string> summaries);

}  // namespace leat
