// Locks by files: one owner at a time, and the lock of a dead owner blocks nobody.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "graph/formats/file.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

TEST(FileLock, HasOneOwner) {
  const ScratchDirectory directory;
  const std::string path = directory / "lock";
  auto lock = std::make_unique<FileLock>(path);
  expect_error_with(Code::already_exists, "the lock '" + path + "' is held",
                    [&] { const FileLock other(path); });
  lock.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
  const FileLock next(path);
}

TEST(FileLock, TakesOverTheLockOfADeadProcess) {
  const ScratchDirectory directory;
  const std::string path = directory / "lock";
  const pid_t child = ::fork();
  if (child == 0) {
    const FileLock held(path);
    ::_exit(std::filesystem::exists(path) ? 0 : 1);  // exits without releasing it
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::exists(path));
  const FileLock next(path);
}

TEST(FileLock, NeedsADirectory) {
  const ScratchDirectory directory;
  expect_error_with(Code::not_found, "opening it as a lock failed",
                    [&] { const FileLock lock(directory / "none/lock"); });
}

}  // namespace
}  // namespace leat
