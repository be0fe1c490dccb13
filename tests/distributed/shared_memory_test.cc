// Memory that two tasks of a host share: the ring of messages, how it is handed over, what a peer
// that breaks its rules can do.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <memory>
#include <random>
#include <thread>

#include "core/error.h"
#include "distributed/cluster/host_sharing.h"
#include "distributed/wire/host_link.h"
#include "distributed/wire/shared_ring.h"
#include "tests/support/connected_tasks.h"
#include "tests/support/eventually.h"

namespace leat {
namespace {

using testing::HasSubstr;

// A ring in this process's memory.
struct Ring {
  static constexpr size_t capacity = 1024;
  alignas(64) char memory[ring_bytes(capacity)] = {};
  RingWriter writer{memory, capacity};
  RingReader reader{memory, capacity};

  bool write(const std::string& text) { return writer.write(to_slices(text), text.size()); }
  std::string read() {
    const auto message = reader.next();
    if (!message) return "nothing";
    std::string text(*message);
    reader.pop();
    return text;
  }
  RingHeader& header() { return *reinterpret_cast<RingHeader*>(memory); }
};

Code code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return Code::ok;
}

TEST(SharedRing, KeepsMessagesInOrderAroundItsEnd) {
  Ring ring;
  std::mt19937 random(1);
  int written = 0, read = 0;
  const auto text = [](int i) {
    return std::string(static_cast<size_t>(i * 37 % 500), 'a' + i % 26);
  };
  while (read < 2'000) {
    while (written < 2'000 && random() % 4 != 0 && ring.write(text(written))) ++written;
    while (read < written && random() % 4 != 0) {
      ASSERT_EQ(ring.read(), text(read)) << read;
      ++read;
    }
  }
  EXPECT_EQ(ring.read(), "nothing");
}

TEST(SharedRing, RefusesWhatDoesNotFitUntilTheReaderHasRead) {
  Ring ring;
  const std::string half(largest_ring_message(Ring::capacity), 'x');
  EXPECT_TRUE(ring.write(half));
  EXPECT_TRUE(ring.write(half));
  EXPECT_FALSE(ring.write("y"));
  EXPECT_EQ(ring.read(), half);
  EXPECT_TRUE(ring.reader.wakes_writer());
  EXPECT_FALSE(ring.reader.wakes_writer()) << "once";
  EXPECT_TRUE(ring.write("y"));
  EXPECT_EQ(ring.read(), half);
  EXPECT_EQ(ring.read(), "y");
  EXPECT_EQ(code_of([&] { ring.write(half + 'x'); }), Code::internal);
}

TEST(SharedRing, SleepingReadersAreWokenOnce) {
  Ring ring;
  EXPECT_TRUE(ring.reader.sleep());
  EXPECT_TRUE(ring.write("a"));
  EXPECT_TRUE(ring.writer.wakes_reader());
  EXPECT_FALSE(ring.writer.wakes_reader());
  EXPECT_FALSE(ring.reader.sleep()) << "there is a message";
  EXPECT_EQ(ring.read(), "a");
}

TEST(SharedRing, ReaderReportsImpossiblePositionsAndLengths) {
  const auto damaged = [](const std::function<void(Ring&)>& damage) {
    auto ring = std::make_unique<Ring>();
    ring->write("abc");
    damage(*ring);
    return code_of([&] { ring->read(); });
  };
  const auto length = [](uint64_t bytes) {
    return [bytes](Ring& ring) { std::memcpy(ring.memory + sizeof(RingHeader), &bytes, 8); };
  };
  EXPECT_EQ(damaged([](Ring&) {}), Code::ok);
  EXPECT_EQ(damaged([](Ring& ring) { ring.header().written = 1 << 20; }), Code::data_loss);
  EXPECT_EQ(damaged([](Ring& ring) { ring.header().written = 4; }), Code::data_loss);
  EXPECT_EQ(damaged([](Ring& ring) { ring.header().written = uint64_t(-8); }), Code::data_loss);
  EXPECT_EQ(damaged(length(9)), Code::data_loss) << "more than has been written";
  EXPECT_EQ(damaged(length(1 << 20)), Code::data_loss);
  EXPECT_EQ(damaged(length(UINT64_MAX - 7)), Code::data_loss);
  EXPECT_EQ(damaged(length(UINT64_MAX)), Code::data_loss) << "nothing is skipped at the beginning";
}

TEST(SharedRing, WriterReportsImpossiblePositions) {
  Ring ring;
  ring.header().read = 8;
  EXPECT_EQ(code_of([&] { ring.write("abc"); }), Code::data_loss);
}

TEST(HostLink, IsHandedOverToTheTaskThatOffers) {
  HostLinkListener listener;
  ASSERT_TRUE(is_of_this_host(listener.offer()));
  auto [first, first_id] = hand_over_link(listener.offer());
  auto [second, second_id] = hand_over_link(listener.offer());
  const auto theirs = listener.take(second_id);  // in any order
  EXPECT_TRUE(second->writer().write(to_slices("hello"), 5));
  EXPECT_EQ(theirs->reader().next(), "hello");
  EXPECT_TRUE(theirs->writer().write(to_slices("welcome"), 7));
  EXPECT_EQ(second->reader().next(), "welcome");
  EXPECT_NE(listener.take(first_id), nullptr);
  EXPECT_EQ(code_of([&, id = first_id] { listener.take(id); }), Code::not_found) << "taken already";
}

TEST(HostLink, GarbageOfOtherProcessesIsSkipped) {
  HostLinkListener listener;
  const std::string name = listener.offer().substr(listener.offer().find(' ') + 1);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  std::vector<Fd> strangers;
  for (const char* text : {"", "x", "12345678"}) {
    Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())),
              0);
    ASSERT_EQ(send(socket.get(), text, std::strlen(text), 0),
              static_cast<ssize_t>(std::strlen(text)));
    strangers.push_back(std::move(socket));
  }
  const auto id = hand_over_link(listener.offer()).second;
  EXPECT_NE(listener.take(id), nullptr);
}

