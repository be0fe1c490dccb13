// Peers that do not speak our protocols, or speak them to do harm, affect nobody else: while a
// client trains, others send bytes of all kinds to every port that its cluster has.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <random>

#include "distributed/cluster/identity.h"
#include "distributed/grpc/rpc_client.h"
#include "distributed/wire/frame.h"
#include "graph/import/graph_def.h"
#include "graph/ops.h"
#include "tests/support/eventually.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/wire.h"

namespace leat {
namespace {

using namespace std::string_literals;
using wire_format::number;
using wire_format::text;
using wire_format::varint;
using Clock = std::chrono::steady_clock;

// w halves with every step, on the ps; the gradient comes from the worker.
Graph training() {
  Graph graph;
  Output w;
  {
    const DeviceScope on(graph, "/job:ps/task:0");
    w = graph.add({.op = "VariableV2", .name = "w", .attrs = {{"shape", Shape{}}, {"dtype", f32}}})
            .output();
    graph.add(
        {.op = "Assign", .name = "init", .inputs = {w, constant(graph, Tensor::scalar(1024.0f))}});
  }
  const Output rate = placeholder(graph, "rate", f32, {});
  const DeviceScope on(graph, "/job:worker/task:0");
  const Output loss = graph.add({.op = "Square", .name = "loss", .inputs = {w}}).output();
  const Output step = graph.add({.op = "Mul", .name = "step", .inputs = {w, rate}}).output();
  const DeviceScope back(graph, "/job:ps/task:0");
  graph.add(
      {.op = "AssignSub", .name = "train", .inputs = {w, step}, .control_inputs = {loss.node}});
  return graph;
}

// A client that checks each of its losses.
class Training {
 public:
  explicit Training(InProcessCluster& cluster) : session_(cluster.session(training())) {}
  void step() {
    if (steps_ % 20 == 0) {
      session_->run({}, {}, {"init"});
      w_ = 1024;
    }
    ++steps_;
    const Tensor loss = session_->run({{"rate:0", Tensor::scalar(0.5f)}}, {"loss:0"}, {"train"})[0];
    ASSERT_EQ(loss.item<float>(), w_ * w_) << "step " << steps_;
    w_ /= 2;
  }
  int steps() const { return steps_; }

