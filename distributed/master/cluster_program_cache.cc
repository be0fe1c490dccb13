#include "distributed/master/cluster_program_cache.h"

#include <algorithm>

namespace leat {
namespace {

const Status closed{Code::cancelled, "the session was closed before the step's program was built"};

}  // namespace

bool ClusterProgramCache::get(const StepSignature& signature, Ready ready) {
  Program program;
  {
    std::unique_lock lock(mutex_);
    if (is_closed_) {
      lock.unlock();
      ready(closed, nullptr);
      return false;
    }
    const auto [found, is_new] = entries_.try_emplace(signature);
    Entry& entry = found->second;
    if (is_new) {
      recently_used_.push_front(signature);
      entry.position = recently_used_.begin();
    } else {
      recently_used_.splice(recently_used_.begin(), recently_used_, entry.position);
    }
    entry.last_used = Clock::now();
    program = entry.program;
    if (program == nullptr) {
      entry.waiting.push_back(std::move(ready));
      return is_new;
    }
  }
  ready({}, program);
  return false;
}

void ClusterProgramCache::built(const StepSignature& signature, const Status& status,
                                const Program& program) {
  std::vector<Ready> waiting;
  std::vector<Program> dropped;  // go after the lock
  {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(signature);
    if (is_closed_ || found == entries_.end()) return;
    waiting.swap(found->second.waiting);
    found->second.program = program;
    if (program == nullptr) erase(found);
    auto oldest = recently_used_.end();
    while (entries_.size() > limit_ && oldest != recently_used_.begin()) {
      const auto entry = entries_.find(*--oldest);
      if (entry->second.program == nullptr || entry->second.program == program) continue;
      ++oldest;  // stays valid
      dropped.push_back(erase(entry));
    }
  }
  for (const Ready& ready : waiting) ready(status, program);
}

// Of those that are built.
template <class Predicate>
void ClusterProgramCache::forget_if(Predicate is_unwanted) {
  std::vector<Program> dropped;  // go after the lock
  std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (entry->second.program != nullptr && is_unwanted(entry->second))
      dropped.push_back(erase(entry));
    entry = next;
  }
}

void ClusterProgramCache::forget(const std::vector<TaskName>& tasks) {
  if (tasks.empty()) return;
  forget_if([&](const Entry& entry) {
    const auto& parts = entry.program->parts;
    return std::any_of(parts.begin(), parts.end(), [&](const auto& part) {
      return std::find(tasks.begin(), tasks.end(), part.task) != tasks.end();
    });
  });
}

void ClusterProgramCache::forget_unused(std::chrono::nanoseconds limit) {
  const Clock::time_point since = Clock::now() - limit;
  forget_if([&](const Entry& entry) {
    return entry.last_used <= since && entry.program.use_count() == 1;  // others are steps'
  });
}

void ClusterProgramCache::forget_all() {
  forget_if([](const Entry&) { return true; });
}

void ClusterProgramCache::close() {
  Entries dropped;
  {
    std::lock_guard lock(mutex_);
    is_closed_ = true;
    entries_.swap(dropped);
    recently_used_.clear();
  }
  for (const auto& [signature, entry] : dropped) {
    for (const Ready& ready : entry.waiting) ready(closed, nullptr);
  }
}

// With the lock held.
ClusterProgramCache::Program ClusterProgramCache::erase(Entries::iterator entry) {
  Program program = std::move(entry->second.program);
  recently_used_.erase(entry->second.position);
  entries_.erase(entry);
  return program;
}

}  // namespace leat
