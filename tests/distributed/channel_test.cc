// Tensors between two tasks: every size and dtype arrives unchanged, and both ends learn of errors.
#include "distributed/wire/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <limits>
#include <new>
#include <numeric>

#include "core/crc32c.h"
#include "core/visit_dtype.h"
#include "tests/support/channel_pair.h"
#include "tests/support/sanitizers.h"

namespace {
// The most memory that one allocation may take.
std::atomic<size_t> largest_allocation{std::numeric_limits<size_t>::max()};
}  // namespace

#ifndef LEAT_UNDER_SANITIZER
// noinline: where only one of them is inlined, gcc takes free() for a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  if (bytes > largest_allocation) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif

namespace leat {
namespace {

using namespace channel_pair;
using ::testing::HasSubstr;
using ::testing::Not;

class ChannelOver : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(, ChannelOver,
                         testing::Values(Way::network, Way::shared_memory, Way::looking_memory,
                                         Way::lending_memory),
                         way_name);

TEST_P(ChannelOver, DeliversEverySize) {
  ChannelPair pair(GetParam());
  constexpr int64_t mb = 1 << 20;
  int64_t edge = 0;
  for (int64_t size :
       {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{2047}, int64_t{2048}, 512 * 1024 - int64_t{1},
        int64_t{512 * 1024}, int64_t{512 * 1024 + 1}, mb - 1, mb, mb + 1, 16 * mb, 16 * mb + 3}) {
    for (const bool is_back : {false, true}) {
      auto* const from = is_back ? &pair.b : &pair.a;
      auto* const to = is_back ? &pair.a : &pair.b;
      const Tensor sent = bytes_tensor(size);
      const size_t before = to->count();
      from->channel->send(7, ++edge, sent, false);
      ASSERT_TRUE(eventually([&] { return to->count() == before + 1; })) << size;
      const auto& got = to->received.back();
      EXPECT_EQ(got.step, 7);
      EXPECT_EQ(got.edge, edge);
      EXPECT_FALSE(got.is_dead);
      expect_same(got.value, sent);
      EXPECT_TRUE(size == 0 || got.value.raw() != sent.raw());
    }
  }
}

TEST_P(ChannelOver, DeliversEveryDtypeAndShape) {
  ChannelPair pair(GetParam());
  std::vector<Tensor> sent;
  for (DType dtype : dtype_list("type")) {
    if (dtype == DType::string || dtype_size(dtype) == 0 || !visit_dtype(dtype, [](auto) {}))
      continue;
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0, 5}, Shape{1, 2, 3, 4, 1, 2, 1, 2}}) {
      Tensor tensor(dtype, shape);
      for (size_t i = 0; i < tensor.bytes(); ++i)
        static_cast<uint8_t*>(tensor.raw())[i] = static_cast<uint8_t>(i % 2);
      sent.push_back(tensor);
    }
  }
  sent.push_back(Tensor::scalar(""));
  sent.push_back(Tensor::scalar(std::string("with\0zero", 9)));
  sent.push_back(Tensor(DType::string, {0, 4}));
  Tensor strings(DType::string, {3, 100});
  for (int i = 0; i < 300; ++i)
    strings.data<std::string>()[i] =
        std::string(static_cast<size_t>(i) * 37, static_cast<char>('a' + i % 26));
  sent.push_back(strings);
  ASSERT_GT(sent.size(), 40u);
  for (size_t i = 0; i < sent.size(); ++i)
    pair.a.channel->send(1, static_cast<int64_t>(i), sent[i], false);
  ASSERT_TRUE(eventually([&] { return pair.b.count() == sent.size(); }));
  for (const auto& got : pair.b.received)
    expect_same(got.value, sent[static_cast<size_t>(got.edge)]);
}

TEST_P(ChannelOver, DeliversEmptyTensorsOfHugeExtents) {
  constexpr int64_t huge = int64_t{1} << 40;
  ChannelPair pair(GetParam());
  const Tensor sent(DType::f32, {huge, huge, 0});
  pair.a.channel->send(1, 0, sent, false);
  ASSERT_TRUE(eventually([&] { return pair.b.count() == 1 || pair.b.has_ended(); }));
  ASSERT_EQ(pair.b.count(), 1u) << pair.b.end.value_or(Status{}).message;
  expect_same(pair.b.received[0].value, sent);
}

