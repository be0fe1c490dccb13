// The transport: unary calls, streams, and how each of them ends after an error.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "distributed/grpc/rpc_client.h"
#include "distributed/grpc/rpc_server.h"
#include "tests/support/eventually.h"
#include "tests/support/sanitizers.h"

namespace {
// The errno of accept() in servers; 0: the system's own result.
std::atomic<int> accept_error{0};
std::atomic<int> accept_calls{0};
}  // namespace

#ifndef LEAT_UNDER_SANITIZER
extern "C" int accept4(int socket, sockaddr* address, socklen_t* length, int flags) {
  ++accept_calls;
  if (const int error = accept_error; error != 0) {
    errno = error;
    return -1;
  }
  using Accept = int (*)(int, sockaddr*, socklen_t*, int);
  static const auto real = reinterpret_cast<Accept>(dlsym(RTLD_NEXT, "accept4"));
  return real(socket, address, length, flags);
}
#endif

namespace leat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr int cancelled = 1, deadline_exceeded = 4, unimplemented = 12, internal = 13,
              unavailable = 14;

// A server on a free port of the loopback, and a client to it.
struct Pair {
  RpcServer server;
  std::string address;
  std::unique_ptr<RpcClient> client;

  void start(RpcClientOptions options = {}) {
    address = "127.0.0.1:" + std::to_string(server.start("127.0.0.1:0"));
    client = std::make_unique<RpcClient>(address, options);
  }
  ~Pair() {
    if (client) {
      EXPECT_TRUE(client->close());
    }
    server.stop();
  }
};

void echo(RpcCall call) { call.reply(call.request().to_string()); }

TEST(RpcUnary, CarriesBytesBothWays) {
  Pair pair;
  pair.server.handle("/test/Echo", echo);
  pair.start();
  for (size_t size : {0u, 1u, 100u, 5'000'000u, 20'000'001u}) {
    const std::string request(size, 'x');
    auto [status, response] = pair.client->call_and_wait("/test/Echo", request);
    ASSERT_TRUE(status.is_ok()) << status.message;
    EXPECT_EQ(response.size(), size);
    EXPECT_TRUE(response == request);
  }
}

