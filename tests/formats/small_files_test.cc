// BMP, GIF and WAV files and Snappy's compression, byte by byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/formats/bmp_file.h"
#include "graph/formats/gif_file.h"
#include "graph/formats/snappy.h"
#include "graph/formats/wav_file.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using testing::ElementsAre;

// 2 x 2 pixels of 24 bits; a row has 6 bytes and 2 of padding.
std::string bmp(int32_t height) {
  std::string out("BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\0\0\0\0\1\0\x18\0", 30);
  out[22] = static_cast<char>(height);
  for (int i = 23; i < 26; ++i) out[i] = height < 0 ? '\xff' : '\0';
  out.resize(54);
  return out + std::string("\1\2\3\4\5\6\0\0\7\x08\x09\x0a\x0b\x0c\0\0", 16);
}

TEST(BmpFile, ReadsRowsFromTheBottomAndBlueFirst) {
  const Image image = decode_bmp(bmp(2), 0);
  EXPECT_EQ(image.channels, 3);
  EXPECT_THAT(image.contents, ElementsAre(9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4));
  EXPECT_THAT(decode_bmp(bmp(-2), 0).contents, ElementsAre(3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10));
  EXPECT_EQ(decode_bmp(bmp(2), 4).contents[3], 255) << "opaque";
}

TEST(BmpFile, RejectsMismatches) {
  expect_error_with(Code::invalid_argument, "must be 0, 3 or 4 for BMP, but got 1",
                    [] { decode_bmp(bmp(2), 1); });
  expect_error_with(Code::invalid_argument, "they differ by -8", [] { decode_bmp(bmp(3), 0); });
  expect_error_with(Code::invalid_argument, "Incomplete bmp content",
                    [] { decode_bmp(bmp(2).substr(0, 31), 0); });
}

// A GIF of one pixel, in white or dark blue. A transparent frame shows the one before.
const std::string gif_begin("GIF89a\1\0\1\0\x80\0\0\xff\xff\xff\0\0\x40", 19);
std::string gif_frame(bool is_transparent, char pixel_code) {
  std::string control("!\xf9\4\0\0\0\1\0", 8), frame(",\0\0\0\0\1\0\1\0\0\2\2", 12);
  control[3] = is_transparent ? '\1' : '\0';
  // Codes of three bits: clear (4), the pixel, end (5).
  const int codes = 4 | pixel_code << 3 | 5 << 6;
  frame += static_cast<char>(codes & 255);
  frame += static_cast<char>(codes >> 8);
  return control + frame + std::string(1, '\0');
}

TEST(GifFile, DrawsFramesOverEachOther) {
  const Animation two = decode_gif(gif_begin + gif_frame(false, 0) + gif_frame(false, 1) + ";");
  EXPECT_EQ(two.frames, 2);
  EXPECT_THAT(two.image.contents, ElementsAre(255, 255, 255, 0, 0, 0x40));
  const Animation same = decode_gif(gif_begin + gif_frame(false, 0) + gif_frame(true, 1) + ";");
  EXPECT_THAT(same.image.contents, ElementsAre(255, 255, 255, 255, 255, 255));
  EXPECT_EQ(decode_gif(gif_begin + gif_frame(false, 0) + gif_frame(false, 1) + ";", true).frames,
            1);
}

TEST(GifFile, DamageEndsTheAnimation) {
  const std::string good = gif_frame(false, 1);
  EXPECT_EQ(decode_gif(gif_begin + good + good.substr(0, 20)).frames, 1);
  expect_error_with(Code::invalid_argument, "Invalid GIF data",
                    [&] { decode_gif(gif_begin + good.substr(0, 20)); });
  expect_error_with(Code::invalid_argument, "it has no images",
                    [&] { decode_gif(gif_begin + ";"); });
  expect_error_with(Code::invalid_argument, "outside of color map range 2",
                    [&] { decode_gif(gif_begin + gif_frame(false, 3) + ";"); });
}

TEST(WavFile, ReadsWhatItWrites) {
  const std::vector<float> samples = {0, 0.5F, -1, 2};  // the last is clipped
  const std::string file = encode_wav(samples.data(), 2, 2, 8'000);
  EXPECT_EQ(file.size(), 44u + 8);
  const Sound sound = decode_wav(file);
  EXPECT_EQ(sound.frames, 2);
  EXPECT_EQ(sound.channels, 2);
  EXPECT_EQ(sound.rate, 8'000u);
  EXPECT_THAT(sound.samples, ElementsAre(0, 0.5F, -1, 32767 / 32768.0F));
}

TEST(WavFile, ReportsMistakes) {
  const float sample = 0;
  std::string file = encode_wav(&sample, 1, 1, 8'000);
  expect_error_with(Code::invalid_argument, "Data too short",
                    [&] { decode_wav(file.substr(0, file.size() - 1)); });
  file[20] = 3;  // floating-point samples
  expect_error_with(Code::invalid_argument, "Expected 1 (PCM), but got 3",
                    [&] { decode_wav(file); });
  expect_error_with(Code::invalid_argument, "Expected RIFF but found OggS",
                    [] { decode_wav("OggS"); });
  expect_error_with(Code::invalid_argument, "sample_rate must be in (0, 2^32), got: 0",
                    [&] { encode_wav(&sample, 1, 1, 0); });
}

TEST(Snappy, CopiesEarlierBytes) {
  // "abcd"; 5 from 4 back; 4 from 3 back, with two bytes, then with four; "e" with its own length
  const std::string compressed(
      "\x12\x0c"
      "abcd"
      "\x05\x04"
      "\x0e\3\0"
      "\x0f\3\0\0\0"
      "\xf0\0e",
      19);
  EXPECT_EQ(snappy_decompressed(compressed), "abcdabcdacdacdacde");
  EXPECT_EQ(snappy_decompressed(std::string(1, '\0')), "");
}

TEST(Snappy, DamagedInputIsDataLoss) {
  const std::string compressed(
      "\x12\x0c"
      "abcd"
      "\x05\x04"
      "\x0e\3\0"
      "\x0f\3\0\0\0"
      "\xf0\0e",
      19);
  for (size_t length = 0; length < compressed.size(); ++length) {
    EXPECT_EQ(error_of([&] { snappy_decompressed(compressed.substr(0, length)); }).code,
              Code::data_loss)
        << length;
  }
  for (const std::string& bad : {std::string("\4\5\1", 3),     // nothing to repeat
                                 std::string("\5\0a\1\0", 5),  // 0 back
                                 std::string("\2\x08"
                                             "abc",
                                             5),                         // more than it says
                                 std::string("\xff\xff\xff\x7f\0a", 6),  // far less
                                 std::string("\x01\xfc\xff\xff\xff\xff"
                                             "a",
                                             7)}) {
    EXPECT_EQ(error_of([&] { snappy_decompressed(bad); }).code, Code::data_loss) << bad.size();
  }
}

}  // namespace
}  // namespace leat
