// A client's channel to its master, for the calls that every step makes (client_links.h).
#pragma once

#include <memory>

namespace leat {

class Channel;
class RpcClient;

// Thread-safe.
class MasterLink {
 public:
  explicit MasterLink(RpcClient& client);
  ~MasterLink();  // ends the channel
  MasterLink(const MasterLink&) = delete;

  // The channel, once both ends have greeted; null until then, and with a master that has none. The
  // first call opens it; the next calls open another one after a loss, at most every second. Does
  // not wait.
  std::shared_ptr<Channel> channel();

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace leat
