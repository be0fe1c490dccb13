#include "frontends/cpp/strategies/parts/exchange.h"

#include <algorithm>
#include <cmath>

namespace leat::collectives {

std::vector<Owner> owners_of(const Replicas& replicas, bool with_servers) {
  const auto n = static_cast<double>(replicas.count());
  const std::vector<DeviceName> servers =
      with_servers ? replicas.servers() : std::vector<DeviceName>();
  const auto k = std::min(static_cast<double>(servers.size()), n);
  const double all = n * n + k * n - 2 * k;
  std::vector<Owner> out;
  for (int i = 0; i < replicas.count(); ++i)
    out.push_back({replicas.worker(i), replicas.prefix(i), n == 1 ? 1 : (n - k) / all});
  for (size_t i = 0; i < servers.size(); ++i)
    out.push_back({servers[i], concat("server_", i, "/"),
                   static_cast<double>(servers.size()) > n ? 1 / static_cast<double>(servers.size())
                                                           : 2 * (n - 1) / all});
  std::erase_if(out, [](const Owner& owner) { return owner.share <= 0; });
  return out;
}

std::vector<int64_t> chunk_sizes(int64_t rows, const std::vector<Owner>& owners) {
  std::vector<int64_t> out;
  double share = 0;
  int64_t given = 0;
  for (const Owner& owner : owners) {
    share += owner.share;
    const bool is_last = &owner == &owners.back();
    const auto end =
        is_last ? rows : static_cast<int64_t>(std::floor(share * static_cast<double>(rows) + 1e-9));
    out.push_back(end - given);
    given = end;
  }
  return out;
}

}  // namespace leat::collectives
