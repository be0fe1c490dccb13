#include "graph/formats/summary.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <set>

#include "core/error.h"
#include "graph/formats/proto/event.pb.h"
#include "graph/formats/wav_file.h"
#include "graph/import/proto_codec.h"

namespace leat {
namespace {

// Upper limits of the buckets.
const std::vector<double>& limits() {
  static const std::vector<double> all = [] {
    std::vector<double> positive;
    for (double limit = 1.0e-12; limit < 1.0e20; limit *= 1.1) positive.push_back(limit);
    positive.push_back(DBL_MAX);
    std::vector<double> out;
    for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) out.push_back(-*limit);
    out.push_back(0.0);
    out.insert(out.end(), positive.begin(), positive.end());
    return out;
  }();
  return all;
}

}  // namespace

std::string scalar_summary(std::span<const std::pair<std::string, float>> values) {
  tensorflow::Summary summary;
  for (const auto& [tag, value] : values) {
    auto* out = summary.add_value();
    out->set_tag(tag);
    out->set_simple_value(value);
  }
  return summary.SerializeAsString();
}

Histogram::Histogram() : min_(DBL_MAX), max_(-DBL_MAX), counts_(limits().size()) {}

void Histogram::add(double value) {
  const auto bucket = std::upper_bound(limits().begin(), limits().end(), value);
  counts_[std::min<size_t>(bucket - limits().begin(), counts_.size() - 1)] += 1;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  count_ += 1;
  sum_ += value;
  sum_squares_ += value * value;
}

std::string Histogram::summary(std::string_view tag) const {
  tensorflow::Summary summary;
  auto* value = summary.add_value();
  value->set_tag(std::string(tag));
  auto* histogram = value->mutable_histo();
  histogram->set_min(min_);
  histogram->set_max(max_);
  histogram->set_num(count_);
  histogram->set_sum(sum_);
  histogram->set_sum_squares(sum_squares_);
  for (size_t i = 0; i < counts_.size();) {
    size_t last = i++;
    // A run of empty buckets becomes one.
    while (counts_[last] <= 0 && i < counts_.size() && counts_[i] <= 0) last = i++;
    histogram->add_bucket_limit(limits()[last]);
    histogram->add_bucket(counts_[last]);
  }
  return summary.SerializeAsString();
}

std::string image_summary(std::string_view tag, bool is_numbered, std::span<const Image> images) {
  tensorflow::Summary summary;
  for (size_t i = 0; i < images.size(); ++i) {
    auto* value = summary.add_value();
    value->set_tag(is_numbered ? concat(tag, "/image/", i) : concat(tag, "/image"));
    auto* image = value->mutable_image();
    image->set_height(static_cast<int>(images[i].height));
    image->set_width(static_cast<int>(images[i].width));
    image->set_colorspace(images[i].channels);
    image->set_encoded_image_string(encode_png(images[i]));
  }
  return summary.SerializeAsString();
}

std::string audio_summary(std::string_view tag, bool is_numbered, const AudioClips& clips) {
  tensorflow::Summary summary;
  // Of whole samples a second, in the file; what is no such number is for encode_wav() to refuse.
  const double rate = std::clamp(std::nearbyint(static_cast<double>(clips.rate)), 1.0, 1e18);
  const int64_t size = clips.frames * clips.channels;
  for (int64_t i = 0; i < clips.count; ++i) {
    auto* value = summary.add_value();
    value->set_tag(is_numbered ? concat(tag, "/audio/", i) : concat(tag, "/audio"));
    auto* audio = value->mutable_audio();
    audio->set_sample_rate(clips.rate);
    audio->set_num_channels(clips.channels);
    audio->set_length_frames(clips.frames);
    audio->set_content_type("audio/wav");
    audio->set_encoded_audio_string(encode_wav(clips.samples + i * size, clips.frames,
                                               clips.channels, static_cast<int64_t>(rate)));
  }
  return summary.SerializeAsString();
}

std::string tensor_summary(std::string_view tag, const Tensor& tensor,
                           const std::string& metadata) {
  tensorflow::Summary summary;
  auto* value = summary.add_value();
  value->set_tag(std::string(tag));
  check(value->mutable_metadata()->ParseFromString(metadata),
        "Could not parse serialized_summary_metadata: it is not a SummaryMetadata");
  auto* out = value->mutable_tensor();
  if (tensor.dtype() == DType::string) {
    write_tensor(tensor, *out);
  } else {  // as TensorFlow writes it, however few elements there are
    out->set_dtype(static_cast<tensorflow::DataType>(tensor.dtype()));
    write_shape(tensor.shape(), *out->mutable_tensor_shape());
    out->set_tensor_content(tensor.raw(), tensor.bytes());
  }
  return summary.SerializeAsString();
}

std::string merge_summaries(std::span<const std::string> summaries) {
  tensorflow::Summary merged;
  std::set<std::string> tags;
  for (const std::string& bytes : summaries) {
    tensorflow::Summary summary;
    check(summary.ParseFromString(bytes),
          "Could not parse one of the summary inputs: it is not a serialized Summary");
    for (auto& value : *summary.mutable_value()) {
      check(tags.insert(value.tag()).second, "Duplicate tag ", value.tag(),
            " found in summary inputs");
    }
    merged.MergeFrom(summary);
  }
  return merged.SerializeAsString();
}

}  // namespace leat
