#include "distributed/cluster/exposure.h"

#include "core/error.h"
#include "distributed/cluster/cluster_spec.h"

namespace leat {
namespace {

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

std::string exposure_line(const std::string& address, bool has_tls, const std::string& files) {
  if (has_tls || is_loopback(HostPort::parse(address).host)) return {};
  return concat("warning: whoever reaches ", address,
                " may run graphs here, and with them read and write ", files,
                ": ask for certificates (\"tls\", see `leat certificates --help`), limit the files "
                "(\"files\"), or keep strangers from the port");
}

}  // namespace leat
