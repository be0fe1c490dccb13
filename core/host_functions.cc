#include "core/host_functions.h"

#include <mutex>

#include "core/error.h"

namespace leat {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<const HostFunction>> functions;
};

Registry& registry() {
  static auto* const made = new Registry;  // kernels may outlive static objects
  return *made;
}

}  // namespace

int64_t register_host_function(HostFunction function) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.functions.push_back(std::make_shared<const HostFunction>(std::move(function)));
  return static_cast<int64_t>(all.functions.size()) - 1;
}

std::shared_ptr<const HostFunction> host_function(int64_t number) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (number < 0 || number >= static_cast<int64_t>(all.functions.size())) {
    fail(Code::not_found, "this process has no C++ function ", number,
         ": a generator's elements can only be made in the program that made the dataset");
  }
  return all.functions[static_cast<size_t>(number)];
}

}  // namespace leat
