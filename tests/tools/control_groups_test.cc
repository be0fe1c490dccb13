// The memory that control groups leave, from files as the kernel writes them. This test is here,
// not with those of core/, because of its purpose: a launcher's tasks in a container.
#include "core/memory/control_groups.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

class ControlGroups : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  uint64_t left(const std::string& groups) {
    std::istringstream text(groups);
    return memory_left_in_control_groups(text, folder_.path());
  }
  uint64_t limit(const std::string& groups) {
    std::istringstream text(groups);
    return memory_limit_of_control_groups(text, folder_.path());
  }
  const ScratchDirectory folder_;
};

constexpr uint64_t none = std::numeric_limits<uint64_t>::max();

TEST_F(ControlGroups, FindsTheTightestLimitOfVersion2) {
  write("a/b/memory.max", "max");
  write("a/memory.max", "1000");
  write("a/memory.current", "700");
  write("a/memory.stat", "anon 400\nfile 300\nshmem 100");
  EXPECT_EQ(left("0::/a/b\n"), 500u);
  EXPECT_EQ(left("0::/c\n"), none);
  EXPECT_EQ(limit("0::/a/b\n"), 1000u);
}

TEST_F(ControlGroups, FindsTheTightestLimitOfVersion1) {
  write("memory/docker/x/memory.limit_in_bytes", "9223372036854771712");
  write("memory/docker/memory.limit_in_bytes", "1000");
  write("memory/docker/memory.usage_in_bytes", "700");
  write("memory/docker/memory.stat", "cache 9\ntotal_cache 300\ntotal_shmem 100");
  EXPECT_EQ(left("12:memory:/docker/x\n11:cpu,cpuacct:/docker/x\n0::/docker/x\n"), 500u);
  EXPECT_EQ(left("11:cpu,cpuacct:/docker\n1:name=systemd:/docker\n"), none);
}

// In a container the path may be the host's, while the mounted directory is the group itself.
TEST_F(ControlGroups, ContainersSeeTheirGroupAsTheRoot) {
  write("memory/memory.limit_in_bytes", "1000");
  write("memory/memory.usage_in_bytes", "900");
  EXPECT_EQ(left("4:memory:/docker/0123\n"), 100u);
}

TEST_F(ControlGroups, MemoryMayShareItsHierarchy) {
  write("cpu,memory/a/memory.limit_in_bytes", "1000");
  EXPECT_EQ(left("3:cpu,memory:/a\n"), 1000u);
}

TEST_F(ControlGroups, IgnoresInvalidLines) { EXPECT_EQ(left("\n:\n::\nx:y\n5:memory:\n"), none); }

}  // namespace
}  // namespace leat
