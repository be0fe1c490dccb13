#include "core/memory/control_groups.h"

#include <algorithm>
#include <fstream>
#include <istream>
#include <limits>
#include <string>
#include <string_view>

namespace leat {
namespace {

constexpr uint64_t no_limit = std::numeric_limits<uint64_t>::max();

// The number after `key` in a file of "key number" lines; the only number in the file if `key` is
// "".
uint64_t number_in(const std::string& path, const std::string& key, uint64_t otherwise) {
  std::ifstream file(path);
  std::string word;
  while (key.empty() || file >> word) {
    uint64_t value = 0;
    if ((key.empty() || word == key)) return file >> value ? value : otherwise;  // "max": no limit
  }
  return otherwise;
}

// What a control group's files are called.
struct Files {
  const char *limit, *used, *cached, *shared;
};
constexpr Files version_1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_cache",
                             "total_shmem"};
constexpr Files version_2 = {"/memory.max", "/memory.current", "file", "shmem"};

// Without a limit it is "max" in version 2, more than any machine has in version 1.
uint64_t limit_of(const std::string& group, const Files& files) {
  return number_in(group + files.limit, "", no_limit);
}

uint64_t left_in(const std::string& group, const Files& files) {
  const uint64_t limit = limit_of(group, files);
  if (limit == no_limit) return no_limit;
  const uint64_t used = number_in(group + files.used, "", 0);
  // What the group's files have in memory goes when it is needed, but for those that are memory.
  const uint64_t cached = number_in(group + "/memory.stat", files.cached, 0);
  const uint64_t kept = number_in(group + "/memory.stat", files.shared, 0);
  return limit - std::min(limit, used - std::min(used, cached - std::min(cached, kept)));
}

bool has_memory(std::string_view controllers) {
  while (true) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "memory") return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
}

// The least of what `of` says of the groups that the process is in.
uint64_t least_of(std::istream& groups, const std::string& root,
                  uint64_t of(const std::string& group, const Files& files)) {
  uint64_t out = no_limit;
  for (std::string line; std::getline(groups, line);) {  // "12:memory:/path", "0::/path"
    const size_t colon = line.find(':'), second = line.find(':', colon + 1);
    if (second == std::string::npos || line.compare(second, 2, ":/") != 0) continue;
    const std::string controllers = line.substr(colon + 1, second - colon - 1);
    // Version 2 has one hierarchy for all; in version 1 memory has its own, or shares one.
    if (!controllers.empty() && !has_memory(controllers)) continue;
    const Files& files = controllers.empty() ? version_2 : version_1;
    const std::string mount = controllers.empty() ? root : root + "/" + controllers;
    std::string path = line.substr(second + 1);
    while (true) {
      out = std::min(out, of(mount + path, files));
      if (path.size() <= 1) break;
      path.resize(std::max<size_t>(path.rfind('/'), 1));
    }
  }
  return out;
}

}  // namespace

uint64_t memory_left_in_control_groups(std::istream& groups, const std::string& root) {
  return least_of(groups, root, left_in);
}

uint64_t memory_limit_of_control_groups(std::istream& groups, const std::string& root) {
  return least_of(groups, root, limit_of);
}

}  // namespace leat
