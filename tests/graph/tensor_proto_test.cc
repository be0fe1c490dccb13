// TensorProto: the fixtures are bytes written by hand, since our own writer would share our
// mistakes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/import/graph_def.h"
#include "graph/import/proto_codec.h"
#include "tests/support/expect_error.h"
#include "tests/support/wire.h"

namespace leat {
namespace {

// "08 01 22 …": spaces are ignored.
std::string bytes(std::string_view hex) {
  std::string out;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    out += static_cast<char>(std::stoi(digits, nullptr, 16));
    digits.clear();
  }
  return out;
}

Tensor tensor(std::string_view hex) { return from_tensor_proto(bytes(hex)); }

template <class T>
std::vector<T> values(const Tensor& tensor) {
  const auto span = tensor.span<T>();
  return {span.begin(), span.end()};
}

// Fields: 1 dtype, 2 shape {2 dim {1 size}}, 4 content, 5 float_val, 7 int_val, 8 string_val, 10
// int64_val, 11 bool_val, 13 half_val.
TEST(TensorProto, ContentIsRawAndLittleEndian) {
  const Tensor t = tensor("08 01  12 04 12 02 08 02  22 08 00 00 80 3f 00 00 00 c0");
  EXPECT_EQ(t.shape(), (Shape{2}));
  EXPECT_EQ(values<float>(t), (std::vector<float>{1, -2}));
}

TEST(TensorProto, ReadsTypedLists) {
  EXPECT_EQ(values<float>(tensor("08 01  12 04 12 02 08 02  2a 08 00 00 80 3f 00 00 00 c0")),
            (std::vector<float>{1, -2}));
  EXPECT_EQ(
      values<int64_t>(tensor("08 09  12 04 12 02 08 02  52 0b 03 ff ff ff ff ff ff ff ff ff 01")),
      (std::vector<int64_t>{3, -1}));
  EXPECT_EQ(values<uint8_t>(tensor("08 04  12 04 12 02 08 02  3a 03 07 ff 01")),
            (std::vector<uint8_t>{7, 255}));
  EXPECT_EQ(values<bool>(tensor("08 0a  12 04 12 02 08 02  5a 02 01 00")),
            (std::vector<bool>{true, false}));
}

TEST(TensorProto, ReadsUnpackedLists) {
  EXPECT_EQ(values<float>(tensor("08 01  12 04 12 02 08 02  2d 00 00 80 3f  2d 00 00 00 c0")),
            (std::vector<float>{1, -2}));
}

TEST(TensorProto, RepeatsTheLastElementOfAShortList) {
  EXPECT_EQ(values<int32_t>(tensor("08 03  12 04 12 02 08 04  3a 02 05 06")),
            (std::vector<int32_t>{5, 6, 6, 6}));
  EXPECT_EQ(values<int32_t>(tensor("08 03  12 04 12 02 08 03")), (std::vector<int32_t>{0, 0, 0}));
  EXPECT_EQ(values<std::string>(tensor("08 07  12 04 12 02 08 03  42 01 61")),
            (std::vector<std::string>{"a", "a", "a"}));
}

TEST(TensorProto, IgnoresExtraElementsOfALongList) {
  EXPECT_EQ(values<int32_t>(tensor("08 03  12 04 12 02 08 02  3a 03 05 06 07")),
            (std::vector<int32_t>{5, 6}));
}

TEST(TensorProto, ScalarHasAnEmptyShapeOrNone) {
  EXPECT_EQ(tensor("08 03  12 00  3a 01 05").shape(), Shape{});
  EXPECT_EQ(tensor("08 03  3a 01 05").item<int32_t>(), 5);
}

TEST(TensorProto, EmptyTensorNeedsNeitherForm) {
  const Tensor t = tensor("08 01  12 08 12 02 08 00  12 02 08 03");
  EXPECT_EQ(t.shape(), (Shape{0, 3}));
  EXPECT_EQ(t.elements(), 0);
}

TEST(TensorProto, ReadsHalvesAsRawBits) {
  EXPECT_EQ(static_cast<float>(tensor("08 13  6a 02 80 78").item<half>()), 1.0f);      // 0x3c00
  EXPECT_EQ(static_cast<float>(tensor("08 0e  6a 02 80 7f").item<bfloat16>()), 1.0f);  // 0x3f80
}

TEST(TensorProto, NormalisesBools) {
  const Tensor t = tensor("08 0a  12 04 12 02 08 03  22 03 00 02 ff");
  const auto* raw = static_cast<const uint8_t*>(t.raw());
  EXPECT_EQ((std::vector<int>{raw[0], raw[1], raw[2]}), (std::vector<int>{0, 1, 1}));
}

// Clients feed strings this way: all lengths, then all bytes.
TEST(TensorProto, ReadsStringsInContent) {
  EXPECT_EQ(values<std::string>(tensor("08 07  12 04 12 02 08 03  22 06 02 00 01 61 62 63")),
            (std::vector<std::string>{"ab", "", "c"}));
}

void expect_refused(std::string_view hex, std::string_view message,
                    Code code = Code::invalid_argument) {
  expect_error([&] { tensor(hex); }, code, message);
}

TEST(TensorProto, RejectsMistakes) {
  expect_refused("12 00", "a tensor has no dtype");
  expect_refused("08 0b", "a tensor has the dtype qint8, which Leat does not support");
  expect_refused("08 14", "a tensor has the dtype resource, which Leat does not support");
  expect_refused("08 63", "a tensor has the dtype number 99, which Leat does not support");
  expect_refused("08 01  12 02 18 01", "a tensor has the partial shape <unknown>");
  expect_refused("08 01  12 0d 12 0b 08 ff ff ff ff ff ff ff ff ff 01",
                 "a tensor has the partial shape [?]");
  expect_refused("08 01  12 0d 12 0b 08 fe ff ff ff ff ff ff ff ff 01",
                 "a shape has the extent -2");
  expect_refused("08 01  12 04 12 02 08 02  22 04 00 00 80 3f",
                 "tensor_content has 4 bytes, but float[2] needs 8");
  expect_refused("08 07  12 04 12 02 08 03  22 06 02 00 02 61 62 63",
                 "tensor_content of 3 strings has 3 bytes of text, but their lengths add up to 4");
  expect_refused("08 07  12 04 12 02 08 03  22 02 00 00",
                 "tensor_content of 2 bytes is too short for 3 strings");
  expect_refused("08 07  12 04 12 02 08 03  22 03 00 00 80",
                 "tensor_content of 3 strings ends within their lengths");
  expect_refused("08 01 12 04 12", "this is not a TensorProto: its 5 bytes do not parse");
}

// 2^40 floats, and shapes whose number of elements or bytes overflows.
TEST(TensorProto, NeverAllocatesForMissingElements) {
  limit_expansions(1'000'000'000);
  expect_refused("08 01  12 09 12 07 08 80 80 80 80 80 20  22 04 00 00 80 3f",
                 "tensor_content has 4 bytes, but float[1099511627776] needs 4398046511104");
  expect_refused("08 07  12 09 12 07 08 80 80 80 80 80 20  22 01 00",
                 "tensor_content of 1 bytes is too short for 1099511627776 strings");
  expect_refused(
      "08 01  12 09 12 07 08 80 80 80 80 80 20  2a 04 00 00 80 3f",
      "a tensor float[1099511627776] of 4398046511104 bytes is expanded from 1 elements; the "
      "limit for that is 1000000000 bytes, half of the free memory: use Fill",
      Code::resource_exhausted);
  expect_refused("08 01  12 12 12 07 08 80 80 80 80 80 20 12 07 08 80 80 80 80 80 20  22 01 00",
                 "shape [1099511627776,1099511627776] has more than 2^63 elements");
}

// The initializer of a large table looks like this.
TEST(TensorProto, ExpandsOneElementToMany) {
  const std::string shape = wire_format::text(2, wire_format::number(1, 80'000'000));
  const std::string bytes = wire_format::number(1, 1) + wire_format::text(2, shape) +
                            wire_format::text(5, std::string("\0\0\x80\x3f", 4));
  const Tensor ones = from_tensor_proto(bytes);
  EXPECT_EQ(ones.shape(), Shape{80'000'000});
  EXPECT_EQ(ones.data<float>()[79'999'999], 1);
}

// 2^20 strings, all equal to the single one of 1000 bytes: a gigabyte.
TEST(TensorProto, CountsTheTextOfRepeatedStrings) {
  using namespace wire_format;
  const std::string shape = text(2, text(2, number(1, 1 << 20)));
  const std::string bytes = number(1, 7) + shape + text(8, std::string(1000, 'a'));
  expect_error_with(Code::resource_exhausted, "of 1082130432 bytes is expanded from 1 elements",
                    [&] { from_tensor_proto(bytes); });
}

template <class T>
void expect_same_after_a_round_trip(const Tensor& tensor) {
  const Tensor back = from_tensor_proto(to_tensor_proto(tensor));
  EXPECT_EQ(back.dtype(), tensor.dtype());
  EXPECT_EQ(back.shape(), tensor.shape());
  if constexpr (std::is_same_v<T, std::string>) {
    EXPECT_EQ(values<T>(back), values<T>(tensor));
  } else if (tensor.bytes() > 0) {
    EXPECT_EQ(std::memcmp(back.raw(), tensor.raw(), tensor.bytes()), 0);
  }
}

TEST(TensorProto, RoundTrips) {
  expect_same_after_a_round_trip<float>(
      Tensor::of<float>({3}, {-0.0f, std::nanf(""), std::numeric_limits<float>::infinity()}));
  expect_same_after_a_round_trip<double>(Tensor::of<double>({1, 2}, {1e300, -1}));
  expect_same_after_a_round_trip<half>(Tensor::of<half>({2}, {half(0.5f), half(-2)}));
  expect_same_after_a_round_trip<bfloat16>(
      Tensor::of<bfloat16>({2}, {bfloat16(0.5f), bfloat16(-2)}));
  expect_same_after_a_round_trip<int8_t>(Tensor::of<int8_t>({2}, {-128, 127}));
  expect_same_after_a_round_trip<int16_t>(Tensor::of<int16_t>({2}, {-32768, 32767}));
  expect_same_after_a_round_trip<int32_t>(Tensor::of<int32_t>({2}, {-1, 1 << 30}));
  expect_same_after_a_round_trip<int64_t>(Tensor::of<int64_t>({2}, {-1, int64_t{1} << 62}));
  expect_same_after_a_round_trip<uint8_t>(Tensor::of<uint8_t>({2}, {0, 255}));
  expect_same_after_a_round_trip<uint16_t>(Tensor::of<uint16_t>({2}, {0, 65535}));
  expect_same_after_a_round_trip<uint32_t>(Tensor::of<uint32_t>({2}, {0, 4294967295u}));
  expect_same_after_a_round_trip<uint64_t>(Tensor::of<uint64_t>({2}, {0, ~uint64_t{0}}));
  expect_same_after_a_round_trip<bool>(Tensor::of<bool>({2}, {true, false}));
  expect_same_after_a_round_trip<std::string>(
      Tensor::of<std::string>({3}, {"a", "", std::string("\0\xff", 2)}));
  expect_same_after_a_round_trip<float>(Tensor::scalar(3.0f));
  expect_same_after_a_round_trip<float>(Tensor(f32, {2, 0}));
}

}  // namespace
}  // namespace leat