TEST_P(ChannelOver, DeliversDeadValuesAndControlEdges) {
  ChannelPair pair(GetParam());
  pair.a.channel->send(1, 0, Tensor::of<float>({2}, {1, 2}), true);
  pair.a.channel->send(1, 1, {}, false);
  pair.a.channel->send(1, 2, {}, true);
  ASSERT_TRUE(eventually([&] { return pair.b.count() == 3; }));
  for (const auto& got : pair.b.received) {
    EXPECT_FALSE(got.value.is_valid());
    EXPECT_EQ(got.is_dead, got.edge != 1);
  }
}

TEST_P(ChannelOver, ReleasesBuffersAfterSending) {
  ChannelPair pair(GetParam());
  Tensor sent = bytes_tensor(8 << 20);
  std::weak_ptr<Buffer> buffer = sent.buffer();
  const Tensor copy = sent.clone();
  pair.a.channel->send(1, 0, std::move(sent), false);
  ASSERT_TRUE(eventually([&] { return pair.b.count() == 1; }));
  expect_same(pair.b.received[0].value, copy);
  EXPECT_TRUE(eventually([&] { return buffer.expired(); }))
      << "the buffer stays pinned after it was sent";
}

TEST_P(ChannelOver, DeliversManySmallTensorsInOrder) {
  ChannelPair pair(GetParam());
  constexpr int64_t count = 20'000;
  for (int64_t i = 0; i < count; ++i)
    pair.a.channel->send(1, i, Tensor::scalar<int64_t>(i * i), false);
  ASSERT_TRUE(eventually([&] { return pair.b.count() == count; }));
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_EQ(pair.b.received[static_cast<size_t>(i)].edge, i);
    EXPECT_EQ(pair.b.received[static_cast<size_t>(i)].value.item<int64_t>(), i * i);
  }
}

TEST_P(ChannelOver, SmallTensorsOvertakeLargeOnes) {
  ChannelPair pair(GetParam(), {.queue = 1 << 20});
  // On a busy machine the large ones may have arrived before this thread sends the small one. Then
  // it has nothing to overtake: once more.
  bool has_overtaken = false;
  for (size_t attempt = 1; attempt <= 20 && !has_overtaken; ++attempt) {
    for (int64_t i = 0; i < 8; ++i) pair.a.channel->send(1, i, bytes_tensor(16 << 20), false);
    pair.a.channel->send(1, 100, Tensor::scalar(1.0f), false);
    ASSERT_TRUE(eventually([&] { return pair.b.count() == 9 * attempt; }));
    has_overtaken = pair.b.received.back().edge != 100;
  }
  EXPECT_TRUE(has_overtaken);
}

// Values for a step that the receiver has not begun take at most the window. The rest waits at the
// sender and arrives when the step begins.
TEST_P(ChannelOver, BoundsBackPressure) {
  constexpr uint64_t window = 4 << 20;
  ChannelPair pair(GetParam(), {.window = window, .chunk = 256 << 10});
  pair.b.phase = StepPhase::early;
  constexpr int64_t count = 20, size = 1'000'000;
  for (int64_t i = 0; i < count; ++i) pair.a.channel->send(5, i, bytes_tensor(size), false);
  // The sender stops by itself.
  ASSERT_TRUE(eventually([&] { return pair.b.channel->received_bytes() > window / 2; }));
  uint64_t last = 0;
  ASSERT_TRUE(eventually([&] {
    const uint64_t now = pair.b.channel->received_bytes() + pair.a.channel->queued_bytes();
    return std::exchange(last, now) == now && now > count * size;
  }));
  EXPECT_LE(pair.b.channel->received_bytes(), window + window / 10);
  EXPECT_GE(pair.a.channel->queued_bytes(), count * size - window);
  // The limit does not last: as soon as the step begins, everything arrives.
  pair.b.phase = StepPhase::running;
  pair.b.channel->settle(5);
  ASSERT_TRUE(eventually([&] { return pair.b.count() == count; }));
  EXPECT_EQ(pair.a.channel->queued_bytes(), 0u);
}

