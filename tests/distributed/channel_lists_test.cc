// Lists of integers that a channel has carried before: their number goes, and nothing is mixed up.
#include <gmock/gmock.h>

#include <algorithm>

#include "core/crc32c.h"
#include "tests/support/channel_pair.h"

namespace leat {
namespace {

using namespace channel_pair;

class ListsOver : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(, ListsOver,
                         testing::Values(Way::network, Way::shared_memory, Way::looking_memory,
                                         Way::lending_memory),
                         way_name);

Tensor row_ids(int64_t count, int64_t first = 0) {
  Tensor out(i64, {count});
  for (int64_t i = 0; i < count; ++i) out.data<int64_t>()[i] = first + i * 7 % count;
  return out;
}

TEST_P(ListsOver, SendsAListOfIntegersOnce) {
  ChannelPair pair(GetParam());
  const uint64_t bytes = 8 * 5'000;
  for (int64_t i = 0; i < 20; ++i) {
    const Tensor ids = row_ids(5'000, i % 2);  // another tensor each time
    const uint64_t before = pair.a.channel->sent_bytes();
    pair.a.channel->send(1 + i, i % 3, ids, false);
    ASSERT_TRUE(eventually([&] { return pair.b.count() == static_cast<size_t>(i) + 1; }));
    const auto& got = pair.b.received.back();
    EXPECT_EQ(got.step, 1 + i);
    EXPECT_EQ(got.edge, i % 3);
    expect_same(got.value, ids);
    // The receiver may write to what it gets.
    const_cast<Tensor&>(got.value).data<int64_t>()[0] = -1;
    const uint64_t sent = pair.a.channel->sent_bytes() - before;
    if (i < 2) {
      EXPECT_GT(sent, bytes);
    } else {
      EXPECT_EQ(sent, sizeof(FrameHeader) + sizeof(int64_t)) << "a header and an extent";
    }
  }
}

TEST_P(ListsOver, ARepeatedListMayHaveAnotherShapeOrDtype) {
  ChannelPair pair(GetParam());
  Tensor first(i64, {16, 2}), second(i64, {32}), third(i32, {4, 16});
  for (Tensor* each : {&first, &second, &third}) std::memset(each->raw(), 1, each->bytes());
  for (const Tensor& each : std::vector<Tensor>{first, second, third}) {
    const size_t before = pair.b.count();
    pair.a.channel->send(1, static_cast<int64_t>(before), each, false);
    ASSERT_TRUE(eventually([&] { return pair.b.count() == before + 1; }));
  }
  expect_same(pair.b.received[0].value, first);
  expect_same(pair.b.received[1].value, second);
  expect_same(pair.b.received[2].value, third);
  EXPECT_LT(pair.a.channel->sent_bytes(), 2 * first.bytes());
}

// Two lists of one length and one checksum: what tells them apart are their bytes.
TEST_P(ListsOver, ListsWithOneChecksumAreNotMixedUp) {
  ChannelPair pair(GetParam());
  const int64_t count = 64;
  const size_t bytes = static_cast<size_t>(count) * 8;
  const Tensor ids = row_ids(count);
  // The CRC is linear: crc(a ^ b) = crc(a) ^ crc(b) ^ crc(0). Of the 33 lists of one bit each, some
  // have a sum with the CRC of nothing.
  Tensor zeros(i64, {count});
  std::memset(zeros.raw(), 0, bytes);
  std::vector<std::pair<uint32_t, uint64_t>> basis;  // a CRC, and the bits that make it
  uint64_t same = 0;
  for (int bit = 0; bit <= 32 && same == 0; ++bit) {
    Tensor one(i64, {count});
    std::memset(one.raw(), 0, bytes);
    one.data<int64_t>()[0] = int64_t{1} << bit;
    uint32_t crc = crc32c(one.raw(), bytes) ^ crc32c(zeros.raw(), bytes);
    uint64_t bits = uint64_t{1} << bit;
    for (const auto& [other, its_bits] : basis) {
      if ((crc ^ other) < crc) crc ^= other, bits ^= its_bits;
    }
    if (crc == 0) {
      same = bits;
    } else {
      basis.emplace_back(crc, bits);
      std::sort(basis.rbegin(), basis.rend());
    }
  }
  Tensor other = row_ids(count);
  other.data<int64_t>()[0] ^= static_cast<int64_t>(same);
  ASSERT_NE(same, 0U);
  ASSERT_EQ(crc32c(ids.raw(), bytes), crc32c(other.raw(), bytes));
  size_t sent = 0;
  for (int i = 0; i < 3; ++i) {
    for (const Tensor* each : std::vector<const Tensor*>{&ids, &other}) {
      pair.a.channel->send(1, static_cast<int64_t>(sent), *each, false);
      ++sent;
      ASSERT_TRUE(eventually([&] { return pair.b.count() == sent; }));
      expect_same(pair.b.received.back().value, *each);
    }
  }
  EXPECT_LT(pair.a.channel->sent_bytes(), 3 * bytes) << "each of them once";
}

// The receiver keeps one list, the sender all.
TEST_P(ListsOver, AsksForAListThatItHasForgotten) {
  ChannelOptions forgetful;
  forgetful.known_lists = 8 * 100;
  ChannelPair pair(GetParam(), {}, forgetful);
  for (int64_t i = 0; i < 12; ++i) {
    const Tensor ids = row_ids(100, i % 3);
    pair.a.channel->send(1, i, ids, false);
    ASSERT_TRUE(eventually([&] { return pair.b.count() == static_cast<size_t>(i) + 1; })) << i;
    EXPECT_EQ(pair.b.received.back().edge, i);
    expect_same(pair.b.received.back().value, ids);
  }
  EXPECT_GT(pair.a.channel->sent_bytes(), 9U * 800);
  EXPECT_EQ(pair.a.abort_count() + pair.b.abort_count(), 0U);
}

// What came for a step that was over has not been kept.
TEST_P(ListsOver, AsksForAListThatCameTooLate) {
  ChannelPair pair(GetParam());
  pair.b.phase = StepPhase::over;
  const Tensor ids = row_ids(100);
  pair.a.channel->send(1, 0, ids, false);
  ASSERT_TRUE(eventually([&] { return pair.b.channel->received_bytes() > ids.bytes(); }));
  pair.b.phase = StepPhase::running;
  pair.a.channel->send(2, 0, row_ids(100, 5), false);  // its number must still be the same here
  pair.a.channel->send(2, 1, ids, false);
  pair.a.channel->send(2, 2, row_ids(100, 5), false);
  ASSERT_TRUE(eventually([&] { return pair.b.count() == 3; }));
  for (const auto& got : pair.b.received)
    expect_same(got.value, got.edge == 1 ? ids : row_ids(100, 5));
}

// A number stands for many bytes, which wait where the step has not begun.
TEST_P(ListsOver, RepeatedListsTakeTheirBytesOfTheWindow) {
  constexpr uint64_t window = 1 << 20;
  ChannelPair pair(GetParam(), {.window = window});
  const Tensor ids = row_ids(16 << 10);
  pair.a.channel->send(1, 0, ids, false);
  ASSERT_TRUE(eventually([&] { return pair.b.count() == 1; }));
  pair.b.phase = StepPhase::early;
  for (int64_t i = 0; i < 50; ++i) pair.a.channel->send(2, i, ids, false);
  EXPECT_GE(pair.a.channel->queued_bytes(), 50 * ids.bytes() - window);
  pair.b.phase = StepPhase::running;
  pair.b.channel->settle(2);
  ASSERT_TRUE(eventually([&] { return pair.b.count() == 51; }));
}

}  // namespace
}  // namespace leat
