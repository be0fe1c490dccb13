// How fast tensors go from one process to another: a Channel against a raw TCP socket, in the same
// pair of processes.
//
// The child is this program again. On request it sends `count` tensors of one size, and the parent
// measures the time from its request to the last byte in its own memory. The two take turns (A B B
// A), so that other load on the machine affects both; the result is the ratio of each pair. The
// parent reuses its buffer for the raw socket; the channel allocates new tensors, as in real use.
//
//   channel [--rounds N] [--sizes 64,1048576,…]
//
// With LEAT_TLS_CA, LEAT_TLS_CERTIFICATE and LEAT_TLS_KEY (`leat certificates`) the channel is over
// TLS.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "distributed/cluster/tls.h"
#include "distributed/grpc/rpc_client.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/wire/channel.h"

extern char** environ;  // NOLINT

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t window = uint64_t{64} << 20;
constexpr double target_ratio = 0.35;
constexpr int64_t target_size = int64_t{16} << 20;

struct Request {
  int64_t size = 0;
  int64_t count = 0;
};

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

// ---- The raw socket ----

void read_all(int socket, void* into, size_t bytes) {
  for (auto* at = static_cast<char*>(into); bytes > 0;) {
    const ssize_t got = read(socket, at, bytes);
    if (got <= 0) die("read");
    at += got;
    bytes -= static_cast<size_t>(got);
  }
}

void write_all(int socket, const void* from, size_t bytes) {
  for (const auto* at = static_cast<const char*>(from); bytes > 0;) {
    const ssize_t put = write(socket, at, bytes);
    if (put <= 0) die("write");
    at += put;
    bytes -= static_cast<size_t>(put);
  }
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void no_delay(int socket) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// ---- The child ----

Tensor source(int64_t size) {
  Tensor tensor(DType::u8, {size});
  std::memset(tensor.raw(), 7, static_cast<size_t>(size));
  return tensor;
}

void serve_raw(int listener) {
  const int socket = accept(listener, nullptr, nullptr);
  if (socket < 0) die("accept");
  no_delay(socket);
  Tensor tensor;
  for (;;) {
    Request request;
    if (recv(socket, &request, sizeof request, MSG_WAITALL) != sizeof request) return;
    if (tensor.elements() != request.size || !tensor.is_valid()) tensor = source(request.size);
    for (int64_t i = 0; i < request.count; ++i)
      write_all(socket, tensor.raw(), static_cast<size_t>(request.size));
  }
}

int run_child() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 ||
      listen(listener, 1) < 0)
    die("bind");
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);

  std::shared_ptr<Channel> channel;
  Tensor tensor;
  RpcServer server({.tls = client_tls()});
  server.accept("/bench", [&](std::shared_ptr<RpcStream> stream) {
    channel =
        Channel::create(std::move(stream), {.incarnation = 2, .window = window},
                        {.on_tensor =
                             [&](int64_t step, int64_t, const Tensor& value, bool) {
                               const auto request = value.span<int64_t>();
                               if (!tensor.is_valid() || tensor.elements() != request[0])
                                 tensor = source(request[0]);
                               for (int64_t i = 0; i < request[1]; ++i)
                                 channel->send(step, i, tensor, false);
                             },
                         .phase_of = [](int64_t) { return StepPhase::running; }},
                        [&](const std::shared_ptr<Channel>& made) { made->admit(1, window); });
  });
  std::printf("%d %d\n", server.start("127.0.0.1:0"), ntohs(address.sin_port));
  std::fflush(stdout);
  serve_raw(listener);  // until the parent closes its end
  server.stop();
  return 0;
}

// ---- The parent ----

struct Child {
  pid_t pid = -1;
  int rpc_port = 0, raw_port = 0;

  Child() {
    int out[2];
    if (pipe(out) < 0) die("pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, out[0]);
    std::string program = "/proc/self/exe", flag = "--child";
    char* arguments[] = {program.data(), flag.data(), nullptr};
    if (posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environ) != 0)
      die("posix_spawn");
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    FILE* text = fdopen(out[0], "r");
    if (std::fscanf(text, "%d %d", &rpc_port, &raw_port) != 2) die("the child said nothing");
    std::fclose(text);
  }
  ~Child() { waitpid(pid, nullptr, 0); }
};

class RawPeer {
 public:
  explicit RawPeer(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in address = loopback(port);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0)
      die("connect");
    no_delay(socket_);
  }
  ~RawPeer() { close(socket_); }
  double seconds(const Request& request) {
    if (!buffer_.is_valid() || buffer_.elements() != request.size) buffer_ = source(request.size);
    const auto begin = Clock::now();
    write_all(socket_, &request, sizeof request);
    for (int64_t i = 0; i < request.count; ++i)
      read_all(socket_, buffer_.raw(), static_cast<size_t>(request.size));
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  int socket_;
  Tensor buffer_;
};