// While the window is full, later ones with lower edges take their place before the others.
TEST_P(ChannelOver, OfLargeTensorsThatWaitTheLowestEdgeGoesFirst) {
  ChannelPair pair(GetParam(), {.window = 4 << 20, .chunk = 256 << 10});
  pair.b.phase = StepPhase::early;
  constexpr int64_t count = 10;
  for (int64_t edge = count - 1; edge >= 0; --edge)
    pair.a.channel->send(5, edge, bytes_tensor(1 << 20), false);
  ASSERT_TRUE(eventually([&] { return pair.b.channel->received_bytes() > 3 << 20; }));
  pair.b.phase = StepPhase::running;
  pair.b.channel->settle(5);
  ASSERT_TRUE(eventually([&] { return pair.b.count() == count; }));
  std::vector<int64_t> order;
  for (const auto& each : pair.b.received) order.push_back(each.edge);
  const auto lowest = std::find(order.begin(), order.end(), 0);
  EXPECT_LE(lowest - order.begin(), 4) << testing::PrintToString(order);
  EXPECT_TRUE(std::is_sorted(order.begin(), lowest, std::greater<>()))
      << testing::PrintToString(order);
  EXPECT_TRUE(std::is_sorted(lowest, order.end())) << testing::PrintToString(order);
}

TEST_P(ChannelOver, EndedStepsTakeNoWindow) {
  ChannelPair pair(GetParam(), {.window = 1 << 20, .chunk = 64 << 10});
  pair.b.phase = StepPhase::over;
  for (int64_t i = 0; i < 20; ++i) pair.a.channel->send(1, i, bytes_tensor(1 << 20), false);
  ASSERT_TRUE(eventually([&] { return pair.b.channel->received_bytes() > 20u << 20; }));
  EXPECT_EQ(pair.b.count(), 0u);
  pair.b.phase = StepPhase::running;
  pair.a.channel->send(2, 0, bytes_tensor(3 << 20), false);
  ASSERT_TRUE(eventually([&] { return pair.b.count() == 1; }));
}

TEST_P(ChannelOver, AbortDropsWaitingValuesAndReachesThePeer) {
  ChannelPair pair(GetParam(), {.window = 1 << 20, .chunk = 64 << 10});
  pair.b.phase = StepPhase::early;
  pair.a.channel->send(1, 0, bytes_tensor(50 << 20), false);
  pair.a.channel->send(2, 0, Tensor::scalar(1.0f), false);
  pair.a.channel->abort(1, {Code::invalid_argument, "the root cause", true});
  EXPECT_EQ(pair.a.channel->queued_bytes(), 4u)
      << "only step 2 waits, for the window that step 1 holds";
  ASSERT_TRUE(eventually([&] { return pair.b.abort_count() == 1; }));
  EXPECT_EQ(pair.b.abort(0).first, 1);
  EXPECT_EQ(pair.b.abort(0).second.code, Code::invalid_argument);
  EXPECT_EQ(pair.b.abort(0).second.message, "the root cause");
  EXPECT_TRUE(pair.b.abort(0).second.derived);
  EXPECT_EQ(pair.b.abort(0).second.node, "");
  const Status of_node = with_node({Code::internal, "bad", true}, "layer/add");
  pair.a.channel->abort(3, of_node);
  ASSERT_TRUE(eventually([&] { return pair.b.abort_count() == 2; }));
  EXPECT_EQ(pair.b.abort(1).second.message, of_node.message);
  EXPECT_EQ(pair.b.abort(1).second.node, "layer/add");
  pair.b.channel->settle(1);
  pair.b.phase = StepPhase::running;
  ASSERT_TRUE(eventually([&] { return pair.b.count() == 1; }));
  EXPECT_EQ(pair.b.received[0].step, 2);
}

