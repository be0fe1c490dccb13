#include "distributed/master/client_links.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/error.h"
#include "distributed/cluster/host_sharing.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/wire/channel.h"
#include "distributed/wire/shared_memory_stream.h"

namespace leat {

class ClientLinks::State : public std::enable_shared_from_this<State> {
 public:
  State(uint64_t incarnation, CallHandlers handlers)
      : incarnation_(incarnation), handlers_(std::move(handlers)) {}

  void share_memory(std::string who) {
    std::lock_guard lock(mutex_);
    sharing_ = std::make_shared<HostSharing>(std::move(who));
  }

  void accept(std::shared_ptr<RpcStream> network) {
    const auto link = std::make_shared<Link>();
    link->stream = std::make_shared<SharedMemoryStream>(std::move(network));
    const std::weak_ptr<State> weak = weak_from_this();
    ChannelEvents events;
    events.on_control = [weak, link](FrameKind kind, const FrameHeader& header,
                                     const std::string& payload) {
      const auto state = weak.lock();
      if (state != nullptr && kind == FrameKind::hello)
        state->greet(*link, header.incarnation, payload);
    };
    events.on_tensor = [](int64_t, int64_t, const Tensor&, bool) {};
    events.on_end = [weak, link](const Status&, RpcCause) {
      if (const auto state = weak.lock()) state->ended(link.get());
    };
    events.phase_of = [](int64_t) { return StepPhase::over; };  // no step's tensors come this way
    events.calls = handlers_;
    Channel::create(link->stream, {.incarnation = incarnation_}, std::move(events),
                    [&](const std::shared_ptr<Channel>& channel) {
                      link->channel = channel;
                      std::lock_guard lock(mutex_);
                      if (!is_stopped_) channels_.emplace(link.get(), channel);
                    });
  }

  void stop() {
    std::map<const Link*, std::shared_ptr<Channel>> channels;
    {
      std::lock_guard lock(mutex_);
      is_stopped_ = true;
      channels.swap(channels_);
    }
    for (const auto& [link, channel] : channels) channel->close();
  }

 private:
  struct Link {
    std::shared_ptr<SharedMemoryStream> stream;
    std::weak_ptr<Channel> channel;
  };

  void greet(Link& link, uint64_t incarnation, const std::string& offer) {
    const auto channel = link.channel.lock();
    if (channel == nullptr) return;
    std::shared_ptr<HostSharing> sharing;
    {
      std::lock_guard lock(mutex_);
      sharing = sharing_;
    }
    HostSharing::HandedOver memory;
    if (sharing != nullptr) memory = sharing->hand_over(offer, "a client at " + channel->peer());
    channel->send_control(FrameKind::welcome, memory.id);
    if (memory.link != nullptr) link.stream->switch_to(std::move(memory.link), sharing->poller());
    channel->admit(incarnation, 0);
  }

  void ended(const Link* link) {
    std::shared_ptr<Channel> last;  // goes after the lock
    std::lock_guard lock(mutex_);
    const auto found = channels_.find(link);
    if (found == channels_.end()) return;
    last = std::move(found->second);
    channels_.erase(found);
  }

  const uint64_t incarnation_;
  const CallHandlers handlers_;
  std::mutex mutex_;
  std::shared_ptr<HostSharing> sharing_;
  std::map<const Link*, std::shared_ptr<Channel>> channels_;
  bool is_stopped_ = false;
};

ClientLinks::ClientLinks(uint64_t incarnation, CallHandlers handlers)
    : state_(std::make_shared<State>(incarnation, std::move(handlers))) {}
ClientLinks::~ClientLinks() { stop(); }

void ClientLinks::attach(RpcServer& server) {
  server.accept(client_method,
                [weak = std::weak_ptr<State>(state_)](std::shared_ptr<RpcStream> stream) {
                  if (const auto state = weak.lock()) state->accept(std::move(stream));
                });
}
void ClientLinks::share_memory(std::string who) { state_->share_memory(std::move(who)); }
void ClientLinks::stop() { state_->stop(); }

}  // namespace leat
