#include "graph/formats/bmp_file.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/error.h"

namespace leat {
namespace {

// The file's number at this place, low byte first.
template <class T>
T number_at(std::string_view file, size_t place) {
  T value = 0;
  std::memcpy(&value, file.data() + place, sizeof value);
  return value;
}

void copy_pixel(const uint8_t* from, int file_channels, uint8_t* to, int channels) {
  if (file_channels == 1) {
    std::fill_n(to, std::min(channels, 3), from[0]);
  } else {
    for (int i = 0; i < 3; ++i) to[i] = from[2 - i];  // blue comes first
  }
  if (channels == 4) to[3] = file_channels == 4 ? from[3] : 255;
}

}  // namespace

Image decode_bmp(std::string_view file, int channels) {
  check(channels == 0 || channels == 3 || channels == 4,
        "`channels` must be 0, 3 or 4 for BMP, but got ", channels);
  constexpr size_t header = 32;  // as far as we read it
  check(file.size() >= header, "Incomplete bmp content, requires at least ", header,
        " bytes to find the header size, width, height, and bpp, got ", file.size(), " bytes");
  const int64_t begin = number_at<int32_t>(file, 10), width = number_at<int32_t>(file, 18),
                signed_height = number_at<int32_t>(file, 22), bits = number_at<int16_t>(file, 28);
  const auto file_channels = static_cast<int>(bits / 8);
  check(file_channels == 1 || file_channels == 3 || file_channels == 4,
        "Number of channels inherent in the image must be 1, 3 or 4, was ", file_channels);
  check(width > 0, "Width must be positive, got ", width);
  check(signed_height != 0, "Height must be nonzero");
  check(begin >= 0, "header size must be nonnegative, got ", begin);
  const int64_t height = std::abs(signed_height);
  check(width * height < std::numeric_limits<int32_t>::max() / 8,
        "Total possible pixel bytes must be less than 2^30, got ", width, " x ", height, " pixels");
  const int64_t row = (width * file_channels + 3) / 4 * 4;
  check(begin + row * height == static_cast<int64_t>(file.size()),
        "Input size should match (header_size + row_size * abs_height) but they differ by ",
        static_cast<int64_t>(file.size()) - begin - row * height);

  Image out{.height = height,
            .width = width,
            .channels = channels == 0 ? file_channels : channels,
            .contents = {}};
  out.contents.resize(height * width * out.channels);
  const auto* pixels = reinterpret_cast<const uint8_t*>(file.data()) + begin;
  uint8_t* to = out.contents.data();
  for (int64_t y = 0; y < height; ++y) {
    // A positive height: from the bottom.
    const uint8_t* from = pixels + (signed_height < 0 ? y : height - 1 - y) * row;
    for (int64_t x = 0; x < width; ++x, from += file_channels, to += out.channels)
      copy_pixel(from, file_channels, to, out.channels);
  }
  return out;
}

}  // namespace leat
