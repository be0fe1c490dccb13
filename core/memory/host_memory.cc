#include "core/memory/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "core/memory/control_groups.h"
#include "core/memory/memory_limit.h"

namespace leat {
namespace {

uint64_t available_in_machine() {
  std::ifstream file("/proc/meminfo");
  uint64_t kib = 0;
  for (std::string word; file >> word;) {
    if (word == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return std::numeric_limits<uint64_t>::max();
}

struct Sizes {
  uint64_t addresses = 0, resident = 0;  // bytes
};

Sizes sizes_of_process() {
  std::ifstream file("/proc/self/statm");
  Sizes pages;
  file >> pages.addresses >> pages.resident;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  return {pages.addresses * page, pages.resident * page};
}

// The rest of the `ulimit -v`.
uint64_t left_in_address_space() {
  const uint64_t limit = address_space_limit();
  if (limit == std::numeric_limits<uint64_t>::max()) return limit;
  return limit - std::min(limit, sizes_of_process().addresses);
}

}  // namespace

uint64_t available_host_memory(uint64_t promised) {
  std::ifstream groups("/proc/self/cgroup");
  const uint64_t free =
      std::min(available_in_machine(), memory_left_in_control_groups(groups, "/sys/fs/cgroup"));
  return std::min(free - std::min(free, promised), left_in_address_space());
}

int64_t resident_host_memory() { return static_cast<int64_t>(sizes_of_process().resident); }

}  // namespace leat
