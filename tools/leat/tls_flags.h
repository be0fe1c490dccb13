// The TLS flags, the same for every command that takes a cluster.
#pragma once

#include "distributed/cluster/cluster_spec.h"
#include "distributed/cluster/tls.h"

namespace CLI {
class App;
}

namespace leat {

void add_tls_flags(CLI::App& command, TlsPaths& paths);
// The flags override the cluster's description.
void apply_tls_flags(const TlsPaths& flags, ClusterSpec& cluster);
// LEAT_TLS_…, for a client: the flags, else the environment.
void set_client_tls(const TlsPaths& flags);

}  // namespace leat