TEST(RpcUnary, ReadsCompressedRequests) {
  for (auto compression :
       {RpcClientOptions::Compression::deflate, RpcClientOptions::Compression::gzip}) {
    Pair pair;
    pair.server.handle("/test/Echo", echo);
    pair.start({.compression = compression});
    const std::string request(300'000, 'z');
    auto [status, response] = pair.client->call_and_wait("/test/Echo", request);
    ASSERT_TRUE(status.is_ok()) << status.message;
    EXPECT_TRUE(response == request);
  }
}

TEST(RpcUnary, LongestPrefixWins) {
  Pair pair;
  pair.server.handle("/test/", [](RpcCall call) { call.reply("any " + call.method()); });
  pair.server.handle("/test/Echo", echo);
  pair.start();
  EXPECT_EQ(pair.client->call_and_wait("/test/Echo", "hello").second, "hello");
  EXPECT_EQ(pair.client->call_and_wait("/test/Other", "hello").second, "any /test/Other");
  auto [status, response] = pair.client->call_and_wait("/nowhere/Echo", "hello");
  EXPECT_EQ(status.code, unimplemented);
  EXPECT_NE(status.message.find("/nowhere/Echo"), std::string::npos) << status.message;
}

TEST(RpcUnary, WaitingCallsHoldNoThread) {
  constexpr int calls = 300;
  std::mutex mutex;
  std::vector<RpcCall> waiting;
  Pair pair;
  pair.server.handle("/test/Wait", [&](RpcCall call) {
    std::lock_guard lock(mutex);
    waiting.push_back(call);
  });
  pair.start();
  std::atomic<int> answered{0};
  for (int i = 0; i < calls; ++i) {
    pair.client->call("/test/Wait", to_slices(std::to_string(i)), {},
                      [&, i](const RpcStatus& status, Bytes response) {
                        EXPECT_TRUE(status.is_ok()) << status.message;
                        EXPECT_EQ(response.to_string(), std::to_string(i));
                        ++answered;
                      });
  }
  ASSERT_TRUE(eventually([&] {
    std::lock_guard lock(mutex);
    return waiting.size() == calls;
  }));
  EXPECT_EQ(answered, 0);
  std::thread answers([&] {
    for (RpcCall& call : waiting) call.reply(call.request().to_string());
  });
  answers.join();
  EXPECT_TRUE(eventually([&] { return answered == calls; }));
}

TEST(RpcUnary, FailuresCarryCodeAndMessage) {
  Pair pair;
  pair.server.handle("/test/Fail", [](RpcCall call) {
    call.fail({9, "no graph; [[{{node a}}]]", {}, std::string("de\0tails\xff", 9)});
    call.reply("too late");
  });
  pair.server.handle("/test/Throw", [](RpcCall) { throw std::runtime_error("a handler threw"); });
  pair.server.handle("/test/Forget", [](RpcCall) {});
  pair.start();
  auto [failed, nothing] = pair.client->call_and_wait("/test/Fail", "");
  EXPECT_EQ(failed.code, 9);
  EXPECT_EQ(failed.message, "no graph; [[{{node a}}]]");
  EXPECT_EQ(failed.details, std::string("de\0tails\xff", 9));
  auto [thrown, nothing2] = pair.client->call_and_wait("/test/Throw", "");
  EXPECT_EQ(thrown.code, internal);
  EXPECT_EQ(thrown.message, "a handler threw");
  EXPECT_EQ(thrown.details, "");
  EXPECT_EQ(pair.client->call_and_wait("/test/Forget", "").first.code, internal);
}

TEST(RpcUnary, ServerSeesTheDeadline) {
  Pair pair;
  pair.server.handle("/test/Deadline", [](RpcCall call) {
    if (!call.deadline()) return call.reply("none");
    const auto left = std::chrono::duration_cast<milliseconds>(*call.deadline() - Clock::now());
    call.reply(std::to_string(left.count()));
  });
  pair.start();
  EXPECT_EQ(pair.client
                ->call_and_wait("/test/Deadline", "",
                                {.deadline = Clock::now() + std::chrono::hours(24 * 36600)})
                .second,
            "none");
  const auto [status, left] =
      pair.client->call_and_wait("/test/Deadline", "", {.deadline = Clock::now() + seconds(100)});
  EXPECT_LE(std::stol(left), 102'000);  // gRPC rounds up
  EXPECT_GT(std::stol(left), 50'000);
  std::promise<std::string> answer;
  pair.client->call("/test/Deadline", {}, {}, [&](const RpcStatus&, Bytes response) {
    answer.set_value(response.to_string());
  });
  EXPECT_EQ(answer.get_future().get(), "none");
}

TEST(RpcUnary, CancellationReachesTheServer) {
  Pair pair;
  std::promise<void> arrived;
  std::promise<bool> seen;
  pair.server.handle("/test/Wait", [&](RpcCall call) {
    call.on_cancel([&seen, call]() mutable {
      seen.set_value(call.is_cancelled());
      call.fail({1, "cancelled", {}});
    });
    arrived.set_value();
  });
  pair.start();
  std::promise<int> code;
  const auto call = pair.client->call(
      "/test/Wait", {}, {},
      [&](const RpcStatus& status, const Bytes&) { code.set_value(status.code); });
  arrived.get_future().get();
  pair.client->cancel(call);
  EXPECT_EQ(code.get_future().get(), cancelled);
  EXPECT_TRUE(seen.get_future().get());
}

TEST(RpcUnary, DeadlineEndsTheCallOnBothSides) {
  Pair pair;
  std::promise<void> seen;
  pair.server.handle("/test/Wait", [&](RpcCall call) {
    call.on_cancel([&seen, call]() mutable {
      call.reply("too late");
      seen.set_value();
    });
  });
  pair.start();
  auto [status, response] =
      pair.client->call_and_wait("/test/Wait", "", {.deadline = Clock::now() + milliseconds(50)});
  EXPECT_EQ(status.code, deadline_exceeded);
  seen.get_future().get();
}

TEST(RpcUnary, FailsIfNobodyListens) {
  int port;
  {
    RpcServer server;
    port = server.start("127.0.0.1:0");
  }
  RpcClient client("127.0.0.1:" + std::to_string(port));
  auto [status, response] = client.call_and_wait("/test/Echo", "");
  EXPECT_EQ(status.code, unavailable);
  EXPECT_EQ(status.cause, RpcCause::refused);
  EXPECT_EQ(status.message, "127.0.0.1:" + std::to_string(port) + ": Connection refused");
}

TEST(RpcUnary, FailsForUnknownHosts) {
  RpcClient client("no-such-host.invalid:2222");
  auto [status, response] = client.call_and_wait("/test/Echo", "");
  EXPECT_EQ(status.code, unavailable);
  EXPECT_EQ(status.cause, RpcCause::unresolvable) << status.message;
  EXPECT_EQ(status.message, "no-such-host.invalid:2222: the host name cannot be resolved");
}

TEST(RpcUnary, FailsIfThePeerGoesDuringACall) {
  Pair pair;
  std::promise<void> arrived;
  std::optional<RpcCall> kept;
  pair.server.handle("/test/Wait", [&](RpcCall call) {
    kept = call;
    arrived.set_value();
  });
  pair.start();
  std::promise<RpcStatus> ended;
  pair.client->call("/test/Wait", {}, {},
                    [&](const RpcStatus& status, const Bytes&) { ended.set_value(status); });
  arrived.get_future().get();
  pair.server.stop();
  EXPECT_EQ(ended.get_future().get().code, unavailable);
  EXPECT_TRUE(kept->is_cancelled());
}

TEST(RpcUnary, StopGivesRunningCallsAGracePeriod) {
  Pair pair;
  std::promise<RpcCall> arrived;
  pair.server.handle("/test/Wait", [&](RpcCall call) { arrived.set_value(call); });
  pair.start();
  std::promise<RpcStatus> ended;
  pair.client->call("/test/Wait", {}, {},
                    [&](const RpcStatus& status, const Bytes&) { ended.set_value(status); });
  RpcCall call = arrived.get_future().get();
  auto stopped = std::async(std::launch::async, [&] { pair.server.stop(seconds(60)); });
  call.reply("in time");
  EXPECT_TRUE(ended.get_future().get().is_ok());
  stopped.get();
}

TEST(RpcServer, TakenPortFailsWithTheReason) {
  RpcServer first, second;
  const std::string address = "127.0.0.1:" + std::to_string(first.start("127.0.0.1:0"));
  try {
    second.start(address);
    FAIL() << "two servers share " << address;
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()),
              "cannot listen on " + address + ": Address already in use");
  }
  EXPECT_THROW(second.start("no-such-host.invalid:0"), std::runtime_error);
}

// The connection that cannot be accepted stays in the queue: retrying at once would take a core.
TEST(RpcServer, PausesWhenItCannotAccept) {
#ifdef LEAT_UNDER_SANITIZER
  GTEST_SKIP() << "a sanitizer has replaced accept4";
#endif
  for (const int error : {ENOBUFS, ENOMEM, EPERM}) {
    SCOPED_TRACE(error);
    Pair pair;
    pair.server.handle("/test/Echo", echo);
    pair.start();
    accept_calls = 0;
    accept_error = error;
    const auto begin = Clock::now();
    const int waiting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port =
        htons(static_cast<uint16_t>(std::stoi(pair.address.substr(pair.address.rfind(':') + 1))));
    EXPECT_EQ(connect(waiting, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    EXPECT_TRUE(eventually([&] { return accept_calls > 10; }));
    const int calls = accept_calls;
    EXPECT_LE(calls, (Clock::now() - begin) / milliseconds(10) + 2);
    accept_error = 0;
    EXPECT_TRUE(pair.client->call_and_wait("/test/Echo", "").first.is_ok());
    close(waiting);
  }
}

// gRPC would end the process if memory ran out.
TEST(RpcUnary, RejectsTooLargeMessagesWithTheirSize) {
  RpcServer server({.largest_message = 16'000'000});  // the test's small messages never fill it
  server.handle("/test/Echo", echo);
  const std::string address = "127.0.0.1:" + std::to_string(server.start("127.0.0.1:0"));
  RpcClient client(address, {.largest_message = 500'000});
  const auto call = [&](size_t size) {
    return client.call_and_wait("/test/Echo", std::string(size, 'x')).first;
  };
  EXPECT_TRUE(call(400'000).is_ok());
  // The request is rejected on the way, or when it is complete.
  const RpcStatus request = call(40'000'000);
  EXPECT_EQ(request.code, 8) << request.message;
  EXPECT_EQ(request.message.find(address + ": a message of 40000000 bytes is "), 0u)
      << request.message;
  const RpcStatus reply = call(600'000);
  EXPECT_EQ(reply.code, 8) << reply.message;
  EXPECT_EQ(reply.message,
            address +
                ": a message of 600000 bytes is larger than the 500000 bytes that its "
                "receiver has memory for");
  EXPECT_TRUE(call(400'000).is_ok());
  client.close();
}

TEST(RpcUnary, SendsLargeAnswersInPiecesIfTheClientTakesThem) {
  RpcServer server({.largest_answer = 1'000'000});
  std::atomic<int> let_go{0};
  std::string text(150'000'000, 'x');
  for (size_t i = 0; i < text.size(); i += 4096) text[i] = static_cast<char>('a' + i / 4096 % 26);
  server.handle("/test/Large", [&](RpcCall call) {
    call.reply(to_slices(text),
               std::shared_ptr<const void>(&let_go, [&](const void*) { ++let_go; }));
  });
  server.handle("/test/Echo", echo);
  RpcClient client("127.0.0.1:" + std::to_string(server.start("127.0.0.1:0")));
  for (const bool takes_pieces : {true, false}) {
    const auto [status, answer] =
        client.call_and_wait("/test/Large", "", {.takes_pieces = takes_pieces});
    EXPECT_EQ(status.is_ok(), takes_pieces) << status.message;
    EXPECT_EQ(status.code, takes_pieces ? 0 : 8);
    EXPECT_TRUE(answer == (takes_pieces ? text : ""));
  }
  EXPECT_TRUE(eventually([&] { return let_go == 2; }));
  const auto [status, answer] = client.call_and_wait("/test/Echo", "small", {.takes_pieces = true});
  EXPECT_EQ(answer, "small");
  // A piece requested twice, and one that never existed.
  EXPECT_EQ(client.call_and_wait("/leat.Pieces/Take", "12345").first.code, 5);
  EXPECT_TRUE(client.close());
}

TEST(RpcUnary, LimitsPiecemealAnswersToo) {
  RpcServer server({.largest_answer = 1'000});
  server.handle("/test/Large", [](RpcCall call) { call.reply(std::string(5'000'000, 'x')); });
  RpcClient client("127.0.0.1:" + std::to_string(server.start("127.0.0.1:0")),
                   {.largest_message = 4'000'000});
  EXPECT_EQ(client.call_and_wait("/test/Large", "", {.takes_pieces = true}).first.code, 8);
  EXPECT_TRUE(client.close());
}

TEST(RpcClient, ErrorWithoutTextHasItsCodesName) {
  Pair pair;
  pair.server.handle("/test/Fail", [](RpcCall call) { call.fail({internal, "", {}}); });
  pair.start();
  EXPECT_EQ(pair.client->call_and_wait("/test/Fail", "").first.message, "INTERNAL");
}

// So do the calls end that a server has when it ends.
TEST(RpcClient, ACallThatNobodyHereCancelledIsALostServer) {
  Pair pair;
  pair.server.handle("/test/End", [](RpcCall call) { call.fail({cancelled, "CANCELLED", {}}); });
  pair.server.handle("/test/Fail", [](RpcCall call) { call.fail({cancelled, "stopped", {}}); });
  pair.start();
  const RpcStatus lost = pair.client->call_and_wait("/test/End", "").first;
  EXPECT_EQ(lost.code, unavailable);
  EXPECT_EQ(lost.cause, RpcCause::lost);
  EXPECT_EQ(lost.message,
            pair.address + ": the peer ended the call without an answer: it is shutting down");
  EXPECT_EQ(pair.client->call_and_wait("/test/Fail", "").first.code, cancelled);
}

// TensorFlow's C++ server sends no text for an unknown method, Python's sends one.
TEST(RpcClient, NamesAServerThatIsNotATask) {
  Pair pair;
  pair.server.handle("/test/Cpp", [](RpcCall call) { call.fail({unimplemented, "", {}}); });
  pair.server.handle("/test/Python", [](RpcCall call) {
    call.fail({unimplemented, "Method not found!", {}});
  });
  pair.server.handle("/test/Ours", [](RpcCall call) {
    call.fail({unimplemented, "no such cast", {}});
  });
  pair.start();
  const std::string text = pair.address + ": a gRPC server that is not a Leat task answers there";
  EXPECT_EQ(pair.client->call_and_wait("/test/Cpp", "").first.message, text);
  EXPECT_EQ(pair.client->call_and_wait("/test/Python", "").first.message, text);
  EXPECT_EQ(pair.client->call_and_wait("/test/Python", "").first.code, unimplemented);
  EXPECT_EQ(pair.client->call_and_wait("/test/Ours", "").first.message, "no such cast");
}

// The system accepts connections for a stopped process.
TEST(RpcClient, SaysThatASilentServerMayBeFrozen) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof name;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&name), length), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&name), &length), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  RpcClient client(address, {.connect_timeout = milliseconds(300)});
  const RpcStatus status = client.call_and_wait("/test/Echo", "").first;
  EXPECT_EQ(status.code, unavailable);
  EXPECT_EQ(
      status.message,
      address + ": something accepts connections there but does not answer; it may be frozen");
  EXPECT_EQ(status.cause, RpcCause::silent);
  client.close();
  close(listener);
}

TEST(RpcClient, NamesAServerThatDoesNotSpeakGrpc) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof name;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&name), length), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&name), &length), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  std::thread server([&] {
    for (int fd = -1; (fd = accept(listener, nullptr, nullptr)) >= 0; close(fd)) {
      const std::string text = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
      char request[64];
      if (read(fd, request, sizeof request) < 0) continue;
      if (write(fd, text.data(), text.size()) < 0) continue;
      shutdown(fd, SHUT_WR);
      while (read(fd, request, sizeof request) > 0) {
      }
    }
  });
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  {
    RpcClient client(address);
    const auto [status, reply] = client.call_and_wait("/test/Echo", "");
    EXPECT_EQ(status.code, unavailable);
    EXPECT_EQ(status.message, address + ": the server there does not speak gRPC");
    EXPECT_EQ(status.cause, RpcCause::unreachable);
    client.close();
  }
  shutdown(listener, SHUT_RDWR);
  server.join();
  close(listener);
}

TEST(RpcClient, CloseEndsRunningCalls) {
  Pair pair;
  std::promise<RpcCall> arrived;
  pair.server.handle("/test/Wait", [&](RpcCall call) { arrived.set_value(call); });
  pair.start();
  std::atomic<int> code{-1};
  pair.client->call("/test/Wait", {}, {},
                    [&](const RpcStatus& status, const Bytes&) { code = status.code; });
  RpcCall call = arrived.get_future().get();
  EXPECT_TRUE(pair.client->close());
  EXPECT_EQ(code, cancelled);
  EXPECT_EQ(pair.client->call_and_wait("/test/Wait", "").first.code, cancelled);
  call.reply("nobody listens");
}

// ---- Streams ----

// Collects what a stream delivers.
struct Inbox {
  std::mutex mutex;
  std::string bytes;
  int messages = 0, ends = 0;
  RpcStatus status;

  RpcStream::Events events() {
    return {.on_message =
                [this](const Bytes& message) {
                  std::lock_guard lock(mutex);
                  EXPECT_EQ(ends, 0);
                  bytes += message.to_string();
                  ++messages;
                },
            .on_end =
                [this](const RpcStatus& end) {
                  std::lock_guard lock(mutex);
                  status = end;
                  ++ends;
                }};
  }
  size_t size() {
    std::lock_guard lock(mutex);
    return bytes.size();
  }
  bool has_ended() {
    std::lock_guard lock(mutex);
    return ends > 0;
  }
};

struct StreamPair : Pair {
  Inbox at_server, at_client;
  std::promise<std::shared_ptr<RpcStream>> accepted;
  std::shared_ptr<RpcStream> from_server, from_client;

  // `starts`: the server begins to read at once.
  explicit StreamPair(bool starts = true) {
    server.accept("/test/Stream", [this, starts](std::shared_ptr<RpcStream> stream) {
      if (starts) stream->start(at_server.events());
      accepted.set_value(std::move(stream));
    });
    start();
    from_client = client->open("/test/Stream");
    from_client->start(at_client.events());
    from_server = accepted.get_future().get();
  }
  ~StreamPair() {
    from_client.reset();
    from_server.reset();
    EXPECT_TRUE(client->close());
    server.stop();
  }
};

TEST(RpcStream, KeepsOrderBothWays) {
  StreamPair pair;
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = std::to_string(i) + ",";
    expected += text;
    pair.from_client->write(to_slices(text));
    pair.from_server->write(to_slices(text));
  }
  ASSERT_TRUE(eventually([&] { return pair.at_server.size() == expected.size(); }));
  ASSERT_TRUE(eventually([&] { return pair.at_client.size() == expected.size(); }));
  EXPECT_TRUE(pair.at_server.bytes == expected);
  EXPECT_TRUE(pair.at_client.bytes == expected);
  EXPECT_LT(pair.at_server.messages, 20'000) << "writes that pile up should travel together";
  EXPECT_TRUE(eventually([&] { return pair.from_client->queued_bytes() == 0; }));
}

TEST(RpcStream, CloseDeliversQueuedMessages) {
  for (bool client_closes : {true, false}) {
    StreamPair pair;
    const std::string text(3'000'000, 'q');
    RpcStream& writer = client_closes ? *pair.from_client : *pair.from_server;
    Inbox& reader = client_closes ? pair.at_server : pair.at_client;
    writer.write(to_slices(text));
    writer.write(to_slices("end"));
    writer.close();
    writer.write(to_slices("ignored"));
    ASSERT_TRUE(
        eventually([&] { return pair.at_server.has_ended() && pair.at_client.has_ended(); }));
    EXPECT_TRUE(reader.bytes == text + "end");
    EXPECT_TRUE(pair.at_server.status.is_ok()) << pair.at_server.status.message;
    EXPECT_TRUE(pair.at_client.status.is_ok()) << pair.at_client.status.message;
  }
}

TEST(RpcStream, CancelEndsBothSides) {
  for (bool client_cancels : {true, false}) {
    StreamPair pair;
    (client_cancels ? pair.from_client : pair.from_server)->cancel();
    ASSERT_TRUE(
        eventually([&] { return pair.at_server.has_ended() && pair.at_client.has_ended(); }));
    EXPECT_FALSE(pair.at_server.status.is_ok());
    EXPECT_FALSE(pair.at_client.status.is_ok());
  }
}

TEST(RpcStream, ReleasingTheHandleEndsTheStream) {
  StreamPair pair;
  pair.from_client.reset();
  ASSERT_TRUE(eventually([&] { return pair.at_server.has_ended() && pair.at_client.has_ended(); }));
  StreamPair other(/*starts=*/false);
  other.from_server.reset();
  ASSERT_TRUE(eventually([&] { return other.at_client.has_ended(); }));
}

TEST(RpcStream, ReportsAnEndBeforeStart) {
  StreamPair pair(/*starts=*/false);
  pair.from_client->write(to_slices("kept until somebody reads"));
  pair.from_client->close();
  pair.from_server->start(pair.at_server.events());
  ASSERT_TRUE(eventually([&] { return pair.at_server.has_ended(); }));
  EXPECT_EQ(pair.at_server.bytes, "kept until somebody reads");
}

TEST(RpcStream, EndsWhenTheServerStops) {
  StreamPair pair;
  pair.server.stop();
  EXPECT_EQ(pair.at_server.ends, 1);  // stop() returns after the last callback
  ASSERT_TRUE(eventually([&] { return pair.at_client.has_ended(); }));
  EXPECT_FALSE(pair.at_client.status.is_ok());
}

TEST(RpcStream, FailsIfNobodyListens) {
  int port;
  {
    RpcServer server;
    port = server.start("127.0.0.1:0");
  }
  RpcClient client("127.0.0.1:" + std::to_string(port));
  Inbox inbox;
  auto stream = client.open("/test/Stream");
  stream->write(to_slices("lost"));
  stream->start(inbox.events());
  ASSERT_TRUE(eventually([&] { return inbox.has_ended(); }));
  EXPECT_EQ(inbox.status.cause, RpcCause::refused);
  EXPECT_EQ(inbox.status.message, "127.0.0.1:" + std::to_string(port) + ": Connection refused");
}

TEST(RpcStream, ReleasesPinnedBytesAfterTheWrite) {
  StreamPair pair;
  auto payload = std::make_shared<std::string>(10'000'000, 'p');
  std::weak_ptr<std::string> weak = payload;
  Slices slices;
  slices.emplace_back(payload->data(), payload->size(), payload);
  pair.from_client->write(std::move(slices));
  payload.reset();
  ASSERT_TRUE(eventually([&] { return pair.at_server.size() == 10'000'000; }));
  EXPECT_TRUE(eventually([&] { return weak.expired(); }));
}

TEST(RpcStream, WaitingReaderStopsTheWriter) {
  StreamPair pair(/*starts=*/false);
  const std::string chunk(1 << 20, 'c');
  for (int i = 0; i < 256; ++i) pair.from_client->write(to_slices(chunk));
  EXPECT_GT(pair.from_client->queued_bytes(), 0u);
  pair.from_server->start(pair.at_server.events());
  EXPECT_TRUE(eventually([&] { return pair.at_server.size() == 256u << 20; }));
}

}  // namespace
}  // namespace leat
