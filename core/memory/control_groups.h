// The memory that a process may use under its control groups, versions 1 and 2.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace leat {

// Bytes still available in every enclosing group; the largest number if none has a limit. `groups`
// is /proc/self/cgroup; `root` is where the groups are mounted.
uint64_t memory_left_in_control_groups(std::istream& groups, const std::string& root);

// The same, as if no memory were used yet.
uint64_t memory_limit_of_control_groups(std::istream& groups, const std::string& root);

}  // namespace leat
