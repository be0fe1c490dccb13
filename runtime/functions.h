// Functions that kernels call (core/function.h), compiled. Each is a RegisteredGraph on its own CPU
// device, whose loops run on the calling thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/device_name.h"
#include "core/file_roots.h"
#include "core/function.h"

namespace leat {

class Containers;
class ThreadPool;

// The functions of one program, each compiled once. A function with its own state, such as random
// numbers, is compiled anew for each request. Thread-safe.
class Functions {
 public:
  // `containers` and `pool` outlive the functions. Errors name `device`, and functions reach its
  // files. The pool resumes calls that had to wait, and may hold the last handle on a function.
  Functions(Containers& containers, const Device& device, ThreadPool& pool);

  // Throws the errors of the passes, and of planning the function's graph.
  std::shared_ptr<const CallableFunction> compiled(const WrittenFunction& function);

 private:
  struct Entry {
    WrittenFunction written;
    std::shared_ptr<const CallableFunction> function;
  };
  Containers& containers_;
  const DeviceName device_;
  const FileRoots files_;
  ThreadPool& pool_;
  std::mutex mutex_;
  std::map<std::string, Entry> functions_;  // by name
};

}  // namespace leat
