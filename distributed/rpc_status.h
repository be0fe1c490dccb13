// A Status as the outcome of a remote call. The name of its node travels in the details.
#pragma once

#include <string>

#include "core/error.h"
#include "distributed/grpc/rpc.h"

namespace leat {

// An error that is sent. Code and message are those of the status.
RpcStatus to_rpc_status(const Status& status);
// The node that the peer named: empty if there is none, or if it sent no details that can be read.
std::string node_of(const RpcStatus& status);

}  // namespace leat
