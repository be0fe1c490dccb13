#include "graph/formats/wav_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"

namespace leat {
namespace {

constexpr float full_scale = 32768;

// A file from its beginning on.
class WavReader {
 public:
  explicit WavReader(std::string_view file) : left_(file) {}

  bool is_at_end() const { return left_.empty(); }
  std::string_view bytes(size_t count) {
    check(count <= left_.size(), "Data too short when trying to read ", count,
          " bytes of a WAV file with ", left_.size(), " bytes left");
    const std::string_view out = left_.substr(0, count);
    left_.remove_prefix(count);
    return out;
  }
  // What is not there is skipped, too.
  void skip(size_t count) { left_.remove_prefix(std::min(count, left_.size())); }
  template <class T>
  T number() {  // low byte first
    T out = 0;
    std::memcpy(&out, bytes(sizeof out).data(), sizeof out);
    return out;
  }
  void expect(std::string_view text) {
    const std::string_view found = bytes(text.size());
    check(found == text, "Header mismatch: Expected ", text, " but found ", found);
  }

 private:
  std::string_view left_;
};

// What may precede the format, as TensorFlow knows it.
bool is_skipped(std::string_view chunk) {
  constexpr std::string_view known[] = {"JUNK", "bext", "iXML", "qlty",
                                        "mext", "levl", "link", "axml"};
  return std::find(std::begin(known), std::end(known), chunk) != std::end(known);
}

// The chunk "fmt ".
Sound read_format(WavReader& reader) {
  const auto size = reader.number<uint32_t>();
  check(size == 16 || size == 18, "Bad format chunk size for WAV: Expected 16 or 18, but got ",
        size);
  const auto format = reader.number<uint16_t>();
  check(format == 1, "Bad audio format for WAV: Expected 1 (PCM), but got ", format);
  Sound out;
  out.channels = reader.number<uint16_t>();
  check(out.channels > 0, "Bad number of channels for WAV: Expected at least 1, but got ",
        out.channels);
  out.rate = reader.number<uint32_t>();
  const auto bytes_per_second = reader.number<uint32_t>();
  const auto bytes_per_frame = reader.number<uint16_t>();
  const auto bits = reader.number<uint16_t>();
  check(bits == 16, "Can only read 16-bit WAV files, but received ", bits);
  check(bytes_per_frame == 2 * out.channels, "Bad bytes per sample in WAV header: Expected ",
        2 * out.channels, " but got ", bytes_per_frame);
  const int64_t expected = int64_t{bytes_per_frame} * out.rate;
  check(bytes_per_second == expected, "Bad bytes per second in WAV header: Expected ", expected,
        " but got ", bytes_per_second);
  if (size == 18) reader.skip(2);
  return out;
}

}  // namespace

Sound decode_wav(std::string_view file) {
  WavReader reader(file);
  reader.expect("RIFF");
  reader.number<uint32_t>();  // the file's size
  reader.expect("WAVE");
  std::string_view chunk = reader.bytes(4);
  for (; chunk != "fmt "; chunk = reader.bytes(4)) {
    check(is_skipped(chunk), "Unexpected field ", chunk);
    reader.bytes(reader.number<uint32_t>());
  }
  Sound out = read_format(reader);
  bool has_data = false;
  while (!reader.is_at_end()) {
    chunk = reader.bytes(4);
    const auto size = reader.number<uint32_t>();
    check(size <= std::numeric_limits<int32_t>::max(), "WAV data chunk '", chunk,
          "' is too large: ", size, " bytes");
    if (chunk != "data") {
      reader.skip(size);
      continue;
    }
    check(!has_data, "More than one data chunk found in WAV");
    has_data = true;
    out.frames = size / (2 * out.channels);
    const auto samples = static_cast<size_t>(out.frames * out.channels);
    WavReader data(reader.bytes(2 * samples));
    out.samples.resize(samples);
    for (float& sample : out.samples) sample = data.number<int16_t>() * (1 / full_scale);
  }
  check(has_data, "No data chunk found in WAV");
  return out;
}

std::string encode_wav(const float* samples, int64_t frames, int64_t channels, int64_t rate) {
  constexpr uint32_t most = std::numeric_limits<uint32_t>::max();
  constexpr int64_t header = 44;
  check(rate > 0 && rate <= most, "sample_rate must be in (0, 2^32), got: ", rate);
  check(channels > 0 && channels < 65536, "num_channels must be in (0, 2^16), got: ", channels);
  check(frames <= (most - header) / (2 * channels), frames, " frames of ", channels,
        " channels cannot be encoded as a WAV.");
  const int64_t count = frames * channels;
  std::string out;
  out.reserve(header + 2 * count);
  const auto put = [&out](auto value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  out += "RIFF";
  put(static_cast<uint32_t>(header - 8 + 2 * count));
  out += "WAVEfmt ";
  put(uint32_t{16});
  put(uint16_t{1});
  put(static_cast<uint16_t>(channels));
  put(static_cast<uint32_t>(rate));
  put(static_cast<uint32_t>(2 * channels * rate));
  put(static_cast<uint16_t>(2 * channels));
  put(uint16_t{16});
  out += "data";
  put(static_cast<uint32_t>(2 * count));
  for (int64_t i = 0; i < count; ++i) {
    const float sample = std::round(samples[i] * full_scale);
    put(std::isnan(sample) ? int16_t{0}
                           : static_cast<int16_t>(std::clamp(sample, -full_scale, full_scale - 1)));
  }
  return out;
}

}  // namespace leat
