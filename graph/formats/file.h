// Files, with errors that name the file and say what the system said. NOT_FOUND, PERMISSION_DENIED,
// RESOURCE_EXHAUSTED (disk full, no descriptors), FAILED_PRECONDITION (a directory, a pipe, a
// device, a link to itself), INVALID_ARGUMENT (a name that is too long), UNIMPLEMENTED (s3://…),
// else UNKNOWN.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

// Appends to a new file, or to one that is there. Buffered. Of what one append() was given all is
// written or nothing, and what a flush() could not write the next one tries again: after an error
// for want of room one may go on. Not so in a file that others may append to (Mode::append): a part
// may be there.
class FileWriter {
 public:
  enum class Mode { create, append };
  explicit FileWriter(const std::string& path, Mode mode = Mode::create);
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
  explicit FileReader(const std::string& path);
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
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;

 private:
  const std::string path_;
  int descriptor_ = -1;
};

// What follows, and the classes above, take file:///… as well, by this: the path on this machine.
// UNIMPLEMENTED for the URL of something else, which else would be a directory "s3:" here.
std::string local_path(const std::string& path);
std::string read_file(const std::string& path);
// Under a temporary name, synced and renamed: readers see the old file or the new one.
void replace_file(const std::string& to, std::string_view contents);
void rename_file(const std::string& from, const std::string& to);
void remove_file(const std::string& path);  // fine if there is none
void make_directories(const std::string& path);
// Makes what was renamed or made in the directory of `path` survive a crash of the machine.
void sync_directory_of(const std::string& path);
// "<path>.tempstate1234": free at this moment.
std::string temporary_name(const std::string& path);
bool is_temporary_name(std::string_view path);
std::string directory_of(const std::string& path);  // "." if there is no slash

}  // namespace leat
