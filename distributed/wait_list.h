// What a master waits for besides its steps: tasks that have not answered, and graphs that workers
// compile. For `leat top`.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/step_activity.h"

namespace leat {

// Thread-safe. Shared by all waiters; a handle may outlive it.
class WaitList {
 public:
  using Describe = std::function<std::vector<StepActivity>()>;

  // Listed while the handle lives. `describe` is called on any thread, perhaps once more just after
  // that, so it must hold what it uses weakly.
  [[nodiscard]] std::shared_ptr<const void> add(Describe describe);
  std::vector<StepActivity> now() const;

 private:
  struct Table {
    std::mutex mutex;
    std::map<const void*, Describe> entries;
  };
  const std::shared_ptr<Table> table_ = std::make_shared<Table>();
};

}  // namespace leat
