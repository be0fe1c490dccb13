// The flags of TLS, the same for every command that has a cluster.
#pragma once

#include "distributed/cluster/cluster_spec.h"
#include "distributed/cluster/tls.h"

namespace CLI {
class App;
}

namespace leat {

void add_tls_flags(CLI::App& command, TlsPaths& paths);
// What the flags say comes before what the cluster's description says.
void apply_tls_flags(const TlsPaths& flags, ClusterSpec& cluster);
// LEAT_TLS_…, for a client: what the flags say, else what is in the environment.
void set_client_tls(const TlsPaths& flags);

}  // namespace leat
