// The line by which a task that is reachable from other hosts states what that means.
#pragma once

#include <string>

namespace leat {

// "" if `address` (host:port) is reachable from this host only, or TLS keeps strangers out. `files`
// says which files graphs may reach here.
std::string exposure_line(const std::string& address, bool has_tls, const std::string& files);

}  // namespace leat
