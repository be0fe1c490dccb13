// Sound as WAV files: 16-bit integers, uncompressed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

// Samples from -1 to 1, channels interleaved.
struct Sound {
  int64_t frames = 0, channels = 0;
  uint32_t rate = 0;  // frames a second
  std::vector<float> samples;
};

// INVALID_ARGUMENT says what is wrong with the file.
Sound decode_wav(std::string_view file);

// Values outside -1 to 1 are clipped. INVALID_ARGUMENT for sizes and rates that the format cannot
// hold.
std::string encode_wav(const float* samples, int64_t frames, int64_t channels, int64_t rate);

}  // namespace leat
