// EncodeBase64 and DecodeBase64, in the alphabet for URLs: - and _ for the last two digits.
#include <array>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encoded(const std::string& bytes, bool pad) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  uint32_t bits = 0;
  int count = 0;  // of the bits that are not encoded yet
  for (const char byte : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(byte);
    for (count += 8; count >= 6; count -= 6) out += digits[bits >> (count - 6) & 63];
  }
  if (count > 0) out += digits[bits << (6 - count) & 63];
  while (pad && out.size() % 4 != 0) out += '=';
  return out;
}

// The value of each character, 64 for those that are not digits.
constexpr std::array<uint8_t, 256> values = [] {
  std::array<uint8_t, 256> out{};
  out.fill(64);
  for (uint8_t i = 0; i < 64; ++i) out[static_cast<uint8_t>(digits[i])] = i;
  return out;
}();

// Accepts padded and unpadded text. Ignores leftover bits.
std::string decoded(std::string_view text) {
  std::string_view data = text;
  if (data.size() % 4 == 0 && data.ends_with('=')) {
    data.remove_suffix(1);
    if (data.ends_with('=')) data.remove_suffix(1);
  }
  std::string out;
  out.reserve(data.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  int count = 0;
  for (size_t i = 0; i < data.size(); ++i) {
    const uint8_t value = values[static_cast<uint8_t>(data[i])];
    check(value < 64, "Invalid character found in base64: byte ", i, " of ", text.size(),
          " has the code ", int{static_cast<uint8_t>(data[i])});
    bits = bits << 6 | value;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count);
  }
  check(count < 6, "Base64 string length cannot be 1 modulo 4, got ", text.size());
  return out;
}

const Op encode_op{{
    .name = "EncodeBase64",
    .doc = "output = each string in base64, in the alphabet for URLs; with pad, filled up with = "
           "to a multiple of 4 characters.",
    .inputs = {"input: string"},
    .outputs = {"output: string"},
    .attrs = {"pad: bool = false"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel([](const KernelRequest& r) {
      return BoundKernel::of(
          [pad = r.attr<bool>("pad"), n = r.inputs[0].shape.elements()](const Arguments& a) {
            for (int64_t i = 0; i < n; ++i) {
              StepEnd::pace(64);
              a.output<std::string>()[i] = encoded(a.input<std::string>(0)[i], pad);
            }
          });
    })},
    .examples = {{.inputs = {texts({"", "a", "ab", "abc", "\xff\xfe"})},
                  .outputs = {texts({"", "YQ", "YWI", "YWJj", "__4"})}},
                 {.inputs = {texts({"a", "ab"})},
                  .attrs = {{"pad", true}},
                  .outputs = {texts({"YQ==", "YWI="})}}},
    .is_not_differentiable = true,
}};

const Op decode_op{{
    .name = "DecodeBase64",
    .doc = "output = the bytes of each string, which is base64 in the alphabet for URLs, with or "
           "without padding.",
    .inputs = {"input: string"},
    .outputs = {"output: string"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel([](const KernelRequest& r) {
      return BoundKernel::of([n = r.inputs[0].shape.elements()](const Arguments& a) {
        for (int64_t i = 0; i < n; ++i) {
          StepEnd::pace(64);
          a.output<std::string>()[i] = decoded(a.input<std::string>(0)[i]);
        }
      });
    })},
    .examples = {{.inputs = {texts({"", "YQ", "YWI=", "YWJj", "__4"})},
                  .outputs = {texts({"", "a", "ab", "abc", "\xff\xfe"})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