 private:
  std::unique_ptr<SessionInterface> session_;
  int steps_ = 0;
  float w_ = 0;
};

// The peak memory of this process.
size_t peak_bytes() {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word && word != "VmHWM:") {
  }
  size_t kilobytes = 0;
  file >> kilobytes;
  return kilobytes << 10;
}

constexpr size_t most_growth = size_t{1} << 30;  // every false length below claims more

std::string random_bytes(std::mt19937& random, size_t size) {
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

// Bodies of requests: none is valid for most methods, and none for any method that has an effect.
std::vector<std::string> garbage() {
  std::mt19937 random(7);
  std::vector<std::string> out = {"", "\0"s, "\xff\xff\xff\xff"s};
  for (const size_t size : {1, 7, 64, 1000, 100'000}) out.push_back(random_bytes(random, size));
  for (int field = 1; field <= 8; ++field) {
    const std::string tag = varint(static_cast<uint64_t>(field) << 3 | 2);
    out.push_back(tag + varint(uint64_t{1} << 40) + "short");
    out.push_back(tag + varint(~uint64_t{0}) + "short");
    std::string nested = "x";
    for (int depth = 0; depth < 300; ++depth) nested = text(field, nested);
    out.push_back(nested);
  }
  const std::string graph = to_graph_def(training());
  out.push_back(text(1, graph.substr(0, graph.size() / 2)));
  out.push_back(text(1, "no such session") + text(2, graph) + number(8, 5));
  // A tensor of 2^50 elements, as one value to repeat.
  const std::string huge =
      number(1, 1) + text(2, text(2, number(1, uint64_t{1} << 50))) + text(5, "\0\0\x80\x3f"s);
  out.push_back(text(1, "no such session") + text(2, text(1, "x:0") + text(2, huge)));
  return out;
}

constexpr const char* methods[] = {
    "/tensorflow.MasterService/CreateSession",
    "/tensorflow.MasterService/ExtendSession",
    "/tensorflow.MasterService/RunStep",
    "/tensorflow.MasterService/PartialRunSetup",
    "/tensorflow.MasterService/CloseSession",
    "/tensorflow.MasterService/ListDevices",
    "/tensorflow.MasterService/MakeCallable",
    "/tensorflow.MasterService/RunCallable",
    "/tensorflow.MasterService/ReleaseCallable",
    "/leat.Worker/GetStatus",
    "/leat.Worker/RegisterGraph",
    "/leat.Worker/DeregisterGraph",
    "/leat.Worker/RunGraph",
    "/leat.Worker/AbortStep",
    "/leat.Worker/GetActivity",
    "/leat.Worker/CleanupSession",
    "/leat.Cluster/View",
    "/leat.Channel/Identify",
    "/leat.Channel/Connect",
    "/leat.Channel/NoSuchMethod",
    "/tensorflow.WorkerService/RunGraph",
    "no path",
};

TEST(Garbage, InEveryMethodAffectsNobodyElse) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Training client(cluster);
  client.step();
  const size_t before = peak_bytes();
  for (const char* job : {"ps", "worker"}) {
    RpcClient attacker(cluster.task(job).address());
    for (const char* method : methods) {
      for (const std::string& body : garbage()) {
        const auto [status, reply] = attacker.call_and_wait(
            method, body, {.deadline = Clock::now() + std::chrono::seconds(60)});
        EXPECT_NE(status.code, static_cast<int>(Code::internal))
            << method << ": " << status.message;
        EXPECT_NE(status.code, static_cast<int>(Code::deadline_exceeded)) << method;
      }
      ASSERT_NO_FATAL_FAILURE(client.step()) << method;
    }
    // These have an effect if they can be read.
    for (const char* method : {"/tensorflow.MasterService/Reset", "/leat.Worker/Reset"}) {
      for (const std::string& body : {"\xff\xff\xff\xff"s, "\x0a\xff\xff\xff\xff\x0f"s})
        EXPECT_FALSE(attacker.call_and_wait(method, body).first.is_ok()) << method;
    }
  }
  ASSERT_NO_FATAL_FAILURE(client.step());
  EXPECT_LT(peak_bytes(), before + most_growth);
}

// The bytes for /leat.Channel/Connect of `to`, from a peer that may or may not know the greeting.
std::vector<std::string> frames(const std::string& cluster_id, const TaskName& to) {
  std::mt19937 random(11);
  std::vector<std::string> out = {"", random_bytes(random, 10), random_bytes(random, 100'000)};
  TaskIdentity self = make_identity(cluster_id, {"worker", 1});
  const auto hello = [&](const std::string& id, uint64_t window) {
    self.cluster_id = id;
    const std::string payload = encode(Hello{self, to, window});
    FrameHeader header;
    header.kind = FrameKind::hello;
    header.incarnation = self.incarnation;
    header.payload = static_cast<uint32_t>(payload.size());
    return encode(header, {}) + payload;
  };
  const std::string valid = hello(cluster_id, 1 << 20);
  FrameHeader nonsense;
  nonsense.kind = FrameKind::hello;
  nonsense.payload = 50;
  out.push_back(encode(nonsense, {}) + random_bytes(random, 50));
  out.push_back(hello("another cluster", 1 << 20));
  out.push_back(valid.substr(0, valid.size() / 2));
  out.push_back(valid + valid);
  // A tensor of strings that claims 8 GB and has 8 bytes: without a greeting, and after one.
  FrameHeader lie;
  lie.kind = FrameKind::tensor;
  lie.dtype = DType::string;
  lie.rank = 1;
  lie.total = uint64_t{8} << 30;
  lie.payload = 8;
  lie.incarnation = self.incarnation;
  out.push_back(encode(lie, {1 << 30}) + "12345678");
  lie.sequence = 1;
  out.push_back(valid + encode(lie, {1 << 30}) + "12345678");
  return out;
}

// The attacker poses as a task that the cluster misses: any other task would be rejected at once.
void attack_data_plane() {
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  Training client(cluster);
  client.step();
  cluster.kill("worker", 1);
  for (const char* job : {"ps", "worker"}) {
    RpcClient attacker(cluster.task(job).address());
    std::vector<std::shared_ptr<RpcStream>> open;
    for (const std::string& bytes : frames(cluster.spec().id(), {job, 0})) {
      const auto answers = std::make_shared<std::atomic<int>>(0);
      const auto answered = [answers] { ++*answers; };
      open.push_back(attacker.open("/leat.Channel/Connect"));
      open.back()->start({.on_message = [=](const Bytes&) { answered(); },
                          .on_end = [=](const RpcStatus&) { answered(); },
                          .on_written = {}});
      if (!bytes.empty()) {
        open.back()->write(to_slices(bytes));
        EXPECT_TRUE(eventually([&] { return *answers > 0; }));
      }
      ASSERT_NO_FATAL_FAILURE(client.step());
    }
    for (const auto& stream : open) stream->cancel();
    EXPECT_TRUE(attacker.close());
  }
  for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(client.step());
}

TEST(Garbage, OnTheDataPlaneAffectsNobodyElse) {
  const size_t before = peak_bytes();
  attack_data_plane();
  EXPECT_LT(peak_bytes(), before + most_growth);
}

class Connection {
 public:
  explicit Connection(const std::string& address) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(HostPort::parse(address).port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;

  // As many bytes as the other end takes before it hangs up or stops reading.
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      pollfd ready{socket_, POLLOUT, 0};
      if (::poll(&ready, 1, 1000) <= 0) return;
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

 private:
  const int socket_;
};

// A frame of HTTP/2.
std::string http2(int type, int flags, uint32_t stream, std::string_view payload, size_t claimed) {
  std::string out;
  for (const int shift : {16, 8, 0}) out += static_cast<char>(claimed >> shift);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift);
  return out.append(payload);
}

TEST(Garbage, OnTheSocketAffectsNobodyElse) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Training client(cluster);
  client.step();
  const size_t before = peak_bytes();
  std::mt19937 random(13);
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  const std::string settings = http2(4, 0, 0, "", 0);
  const std::string greeting = preface + settings;
  // ":method: POST" and so on, as literals, of a call that nobody finishes.
  const auto literal = [](const std::string& name, const std::string& value) {
    return "\0"s + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
  };
  const std::string headers = literal(":method", "POST") + literal(":scheme", "http") +
                              literal(":path", "/tensorflow.MasterService/RunStep") +
                              literal("te", "trailers") +
                              literal("content-type", "application/grpc");
  const std::string call = http2(1, 4, 1, headers, headers.size());
  const std::string message_of_4_gb = "\0\xff\xff\xff\xff"s;
  std::vector<std::string> said = {
      "",
      random_bytes(random, 100),
      random_bytes(random, 1'000'000),
      "GET / HTTP/1.1\r\nHost: leat\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s + random_bytes(random, 500),  // TLS
      preface.substr(0, 10),
      preface,
      greeting,
      greeting + http2(0, 0, 1, random_bytes(random, 100), 0xffffff),
      greeting + http2(1, 4, 1, random_bytes(random, 100), 100),
      greeting + http2(9, 0, 1, random_bytes(random, 1000), 1000),
      greeting + http2(4, 0, 0, "\0\4\x7f\xff\xff\xff"s, 6) + random_bytes(random, 10'000),
      greeting + call + http2(0, 0, 1, message_of_4_gb, message_of_4_gb.size()),
      greeting + call + http2(0, 1, 1, message_of_4_gb, message_of_4_gb.size()),
      greeting + call + http2(0, 1, 1, "\1\0\0\0\1x"s, 6),  // "compressed"
  };
  std::string resets = greeting;  // calls that are opened and reset at once
  for (uint32_t stream = 1; stream < 4000; stream += 2) {
    resets += http2(1, 4, stream, headers, headers.size());
    resets += http2(3, 0, stream, "\0\0\0\x08"s, 4);
  }
  said.push_back(resets);
  std::vector<std::unique_ptr<Connection>> open;
  for (const char* job : {"ps", "worker"}) {
    for (const std::string& bytes : said) {
      open.push_back(std::make_unique<Connection>(cluster.task(job).address()));
      open.back()->send(bytes);
      ASSERT_NO_FATAL_FAILURE(client.step());
    }
    for (int silent = 0; silent < 100; ++silent)
      open.push_back(std::make_unique<Connection>(cluster.task(job).address()));
  }
  for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(client.step());
  const auto newcomer = cluster.session(training());
  newcomer->run({}, {"w:0"}, {});
  EXPECT_LT(peak_bytes(), before + most_growth);
}

}  // namespace
}  // namespace leat
