// TLS in gRPC's terms. Internal to this folder.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "distributed/grpc/tls.h"

namespace leat::transport {

// Plaintext without `tls`. `check` is called with a server's certificate before anything is sent to
// it.
std::shared_ptr<grpc::ChannelCredentials> client_credentials(
    const std::shared_ptr<const RpcTls>& tls, const NameCheck& check);
std::shared_ptr<grpc::ServerCredentials> server_credentials(
    const std::shared_ptr<const RpcTls>& tls);

// The caller of a call.
RpcPeer peer_of(const grpc::ServerContextBase& context);

// gRPC reports a failed handshake only to its log. After this call, those lines are kept here
// instead of printed.
void keep_handshake_failures();
// Takes the oldest such line of the last two seconds, shortened: "peer did not return a
// certificate"; "" if there is none.
std::string take_handshake_failure();

}  // namespace leat::transport
