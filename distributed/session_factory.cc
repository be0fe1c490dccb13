#include "distributed/session_factory.h"

#include "distributed/cluster_session.h"
#include "runtime/local_session.h"

namespace leat {

std::unique_ptr<SessionInterface> new_session(const SessionOptions& options) {
  if (options.target.empty()) return std::make_unique<LocalSession>(options);
  return make_cluster_session(options);
}

}  // namespace leat
