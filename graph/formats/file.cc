#include "graph/formats/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "core/error.h"

namespace leat {
namespace {

constexpr size_t buffer_bytes = 1 << 18;
constexpr std::string_view temporary_suffix = ".tempstate";

[[noreturn]] void fail_with_errno(const char* what, const std::string& path) {
  const int error = errno;
  Code code = Code::unknown;
  if (error == ENOENT || error == ENOTDIR) code = Code::not_found;
  if (error == EACCES || error == EPERM || error == EROFS) code = Code::permission_denied;
  if (error == ELOOP || error == EISDIR) code = Code::failed_precondition;
  if (error == ENAMETOOLONG) code = Code::invalid_argument;
  if (error == EFBIG) code = Code::resource_exhausted;  // ulimit -f
  if (error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE)
    code = Code::resource_exhausted;
  fail(code, path, ": ", what, " failed: ", std::strerror(error));
}

[[noreturn]] void fail_as_special(const std::string& path) {
  fail(Code::failed_precondition, path, " is not a regular file");
}

struct Opened {
  int descriptor;
  uint64_t size;
};

// Never waits: opening a pipe would, for its other end.
Opened open_regular(const std::string& path, int flags, const char* what) {
  check(path.find('\0') == path.npos, "the name of a file has a byte of 0: '", path, "'");
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  if (descriptor < 0 && errno == ENXIO) fail_as_special(path);  // a pipe that nobody reads
  if (descriptor < 0) fail_with_errno(what, path);
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode))
    return {descriptor, static_cast<uint64_t>(status.st_size)};
  ::close(descriptor);
  fail_as_special(path);
}

}  // namespace

FileWriter::FileWriter(const std::string& path, Mode mode)
    : path_(local_path(path)), is_alone_(mode == Mode::create) {
  const int flags = O_WRONLY | O_CREAT | (mode == Mode::append ? O_APPEND : O_TRUNC);
  descriptor_ = open_regular(path_, flags, "opening it for writing").descriptor;
  buffer_.reserve(buffer_bytes);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::append(const void* data, size_t bytes) {
  bytes_ += bytes;
  const char* begin = static_cast<const char*>(data);
  if (buffer_.size() + bytes > buffer_bytes) {
    flush();
    if (bytes > buffer_bytes) return write(begin, bytes);
  }
  buffer_.insert(buffer_.end(), begin, begin + bytes);
}

// All, or nothing.
void FileWriter::write(const char* data, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t written = ::write(descriptor_, data + done, bytes - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      if (done > 0 && is_alone_) take_back(done);
      errno = error;
      fail_with_errno("writing", path_);
    }
    done += static_cast<size_t>(written);
  }
}

void FileWriter::take_back(size_t bytes) {
  const off_t end = ::lseek(descriptor_, -static_cast<off_t>(bytes), SEEK_CUR);
  // If the system refuses, the end of the file is torn: whoever reads it will say so.
  if (end >= 0 && ::ftruncate(descriptor_, end) != 0) ::lseek(descriptor_, 0, SEEK_END);
}

void FileWriter::flush() {
  write(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void FileWriter::sync() {
  flush();
  if (::fsync(descriptor_) != 0) fail_with_errno("syncing", path_);
}

void FileWriter::close() {
  flush();
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0) fail_with_errno("closing", path_);
}

FileReader::FileReader(const std::string& path) : path_(local_path(path)) {
  const Opened file = open_regular(path_, O_RDONLY, "opening");
  descriptor_ = file.descriptor;
  size_ = file.size;
}

FileReader::~FileReader() { ::close(descriptor_); }

void FileReader::read(uint64_t offset, void* to, size_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) {
    fail(Code::data_loss, path_, " is torn: it has ", size_, " bytes, but ", bytes, " bytes at ",
         offset, " should be there");
  }
  char* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_with_errno("reading", path_);
    if (got == 0) fail(Code::data_loss, path_, " became shorter while it was read");
    out += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
}

// Whoever finds the file unlocked makes sure that it still is the file of that name: its last owner
// may have removed it in between.
FileLock::FileLock(const std::string& path) : path_(local_path(path)) {
  for (;;) {
    descriptor_ = open_regular(path_, O_RDWR | O_CREAT, "opening it as a lock").descriptor;
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      ::close(descriptor_);
      fail(Code::already_exists, "There appears to be a concurrent user: the lock '", path_,
           "' is held, by another process or another object of this one");
    }
    struct stat mine {
    }, named{};
    if (::fstat(descriptor_, &mine) == 0 && ::stat(path_.c_str(), &named) == 0 &&
        mine.st_ino == named.st_ino && mine.st_dev == named.st_dev)
      return;
    ::close(descriptor_);
  }
}

FileLock::~FileLock() {
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

// As TensorFlow reads them: the host of a file:// URL does not matter.
std::string local_path(const std::string& path) {
  const size_t end = path.find("://");
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (end == path.npos || end == 0 || !is_letter(path[0])) return path;
  const std::string scheme = path.substr(0, end);
  for (const char c : scheme) {
    if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '.') return path;
  }
  if (scheme != "file") {
    fail(Code::unimplemented, "File system scheme '", scheme, "' not implemented (file: '", path,
         "'); there are paths and file:///…");
  }
  const size_t begin = path.find('/', end + 3);
  check(begin != path.npos, "'", path, "' has no path; it would be file:///…");
  return path.substr(begin);
}

std::string read_file(const std::string& path) {
  const FileReader reader(path);
  std::string out(reader.size(), '\0');
  reader.read(0, out.data(), out.size());
  return out;
}

void replace_file(const std::string& to, std::string_view contents) {
  const std::string path = local_path(to), temporary = temporary_name(path);
  try {
    FileWriter writer(temporary);
    writer.append(contents);
    writer.sync();
    writer.close();
    rename_file(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_directory_of(path);
}

void rename_file(const std::string& from, const std::string& to) {
  if (::rename(local_path(from).c_str(), local_path(to).c_str()) != 0)
    fail_with_errno(("renaming to " + to).c_str(), from);
}

void remove_file(const std::string& path) {
  if (::unlink(local_path(path).c_str()) != 0 && errno != ENOENT) fail_with_errno("removing", path);
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(local_path(path), error);
  if (!error) return;
  errno = error.value();
  fail_with_errno("making the directory", path);
}

void sync_directory_of(const std::string& path) {
  const std::string directory = directory_of(local_path(path));
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail_with_errno("opening the directory", directory);
  const int result = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  // Some file systems cannot sync a directory, and need not.
  if (result != 0 && error != EINVAL) fail_with_errno("syncing the directory", directory);
}

std::string temporary_name(const std::string& path) {
  std::random_device entropy;
  return concat(path, temporary_suffix, (uint64_t{entropy()} << 32) | entropy());
}

bool is_temporary_name(std::string_view path) {
  const size_t at = path.rfind(temporary_suffix);
  if (at == path.npos) return false;
  const std::string_view number = path.substr(at + temporary_suffix.size());
  return !number.empty() && number.find_first_not_of("0123456789") == number.npos;
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace leat
