// Sound as WAV files: 16-bit integers, uncompressed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

// Samples of all channels together, of -1 to 1.
struct Sound {
  int64_t frames = 0, channels = 0;
  uint32_t rate = 0;  // frames a second
  std::vector<float> samples;
};

// INVALID_ARGUMENT says what of the file is not so.
Sound decode_wav(std::string_view file);

// What is below -1 or above 1 is cut. INVALID_ARGUMENT for what the format has no numbers for.
std::string encode_wav(const float* samples, int64_t frames, int64_t channels, int64_t rate);

}  // namespace leat
