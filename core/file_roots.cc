#include "core/file_roots.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <utility>

#include "core/error.h"

namespace leat {
namespace {

constexpr int most_links = 40;  // as in Linux

// A path is below itself.
bool is_below(const std::string& path, const std::string& directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

std::string joined(const std::string& directory, const std::string& name) {
  return (directory == "/" ? "" : directory) + "/" + name;
}

std::string parent_of(const std::string& path) {
  return path.substr(0, std::max<size_t>(path.rfind('/'), 1));
}

std::string working_directory() {
  std::error_code error;
  const std::string out = std::filesystem::current_path(error);
  return error ? "/" : out;
}

struct Part {
  std::string name;
  bool is_given;  // by the path, not by a link on its way
};

void push_parts(const std::string& path, bool are_given, std::deque<Part>& parts) {
  std::vector<Part> out;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (const std::string name = path.substr(begin, end - begin); !name.empty() && name != ".")
      out.push_back({name, are_given});
    begin = end + 1;
  }
  parts.insert(parts.begin(), out.begin(), out.end());
}

// What a symbolic link says; "" if the path is none.
std::string link_at(const std::string& path) {
  std::string out(4096, '\0');
  const ssize_t bytes = ::readlink(path.c_str(), out.data(), out.size());
  out.resize(static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  return out;
}

}  // namespace

FileRoots::FileRoots(const std::vector<std::string>& directories) {
  std::vector<std::string> resolved;
  for (const std::string& directory : directories) {
    check(directory.starts_with('/'), "\"files\": '", directory,
          "' is not the absolute path of a directory");
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(directory, error);
    if (error)
      fail(Code::not_found, "\"files\": there is no directory ", directory,
           " on this host: ", error.message());
    if (!std::filesystem::is_directory(path, error))
      fail(Code::failed_precondition, "\"files\": ", directory, " is not a directory");
    resolved.push_back(path.string());
  }
  directories_ = std::make_shared<const std::vector<std::string>>(std::move(resolved));
}

std::string FileRoots::to_string() const {
  if (!are_limited()) return "any file that this process may open";
  if (directories_->empty()) return "no files";
  std::string out = "files below ";
  for (const std::string& directory : *directories_)
    out += (&directory == directories_->data() ? "" : ", ") + directory;
  return out;
}

const std::string* FileRoots::root_of(const std::string& resolved) const {
  for (const std::string& directory : *directories_)
    if (is_below(resolved, directory)) return &directory;
  return nullptr;
}

// Whether who gives a path may learn that there is such a directory: it is one of ours, or on the
// way to it, or to where we are.
bool FileRoots::is_known(const std::string& directory) const {
  return root_of(directory) != nullptr || is_below(working_directory(), directory) ||
         std::any_of(directories_->begin(), directories_->end(),
                     [&](const std::string& root) { return is_below(root, directory); });
}

void FileRoots::refuse(const std::string& path) const {
  fail(Code::permission_denied, "'", path,
       "' is not among the files that this task may reach: ", to_string(),
       " (\"files\" in the cluster's description, or --files)");
}

std::string FileRoots::resolve(const std::string& path, Last last) const {
  if (!are_limited()) return path;
  check(path.find('\0') == path.npos, "the name of a file has a byte of 0: '", path, "'");
  std::string current = path.starts_with('/') ? "/" : working_directory();
  std::deque<Part> parts;
  push_parts(path, true, parts);
  bool is_missing = false;
  int links = 0;
  while (!parts.empty()) {
    const Part part = std::move(parts.front());
    parts.pop_front();
    if (part.name == "..") {
      // Else whether it is allowed would tell what there is elsewhere.
      if (part.is_given && (is_missing || !is_known(current))) refuse(path);
      current = parent_of(current);
      continue;
    }
    current = joined(current, part.name);
    if (is_missing || (parts.empty() && last == Last::itself)) continue;
    struct stat status {};
    if (::lstat(current.c_str(), &status) != 0) {
      is_missing = true;
    } else if (S_ISLNK(status.st_mode)) {
      const std::string target = link_at(current);
      if (target.empty() || ++links > most_links) refuse(path);
      current = target.starts_with('/') ? "/" : parent_of(current);
      push_parts(target, false, parts);
    }
  }
  if (root_of(current) == nullptr) refuse(path);
  return current;
}

FileRoots::Place FileRoots::find(const std::string& path, Last last) const {
  Place out;
  out.directory = AT_FDCWD;
  out.name = path;
  if (!are_limited()) return out;
  const std::string resolved = resolve(path, last);
  const std::string& root = *root_of(resolved);
  constexpr int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  out.directory = ::open(root.c_str(), flags);
  out.is_owned = true;
  out.error = out.directory < 0 ? errno : 0;
  out.name = ".";
  std::deque<Part> parts;
  push_parts(resolved.substr(root == "/" ? 0 : root.size()), false, parts);
  for (; !parts.empty() && out.error == 0; parts.pop_front()) {
    out.name = parts.front().name;
    if (parts.size() == 1) break;
    const int next = ::openat(out.directory, out.name.c_str(), flags);
    out.error = next < 0 ? errno : 0;
    ::close(out.directory);
    out.directory = next;
  }
  return out;
}

FileRoots::Place::~Place() {
  if (is_owned && directory >= 0) ::close(directory);
}

FileRoots::Place::Place(Place&& other) noexcept
    : directory(other.directory),
      name(std::move(other.name)),
      is_owned(std::exchange(other.is_owned, false)),
      error(other.error) {}

}  // namespace leat
