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
  return concat("warning: anyone who can reach ", address,
                " can run graphs here that read and write ", files,
                ": require certificates (\"tls\", see `leat certificates --help`), limit the files "
                "(\"files\"), or block the port for strangers");
}

}  // namespace leat
