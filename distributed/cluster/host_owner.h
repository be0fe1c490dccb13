// Whether an address is one of this machine's.
#pragma once

#include <cstdint>
#include <string>

namespace leat {

// Whose the host of an address is. Ours: localhost, a loopback or any-address, this host's name, or
// a name that resolves to one of its interfaces. Nobody: a resolver has answered that there is no
// such name, at least not yet. Unknown: none has answered. May ask the name service.
enum class HostOwner : uint8_t { ours, other, nobody, unknown };
HostOwner owner_of_host(const std::string& host);

}  // namespace leat
