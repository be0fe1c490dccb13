#include "distributed/cluster/host_owner.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

namespace leat {
namespace {

// The address alone, without port and scope, for comparison.
std::string address_bytes(const sockaddr* address) {
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(address);
    return std::string(reinterpret_cast<const char*>(&in->sin_addr), sizeof in->sin_addr);
  }
  if (address->sa_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(address);
    return std::string(reinterpret_cast<const char*>(&in->sin6_addr), sizeof in->sin6_addr);
  }
  return "";
}

bool has_interface(const std::string& address) {
  ifaddrs* first = nullptr;
  if (address.empty() || getifaddrs(&first) != 0) return false;
  bool is_found = false;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (address_bytes(at->ifa_addr) == address) is_found = true;
  }
  freeifaddrs(first);
  return is_found;
}

}  // namespace

HostOwner owner_of_host(const std::string& host) {
  if (host == "localhost" || host.starts_with("127.") || host == "::1" || host == "0.0.0.0" ||
      host == "::")
    return HostOwner::ours;
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) == 0 && host == name) return HostOwner::ours;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &first); error != 0) {
    const bool is_answer = error == EAI_NONAME || error == EAI_NODATA;
    return is_answer ? HostOwner::nobody : HostOwner::unknown;
  }
  bool is_ours = false;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    const std::string address = address_bytes(at->ai_addr);
    if ((address.size() == 4 && address[0] == 127) || has_interface(address)) is_ours = true;
  }
  freeaddrinfo(first);
  return is_ours ? HostOwner::ours : HostOwner::other;
}

}  // namespace leat
