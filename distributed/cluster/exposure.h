// The line with which a task that can be reached from elsewhere says what that means.
#pragma once

#include <string>

namespace leat {

// "" if `address` (host:port) is reached from this host only, or TLS keeps strangers out. `files`:
// which files graphs may reach here, in words.
std::string exposure_line(const std::string& address, bool has_tls, const std::string& files);

}  // namespace leat
