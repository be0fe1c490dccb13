// Files, with errors that name the file and say what the system said. NOT_FOUND, PERMISSION_DENIED,
// RESOURCE_EXHAUSTED (disk full, no descriptors), FAILED_PRECONDITION (a directory, a pipe, a
// device, a link to itself), INVALID_ARGUMENT (a name that is too long), UNIMPLEMENTED (s3://…),
// else UNKNOWN. Kernels say which files they may reach (core/file_roots.h), here and in whatever of
// this folder opens files: PERMISSION_DENIED outside of them. Nothing else in core/, graph/,
// kernels/ and runtime/ opens files; tools/check_layers.py checks both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_roots.h"

namespace leat {

// Appends to a new file, or to one that is there. Buffered. Of what one append() was given all is
// written or nothing, and what a flush() could not write the next one tries again: after an error
// for want of room one may go on. Not so in a file that others may append to (Mode::append): a part
// may be there.
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

// A file that stands for a right that one process, and one object in it, may have at a time. It is
// removed when the right is given up; one that a dead process left is taken over.
class FileLock {
 public:
  // ALREADY_EXISTS if somebody has it.
  explicit FileLock(const std::string& path, const FileRoots& roots = any_file);
  ~FileLock();
  FileLock(const FileLock&) = delete;

 private:
  const std::string path_;
  const FileRoots roots_;
  int descriptor_ = -1;
};

// What follows, and the classes above, take file:///… as well, by this: the path on this machine.
// UNIMPLEMENTED for the URL of something else, which else would be a directory "s3:" here.
std::string local_path(const std::string& path);
std::string read_file(const std::string& path, const FileRoots& roots = any_file);
// Under a temporary name, synced and renamed: readers see the old file or the new one.
void replace_file(const std::string& to, std::string_view contents,
                  const FileRoots& roots = any_file);
void rename_file(const std::string& from, const std::string& to, const FileRoots& roots = any_file);
// Another name for the same file. False where the file system has no such thing.
bool link_file(const std::string& from, const std::string& to, const FileRoots& roots = any_file);
// Fine if there is none.
void remove_file(const std::string& path, const FileRoots& roots = any_file);
void remove_empty_directory(const std::string& path, const FileRoots& roots = any_file);
void make_directories(const std::string& path, const FileRoots& roots = any_file);
// Makes what was renamed or made in the directory of `path` survive a crash of the machine.
void sync_directory_of(const std::string& path, const FileRoots& roots = any_file);

struct FileStatus {
  bool is_directory;
  uint64_t size;
  int64_t changed_ns;   // since 1970
  uint64_t disk, file;  // equal for two names of one file
};
// Nothing if there is no such file, nor one behind a link of that name.
std::optional<FileStatus> file_status(const std::string& path, const FileRoots& roots = any_file);
inline bool is_file_there(const std::string& path, const FileRoots& roots = any_file) {
  return file_status(path, roots).has_value();
}
// Also if it is a link that leads nowhere.
bool is_name_there(const std::string& path, const FileRoots& roots = any_file);
// The names in a directory, in any order; none if it cannot be read.
std::vector<std::string> names_in(const std::string& directory, const FileRoots& roots = any_file);
// All files whose names fit, part by part, in any order; `*` takes what is hidden too, as in
// TensorFlow. PERMISSION_DENIED if what is before the first wildcard leads out of the roots; what
// it finds that does is passed over.
std::vector<std::string> matching_files(const std::string& pattern,
                                        const FileRoots& roots = any_file);

// A name beside `path`, "<path>.tempstate1234", for what will be it. Whoever lives has its file
// locked: those of the dead are removed by remove_stale_temporaries().
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
// Those that would have become `target`.
void remove_stale_temporaries(const std::string& target, const FileRoots& roots = any_file);
bool is_temporary_name(std::string_view path);
std::string directory_of(const std::string& path);  // "." if there is no slash

}  // namespace leat
