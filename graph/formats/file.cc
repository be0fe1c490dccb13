#include "graph/formats/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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

// What the system says to `call(directory, name)`: -1 and errno, also if it is not asked.
template <class Call>
int in_place(const FileRoots::Place& place, Call call) {
  if (place.error == 0) return call(place.directory, place.name.c_str());
  errno = place.error;
  return -1;
}

int open_in(const FileRoots& roots, const std::string& path, int flags) {
  return in_place(roots.find(path), [&](int directory, const char* name) {
    const int links = roots.are_limited() ? O_NOFOLLOW : 0;  // what was one has been followed
    return ::openat(directory, name, flags | links | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  });
}

int unlink_in(const FileRoots& roots, const std::string& path, int flags) {
  return in_place(roots.find(path, FileRoots::Last::itself), [&](int directory, const char* name) {
    return ::unlinkat(directory, name, flags);
  });
}

bool status_in(const FileRoots& roots, const std::string& path, struct stat& status) {
  return in_place(roots.find(path), [&](int directory, const char* name) {
           const int links = roots.are_limited() ? AT_SYMLINK_NOFOLLOW : 0;
           return ::fstatat(directory, name, &status, links);
         }) == 0;
}

// Never waits: opening a pipe would, for its other end.
Opened open_regular(const std::string& path, int flags, const char* what, const FileRoots& roots) {
  check(path.find('\0') == path.npos, "the name of a file has a byte of 0: '", path, "'");
  const int descriptor = open_in(roots, path, flags);
  if (descriptor < 0 && errno == ENXIO) fail_as_special(path);  // a pipe that nobody reads
  if (descriptor < 0) fail_with_errno(what, path);
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode))
    return {descriptor, static_cast<uint64_t>(status.st_size)};
  ::close(descriptor);
  fail_as_special(path);
}

std::string temporary_name(const std::string& path) {
  std::random_device entropy;
  return concat(path, temporary_suffix, (uint64_t{entropy()} << 32) | entropy());
}

// Whether nobody else has the file of that descriptor locked, and it still is the one of that
// name: its last owner may have removed it.
enum class Locked { by_us, by_another, is_another_file };
Locked lock(int descriptor, const std::string& path, const FileRoots& roots) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) return Locked::by_another;
  struct stat mine {
  }, named{};
  const bool is_same = ::fstat(descriptor, &mine) == 0 && status_in(roots, path, named) &&
                       mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
  return is_same ? Locked::by_us : Locked::is_another_file;
}

}  // namespace

FileWriter::FileWriter(const std::string& path, Mode mode, const FileRoots& roots)
    : path_(local_path(path)), is_alone_(mode == Mode::create) {
  const int flags = O_WRONLY | O_CREAT | (mode == Mode::append ? O_APPEND : O_TRUNC);
  descriptor_ = open_regular(path_, flags, "opening it for writing", roots).descriptor;
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

FileReader::FileReader(const std::string& path, const FileRoots& roots) : path_(local_path(path)) {
  const Opened file = open_regular(path_, O_RDONLY, "opening", roots);
  descriptor_ = file.descriptor;
  size_ = file.size;
}

FileReader::~FileReader() { ::close(descriptor_); }

void FileReader::read(uint64_t offset, void* to, size_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) {
    fail(Code::data_loss, path_, " is torn: it has ", size_, " bytes, but should have ", bytes,
         " bytes at ", offset);
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

FileLock::FileLock(const std::string& path, const FileRoots& roots)
    : path_(local_path(path)), roots_(roots) {
  for (;;) {
    descriptor_ = open_regular(path_, O_RDWR | O_CREAT, "opening it as a lock", roots_).descriptor;
    const Locked locked = lock(descriptor_, path_, roots_);
    if (locked == Locked::by_us) return;
    ::close(descriptor_);
    if (locked == Locked::by_another) {
      fail(Code::already_exists, "There appears to be a concurrent user: the lock '", path_,
           "' is held, by another process or another object of this one");
    }
  }
}

FileLock::~FileLock() {
  try {
    unlink_in(roots_, path_, 0);
  } catch (const Error&) {
    // Its directory has become something else: what is there now is not ours.
  }
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
         "'): use a path or file:///…");
  }
  const size_t begin = path.find('/', end + 3);
  check(begin != path.npos, "'", path, "' has no path: write file:///…");
  return path.substr(begin);
}

std::string read_file(const std::string& path, const FileRoots& roots) {
  const FileReader reader(path, roots);
  std::string out(reader.size(), '\0');
  reader.read(0, out.data(), out.size());
  return out;
}

void replace_file(const std::string& to, std::string_view contents, const FileRoots& roots) {
  TemporaryFile temporary(to, roots);
  FileWriter writer(temporary.path(), FileWriter::Mode::create, roots);
  writer.append(contents);
  writer.sync();
  writer.close();
  temporary.rename_to_target();
  sync_directory_of(to, roots);
}

void rename_file(const std::string& from, const std::string& to, const FileRoots& roots) {
  const auto target = roots.find(local_path(to), FileRoots::Last::itself);
  const int result = in_place(roots.find(local_path(from), FileRoots::Last::itself),
                              [&](int directory, const char* name) {
                                return in_place(target, [&](int to_directory, const char* to_name) {
                                  return ::renameat(directory, name, to_directory, to_name);
                                });
                              });
  if (result != 0) fail_with_errno(("renaming to " + to).c_str(), from);
}

