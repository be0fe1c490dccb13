// The session that options.target asks for.
#pragma once

#include <memory>

#include "runtime/session.h"

namespace leat {

// "" = in this process, "grpc://host:port" = on the cluster of that task; INVALID_ARGUMENT for
// anything else.
std::unique_ptr<SessionInterface> new_session(const SessionOptions& options);

}  // namespace leat
