#include "distributed/wait_list.h"

namespace leat {

std::shared_ptr<const void> WaitList::add(Describe describe) {
  const auto key = std::make_shared<char>();
  {
    std::lock_guard lock(table_->mutex);
    table_->entries.emplace(key.get(), std::move(describe));
  }
  return {key.get(), [key, table = table_](const void*) {
            std::lock_guard lock(table->mutex);
            table->entries.erase(key.get());
          }};
}

std::vector<StepActivity> WaitList::now() const {
  std::vector<Describe> entries;
  {
    std::lock_guard lock(table_->mutex);
    for (const auto& [key, describe] : table_->entries) entries.push_back(describe);
  }
  std::vector<StepActivity> out;
  for (const Describe& describe : entries) {
    for (StepActivity& each : describe()) out.push_back(std::move(each));
  }
  return out;
}

}  // namespace leat
