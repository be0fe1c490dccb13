// A library that is opened at run time, because the plug-in must load where there is none.
#pragma once

#include <dlfcn.h>

#include <string>

namespace leat::cuda {

// Stays open.
class RuntimeLibrary {
 public:
  explicit RuntimeLibrary(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}

  // False if there is no such library, or it lacks the function. F: as the library's header has it.
  template <class F>
  bool find(const std::string& name, F*& function) const {
    if (handle_ == nullptr) return false;
    function = reinterpret_cast<F*>(dlsym(handle_, name.c_str()));
    return function != nullptr;
  }

 private:
  void* const handle_;
};

}  // namespace leat::cuda
