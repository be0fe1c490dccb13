// The inputs of a TLS connection, and what it says about the peer. Nothing of gRPC or OpenSSL
// shows.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace leat {

// The texts of the PEM files. Connections are mutual: each side shows its certificate, and accepts
// only one signed by `ca`.
struct RpcTls {
  std::string ca, certificate, key;
};

// The other end, as far as the transport knows it.
struct RpcPeer {
  std::string address;             // "ipv4:127.0.0.1:43210"
  bool is_certified = false;       // it came over TLS, with a certificate signed by `ca`
  std::vector<std::string> names;  // the URIs and DNS names of that certificate
};

// Why a peer's certificate names are not the expected ones; "" if they are.
using NameCheck = std::function<std::string(const std::vector<std::string>& names)>;

}  // namespace leat
