// The channels of clients to this task's master: a client that keeps one open calls RunStep on it
// instead of over gRPC. Between processes of one host it goes through shared memory. Each client
// opens its own (master_link.h); the others do without.
#pragma once

#include <memory>
#include <string>

#include "distributed/wire/channel_calls.h"

namespace leat {

class RpcServer;

// Thread-safe.
class ClientLinks {
 public:
  // `handlers` serve the calls.
  ClientLinks(uint64_t incarnation, CallHandlers handlers);
  ~ClientLinks();  // stop()
  ClientLinks(const ClientLinks&) = delete;

  // Adds the method that clients call to a server that has not been started.
  void attach(RpcServer& server);
  // From now on, clients of this host get shared memory. `who`: this task, for messages.
  void share_memory(std::string who);
  // Ends the channels, after the answers that are on their way, and takes no more.
  void stop();

 private:
  class State;
  std::shared_ptr<State> state_;
};

// "/leat.Client/Connect": the hello of a client has its offer of shared memory (host_sharing.h), or
// ""; the welcome has what was handed over, or "".
inline constexpr const char* client_method = "/leat.Client/Connect";

}  // namespace leat
