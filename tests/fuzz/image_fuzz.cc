// Images and sound as files: the first byte selects how to decode the rest.
#include "graph/formats/bmp_file.h"
#include "graph/formats/gif_file.h"
#include "graph/formats/image_file.h"
#include "graph/formats/wav_file.h"
#include "tests/fuzz/target.h"

namespace leat::fuzz {

std::vector<std::string> seeds() {
  const auto picture = [](int channels, int bytes) {
    Image out{5, 7, channels, bytes, {}};
    for (int i = 0; i < 5 * 7 * channels * bytes; ++i)
      out.contents.push_back(static_cast<uint8_t>(i * i));
    return out;
  };
  std::vector<std::string> out;
  for (const int channels : {1, 2, 3, 4}) {
    out.push_back("\x03" + encode_png(picture(channels, 1)));
    out.push_back("\x04" + encode_png(picture(channels, 2)));
  }
  for (const int channels : {1, 3}) {
    out.push_back("\x10" + encode_jpeg(picture(channels, 1), {}));
    out.push_back("\x21" + encode_jpeg(picture(channels, 1), {.progressive = true}));
  }
  // A BMP of 2 x 2 pixels, a GIF of one and its copy as a second, transparent frame.
  std::string bmp("BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\2\0\0\0\1\0\x18\0", 30);
  bmp.resize(54 + 16, 'x');
  out.push_back("\x03" + bmp);
  const std::string gif_begin("GIF89a\1\0\1\0\x80\0\0\xff\xff\xff\0\0\0", 19);
  const std::string gif_frame("!\xf9\4\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\2\x44\1\0", 23);
  out.push_back("\x03" + gif_begin + gif_frame + gif_frame + ";");
  const std::vector<float> samples = {0, 0.5F, -1, 1};
  out.push_back("\x03" + encode_wav(samples.data(), 2, 2, 8'000));
  return out;
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A few bytes may claim 2^29 values; that is slow, but not a mistake.
  if (size == 0) return 0;
  constexpr int channels[] = {0, 1, 3, 4};
  const leat::DecodeOptions options{.channels = channels[data[0] % 4],
                                    .bytes_per_value = 1 + data[0] / 4 % 2,
                                    .ratio = 1 << data[0] / 8 % 4,
                                    .try_recover_truncated = data[0] >= 128};
  const auto big = [&](size_t at) { return size > at + 1 && (data[at] != 0 || data[at + 1] != 0); };
  if (big(17) || big(21)) return 0;  // a PNG of more than 65,535 rows or columns
  const std::string_view file = leat::fuzz::text_of(data + 1, size - 1);
  leat::fuzz::expect_no_mistake_of_ours([&] {
    if (file.starts_with("RIFF")) return void(leat::decode_wav(file));
    switch (leat::image_format(file)) {
      case leat::ImageFormat::bmp:
        return void(leat::decode_bmp(file, options.channels));
      case leat::ImageFormat::gif:
        return void(leat::decode_gif(file, options.try_recover_truncated));
      default:
        return void(leat::decode_image(file, options));
    }
  });
  return 0;
}
