// How fast tensors go from one process to another on this host: a Channel over the network and
// through shared memory, against a raw TCP socket and memcpy, in the same pair of processes.
//
// The child is this program again. On request it sends `count` tensors of one size, and the parent
// measures the time from its request to the last byte in its own memory. All take turns, so that
// other load on the machine affects them alike; a ratio is the median of the ratios of each round.
// The raw socket and memcpy reuse their buffer; the channels allocate new tensors, as in real use.
//
//   channel [--rounds N] [--sizes 64,1048576,…] [--looks MICROSECONDS]
//
// The last row is a round trip of 64 bytes: a thousand in a row, each begun by the thread that the
// answer before came to. --looks: how long both ends look for the next message before they sleep
// (host_poller.h). Default: as tasks do.
//
// With LEAT_TLS_CA, LEAT_TLS_CERTIFICATE and LEAT_TLS_KEY (`leat certificates`) the channel over
// the network is over TLS.
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
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "distributed/cluster/tls.h"
#include "distributed/grpc/rpc_client.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/wire/channel.h"
#include "distributed/wire/shared_memory_stream.h"

extern char** environ;  // NOLINT

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t window = uint64_t{64} << 20;
std::chrono::microseconds looks = HostPoller::by_cores;  // NOLINT: a flag

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

// A channel that sends what it is asked for.
class Sender {
 public:
  void answer(std::shared_ptr<RpcStream> stream) {
    channel_ =
        Channel::create(std::move(stream), {.incarnation = 2, .window = window},
                        {.on_tensor =
                             [this](int64_t step, int64_t, const Tensor& value, bool) {
                               const auto request = value.span<int64_t>();
                               if (!tensor_.is_valid() || tensor_.elements() != request[0])
                                 tensor_ = source(request[0]);
                               for (int64_t i = 0; i < request[1]; ++i)
                                 channel_->send(step, i, tensor_, false);
                             },
                         .phase_of = [](int64_t) { return StepPhase::running; }},
                        [&](const std::shared_ptr<Channel>& made) { made->admit(1, window); });
  }

 private:
  std::shared_ptr<Channel> channel_;
  Tensor tensor_;
};

int run_child(const std::string& offer) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  SharedRegion::open();
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 ||
      listen(listener, 1) < 0)
    die("bind");
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);

  Sender network, shared;
  auto [link, link_id] = hand_over_link(offer);
  const auto poller = std::make_shared<HostPoller>(0, looks);
  RpcServer server({.tls = client_tls()});
  server.accept("/network",
                [&](std::shared_ptr<RpcStream> stream) { network.answer(std::move(stream)); });
  server.accept("/shared", [&, memory = &link](std::shared_ptr<RpcStream> stream) {
    const auto both = std::make_shared<SharedMemoryStream>(std::move(stream));
    shared.answer(both);
    both->switch_to(std::move(*memory), poller, Lending::allowed);
  });
  std::printf("%d %d %lu\n", server.start("127.0.0.1:0"), ntohs(address.sin_port), link_id);
  std::fflush(stdout);
  serve_raw(listener);  // until the parent closes its end
  server.stop();
  return 0;
}

// ---- The parent ----

struct Child {
  pid_t pid = -1;
  int rpc_port = 0, raw_port = 0;
  uint64_t link_id = 0;

