// Whether an address is one of this machine's.
#pragma once

#include <cstdint>
#include <string>

namespace leat {

// Whose the host of an address is. Ours: localhost, a loopback or any-address, this host's name, or
// a name that resolves to one of its interfaces. Unknown: it cannot be resolved, at least not yet.
// May ask the name service.
enum class HostOwner : uint8_t { ours, other, unknown };
HostOwner owner_of_host(const std::string& host);

}  // namespace leat
