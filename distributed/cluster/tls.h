// TLS of a cluster: its files, and the owner that a certificate names.
//
// A certificate names its owner with a URI or a DNS name (subject alternative names):
//   a task    spiffe://CLUSTER/job/ps/task/0   ps-0.CLUSTER
//   a client  spiffe://CLUSTER/client/NAME     client.CLUSTER
// CLUSTER is the cluster's id: "cluster_id", else what ClusterSpec::id() makes of its addresses. A
// task may do everything that belongs to its own place. A client may open sessions and view the
// cluster's activity; it may neither register graphs with workers nor take a task's place.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/cluster/tls_paths.h"
#include "distributed/grpc/rpc.h"
#include "distributed/grpc/tls.h"

namespace leat {

struct TaskName;

inline constexpr const char* tls_ca_variable = "LEAT_TLS_CA";
inline constexpr const char* tls_certificate_variable = "LEAT_TLS_CERTIFICATE";
inline constexpr const char* tls_key_variable = "LEAT_TLS_KEY";
inline constexpr const char* client_name = "client";
std::string certificate_name(const TaskName& task);  // "ps-0"

// `paths`, replaced where `over` has one.
TlsPaths merged(TlsPaths paths, const TlsPaths& over);
// From LEAT_TLS_CA, LEAT_TLS_CERTIFICATE and LEAT_TLS_KEY.
TlsPaths tls_from_environment();
TlsPaths with_name(TlsPaths paths, std::string_view name);

// Reads the files for `name`. Null if no path is set; INVALID_ARGUMENT if only some are, or a file
// is not PEM; NOT_FOUND if one cannot be read.
std::shared_ptr<const RpcTls> read_tls(const TlsPaths& paths, std::string_view name);
// A client's TLS, from the environment.
std::shared_ptr<const RpcTls> client_tls();

// The owner of a certificate's names. A stranger if they name nobody of this cluster, or several.
struct CertifiedPeer {
  std::optional<TaskName> task() const;
  enum class Kind { stranger, client, task } kind = Kind::stranger;
  std::string job;
  int index = -1;
};
// `cluster` "": any cluster.
CertifiedPeer certified_peer(const std::vector<std::string>& names, std::string_view cluster);
std::string names_text(const std::vector<std::string>& names);

// For RpcClientOptions::check_server.
NameCheck is_task(const TaskName& task, const std::string& cluster);
NameCheck is_any_task();

// For RpcServerOptions::authorize, where a task of `cluster` requires certificates: who may call
// what. A call without TLS came through the port for clients of this host.
RpcStatus authorize_call(const std::string& method, const RpcPeer& peer,
                         const std::string& cluster);

}  // namespace leat
