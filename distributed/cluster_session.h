// A session on a cluster. Its target "grpc://host:port" is the task whose master runs its steps.
#pragma once

#include <memory>

#include "distributed/master/master_client.h"

namespace leat {

// The first extend() makes the session. Every call has a deadline (options.timeout, 10 minutes if
// that is 0). A task of this process is called directly, without copying feeds and fetches.
std::unique_ptr<SessionInterface> make_cluster_session(const SessionOptions& options);

// The same, always over the wire.
std::unique_ptr<SessionInterface> make_grpc_session(const SessionOptions& options);

}  // namespace leat
