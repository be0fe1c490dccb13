// Images as files: the first byte is how the rest is decoded.
#include "graph/formats/image_file.h"
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
  return out;
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A few bytes may say that there are 2^29 values; that is slow, and no mistake.
  if (size == 0) return 0;
  constexpr int channels[] = {0, 1, 3, 4};
  const leat::DecodeOptions options{.channels = channels[data[0] % 4],
                                    .bytes_per_value = 1 + data[0] / 4 % 2,
                                    .ratio = 1 << data[0] / 8 % 4,
                                    .try_recover_truncated = data[0] >= 128};
  const auto big = [&](size_t at) { return size > at + 1 && (data[at] != 0 || data[at + 1] != 0); };
  if (big(17) || big(21)) return 0;  // of a PNG: more than 65,535 rows or columns
  leat::fuzz::expect_no_mistake_of_ours(
      [&] { leat::decode_image(leat::fuzz::text_of(data + 1, size - 1), options); });
  return 0;
}