  explicit Child(std::string offer) {
    int out[2];
    if (pipe(out) < 0) die("pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, out[0]);
    std::string program = "/proc/self/exe", flag = "--child";
    std::string looks_flag = "--looks", time = std::to_string(looks.count());
    char* arguments[] = {program.data(), looks_flag.data(), time.data(),
                         flag.data(),    offer.data(),      nullptr};
    if (posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environ) != 0)
      die("posix_spawn");
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    FILE* text = fdopen(out[0], "r");
    if (std::fscanf(text, "%d %d %lu", &rpc_port, &raw_port, &link_id) != 3)
      die("the child said nothing");
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

class CopyPeer {
 public:
  double seconds(const Request& request) {
    if (!from_.is_valid() || from_.elements() != request.size) {
      from_ = source(request.size);
      to_ = source(request.size);
    }
    const auto begin = Clock::now();
    for (int64_t i = 0; i < request.count; ++i) {
      std::memcpy(to_.raw(), from_.raw(), static_cast<size_t>(request.size));
      asm volatile("" ::: "memory");  // each of them
    }
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  Tensor from_, to_;
};

class ChannelPeer {
 public:
  // Through `memory`, if there is any.
  ChannelPeer(int port, const std::string& method, std::unique_ptr<HostLink> memory,
              std::shared_ptr<HostPoller> poller)
      : client_("127.0.0.1:" + std::to_string(port), {.tls = client_tls()}) {
    const auto stream = std::make_shared<SharedMemoryStream>(client_.open(method));
    channel_ = Channel::create(stream, {.incarnation = 1, .window = window},
                               {.on_tensor =
                                    [this](int64_t, int64_t, const Tensor&, bool) {
                                      if (more_trips_ > 0) return ask_again();
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
    if (memory) stream->switch_to(std::move(memory), std::move(poller), Lending::allowed);
    channel_->admit(2, window);
  }
  ~ChannelPeer() {
    channel_.reset();
    client_.close();
  }
  // Of one of `trips` round trips in a row.
  double seconds_of_trip(int trips) {
    more_trips_ = trips - 1;
    return seconds({.size = 64, .count = 1}) / trips;
  }
  double seconds(const Request& request) {
    left_ = request.count;
    const auto begin = Clock::now();
    channel_->send(++step_, 0, Tensor::of<int64_t>({2}, {request.size, request.count}), false);
    for (int64_t left = left_; left > 0; left = left_) left_.wait(left);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  void ask_again() {
    --more_trips_;
    channel_->send(++step_, 0, Tensor::of<int64_t>({2}, {64, 1}), false);
  }

  RpcClient client_;
  std::shared_ptr<Channel> channel_;
  std::atomic<int64_t> left_{0};
  std::atomic<int> more_trips_{0};
  std::atomic<int64_t> step_{0};
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Result {
  std::vector<double> seconds;  // medians, of each way

  std::vector<std::vector<double>> rounds;  // of each way
  // The median of way a's time / way b's.
  double ratio(size_t a, size_t b) const {
    std::vector<double> ratios;
    for (size_t i = 0; i < rounds[a].size(); ++i) ratios.push_back(rounds[a][i] / rounds[b][i]);
    return median(ratios);
  }
};

using Way = std::function<double(const Request&)>;

Result measure(const std::vector<Way>& ways, const Request& request, int rounds) {
  for (const Way& way : ways) way(request);
  Result out;
  out.rounds.resize(ways.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < ways.size(); ++i) {
      const size_t way = round % 2 == 0 ? i : ways.size() - 1 - i;
      out.rounds[way].push_back(ways[way](request));
    }
  }
  for (const std::vector<double>& times : out.rounds) out.seconds.push_back(median(times));
  return out;
}

std::string size_text(int64_t size) {
  if (size >= 1 << 20) return std::to_string(size >> 20) + " MB";
  if (size >= 1 << 10) return std::to_string(size >> 10) + " KB";
  return std::to_string(size) + " B";
}

int run_parent(int rounds, const std::vector<int64_t>& sizes) {
  SharedRegion::open();
  HostLinkListener listener;
  Child child(listener.offer());
  const auto poller = std::make_shared<HostPoller>(0, looks);
  CopyPeer copy;
  RawPeer raw(child.raw_port);
  ChannelPeer network(child.rpc_port, "/network", nullptr, nullptr);
  ChannelPeer shared(child.rpc_port, "/shared", listener.take(child.link_id), poller);
  const auto way = [](auto& peer) {
    return Way([&peer](const Request& request) { return peer.seconds(request); });
  };
  enum { by_copy, by_socket, by_network, by_memory };
  const std::vector<Way> ways = {way(copy), way(raw), way(network), way(shared)};
  double load[1] = {};
  getloadavg(load, 1);
  std::printf("%u cores, load %.2f, %d rounds per row; times are medians\n",
              std::thread::hardware_concurrency(), load[0], rounds);
  std::printf("%8s  %6s  %21s  %21s  %21s  %21s  %12s  %14s\n", "size", "count", "memcpy",
              "raw TCP", "channel, network", "channel, memory", "TCP/network", "memcpy/memory");
  for (const int64_t size : sizes) {
    // One at a time, and as many as make 64 MB (but at most 256) back to back.
    const int64_t many =
        std::clamp<int64_t>((int64_t{64} << 20) / std::max<int64_t>(size, 1), 1, 256);
    for (const int64_t count : {int64_t{1}, many}) {
      const Result result = measure(ways, {size, count}, rounds);
      std::printf("%8s  %6ld", size_text(size).c_str(), count);
      for (const double seconds : result.seconds) {
        std::printf("  %9.1f us %5.2f GB/s", seconds * 1e6,
                    static_cast<double>(size * count) / seconds / 1e9);
      }
      std::printf("  %12.2f  %14.2f\n", result.ratio(by_socket, by_network),
                  result.ratio(by_copy, by_memory));
      std::fflush(stdout);
      if (many == 1) break;
    }
  }
  constexpr int trips = 1000;
  std::vector<double> over_network, through_memory;
  for (int round = 0; round < rounds; ++round) {
    over_network.push_back(network.seconds_of_trip(trips));
    through_memory.push_back(shared.seconds_of_trip(trips));
  }
  std::printf("round trip of 64 B: network %.1f us, memory %.1f us\n", median(over_network) * 1e6,
              median(through_memory) * 1e6);
  return 0;
}

}  // namespace
}  // namespace leat

int main(int argc, char** argv) {
  int rounds = 40;
  std::vector<int64_t> sizes;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--child" && i + 1 < argc) return leat::run_child(argv[++i]);
    if (argument == "--looks" && i + 1 < argc) {
      leat::looks = std::chrono::microseconds(std::atoi(argv[++i]));
    } else if (argument == "--rounds" && i + 1 < argc) {
      rounds = std::atoi(argv[++i]);
    } else if (argument == "--sizes" && i + 1 < argc) {
      for (char* text = std::strtok(argv[++i], ","); text != nullptr;
           text = std::strtok(nullptr, ",")) {
        sizes.push_back(std::atoll(text));
      }
    } else {
      std::fprintf(stderr, "usage: %s [--rounds N] [--sizes BYTES,…] [--looks MICROSECONDS]\n",
                   argv[0]);
      return 2;
    }
  }
  if (sizes.empty()) {
    for (int64_t size = 64; size <= int64_t{64} << 20; size *= size < 1 << 20 ? 16 : 4)
      sizes.push_back(size);
  }
  return leat::run_parent(std::max(rounds, 2), sizes);
}
