// Known values, and both implementations against the definition, bit by bit.
#include "core/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace leat {
namespace {

uint32_t by_definition(const std::string& data, size_t from, size_t bytes) {
  uint32_t crc = ~0u;
  for (size_t i = from; i < from + bytes; ++i) {
    crc ^= static_cast<unsigned char>(data[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

std::string noise(size_t bytes) {
  std::mt19937 random(5);
  std::string out(bytes, '\0');
  for (char& byte : out) byte = static_cast<char>(random());
  return out;
}

TEST(Crc32c, EqualsTheCastagnoliChecksum) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff').data(), 32), 0x62a8ab43u);
  EXPECT_EQ(crc32c("", 0), 0u);
  EXPECT_EQ(masked_crc(0xe3069283u), 0xc78ab0e5u);
}

TEST(Crc32c, BothImplementationsMatchAtAnyLengthAndAlignment) {
  const std::string data = noise(14'000);
  const auto expect_right = [&](size_t from, size_t bytes) {
    const uint32_t expected = by_definition(data, from, bytes);
    const auto* begin = reinterpret_cast<const unsigned char*>(data.data()) + from;
    ASSERT_EQ(crc32c(begin, bytes), expected) << bytes << " bytes at " << from;
    std::string copy(bytes + 2, '-');
    ASSERT_EQ(copy_with_crc32c(copy.data() + 1, begin, bytes), expected) << bytes << " bytes";
    ASSERT_EQ(copy, '-' + data.substr(from, bytes) + '-') << bytes << " bytes at " << from;
    for (size_t way = 0; way < ways_to_crc32c().size(); ++way) {
      ASSERT_EQ(~ways_to_crc32c()[way](begin, bytes, ~0u), expected)
          << bytes << " bytes at " << from << " in way " << way;
    }
  };
  for (size_t bytes = 0; bytes < 1'200; bytes += 1 + bytes / 50) {
    for (size_t from = 0; from < 9; ++from) expect_right(from, bytes);
  }
  for (const size_t bytes : {6143, 6144, 6145, 6144 + 384, 12'288 + 384 + 9, 13'999})
    expect_right(1, bytes);
}

TEST(Crc32c, ContinuesFromAnEarlierChecksum) {
  const std::string data = noise(20'000);
  const uint32_t whole = crc32c(data.data(), data.size());
  for (const size_t cut : {size_t{1}, size_t{8}, size_t{383}, size_t{6144}, size_t{19'999}})
    EXPECT_EQ(crc32c(data.data() + cut, data.size() - cut, crc32c(data.data(), cut)), whole);
  std::string copy(data.size(), '\0');
  const uint32_t first = copy_with_crc32c(copy.data(), data.data(), 6145);
  EXPECT_EQ(copy_with_crc32c(copy.data() + 6145, data.data() + 6145, data.size() - 6145, first),
            whole);
  EXPECT_EQ(copy, data);
}

TEST(Crc32c, DetectsEveryFlippedBit) {
  std::string data = noise(7'000);
  const uint32_t right = crc32c(data.data(), data.size());
  for (size_t bit = 0; bit < 8 * data.size(); bit += 37) {
    data[bit / 8] = static_cast<char>(data[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(crc32c(data.data(), data.size()), right) << "bit " << bit;
    data[bit / 8] = static_cast<char>(data[bit / 8] ^ (1 << (bit % 8)));
  }
}

}  // namespace
}  // namespace leat
