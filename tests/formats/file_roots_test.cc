// Files limited to some directories: how the roots resolve paths, and that no function of file.h
// escapes them.
#include "core/file_roots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "graph/formats/checkpoint.h"
#include "graph/formats/event_file.h"
#include "graph/formats/file.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// in/ is allowed, out/ is not.
class FileRootsTest : public testing::Test {
 protected:
  FileRootsTest() {
    for (const char* name : {"in/sub", "out/sub", "in-between"})
      std::filesystem::create_directories(directory / name);
    replace_file(directory / "in/a.txt", "inside");
    replace_file(directory / "out/secret.txt", "outside");
    replace_file(directory / "in-between/b.txt", "neither");
    link("out", "in/to_out");
    link("out/secret.txt", "in/to_secret");
    link("out/new.txt", "in/to_nothing");
    link("in", "out/to_in");
    link("in/to_self", "in/to_self");
    std::filesystem::create_symlink("sub", directory / "in/to_sub");
    std::filesystem::create_symlink("../out", directory / "in/to_out_relative");
    roots = FileRoots({directory / "in"});
  }
  void link(const std::string& target, const std::string& name) {
    std::filesystem::create_symlink(directory / target, directory / name);
  }
  void expect_refused(const std::string& path, const std::function<void()>& action) {
    expect_error_with(Code::permission_denied,
                      "'" + path +
                          "' is not among the files that this task may reach: files below " +
                          (directory / "in"),
                      action);
  }

  const ScratchDirectory directory;
  FileRoots roots;
};

TEST_F(FileRootsTest, ResolveLinksAndMissingFiles) {
  const std::pair<const char*, const char*> inside[] = {
      {"in", "in"},
      {"in/", "in"},
      {"in/a.txt", "in/a.txt"},
      {"in/./sub//x", "in/sub/x"},
      {"in/none/x/y", "in/none/x/y"},
      {"in/to_sub/x", "in/sub/x"},
      {"in/sub/../a.txt", "in/a.txt"},
      {"out/to_in/a.txt", "in/a.txt"},
      {"in/to_sub/../a.txt", "in/a.txt"},
  };
  for (const auto& [given, wanted] : inside)
    EXPECT_EQ(roots.resolve(directory / given), directory / wanted) << given;
  for (const char* given :
       {"", "in/..", "out", "out/secret.txt", "out/none", "in-between/b.txt",
        "in/../out/secret.txt", "in/to_out", "in/to_out/secret.txt", "in/to_out/none/x",
        "in/to_secret", "in/to_nothing", "in/to_out_relative/secret.txt", "in/to_self",
        "in/to_self/x",
        // Whether these are allowed must not reveal what exists outside.
        "out/sub/../../in/a.txt", "out/none/../../in/a.txt", "in/to_out/../in/a.txt"}) {
    const std::string path = directory / given;
    expect_refused(path, [&] { roots.resolve(path); });
  }
  EXPECT_EQ(any_file.resolve(directory / "in/to_secret"), directory / "in/to_secret");
  expect_error_with(Code::invalid_argument, "absolute", [] { FileRoots({"data"}); });
  expect_error_with(Code::not_found, "there is no directory",
                    [&] { FileRoots({directory / "none"}); });
  expect_error_with(Code::failed_precondition, "is not a directory",
                    [&] { FileRoots({directory / "in/a.txt"}); });
}

TEST_F(FileRootsTest, RelativePathsStartInTheWorkingDirectory) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory / "in-between");
  EXPECT_EQ(read_file("../in/a.txt", roots), "inside");
  expect_refused("b.txt", [&] { read_file("b.txt", roots); });
  std::filesystem::current_path(directory / "in");
  EXPECT_EQ(read_file("a.txt", roots), "inside");
  EXPECT_THAT(matching_files("*.txt", roots), ElementsAre("a.txt"));
  std::filesystem::current_path(before);
}

