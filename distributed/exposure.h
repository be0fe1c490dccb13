// The line with which a task that can be reached from elsewhere says what that means.
#pragma once

#include <string>

namespace leat {

// "" if `address` (host:port) is reached from this host only, or TLS keeps strangers out.
std::string exposure_line(const std::string& address, bool has_tls);

}  // namespace leat
