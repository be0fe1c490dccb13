// Functions that kernels call (core/function.h), compiled: each is a RegisteredGraph on a CPU
// device of its own, which computes on the thread that calls.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/device_name.h"
#include "core/function.h"

namespace leat {

class Containers;

// Those of one program, each compiled once; but one with state of its own, such as random numbers,
// anew for each who asks. Thread-safe.
class Functions {
 public:
  // `containers` outlive the functions; `device` is what errors call their device.
  Functions(Containers& containers, DeviceName device);

  // Throws what the passes, and the planning of the function's graph, throw.
  std::shared_ptr<const Function> compiled(const WrittenFunction& function);

 private:
  struct Entry {
    WrittenFunction written;
    std::shared_ptr<const Function> function;
  };
  Containers& containers_;
  const DeviceName device_;
  std::mutex mutex_;
  std::map<std::string, Entry> functions_;  // by name
};

}  // namespace leat