TEST_F(FileRootsTest, NoFileFunctionEscapesThem) {
  const std::pair<const char*, std::function<void(const std::string&)>> ways[] = {
      {"read", [&](const std::string& path) { read_file(path, roots); }},
      {"append",
       [&](const std::string& path) { FileWriter(path, FileWriter::Mode::append, roots); }},
      {"create",
       [&](const std::string& path) { FileWriter(path, FileWriter::Mode::create, roots); }},
      {"lock", [&](const std::string& path) { FileLock(path, roots); }},
      {"status", [&](const std::string& path) { file_status(path, roots); }},
      {"directories", [&](const std::string& path) { make_directories(path + "/x/y", roots); }},
      {"sync", [&](const std::string& path) { sync_directory_of(path + "/x", roots); }},
      {"names", [&](const std::string& path) { names_in(path, roots); }},
      {"matches", [&](const std::string& path) { matching_files(path + "/*", roots); }},
      {"match", [&](const std::string& path) { matching_files(path, roots); }},
  };
  for (const auto& [what, way] : ways) {
    for (const char* given : {"out/secret.txt", "in/to_secret", "in/to_nothing", "in/to_out"}) {
      SCOPED_TRACE(concat(what, " ", given));
      const std::string path = directory / given;
      const auto& reach = way;
      expect_error_with(Code::permission_denied, given, [&] { reach(path); });
    }
  }
  // Renames, links and removals act on a link, not on its target.
  const std::string secret = directory / "out/secret.txt", a = directory / "in/a.txt";
  expect_refused(secret, [&] { rename_file(a, secret, roots); });
  expect_refused(secret, [&] { rename_file(secret, directory / "in/b.txt", roots); });
  expect_refused(secret, [&] { link_file(secret, directory / "in/b.txt", roots); });
  expect_refused(secret, [&] { remove_file(secret, roots); });
  expect_refused(directory / "out/sub",
                 [&] { remove_empty_directory(directory / "out/sub", roots); });
  expect_refused(directory / "in/to_out/secret.txt",
                 [&] { remove_file(directory / "in/to_out/secret.txt", roots); });
  replace_file(directory / "in/to_secret", "a file now", roots);
  remove_file(directory / "in/to_nothing", roots);
  EXPECT_EQ(read_file(secret), "outside");
  EXPECT_EQ(read_file(directory / "in/to_secret", roots), "a file now");
  EXPECT_FALSE(std::filesystem::exists(directory / "out/new.txt"));
  EXPECT_THAT(names_in(directory / "out"), UnorderedElementsAre("secret.txt", "sub", "to_in"));
}

TEST_F(FileRootsTest, EverythingWorksInside) {
  make_directories(directory / "in/x/y", roots);
  replace_file(directory / "in/x/y/1", "one", roots);
  replace_file(directory / "in/to_sub/2", "two", roots);
  rename_file(directory / "in/x/y/1", directory / "out/to_in/x/1", roots);
  EXPECT_EQ(read_file("file://" + (directory / "in/x/1"), roots), "one");
  EXPECT_TRUE(is_file_there(directory / "in/sub/2", roots));
  EXPECT_FALSE(is_file_there(directory / "in/none", roots));
  remove_empty_directory(directory / "in/x/y", roots);
  { const FileLock lock(directory / "in/lock", roots); }
  EventWriter(directory / "in/logs", roots).add_scalar("loss", 1, 1);
  CheckpointWriter writer(directory / "in/ckpt/m", roots);
  writer.add("w", Tensor::scalar(1.0f));
  writer.finish();
  EXPECT_EQ(CheckpointReader(directory / "in/ckpt/m", roots).read("w").item<float>(), 1);
  expect_error_with(Code::not_found, "Failed to find any matching files",
                    [&] { CheckpointReader(directory / "in/ckpt/none", roots); });
  const FileRoots both({directory / "in", directory / "out"});
  EXPECT_EQ(read_file(directory / "in/to_secret", both), "outside");
  EXPECT_EQ(read_file(directory / "in/to_secret", FileRoots({"/"})), "outside");
  expect_error_with(Code::permission_denied, "may reach: no files", [&] {
    read_file(directory / "in/a.txt", FileRoots(std::vector<std::string>{}));
  });
  EXPECT_EQ(roots.to_string(), "files below " + (directory / "in"));
}

TEST_F(FileRootsTest, MatchOnlyFilesInside) {
  EXPECT_THAT(matching_files(directory / "in/*.txt", roots), ElementsAre(directory / "in/a.txt"));
  EXPECT_THAT(matching_files(directory / "in/*/*", roots), IsEmpty());
  EXPECT_THAT(matching_files(directory / "in/*/secret.txt", roots), IsEmpty());
  EXPECT_THAT(matching_files(directory / "in/*/../../out/*", roots), IsEmpty());
  for (const std::string& pattern :
       {directory / "*/secret.txt", directory / "o*", std::string("/*"), directory / "in/../out/*"})
    expect_error_with(Code::permission_denied, "is not among the files",
                      [&] { matching_files(pattern, roots); });
}

// While in use, a directory is exchanged for a link: the functions never reach outside.
TEST_F(FileRootsTest, ExchangedDirectoryLeadsNowhere) {
  const std::string swapped = directory / "in/swapped", aside = directory / "in/aside";
  std::filesystem::create_directories(swapped);
  replace_file(swapped + "/secret.txt", "inside");
  std::atomic<bool> is_over{false};
  std::thread swapper([&] {
    const std::string trap = directory / "in/trap";
    std::filesystem::create_symlink(directory / "out", trap);
    while (!is_over) {
      std::filesystem::rename(swapped, aside);
      std::filesystem::rename(trap, swapped);
      std::filesystem::rename(swapped, trap);
      std::filesystem::rename(aside, swapped);
    }
  });
  int read = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    try {
      EXPECT_EQ(read_file(swapped + "/secret.txt", roots), "inside");
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  }
  is_over = true;
  swapper.join();
  EXPECT_GT(read, 0);
  RecordProperty("refused", refused);
}

}  // namespace
}  // namespace leat
