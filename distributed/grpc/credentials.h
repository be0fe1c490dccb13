// TLS in gRPC's terms. Internal to this folder.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "distributed/grpc/tls.h"

namespace leat::transport {

// Without `tls` they are plaintext. `check` is asked when a server has shown its certificate,
// before anything is sent to it.
std::shared_ptr<grpc::ChannelCredentials> client_credentials(
    const std::shared_ptr<const RpcTls>& tls, const NameCheck& check);
std::shared_ptr<grpc::ServerCredentials> server_credentials(
    const std::shared_ptr<const RpcTls>& tls);

// Who has made a call.
RpcPeer peer_of(const grpc::ServerContextBase& context);

// What gRPC says of a failed handshake, which it tells only its log. Once this has been called,
// such lines are kept here instead of being printed.
void keep_handshake_failures();
// The oldest one of the last two seconds that nobody has taken, in short: "peer did not return a
// certificate"; "" if there is none.
std::string take_handshake_failure();

}  // namespace leat::transport
