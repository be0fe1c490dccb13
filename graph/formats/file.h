// Files, with errors that have the file's name and the system's message. NOT_FOUND,
// PERMISSION_DENIED, RESOURCE_EXHAUSTED (disk full, no descriptors), FAILED_PRECONDITION (a
// directory, a pipe, a device, a link to itself), INVALID_ARGUMENT (a name that is too long),
// UNIMPLEMENTED (s3://…), else UNKNOWN. Kernels say which files they may reach (core/file_roots.h),
// here and wherever this folder opens files: PERMISSION_DENIED outside of them. Nothing else in
// core/, graph/, kernels/ and runtime/ opens files; tools/check_layers.py checks both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_roots.h"

namespace leat {

// Appends to a new or an existing file. Buffered. One append() is written as a whole or not at all,
// and a flush() retries what the last one could not write: callers may go on after a full disk. Not
// so in a file that others may append to (Mode::append): a part may be there.
class FileWriter {
 public:
  enum class Mode { create, append };
  explicit FileWriter(const std::string& path, Mode mode = Mode::create,
                      const FileRoots& roots = any_file);
  ~FileWriter();  // closes; what was not flushed is lost
  FileWriter(const FileWriter&) = delete;

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }  // appended
  void append(const void* data, size_t bytes);
  void append(std::string_view data) { append(data.data(), data.size()); }
  void flush();  // to the system: other processes see it
  void sync();   // to the disk
  void close();

 private:
  void write(const char* data, size_t bytes);
  void take_back(size_t bytes);

  const std::string path_;
  const bool is_alone_;
  int descriptor_ = -1;
  uint64_t bytes_ = 0;
  std::vector<char> buffer_;
};

// Random access. DATA_LOSS if the file ends before the bytes that are asked for.
class FileReader {
 public:
  explicit FileReader(const std::string& path, const FileRoots& roots = any_file);
  ~FileReader();
  FileReader(const FileReader&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  void read(uint64_t offset, void* to, size_t bytes) const;

 private:
  const std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// A lock file: one process, and one object in it, holds it at a time. It is removed on release; one
// that a dead process left is taken over.
class FileLock {
 public:
  // ALREADY_EXISTS if it is held.
  explicit FileLock(const std::string& path, const FileRoots& roots = any_file);
  ~FileLock();
  FileLock(const FileLock&) = delete;

 private:
  const std::string path_;
  const FileRoots roots_;
  int descriptor_ = -1;
};

// The path on this machine of a path or file:///… URL. The functions below and the classes above
// use it. UNIMPLEMENTED for other URLs, which would otherwise name a directory "s3:" here.
std::string local_path(const std::string& path);
std::string read_file(const std::string& path, const FileRoots& roots = any_file);
// Writes under a temporary name, syncs and renames: readers see the old file or the new one.
void replace_file(const std::string& to, std::string_view contents,
                  const FileRoots& roots = any_file);
void rename_file(const std::string& from, const std::string& to, const FileRoots& roots = any_file);
// Makes a hard link. False where the file system has none.
bool link_file(const std::string& from, const std::string& to, const FileRoots& roots = any_file);
// No error if there is none.
void remove_file(const std::string& path, const FileRoots& roots = any_file);
void remove_empty_directory(const std::string& path, const FileRoots& roots = any_file);
void make_directories(const std::string& path, const FileRoots& roots = any_file);
// Makes files renamed or made in the directory of `path` survive a crash of the machine.
void sync_directory_of(const std::string& path, const FileRoots& roots = any_file);

struct FileStatus {
  bool is_directory;
  uint64_t size;
  int64_t changed_ns;   // since 1970
  uint64_t disk, file;  // equal for two names of one file
};
// None if there is no such file, or only a link that leads nowhere.
std::optional<FileStatus> file_status(const std::string& path, const FileRoots& roots = any_file);
inline bool is_file_there(const std::string& path, const FileRoots& roots = any_file) {
  return file_status(path, roots).has_value();
}
// True also for a link that leads nowhere.
bool is_name_there(const std::string& path, const FileRoots& roots = any_file);
// The names in a directory, in any order; none if it cannot be read.
std::vector<std::string> names_in(const std::string& directory, const FileRoots& roots = any_file);
// All files whose names match, part by part, in any order; `*` matches hidden files too, as in
// TensorFlow. PERMISSION_DENIED if the part before the first wildcard leads out of the roots;
// matches that do are skipped.
std::vector<std::string> matching_files(const std::string& pattern,
                                        const FileRoots& roots = any_file);

// A file beside `path`, "<path>.tempstate1234", that will become it. A live process holds a lock on
// it; remove_stale_temporaries() removes those of dead ones.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path, const FileRoots& roots = any_file);
  ~TemporaryFile();  // removes it, unless it has been renamed
  TemporaryFile(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }
  void rename_to_target();

 private:
  const std::string target_, path_;
  const FileRoots roots_;
  int descriptor_ = -1;
  bool is_renamed_ = false;
};
// Removes those that would have become `target`.
void remove_stale_temporaries(const std::string& target, const FileRoots& roots = any_file);
bool is_temporary_name(std::string_view path);
std::string directory_of(const std::string& path);  // "." if there is no slash

}  // namespace leat
