// Large tensors that a task of the host reads where they lie: how long the sender keeps them, and
// what becomes of lies and damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/memory/shared_region.h"
#include "tests/support/channel_pair.h"

namespace leat {
namespace {

using namespace channel_pair;
using testing::HasSubstr;

// Of the region, whatever Buffer::allocate does.
Tensor region_tensor(int64_t size) {
  SharedRegion::open();
  const size_t bytes = (static_cast<size_t>(size) + 4095) / 4096 * 4096;
  void* const data = SharedRegion::process()->take(bytes, 4096);
  EXPECT_NE(data, nullptr);
  const auto buffer = std::make_shared<Buffer>(
      data, bytes, [bytes](void* p) { SharedRegion::process()->give(p, bytes); });
  Tensor tensor(DType::u8, {size}, buffer);
  const Tensor values = bytes_tensor(size);
  std::memcpy(tensor.raw(), values.raw(), values.bytes());
  return tensor;
}

class ALink : public testing::Test {
 protected:
  void SetUp() override {
    // Until this has come and gone, a peer's consent may still be under way.
    ASSERT_TRUE(eventually([&] {
      pair.a.channel->send(1, 0, region_tensor(200'000), false);
      pair.b.channel->send(1, 0, region_tensor(200'000), false);
      return pair.a.count() > 2 && pair.b.count() > 2;
    }));
  }
  // b reads nothing while this lives.
  std::unique_lock<std::mutex> hold_reader() {
    std::unique_lock lock(pair.b.mutex);
    pair.a.channel->send(1, 1, Tensor::scalar(1.0f), false);
    return lock;
  }

  ChannelPair pair{Way::lending_memory};
};

TEST_F(ALink, KeepsTheBufferUntilThePeerHasReadIt) {
  for (const int64_t size : {200'000, 3 << 20}) {
    Tensor sent = region_tensor(size);
    const std::weak_ptr<Buffer> buffer = sent.buffer();
    auto held = hold_reader();
    const uint64_t before = pair.a.channel->sent_bytes();
    pair.a.channel->send(1, size, std::move(sent), false);
    EXPECT_GT(pair.a.channel->sent_bytes() - before, static_cast<uint64_t>(size)) << "all is lent";
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in which it would be released
    EXPECT_FALSE(buffer.expired());
    held.unlock();
    EXPECT_TRUE(eventually([&] { return buffer.expired(); })) << "without another message";
    EXPECT_TRUE(eventually([&] {
      std::lock_guard lock(pair.b.mutex);
      return pair.b.received.back().edge == size;
    }));
    expect_same(pair.b.received.back().value, bytes_tensor(size));
  }
}

TEST_F(ALink, LendsNoMoreThanItsQueue) {
  auto held = hold_reader();
  for (int64_t i = 0; i < 16; ++i) pair.a.channel->send(1, 2 + i, region_tensor(1 << 20), false);
  EXPECT_GT(pair.a.channel->queued_bytes(), 11u << 20);
  held.unlock();
  EXPECT_TRUE(eventually([&] {
    std::lock_guard lock(pair.b.mutex);
    return pair.b.received.back().edge == 17;
  }));
  EXPECT_EQ(pair.a.channel->queued_bytes(), 0u);
}

TEST_F(ALink, WhatIsWrittenMeanwhileIsDataLoss) {
  const Tensor sent = region_tensor(3 << 20);
  auto held = hold_reader();
  pair.a.channel->send(1, 2, sent, false);
  static_cast<char*>(sent.buffer()->data())[2'000'000] ^= 1;
  held.unlock();
  ASSERT_TRUE(eventually([&] { return pair.a.has_ended() && pair.b.has_ended(); }));
  for (End* end : {&pair.a, &pair.b}) {
    EXPECT_EQ(end->end->code, Code::data_loss);
    EXPECT_THAT(end->end->message, HasSubstr("checksum of edge 2, bytes 1966080 to 2097152 of "));
  }
}

TEST_F(ALink, IsClosedOnceAllHasBeenRead) {
  Tensor sent = region_tensor(3 << 20);
  const std::weak_ptr<Buffer> buffer = sent.buffer();
  auto held = hold_reader();
  pair.a.channel->send(1, 2, std::move(sent), false);
  pair.a.channel->close();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in which it would end
  EXPECT_FALSE(buffer.expired());
  EXPECT_FALSE(pair.a.has_ended());
  held.unlock();
  EXPECT_TRUE(eventually([&] { return pair.a.has_ended() && pair.b.has_ended(); }));
  EXPECT_TRUE(pair.b.end->is_ok()) << pair.b.end->to_string();
  EXPECT_EQ(pair.b.received.back().edge, 2);
  expect_same(pair.b.received.back().value, bytes_tensor(3 << 20));
  EXPECT_TRUE(eventually([&] { return buffer.expired(); }));
}

TEST_F(ALink, EndOfTheLinkReturnsWhatIsLent) {
  Tensor sent = region_tensor(3 << 20);
  const std::weak_ptr<Buffer> buffer = sent.buffer();
  auto held = hold_reader();
  pair.a.channel->send(1, 2, std::move(sent), false);
  pair.a.channel->cut({Code::unavailable, "enough"});
  EXPECT_TRUE(eventually([&] { return pair.a.has_ended(); }));
  EXPECT_TRUE(eventually([&] { return buffer.expired(); }));
}

}  // namespace
}  // namespace leat
