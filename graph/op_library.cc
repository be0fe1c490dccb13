#include "graph/op_library.h"

#include <dlfcn.h>

#include <set>

#include "core/error.h"
#include "graph/op_def.h"

namespace leat {

std::vector<std::string> load_op_library(const std::string& path) {
  std::set<const OpDef*> before;
  for (const OpDef* op : all_ops()) before.insert(op);
  // A name without a slash would be looked for in the system's folders.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  const bool was_loaded = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr;
  if (!was_loaded && dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr)
    fail(Code::not_found, "the op library cannot be loaded: ", dlerror());
  std::vector<std::string> added;
  for (const OpDef* op : all_ops()) {
    if (!before.contains(op)) added.push_back(op->name);
  }
  check(was_loaded || !added.empty(), path,
        " is not an op library: it registers no op (const Op op{{…}}; of <leat/custom_op.h>)");
  return added;
}

}  // namespace leat
