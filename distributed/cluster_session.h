// A session on a cluster: options.target "grpc://host:port" is the task whose master runs its
// steps.
#pragma once

#include <memory>

#include "distributed/master/master_client.h"

namespace leat {

// The session is made by the first extend(). Every call has a deadline (options.timeout, 10 minutes
// if that is 0). A task of this process is asked directly: feeds and fetches are then not copied.
std::unique_ptr<SessionInterface> make_cluster_session(const SessionOptions& options);

// The same, always over the wire.
std::unique_ptr<SessionInterface> make_grpc_session(const SessionOptions& options);

}  // namespace leat
