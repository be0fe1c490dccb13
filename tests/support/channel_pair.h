// Two ends of a channel, over the network or shared memory, for tests of what it carries.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "distributed/grpc/rpc_client.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/wire/channel.h"
#include "distributed/wire/shared_memory_stream.h"
#include "tests/support/eventually.h"
#include "tests/support/faulty_stream.h"

namespace leat::channel_pair {

// One end of a channel, and everything that it received.
struct End {
  struct Received {
    int64_t step, edge;
    Tensor value;
    bool is_dead;
  };
  std::mutex mutex;
  std::vector<Received> received;
  std::vector<std::pair<int64_t, Status>> aborts;
  std::optional<Status> end;
  std::atomic<StepPhase> phase{StepPhase::running};
  std::atomic<bool> has_greeting{false};
  std::shared_ptr<Channel> channel;

  ChannelEvents events() {
    return {.on_tensor =
                [this](int64_t step, int64_t edge, Tensor value, bool is_dead) {
                  std::lock_guard lock(mutex);
                  received.push_back({step, edge, std::move(value), is_dead});
                },
            .on_abort =
                [this](int64_t step, const Status& status) {
                  std::lock_guard lock(mutex);
                  aborts.emplace_back(step, status);
                },
            .on_control =
                [this](FrameKind kind, const FrameHeader&, const std::string& text) {
                  has_greeting = kind == FrameKind::hello && text == "hello";
                },
            .on_end =
                [this](const Status& status, RpcCause) {
                  std::lock_guard lock(mutex);
                  end = status;
                },
            .phase_of = [this](int64_t) { return phase.load(); }};
  }
  size_t count() {
    std::lock_guard lock(mutex);
    return received.size();
  }
  bool has_ended() {
    std::lock_guard lock(mutex);
    return end.has_value();
  }
  size_t abort_count() {
    std::lock_guard lock(mutex);
    return aborts.size();
  }
  std::pair<int64_t, Status> abort(size_t i) {
    std::lock_guard lock(mutex);
    return aborts[i];
  }
};

// Makes what `make` has made that of another process: with descriptors and a mapping of its own.
inline std::unique_ptr<HostLink> other_end(const HostLink& link) {
  const auto copy = [](const Fd& fd) { return Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); };
  return HostLink::adopt(copy(link.memory()), copy(link.to_us()), copy(link.to_peer()));
}

// looking_memory: shared memory whose reader looks for the next message before it sleeps.
// lending_memory: shared memory whose ends read each other's large tensors where they lie.
enum class Way { network, shared_memory, looking_memory, lending_memory };

inline std::string way_name(const testing::TestParamInfo<Way>& info) {
  return info.param == Way::network          ? "Network"
         : info.param == Way::shared_memory  ? "SharedMemory"
         : info.param == Way::looking_memory ? "LookingMemory"
                                             : "LendingMemory";
}

// a is the dialling end, b the accepting one. What a writes and reads passes through `faults`.
struct ChannelPair {
  Faults faults;
  End a, b;
  RpcServer server;
  std::unique_ptr<RpcClient> client;
  std::shared_ptr<HostPoller> poller;  // with shared memory

  explicit ChannelPair(Way way, ChannelOptions options = {}) : ChannelPair(way, options, options) {}
  ChannelPair(Way way, ChannelOptions options, ChannelOptions other) {
    options.incarnation = 11;
    other.incarnation = 22;
    std::promise<std::shared_ptr<RpcStream>> accepted;
    server.accept(
        "/test", [&](std::shared_ptr<RpcStream> stream) { accepted.set_value(std::move(stream)); });
    client =
        std::make_unique<RpcClient>("127.0.0.1:" + std::to_string(server.start("127.0.0.1:0")));
    const auto dialled = std::make_shared<SharedMemoryStream>(client->open("/test"));
    const auto answered = std::make_shared<SharedMemoryStream>(accepted.get_future().get());
    b.channel = Channel::create(answered, other, b.events());
    a.channel = Channel::create(faults.wrap(dialled), options, a.events());
    if (way != Way::network) {
      auto link = HostLink::make();
      auto other = other_end(*link);
      const Lending lending = way == Way::lending_memory ? Lending::allowed : Lending::none;
      if (way == Way::lending_memory) {
        SharedRegion::open();
        int sockets[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
        link->keep_socket(Fd(sockets[0]));
        other->keep_socket(Fd(sockets[1]));
      }
      poller = std::make_shared<HostPoller>(
          way == Way::lending_memory ? 2 : 0,  // one for each end
          std::chrono::microseconds(way == Way::looking_memory ? 20 : 0));
      dialled->switch_to(std::move(other), poller, lending);
      answered->switch_to(std::move(link), poller, lending);
    }
    a.channel->admit(22, options.window);
    b.channel->admit(11, options.window);
  }
  ~ChannelPair() {
    a.channel.reset();
    b.channel.reset();
    EXPECT_TRUE(client->close());
    server.stop();
    // The streams' last events come on its thread.
    EXPECT_TRUE(!poller || eventually([&] { return poller.use_count() == 1; }));
  }
};

inline Tensor bytes_tensor(int64_t size) {
  Tensor tensor(DType::u8, {size});
  auto* data = tensor.data<uint8_t>();
  for (int64_t i = 0; i < size; ++i) data[i] = static_cast<uint8_t>(i * 131 + (i >> 8) * 7);
  return tensor;
}

inline void expect_same(const Tensor& got, const Tensor& sent) {
  ASSERT_EQ(got.dtype(), sent.dtype());
  ASSERT_EQ(got.shape(), sent.shape());
  if (sent.dtype() == DType::string) {
    for (int64_t i = 0; i < sent.elements(); ++i) {
      ASSERT_EQ(got.data<std::string>()[i], sent.data<std::string>()[i]) << "at " << i;
    }
  } else if (sent.bytes() > 0) {
    ASSERT_EQ(std::memcmp(got.raw(), sent.raw(), sent.bytes()), 0);
  }
}

}  // namespace leat::channel_pair
