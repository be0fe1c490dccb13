#include "distributed/master/master_link.h"

#include <chrono>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "distributed/cluster/host_sharing.h"
#include "distributed/grpc/rpc_client.h"
#include "distributed/master/client_links.h"
#include "distributed/random_id.h"
#include "distributed/wire/channel.h"
#include "distributed/wire/shared_memory_stream.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto pause = std::chrono::seconds(1);  // between attempts

// Of all clients in this process: they share a thread that reads.
std::shared_ptr<HostSharing> sharing_of_clients() {
  static std::mutex mutex;
  static std::weak_ptr<HostSharing> shared;
  std::lock_guard lock(mutex);
  std::shared_ptr<HostSharing> out = shared.lock();
  if (out == nullptr) shared = out = std::make_shared<HostSharing>("this client");
  return out;
}

}  // namespace

class MasterLink::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(RpcClient& client) : client_(client) {}

  std::shared_ptr<Channel> channel() {
    {
      std::lock_guard lock(mutex_);
      if (channel_ != nullptr) return is_greeted_ ? channel_ : nullptr;
      if (is_over_ || is_opening_ || Clock::now() < next_attempt_) return nullptr;
      is_opening_ = true;
    }
    open();
    return nullptr;
  }

  void stop() {
    std::shared_ptr<Channel> last;
    {
      std::lock_guard lock(mutex_);
      is_over_ = true;
      last = std::move(channel_);
    }
    if (last != nullptr) last->close();
  }

 private:
  void open() {
    auto stream = std::make_shared<SharedMemoryStream>(client_.open(client_method));
    ChannelEvents events;
    events.on_control = [weak = weak_from_this(), stream](FrameKind kind, const FrameHeader& header,
                                                          const std::string& payload) {
      const auto state = weak.lock();
      if (state != nullptr && kind == FrameKind::welcome)
        state->welcomed(*stream, header.incarnation, payload);
    };
    events.on_tensor = [](int64_t, int64_t, const Tensor&, bool) {};
    events.on_end = [weak = weak_from_this()](const Status& status, RpcCause) {
      if (const auto state = weak.lock()) state->ended(status);
    };
    events.phase_of = [](int64_t) { return StepPhase::over; };
    std::shared_ptr<Channel> channel;
    Channel::create(stream, {.incarnation = random_id() | 1}, std::move(events),
                    [&](const std::shared_ptr<Channel>& made) {
                      channel = made;
                      std::lock_guard lock(mutex_);
                      if (!is_over_) channel_ = made;
                      is_opening_ = false;
                    });
    channel->send_control(FrameKind::hello, sharing_->offer());
  }

  void welcomed(SharedMemoryStream& stream, uint64_t incarnation, const std::string& memory) {
    std::shared_ptr<Channel> channel;
    {
      std::lock_guard lock(mutex_);
      channel = channel_;
    }
    if (channel == nullptr) return;
    if (!memory.empty()) {
      try {
        stream.switch_to(sharing_->take(memory, "the master"), sharing_->poller());
      } catch (const Error& error) {  // the master writes there already
        return channel->cut(error.status());
      }
    }
    channel->admit(incarnation, 0);
    std::lock_guard lock(mutex_);
    is_greeted_ = true;
  }

  void ended(const Status& status) {
    std::shared_ptr<Channel> last;  // goes after the lock
    std::lock_guard lock(mutex_);
    last = std::move(channel_);
    is_greeted_ = false;
    next_attempt_ = Clock::now() + pause;
    // A master without this method, or that does not let us call it, will not change its mind.
    is_over_ |= status.code == Code::unimplemented || status.code == Code::permission_denied;
  }

  RpcClient& client_;
  const std::shared_ptr<HostSharing> sharing_ = sharing_of_clients();
  std::mutex mutex_;
  std::shared_ptr<Channel> channel_;
  bool is_opening_ = false;
  bool is_greeted_ = false;
  bool is_over_ = false;
  Clock::time_point next_attempt_;
};

MasterLink::MasterLink(RpcClient& client) : state_(std::make_shared<State>(client)) {}
MasterLink::~MasterLink() { state_->stop(); }
std::shared_ptr<Channel> MasterLink::channel() { return state_->channel(); }

}  // namespace leat