class ChannelPeer {
 public:
  explicit ChannelPeer(int port)
      : client_("127.0.0.1:" + std::to_string(port), {.tls = client_tls()}) {
    channel_ = Channel::create(client_.open("/bench"), {.incarnation = 1, .window = window},
                               {.on_tensor =
                                    [this](int64_t, int64_t, const Tensor&, bool) {
                                      if (left_.fetch_sub(1) == 1) left_.notify_one();
                                    },
                                .on_end =
                                    [](const Status& status, RpcCause) {
                                      if (!status.is_ok() && status.code != Code::cancelled) {
                                        std::fprintf(stderr, "%s\n", status.to_string().c_str());
                                        std::exit(1);
                                      }
                                    },
                                .phase_of = [](int64_t) { return StepPhase::running; }});
    channel_->admit(2, window);
  }
  ~ChannelPeer() {
    channel_.reset();
    client_.close();
  }
  double seconds(const Request& request) {
    left_ = request.count;
    const auto begin = Clock::now();
    channel_->send(++step_, 0, Tensor::of<int64_t>({2}, {request.size, request.count}), false);
    for (int64_t left = left_; left > 0; left = left_) left_.wait(left);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  RpcClient client_;
  std::shared_ptr<Channel> channel_;
  std::atomic<int64_t> left_{0};
  int64_t step_ = 0;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Result {
  double raw, channel, ratio;  // seconds; raw / channel, the median over pairs
};

Result measure(RawPeer& raw, ChannelPeer& channel, const Request& request, int rounds) {
  raw.seconds(request);
  channel.seconds(request);
  std::vector<double> raw_times, channel_times, ratios;
  for (int round = 0; round < rounds; ++round) {
    double a, b;
    if (round % 2 == 0) {
      a = raw.seconds(request);
      b = channel.seconds(request);
    } else {
      b = channel.seconds(request);
      a = raw.seconds(request);
    }
    raw_times.push_back(a);
    channel_times.push_back(b);
    ratios.push_back(a / b);
  }
  return {median(raw_times), median(channel_times), median(ratios)};
}

std::string size_text(int64_t size) {
  if (size >= 1 << 20) return std::to_string(size >> 20) + " MB";
  if (size >= 1 << 10) return std::to_string(size >> 10) + " KB";
  return std::to_string(size) + " B";
}

int run_parent(int rounds, const std::vector<int64_t>& sizes) {
  Child child;
  RawPeer raw(child.raw_port);
  ChannelPeer channel(child.rpc_port);
  double load[1] = {};
  getloadavg(load, 1);
  std::printf(
      "%u cores, load %.2f, %d pairs per row; times are medians, ratio = raw time / channel time\n",
      std::thread::hardware_concurrency(), load[0], rounds);
  std::printf("%8s  %6s  %22s  %22s  %6s\n", "size", "count", "raw TCP", "channel", "ratio");
  for (const int64_t size : sizes) {
    // One at a time, and as many as make 64 MB (but at most 256) back to back.
    const int64_t many =
        std::clamp<int64_t>((int64_t{64} << 20) / std::max<int64_t>(size, 1), 1, 256);
    for (const int64_t count : {int64_t{1}, many}) {
      const Result result = measure(raw, channel, {size, count}, rounds);
      const double bytes = static_cast<double>(size * count);
      std::printf("%8s  %6ld  %9.1f us %6.2f GB/s  %9.1f us %6.2f GB/s  %6.2f%s\n",
                  size_text(size).c_str(), count, result.raw * 1e6, bytes / result.raw / 1e9,
                  result.channel * 1e6, bytes / result.channel / 1e9, result.ratio,
                  size != target_size            ? ""
                  : result.ratio >= target_ratio ? "  (target 0.35: reached)"
                                                 : "  (target 0.35: MISSED)");
      std::fflush(stdout);
      if (many == 1) break;
    }
  }
  return 0;
}

}  // namespace
}  // namespace leat

int main(int argc, char** argv) {
  int rounds = 40;
  std::vector<int64_t> sizes;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--child") return leat::run_child();
    if (argument == "--rounds" && i + 1 < argc) {
      rounds = std::atoi(argv[++i]);
    } else if (argument == "--sizes" && i + 1 < argc) {
      for (char* text = std::strtok(argv[++i], ","); text != nullptr;
           text = std::strtok(nullptr, ",")) {
        sizes.push_back(std::atoll(text));
      }
    } else {
      std::fprintf(stderr, "usage: %s [--rounds N] [--sizes BYTES,…]\n", argv[0]);
      return 2;
    }
  }
  if (sizes.empty()) {
    for (int64_t size = 64; size <= int64_t{64} << 20; size *= size < 1 << 20 ? 16 : 4)
      sizes.push_back(size);
  }
  return leat::run_parent(std::max(rounds, 2), sizes);
}