bool link_file(const std::string& from, const std::string& to, const FileRoots& roots) {
  const auto target = roots.find(local_path(to), FileRoots::Last::itself);
  const int result = in_place(roots.find(local_path(from), FileRoots::Last::itself),
                              [&](int directory, const char* name) {
                                return in_place(target, [&](int to_directory, const char* to_name) {
                                  return ::linkat(directory, name, to_directory, to_name, 0);
                                });
                              });
  if (result == 0) return true;
  if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK) return false;
  fail_with_errno(("linking to " + to).c_str(), from);
}

void remove_file(const std::string& path, const FileRoots& roots) {
  if (unlink_in(roots, local_path(path), 0) != 0 && errno != ENOENT)
    fail_with_errno("removing", path);
}

void remove_empty_directory(const std::string& path, const FileRoots& roots) {
  if (unlink_in(roots, local_path(path), AT_REMOVEDIR) != 0 && errno != ENOENT)
    fail_with_errno("removing", path);
}

void make_directories(const std::string& path, const FileRoots& roots) {
  const std::string directory = roots.resolve(local_path(path));
  for (size_t end = 0; end != directory.npos;) {
    end = directory.find('/', end + 1);
    const std::string part = directory.substr(0, end);
    struct stat status {};
    // Those above the roots are there, and not ours to look at.
    if (roots.are_limited() && !roots.contains(part)) continue;
    if (status_in(roots, part, status) && S_ISDIR(status.st_mode)) continue;
    const int result = in_place(roots.find(part, FileRoots::Last::itself),
                                [](int at, const char* name) { return ::mkdirat(at, name, 0777); });
    if (result == 0) continue;
    const int error = errno;
    // Another may have made it meanwhile.
    if (status_in(roots, part, status) && S_ISDIR(status.st_mode)) continue;
    errno = error == EEXIST ? ENOTDIR : error;
    fail_with_errno("making the directory", path);
  }
}

void sync_directory_of(const std::string& path, const FileRoots& roots) {
  const std::string directory = directory_of(local_path(path));
  const int descriptor = open_in(roots, directory, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) fail_with_errno("opening the directory", directory);
  const int result = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  // Some file systems cannot sync a directory, and need not.
  if (result != 0 && error != EINVAL) fail_with_errno("syncing the directory", directory);
}

std::optional<FileStatus> file_status(const std::string& path, const FileRoots& roots) {
  struct stat status {};
  if (!status_in(roots, local_path(path), status)) return std::nullopt;
  return FileStatus{.is_directory = S_ISDIR(status.st_mode),
                    .size = static_cast<uint64_t>(status.st_size),
                    .changed_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
                    .disk = status.st_dev,
                    .file = status.st_ino};
}

bool is_name_there(const std::string& path, const FileRoots& roots) {
  struct stat status {};
  return in_place(roots.find(local_path(path), FileRoots::Last::itself),
                  [&](int directory, const char* name) {
                    return ::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW);
                  }) == 0;
}

std::vector<std::string> names_in(const std::string& directory, const FileRoots& roots) {
  std::vector<std::string> out;
  const int descriptor = open_in(roots, local_path(directory), O_RDONLY | O_DIRECTORY);
  DIR* const opened = descriptor < 0 ? nullptr : ::fdopendir(descriptor);
  if (opened == nullptr) {
    if (descriptor >= 0) ::close(descriptor);
    return out;
  }
  while (const dirent* entry = ::readdir(opened)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.emplace_back(name);
  }
  ::closedir(opened);
  return out;
}

TemporaryFile::TemporaryFile(const std::string& path, const FileRoots& roots)
    : target_(local_path(path)), path_(temporary_name(target_)), roots_(roots) {
  // As if it were the target: its errors are those of the file that is wanted.
  for (;;) {
    descriptor_ =
        open_regular(path_, O_RDWR | O_CREAT, "opening it for writing", roots_).descriptor;
    if (lock(descriptor_, path_, roots_) != Locked::is_another_file) return;
    ::close(descriptor_);
  }
}

TemporaryFile::~TemporaryFile() {
  if (!is_renamed_) {
    try {
      unlink_in(roots_, path_, 0);
    } catch (const Error&) {
      // An error is under way already.
    }
  }
  ::close(descriptor_);
}

void TemporaryFile::rename_to_target() {
  rename_file(path_, target_, roots_);
  is_renamed_ = true;
}

// Who cannot be asked whether he lives (no locks there) keeps his files.
void remove_stale_temporaries(const std::string& target, const FileRoots& roots) {
  const std::string path = local_path(target), directory = directory_of(path);
  const std::string begin = concat(path.substr(path.rfind('/') + 1), temporary_suffix);
  for (const std::string& name : names_in(directory, roots)) {
    if (!name.starts_with(begin) || !is_temporary_name(name)) continue;
    const std::string file = directory + "/" + name;
    const int descriptor = open_in(roots, file, O_RDWR);
    if (descriptor < 0) continue;
    if (lock(descriptor, file, roots) == Locked::by_us) unlink_in(roots, file, 0);
    ::close(descriptor);
  }
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