TEST(HostLink, OffersOfOtherHostsAndEndedTasksAreRefused) {
  std::string offer;
  {
    const HostLinkListener listener;
    offer = listener.offer();
  }
  EXPECT_EQ(code_of([&] { hand_over_link(offer); }), Code::unavailable);
  EXPECT_FALSE(is_of_this_host(""));
  EXPECT_FALSE(is_of_this_host("another-boot leat-1"));
  EXPECT_EQ(code_of([&] { hand_over_link("another-boot leat-1"); }), Code::invalid_argument);
}

TEST(HostLink, MemoryThatThePeerCouldCutShortIsRefused) {
  const auto link = HostLink::make();
  const auto copy = [](const Fd& fd) { return Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); };
  const auto adopt = [&](Fd memory) {
    return code_of(
        [&] { HostLink::adopt(std::move(memory), copy(link->to_us()), copy(link->to_peer())); });
  };
  EXPECT_EQ(adopt(copy(link->memory())), Code::ok);
  const size_t bytes = 2 * ring_bytes(HostLink::capacity);
  Fd unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(adopt(std::move(unsealed)), Code::data_loss);
  Fd small(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(small.get(), 4096), 0);
  ASSERT_EQ(fcntl(small.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(adopt(std::move(small)), Code::data_loss);
  EXPECT_EQ(adopt(Fd()), Code::data_loss);
}

// With a region on one side alone, nothing is lent: an end that has none maps none.
TEST(HostLink, LendsOnlyIfBothEndsHaveARegion) {
  const SharedRegion region(size_t{4} << 20), other(size_t{4} << 20);
  for (const SharedRegion* ours : {&region, static_cast<const SharedRegion*>(nullptr)}) {
    HostLinkListener listener;
    auto [link, id] = hand_over_link(listener.offer());
    const auto theirs = listener.take(id);
    link->receive_region();  // nothing is awaited yet
    link->lend(ours);
    theirs->lend(&other);
    link->receive_region();
    theirs->receive_region();
    EXPECT_EQ(link->writer().may_lend(), ours != nullptr);
    EXPECT_EQ(theirs->writer().may_lend(), ours != nullptr);
    EXPECT_EQ(link->lent(0, 1) != nullptr, ours != nullptr);
    EXPECT_EQ(theirs->lent(0, 1) != nullptr, ours != nullptr);
    EXPECT_EQ(theirs->lent(0, size_t{5} << 20), nullptr);
  }
}

TEST(HostSharing, TasksOfAHostShareMemoryUnlessTheyAreToldNotTo) {
  for (const bool shares : {true, false}) {
    ConnectedTasks tasks({"ps:0", "worker:0"});
    tasks.spec.set_shares_memory(shares);
    tasks.start_all();
    tasks.wait_until_connected();
    for (const char* name : {"ps:0", "worker:0"}) {
      for (const PeerStatus& peer : tasks[name].membership->peers())
        EXPECT_EQ(peer.shares_memory, shares) << name;
    }
  }
}

TEST(HostSharing, PeersThatCannotBeReachedGetTheNetwork) {
  HostSharing sharing("/job:ps/task:0");
  std::string offer = HostLinkListener().offer();  // of a socket that is gone
  testing::internal::CaptureStderr();
  EXPECT_EQ(sharing.hand_over(offer, "/job:worker/task:0").link, nullptr);
  EXPECT_EQ(sharing.hand_over(offer, "/job:worker/task:1").link, nullptr);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(
      said,
      HasSubstr(
          "/job:ps/task:0 cannot share memory with a process of this host and uses the network: "
          "/job:worker/task:0: its socket on this host cannot be reached"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << "said once: " << said;
}

}  // namespace
}  // namespace leat
