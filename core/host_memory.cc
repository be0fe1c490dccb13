#include "core/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace leat {
namespace {

constexpr uint64_t no_limit = std::numeric_limits<uint64_t>::max();

// The number after `key` in a file of "key number" lines; of a file of one number if it is "".
uint64_t number_in(const std::string& path, const std::string& key, uint64_t otherwise) {
  std::ifstream file(path);
  std::string word;
  while (key.empty() || file >> word) {
    uint64_t value = 0;
    if ((key.empty() || word == key)) return file >> value ? value : otherwise;  // "max": no limit
  }
  return otherwise;
}

uint64_t left_in(const std::string& group) {
  const uint64_t limit = number_in(group + "/memory.max", "", no_limit);
  if (limit == no_limit) return no_limit;
  const uint64_t used = number_in(group + "/memory.current", "", 0);
  // What the group's files have in memory goes when it is needed, but for those that are memory.
  const uint64_t files = number_in(group + "/memory.stat", "file", 0);
  const uint64_t kept = number_in(group + "/memory.stat", "shmem", 0);
  return limit - std::min(limit, used - std::min(used, files - std::min(files, kept)));
}

}  // namespace

uint64_t available_host_memory() {
  uint64_t out = number_in("/proc/meminfo", "MemAvailable:", no_limit / 1024) * 1024;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;  // version 2, which has one hierarchy
    std::string path = line.substr(3);
    while (true) {
      out = std::min(out, left_in("/sys/fs/cgroup" + path));
      if (path.size() <= 1) break;
      path.resize(std::max<size_t>(path.rfind('/'), 1));
    }
  }
  return out;
}

}  // namespace leat
