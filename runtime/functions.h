// Functions that kernels call (core/function.h), compiled: each is a RegisteredGraph on a CPU
// device of its own, whose loops run on the thread that calls.
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

// Those of one program, each compiled once; but one with state of its own, such as random numbers,
// anew for each who asks. Thread-safe.
class Functions {
 public:
  // `containers` and `pool` outlive the functions; `device` is what errors call their device, and
  // whose files they reach. The pool goes on with calls that had to wait, and may be the last that
  // knows a function.
  Functions(Containers& containers, const Device& device, ThreadPool& pool);

  // Throws what the passes, and the planning of the function's graph, throw.
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
