// The files that kernels may reach: any, or those below given directories. The rule belongs to a
// device, so each task of a process has its own. A path is resolved link by link. The result is
// then opened step by step from the allowed directory, following no links, so a link that is
// planted meanwhile leads nowhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device.h"

namespace leat {

class FileRoots {
 public:
  constexpr FileRoots() noexcept {}  // any file
  // Files below the directories; none if the list is empty. INVALID_ARGUMENT names a path that is
  // not absolute; NOT_FOUND or FAILED_PRECONDITION names one that is not a directory here.
  explicit FileRoots(const std::vector<std::string>& directories);

  bool are_limited() const { return directories_ != nullptr; }
  // "any file that this process may open", "files below /data, /models".
  std::string to_string() const;

  // If the last part of a path is a symbolic link: resolve to its target, or to the link itself.
  enum class Last { followed, itself };
  // The path without symbolic links; for a missing file, the place where it would be.
  // PERMISSION_DENIED, with the path and the directories, if the result lies outside them, whether
  // it exists or not. If any file is allowed, returns the path unchanged.
  std::string resolve(const std::string& path, Last last = Last::followed) const;

  // Takes a resolved path.
  bool contains(const std::string& resolved) const {
    return !are_limited() || root_of(resolved) != nullptr;
  }

  // A file in the form that openat() and its kin take. Do not follow `name` if it is a link.
  struct Place {
    Place() = default;
    ~Place();
    Place(Place&& other) noexcept;
    Place& operator=(Place&&) = delete;

    int directory;
    std::string name;
    bool is_owned = false;  // the descriptor
    int error = 0;          // errno, if the directory cannot be opened
  };
  Place find(const std::string& path, Last last = Last::followed) const;

 private:
  const std::string* root_of(const std::string& resolved) const;  // null: outside
  bool is_known(const std::string& directory) const;
  [[noreturn]] void refuse(const std::string& path) const;

  std::shared_ptr<const std::vector<std::string>> directories_;  // resolved; null: any file
};

inline constinit const FileRoots any_file;

// The CPU of this process as device `name`, whose kernels reach only `files`. The pool must outlive
// it.
std::unique_ptr<Device> make_cpu_device(const DeviceName& name, ThreadPool& pool, FileRoots files);
// The files that the kernels of a CPU may reach.
const FileRoots& files_of(const Device& device);

}  // namespace leat
