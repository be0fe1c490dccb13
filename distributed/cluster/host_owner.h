// Whether an address belongs to this machine.
#pragma once

#include <cstdint>
#include <string>

namespace leat {

// The owner of an address's host. `ours`: localhost, a loopback or any-address, this host's name,
// or a name that resolves to one of its interfaces. `nobody`: a resolver answered that the name
// does not exist, at least not yet. `unknown`: no resolver answered. May ask the name service.
enum class HostOwner : uint8_t { ours, other, nobody, unknown };
HostOwner owner_of_host(const std::string& host);

}  // namespace leat
