// What a TLS connection needs, and what it says of the peer. Nothing of gRPC or OpenSSL shows.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace leat {

// The texts of the files, in PEM. Connections are mutual: each side shows its certificate, and each
// takes only one that `ca` has signed.
struct RpcTls {
  std::string ca, certificate, key;
};

// Who is at the other end, as far as the transport knows.
struct RpcPeer {
  std::string address;             // "ipv4:127.0.0.1:43210"
  bool is_certified = false;       // it came over TLS, with a certificate that `ca` has signed
  std::vector<std::string> names;  // the URIs and DNS names of that certificate
};

// Why the names of a peer's certificate are not those that were meant; "" if they are.
using NameCheck = std::function<std::string(const std::vector<std::string>& names)>;

}  // namespace leat
