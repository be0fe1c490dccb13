#include "graph/op_library.h"

#include <dlfcn.h>

#include <set>

#include "core/error.h"
#include "graph/op_def.h"

namespace leat {

std::vector<std::string> load_op_library(const std::string& path) {
  std::set<const OpDef*> before;
  for (const OpDef* op : all_ops()) before.insert(op);
  // The loader looks for a name without a slash in the system's folders.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  if (dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr) return {};
  const Registrations registrations;
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(Code::not_found, "the op library cannot be loaded: ", dlerror());
  if (registrations.count() == 0) dlclose(library);  // nothing refers to it, and a retry fails, too
  check(registrations.first_error().is_ok(), path, ": ", registrations.first_error().message);
  check(registrations.count() > 0, path,
        " is not an op library: it registers no op (const Op op{{…}}; of <leat/custom_op.h>)");
  std::vector<std::string> added;
  for (const OpDef* op : all_ops()) {
    if (!before.contains(op)) added.push_back(op->name);
  }
  return added;
}

}  // namespace leat
