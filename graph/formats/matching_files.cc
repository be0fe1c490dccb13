// matching_files() of file.h.
#include <fnmatch.h>

#include "core/error.h"
#include "graph/formats/file.h"

namespace leat {
namespace {

struct Search {
  const std::vector<std::string> parts;
  const FileRoots& roots;
  std::vector<std::string> found;

  bool is_wild(size_t part) const {
    return parts[part].find_first_of("*?[\\") != std::string::npos;
  }
  // What leads out of the roots is not there.
  bool is_directory(const std::string& path) const {
    try {
      const std::optional<FileStatus> status = file_status(path, roots);
      return status && status->is_directory;
    } catch (const Error&) {
      return false;
    }
  }
  std::vector<std::string> names(const std::string& directory) const {
    try {
      return names_in(directory.empty() ? "." : directory, roots);
    } catch (const Error&) {
      return {};
    }
  }

  void look(const std::string& directory, size_t part) {
    if (!is_wild(part)) return visit(directory + parts[part], part);
    for (const std::string& name : names(directory))
      if (::fnmatch(parts[part].c_str(), name.c_str(), 0) == 0) visit(directory + name, part);
  }
  void visit(const std::string& path, size_t part) {
    if (part + 1 < parts.size()) {
      if (is_directory(path)) look(path + "/", part + 1);
    } else if (is_wild(part) || is_there(path)) {
      found.push_back(path);
    }
  }
  bool is_there(const std::string& path) const {
    try {
      return is_name_there(path, roots);
    } catch (const Error&) {
      return false;
    }
  }
};

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) out.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace

std::vector<std::string> matching_files(const std::string& pattern, const FileRoots& roots) {
  const std::string path = local_path(pattern);
  Search search{parts_of(path), roots, {}};
  if (search.parts.empty()) return {};
  // What is before the first wildcard is not searched: of it only the end need be below the roots.
  std::string fixed = path[0] == '/' ? "/" : "";
  size_t part = 0;
  for (; part + 1 < search.parts.size() && !search.is_wild(part); ++part)
    fixed += search.parts[part] + "/";
  roots.resolve(search.is_wild(part) ? (fixed.empty() ? "." : fixed) : fixed + search.parts[part]);
  search.look(fixed, part);
  return std::move(search.found);
}

}  // namespace leat
