// The memory that the control groups of a process leave it, of version 1 and 2.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace leat {

// `groups` is /proc/self/cgroup, `root` where the groups are mounted. Bytes that every group above
// can still give; the largest number if none has a limit.
uint64_t memory_left_in_control_groups(std::istream& groups, const std::string& root);

// The same as if nothing were used yet.
uint64_t memory_limit_of_control_groups(std::istream& groups, const std::string& root);

}  // namespace leat
