// A session's compiled programs: one cluster program per signature, built once for all steps that
// ask for it. Evicts the least recently used.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "distributed/master/cluster_program.h"

namespace leat {

// Thread-safe. Makes no calls while it holds its lock.
class ClusterProgramCache {
 public:
  using Program = std::shared_ptr<const ClusterProgram>;
  using Ready = std::function<void(const Status&, const Program&)>;

  explicit ClusterProgramCache(size_t limit) : limit_(limit) {}

  // Calls `ready` with the signature's program: at once if it exists, else after built(). Returns
  // true to the first caller, which must build it. (A normalised signature.)
  bool get(const StepSignature& signature, Ready ready);
  // Ends a build. A failed one is not remembered: the next get() tries again.
  void built(const StepSignature& signature, const Status& status, const Program& program);
  // Drops the programs with a part on one of these tasks.
  void forget(const std::vector<TaskName>& tasks);
  // Drops programs that no step runs and that nobody has asked for during `limit`. The next get()
  // rebuilds them.
  void forget_unused(std::chrono::nanoseconds limit);
  // Drops all built programs.
  void forget_all();
  // Drops all programs, and those built later. All waiting and later callers get CANCELLED.
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Program program;  // null while it is built
    std::vector<Ready> waiting;
    std::list<StepSignature>::iterator position;
    Clock::time_point last_used;
  };
  using Entries = std::map<StepSignature, Entry>;
  Program erase(Entries::iterator entry);
  template <class Predicate>
  void forget_if(Predicate is_unwanted);

  const size_t limit_;
  std::mutex mutex_;
  Entries entries_;
  std::list<StepSignature> recently_used_;  // most recent first
  bool is_closed_ = false;
};

}  // namespace leat
