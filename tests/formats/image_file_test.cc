// Images as files: images can be written and read again; damaged files are rejected.
#include "graph/formats/image_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "core/execution/step_end.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

Image picture(int64_t height, int64_t width, int channels, int bytes_per_value = 1) {
  Image out{height, width, channels, bytes_per_value, {}};
  out.contents.resize(height * width * channels * bytes_per_value);
  for (size_t i = 0; i < out.contents.size(); ++i)
    out.contents[i] = static_cast<uint8_t>(128 + 100 * std::sin(static_cast<double>(i) / 20));
  return out;
}

TEST(ImageFiles, PngKeepsEveryBit) {
  for (const int bytes : {1, 2}) {
    for (const int channels : {1, 2, 3, 4}) {
      const Image image = picture(9, 13, channels, bytes);
      const Image again = decode_image(encode_png(image), {.bytes_per_value = bytes});
      EXPECT_EQ(again.height, 9);
      EXPECT_EQ(again.width, 13);
      EXPECT_EQ(again.channels, channels);
      EXPECT_EQ(again.contents, image.contents) << channels << " channels of " << bytes;
    }
  }
}

TEST(ImageFiles, JpegStaysCloseToTheImage) {
  const Image image = picture(40, 56, 3);
  const Image again = decode_image(encode_jpeg(image, {.quality = 100}), {});
  ASSERT_EQ(again.contents.size(), image.contents.size());
  double difference = 0;
  for (size_t i = 0; i < image.contents.size(); ++i)
    difference += std::abs(image.contents[i] - again.contents[i]);
  EXPECT_LT(difference / static_cast<double>(image.contents.size()), 12);
  const Image half = decode_image(encode_jpeg(image, {}), {.channels = 1, .ratio = 2});
  EXPECT_EQ(half.height, 20);
  EXPECT_EQ(half.width, 28);
  EXPECT_EQ(half.contents.size(), 20u * 28);
}

TEST(ImageFiles, RejectTornFiles) {
  const std::string png = encode_png(picture(9, 13, 3)), jpeg = encode_jpeg(picture(9, 13, 3), {});
  for (const std::string& whole : {png, jpeg}) {
    for (size_t length = 0; length + 2 < whole.size(); ++length) {
      expect_error_with(Code::invalid_argument, length < 8 ? "" : "Invalid ",
                        [&] { decode_image(whole.substr(0, length), {}); });
    }
  }
  const Image rest =
      decode_image(jpeg.substr(0, jpeg.size() - 40), {.try_recover_truncated = true});
  EXPECT_EQ(rest.contents.size(), 9u * 13 * 3);
}

// 2^31 - 1 pixels each way, with a valid checksum: the decoder allocates nothing.
TEST(ImageFiles, RejectVastImages) {
  std::string vast = encode_png(picture(1, 1, 1));
  const unsigned char header[] = {0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff};
  vast.replace(16, 8, reinterpret_cast<const char*>(header), 8);
  EXPECT_THROW(decode_image(vast, {}), Error);
  expect_error_with(Code::invalid_argument, "Unknown image file format",
                    [] { decode_image("GIF89a", {}); });
}

// In the middle, when its memory has already grown.
TEST(ImageFiles, AbandonedJpegLeaksNoMemory) {
  const Image image = picture(2500, 2500, 3);
  const auto encode_until = [&](std::chrono::milliseconds end) {
    StepEnd::Flag has_ended = false;
    const std::jthread ends([&] {
      std::this_thread::sleep_for(end);
      has_ended = true;
    });
    const StepEnd::Scope scope(&has_ended);
    encode_jpeg(image, {.quality = 100});
  };
  int given_up = 0;
  for (const int end : {1, 5, 10, 20, 40}) {
    try {
      encode_until(std::chrono::milliseconds(end));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::cancelled);
      ++given_up;
    }
  }
  EXPECT_GT(given_up, 0);
  EXPECT_EQ(decode_image(encode_jpeg(image, {.quality = 100}), {}).width, 2500);
}

}  // namespace
}  // namespace leat
