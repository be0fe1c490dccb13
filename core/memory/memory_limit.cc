#include "core/memory/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "core/memory/control_groups.h"

namespace leat {

uint64_t address_space_limit() {
  rlimit space{};
  const bool is_limited = getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
  return is_limited ? space.rlim_cur : std::numeric_limits<uint64_t>::max();
}

uint64_t host_memory_limit() {
  std::ifstream groups("/proc/self/cgroup");
  const uint64_t machine = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                           static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  return std::min(
      {machine, address_space_limit(), memory_limit_of_control_groups(groups, "/sys/fs/cgroup")});
}

uint64_t largest_message() {
  constexpr uint64_t least = uint64_t{64} << 20;  // what tasks tell each other is far below that
  return std::max(least, host_memory_limit() / 2);
}

}  // namespace leat
