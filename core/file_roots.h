// Which files kernels may reach: any, or those below some directories. It belongs to a device, so
// that each task of a process has its own. A path is taken apart link by link, and what it then is
// is opened step by step from the directory above it, which follows no links: a link that is put
// there meanwhile leads nowhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device.h"

namespace leat {

class FileRoots {
 public:
  constexpr FileRoots() noexcept {}  // any file
  // Those below the directories, or none. INVALID_ARGUMENT names the one that is no absolute path;
  // NOT_FOUND, or FAILED_PRECONDITION, the one that is no directory here.
  explicit FileRoots(const std::vector<std::string>& directories);

  bool are_limited() const { return directories_ != nullptr; }
  // "any file that this process may open", "files below /data, /models".
  std::string to_string() const;

  // What the last part of a path is, if it is a symbolic link: what that leads to, or itself.
  enum class Last { followed, itself };
  // The path without symbolic links; of what does not exist, the place where it would be.
  // PERMISSION_DENIED, with the path and the directories, if it lies outside of them, whether it
  // exists or not. With any file allowed: the path as it is.
  std::string resolve(const std::string& path, Last last = Last::followed) const;

  // Of a resolved path.
  bool contains(const std::string& resolved) const {
    return !are_limited() || root_of(resolved) != nullptr;
  }

  // A file as openat() and its kin take it. They must not follow `name` if it is a link.
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
  const std::string* root_of(const std::string& resolved) const;  // null: it is outside
  bool is_known(const std::string& directory) const;
  [[noreturn]] void refuse(const std::string& path) const;

  std::shared_ptr<const std::vector<std::string>> directories_;  // without links; null: any file
};

inline constinit const FileRoots any_file;

// The CPU of this process as device `name`, whose kernels reach those files. The pool must outlive
// it.
std::unique_ptr<Device> make_cpu_device(const DeviceName& name, ThreadPool& pool, FileRoots files);
// Which files the kernels of a CPU may reach.
const FileRoots& files_of(const Device& device);

}  // namespace leat
