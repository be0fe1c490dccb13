#include "core/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "core/control_groups.h"

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

}  // namespace

uint64_t available_host_memory() {
  std::ifstream groups("/proc/self/cgroup");
  return std::min(available_in_machine(), memory_left_in_control_groups(groups, "/sys/fs/cgroup"));
}

}  // namespace leat
