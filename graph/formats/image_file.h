// Images as files: PNG by libpng, JPEG by libjpeg, BMP by bmp_file.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

// Rows from the top, pixels from the left, channels together: gray, gray and alpha, RGB or RGBA.
struct Image {
  int64_t height = 0, width = 0;
  int channels = 0;               // 1 to 4
  int bytes_per_value = 1;        // or 2
  std::vector<uint8_t> contents;  // of 16 bits: in the machine's order
};

enum class ImageFormat { unknown, png, jpeg, bmp, gif };
ImageFormat image_format(std::string_view file);  // by the first bytes

struct DecodeOptions {
  int channels = 0;  // 0: as the file has it
  // PNG only: fewer bits are scaled up, more are cut off. A JPEG has 1.
  int bytes_per_value = 1;
  // JPEG only
  int ratio = 1;  // every side is divided by it: 1, 2, 4 or 8
  bool fancy_upscaling = true;
  bool try_recover_truncated = false;  // missing parts are gray
  bool accurate_dct = false;
  // Decodes only this part, in pixels of the result.
  struct Crop {
    int64_t top, left, height, width;
  };
  std::optional<Crop> crop = {};
};

// INVALID_ARGUMENT "Invalid PNG data, size 17" and so on if the format is unknown or the file
// damaged; RESOURCE_EXHAUSTED for more than 2^29 values. For a GIF use decode_gif() (gif_file.h).
Image decode_image(std::string_view file, const DecodeOptions& options);

// The height, width and number of channels from a JPEG's header.
std::array<int64_t, 3> jpeg_shape(std::string_view file);

// `compression` as zlib's: -1 (its default) to 9. Deterministic.
std::string encode_png(const Image& image, int compression = -1);

struct JpegOptions {
  int quality = 95;  // 0 to 100
  bool progressive = false, optimize_size = false, chroma_downsampling = true;
  bool is_in_cm = false;  // the density, else in inches
  int x_density = 300, y_density = 300;
};
// Of 1 or 3 channels, 8 bits.
std::string encode_jpeg(const Image& image, const JpegOptions& options);

}  // namespace leat