TEST_P(ChannelOver, TooLargeTensorAbortsItsStepOnBothEnds) {
  ChannelPair pair(GetParam(), {.largest_tensor = 10'000});
  pair.a.channel->send(1, 0, bytes_tensor(5'000'000), false);
  pair.a.channel->send(2, 0, bytes_tensor(10'000), false);
  ASSERT_TRUE(eventually([&] { return pair.a.abort_count() == 1 && pair.b.abort_count() == 1; }));
  for (End* end : {&pair.a, &pair.b}) {
    EXPECT_EQ(end->aborts[0].first, 1);
    EXPECT_EQ(end->aborts[0].second.code, Code::resource_exhausted);
    EXPECT_THAT(end->aborts[0].second.message, HasSubstr("5000000 bytes"));
  }
  ASSERT_TRUE(eventually([&] { return pair.b.count() == 1; }));
  EXPECT_EQ(pair.b.received[0].step, 2);
}

TEST_P(ChannelOver, DetectsLostFrames) {
  ChannelPair pair(GetParam());
  pair.a.channel->send(1, 0, Tensor::scalar(1.0f), false);
  ASSERT_TRUE(eventually([&] { return pair.b.count() == 1; }));
  pair.faults.drop_writes(1);
  pair.a.channel->send(1, 1, Tensor::scalar(2.0f), false);
  pair.a.channel->heartbeat();
  ASSERT_TRUE(eventually([&] { return pair.b.has_ended() && pair.a.has_ended(); }));
  EXPECT_EQ(pair.b.end->code, Code::data_loss);
  EXPECT_THAT(pair.b.end->message, HasSubstr("frame 2 arrived where 1 was expected"));
}

TEST_P(ChannelOver, NeverDeliversDamagedPieces) {
  for (const int64_t size : {int64_t{5'000}, int64_t{3} << 20}) {
    ChannelPair pair(GetParam());
    pair.a.channel->send(1, 0, bytes_tensor(size), false);
    ASSERT_TRUE(eventually([&] { return pair.b.count() == 1; }));
    pair.faults.damage_writes(1);
    pair.a.channel->send(1, 1, bytes_tensor(size), false);
    ASSERT_TRUE(eventually([&] { return pair.b.has_ended() && pair.a.has_ended(); }));
    EXPECT_EQ(pair.b.count(), 1u);
    for (End* end : {&pair.a, &pair.b}) {
      EXPECT_EQ(end->end->code, Code::data_loss);
      EXPECT_THAT(end->end->message, HasSubstr("checksum of edge 1, bytes "));
    }
  }
}

TEST_P(ChannelOver, ToleratesDelays) {
  ChannelPair pair(GetParam());
  pair.faults.delay(std::chrono::milliseconds(3));
  // What b lends is read when the message has been delayed: b does not write to it meanwhile.
  std::vector<Tensor> kept;
  for (int64_t i = 0; i < 50; ++i) {
    pair.a.channel->send(1, i, bytes_tensor(i * 50'000), false);
    kept.push_back(bytes_tensor(i * 50'000));
    pair.b.channel->send(1, i, kept.back(), false);
  }
  ASSERT_TRUE(eventually([&] { return pair.a.count() == 50 && pair.b.count() == 50; }));
  for (const auto& got : pair.b.received) expect_same(got.value, bytes_tensor(got.edge * 50'000));
}

TEST_P(ChannelOver, CountsTheBytesOfTensors) {
  ChannelPair pair(GetParam());
  pair.a.channel->heartbeat();
  EXPECT_EQ(pair.a.channel->sent_bytes(), 0u);
  pair.a.channel->send(1, 0, bytes_tensor(10), false);
  pair.a.channel->send(1, 1, bytes_tensor(3 << 20), false);
  ASSERT_TRUE(eventually([&] { return pair.b.count() == 2; }));
  EXPECT_GE(pair.a.channel->sent_bytes(), 10u + (3u << 20));
  EXPECT_LE(pair.a.channel->sent_bytes(), 10u + (3u << 20) + 4096) << "only headers besides";
  EXPECT_EQ(pair.b.channel->sent_bytes(), 0u);
}

TEST_P(ChannelOver, CutEndsBothSidesWithTheReason) {
  ChannelPair pair(GetParam());
  pair.a.channel->cut({Code::unavailable, "it has been silent for 7.0 s"});
  ASSERT_TRUE(eventually([&] { return pair.a.has_ended() && pair.b.has_ended(); }));
  EXPECT_EQ(pair.a.end->message, "it has been silent for 7.0 s");
  EXPECT_EQ(pair.b.end->code, Code::unavailable);
  pair.a.channel->send(1, 0, bytes_tensor(10), false);  // does nothing
  EXPECT_EQ(pair.a.channel->queued_bytes(), 0u);
}

TEST_P(ChannelOver, CloseDeliversQueuedValues) {
  ChannelPair pair(GetParam());
  pair.a.channel->send(1, 0, bytes_tensor(3 << 20), false);
  pair.a.channel->close();
  ASSERT_TRUE(eventually([&] { return pair.a.has_ended() && pair.b.has_ended(); }));
  EXPECT_TRUE(pair.b.end->is_ok()) << pair.b.end->message;
  EXPECT_EQ(pair.b.count(), 1u);
}

// ---- Input that we would not send ----

// A channel whose peer is a plain stream.
struct RawPair {
  End end;
  RpcServer server;
  std::unique_ptr<RpcClient> client;
  std::shared_ptr<RpcStream> raw;
  std::atomic<bool> raw_ended{false};
  std::mutex mutex;
  std::string received;  // by raw

  struct Options {
    bool is_admitted = true;
  };
  explicit RawPair(Options options = {true}) {
    std::promise<std::shared_ptr<RpcStream>> accepted;
    server.accept(
        "/test", [&](std::shared_ptr<RpcStream> stream) { accepted.set_value(std::move(stream)); });
    client =
        std::make_unique<RpcClient>("127.0.0.1:" + std::to_string(server.start("127.0.0.1:0")));
    raw = client->open("/test");
    raw->start({.on_message =
                    [this](const Bytes& message) {
                      std::lock_guard lock(mutex);
                      received += message.to_string();
                    },
                .on_end = [this](const RpcStatus&) { raw_ended = true; },
                .on_written = {}});
    end.channel = Channel::create(accepted.get_future().get(), {.incarnation = 22}, end.events());
    if (options.is_admitted) end.channel->admit(11, 1 << 20);
  }
  std::string raw_received() {
    std::lock_guard lock(mutex);
    return received;
  }
  ~RawPair() {
    raw.reset();
    end.channel.reset();
    EXPECT_TRUE(client->close());
    server.stop();
    std::lock_guard lock(mutex);  // after the last message
  }
  // Sends `bytes` and returns the status with which the channel ended.
  Status send(std::string bytes) {
    raw->write(to_slices(std::move(bytes)));
    EXPECT_TRUE(eventually([&] { return end.has_ended(); }));
    return end.end.value_or(Status{});
  }
};

constexpr std::string_view eight_bytes("\0\0\0\0\0\0\0\0", 8);

FrameHeader tensor_header() {
  return {.kind = FrameKind::tensor,
          .dtype = DType::f32,
          .rank = 1,
          .payload = 8,
          .step = 1,
          .total = 8,
          .incarnation = 11};
}

TEST(ChannelInput, AcceptsGoodFramesFromARawPeer) {
  RawPair pair;
  const float values[] = {3, 4};
  pair.raw->write(to_slices(
      encode(tensor_header(), {2}, std::string_view(reinterpret_cast<const char*>(values), 8))));
  ASSERT_TRUE(eventually([&] { return pair.end.count() == 1; }));
  expect_same(pair.end.received[0].value, Tensor::of<float>({2}, {3, 4}));
}

TEST(ChannelInput, RejectsGarbage) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(64, '\0'), std::string(1000, '\xff')}) {
    RawPair pair;
    EXPECT_EQ(pair.send(bytes).code, Code::data_loss);
    EXPECT_EQ(pair.end.count(), 0u);
    EXPECT_TRUE(eventually([&] { return pair.raw_ended.load(); }));
  }
}

TEST(ChannelInput, RejectsFalseHeaders) {
  struct Case {
    const char* what;
    std::function<void(FrameHeader&)> change;
    std::vector<int64_t> extents = {2};
  };
  const int64_t huge = int64_t{1} << 62;
  const std::vector<Case> cases = {
      {"kind", [](FrameHeader& h) { h.kind = static_cast<FrameKind>(99); }},
      {"rank", [](FrameHeader& h) { h.rank = 200; }},
      {"payload beyond the end", [](FrameHeader& h) { h.payload = 1 << 30; }},
      {"payload beyond the tensor", [](FrameHeader& h) { h.total = 4; }},
      {"total that does not fit the shape", [](FrameHeader& h) { h.total = 1 << 20; }},
      {"offset beyond the tensor",
       [](FrameHeader& h) {
         h.offset = 1 << 20;
         h.rank = 0;
       },
       {}},
      {"negative extent", [](FrameHeader&) {}, {-2}},
      {"overflowing extents", [](FrameHeader& h) { h.rank = 2; }, {huge, huge}},
      {"negative extent beside none", [](FrameHeader& h) { h.rank = 2; }, {0, -2}},
      {"overflowing bytes", [](FrameHeader&) {}, {huge}},
      {"unknown dtype", [](FrameHeader& h) { h.dtype = static_cast<DType>(200); }},
      {"dtype without elements", [](FrameHeader& h) { h.dtype = DType::resource; }},
      {"strings in too few bytes", [](FrameHeader& h) { h.dtype = DType::string; }, {1000}},
      {"a string longer than the rest", [](FrameHeader& h) { h.dtype = DType::string; }, {1}},
      {"dead with bytes", [](FrameHeader& h) { h.flags = FrameHeader::dead; }},
      {"sequence", [](FrameHeader& h) { h.sequence = 3; }},
      {"a known list with bytes", [](FrameHeader& h) { h.flags = FrameHeader::known; }},
      {"a known list of floats",
       [](FrameHeader& h) {
         h.flags = FrameHeader::known;
         h.payload = 0;
       }},
      {"a list too short to be kept", [](FrameHeader& h) { h.flags = FrameHeader::remembered; }},
      {"an ask with a payload", [](FrameHeader& h) { h.kind = FrameKind::ask; }},
      {"a call whose method is longer than it",
       [](FrameHeader& h) {
         h.kind = FrameKind::call;
         h.rank = 0;
         h.total = 9;
       },
       {}},
      {"an answer to no call",
       [](FrameHeader& h) {
         h.kind = FrameKind::answer;
         h.rank = 0;
       },
       {}},
      {"an answer whose details are longer than it",
       [](FrameHeader& h) {
         h.kind = FrameKind::answer;
         h.rank = 0;
         h.offset = 1;
       },
       {}},
      {"an answer with an unknown code",
       [](FrameHeader& h) {
         h.kind = FrameKind::answer;
         h.rank = 0;
         h.edge = 77;
       },
       {}},
      {"greeting after the greeting",
       [](FrameHeader& h) {
         h.kind = FrameKind::hello;
         h.rank = 0;
       },
       {}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    RawPair pair;
    FrameHeader header = tensor_header();
    one.change(header);
    const std::string payload(8, '\x7f');
    header.payload_checksum = crc32c(payload.data(), payload.size());
    header.checksum = crc32c(one.extents.data(), one.extents.size() * sizeof(int64_t),
                             crc32c(&header, sizeof header));
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes.append(reinterpret_cast<const char*>(one.extents.data()), one.extents.size() * 8);
    const Status status = pair.send(bytes + payload);
    EXPECT_EQ(status.code, Code::data_loss);
    if (header.rank <= Shape::max_rank) {
      EXPECT_THAT(status.message, Not(HasSubstr("checksum")));
    }
    EXPECT_EQ(pair.end.count(), 0u);
  }
}

// Flips one bit anywhere in a frame.
// A network lends nothing, and no text is lent.
TEST(ChannelInput, RejectsPlacesInTheMemoryOfThePeer) {
  for (const FrameKind kind : {FrameKind::tensor, FrameKind::complaint}) {
    FrameHeader header = tensor_header();
    header.kind = kind;
    header.flags = FrameHeader::lent;
    RawPair pair;
    const Status status = pair.send(encode(header, {2}, eight_bytes));
    EXPECT_EQ(status.code, Code::data_loss);
    EXPECT_THAT(status.message, HasSubstr(kind == FrameKind::tensor
                                              ? "names the place 0, where the peer lends nothing"
                                              : "is lent"));
    EXPECT_EQ(pair.end.count(), 0u);
  }
}

TEST(ChannelInput, ReportsDamageToBothEnds) {
  const std::string good = encode(tensor_header(), {2}, eight_bytes);
  for (size_t at = 0; at < good.size(); at += 5) {
    SCOPED_TRACE(at);
    RawPair pair;
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    const Status status = pair.send(bytes);
    EXPECT_EQ(status.code, Code::data_loss);
    const bool is_payload = at >= good.size() - 8;
    EXPECT_THAT(status.message, HasSubstr(at < 4       ? "not a frame of Leat"
                                          : is_payload ? "the checksum of edge 0, bytes 0 to 8 of "
                                                         "8 in step 1, does not match"
                                                       : "the checksum of a frame's header"));
    EXPECT_EQ(pair.end.count(), 0u);
    ASSERT_TRUE(eventually([&] { return pair.raw_ended.load(); }));
    EXPECT_THAT(pair.raw_received(), HasSubstr(status.message)) << "the complaint";
  }
}

// Version 1 had no checksums; a peer that greets with it must learn of the version.
TEST(ChannelInput, AcceptsOnlyGreetingsWithoutChecksums) {
  for (const FrameKind kind : {FrameKind::hello, FrameKind::abort}) {
    RawPair pair({.is_admitted = kind == FrameKind::abort});
    FrameHeader header{.kind = kind, .payload = 5, .incarnation = 11};
    const std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    pair.raw->write(to_slices(bytes + "hello"));
    ASSERT_TRUE(eventually([&] { return pair.end.has_ended() || pair.end.has_greeting; }));
    EXPECT_EQ(pair.end.has_greeting, kind == FrameKind::hello);
  }
}

TEST(ChannelInput, RejectsAnotherIncarnation) {
  RawPair pair;
  FrameHeader header = tensor_header();
  header.incarnation = 12;
  EXPECT_EQ(pair.send(encode(header, {2}, eight_bytes)).code, Code::aborted);
  EXPECT_EQ(pair.end.count(), 0u);
}

TEST(ChannelInput, RejectsPiecesWithAnotherTotal) {
  for (const uint64_t total : {uint64_t{1} << 20, uint64_t{16}}) {
    RawPair pair;
    FrameHeader header = tensor_header();
    header.total = 24;
    pair.raw->write(to_slices(encode(header, {6}, eight_bytes)));
    header.sequence = 1;
    header.offset = 8;
    header.total = total;
    const Status status = pair.send(encode(header, {6}, eight_bytes));
    EXPECT_EQ(status.code, Code::data_loss);
    EXPECT_THAT(status.message, HasSubstr("but the tensor began with 24"));
    EXPECT_EQ(pair.end.count(), 0u);
  }
}

// Strings allocate as they arrive, or when they are complete. A failed allocation ends only their
// step, not the other traffic of the two tasks.
TEST(ChannelInput, OutOfMemoryStringsEndOnlyTheirStep) {
#ifdef LEAT_UNDER_SANITIZER
  GTEST_SKIP() << "a sanitizer has replaced the allocator";
#endif
  constexpr size_t first = 400'000, second = 2'000'000;
  RawPair pair;
  FrameHeader header = tensor_header();
  header.dtype = DType::string;
  header.total = first + second;
  std::string frames = encode(header, {1}, std::string(first, 'x'));
  header.sequence = 1;
  header.offset = first;
  frames += encode(header, {}, std::string(second, 'x'));
  header = tensor_header();
  header.sequence = 2;
  header.step = 2;
  frames += encode(header, {2}, eight_bytes);
  Slices slices = to_slices(std::move(frames));
  largest_allocation = size_t{1} << 20;
  pair.raw->write(std::move(slices));
  EXPECT_TRUE(eventually([&] { return pair.end.count() == 1 || pair.end.has_ended(); }));
  largest_allocation = std::numeric_limits<size_t>::max();
  ASSERT_EQ(pair.end.count(), 1u) << pair.end.end.value_or(Status{}).message;
  ASSERT_EQ(pair.end.abort_count(), 1u);
  EXPECT_EQ(pair.end.aborts[0].first, 1);
  EXPECT_EQ(pair.end.aborts[0].second.code, Code::resource_exhausted);
  EXPECT_THAT(pair.end.aborts[0].second.message, HasSubstr("edge 0, a tensor of 2400000 bytes"));
  EXPECT_EQ(pair.end.received[0].step, 2);
  const std::string told = pair.end.aborts[0].second.message;
  EXPECT_TRUE(eventually([&] { return pair.raw_received().find(told) != std::string::npos; }))
      << "the sender shall know";
}

TEST(ChannelInput, DropsPiecesWithoutABeginning) {
  RawPair pair;
  FrameHeader header = tensor_header();
  header.total = 16;
  header.offset = 8;
  pair.raw->write(to_slices(encode(header, {}, eight_bytes)));
  header = tensor_header();
  header.sequence = 1;
  pair.raw->write(to_slices(encode(header, {2}, eight_bytes)));
  ASSERT_TRUE(eventually([&] { return pair.end.count() == 1; }));
}

}  // namespace
}  // namespace leat
