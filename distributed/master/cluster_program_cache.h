// What a session has compiled: a cluster program per signature, built once however many steps
// ask for it, the least recently used ones dropped.
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

// Thread-safe; calls nobody with its lock held.
class ClusterProgramCache {
 public:
  using Program = std::shared_ptr<const ClusterProgram>;
  using Ready = std::function<void(const Status&, const Program&)>;

  explicit ClusterProgramCache(size_t limit) : limit_(limit) {}

  // Calls `ready` with the signature's program: at once if it is there, else when built() has been
  // called for it. Returns true to the first one who asks: build it. (A normalised signature.)
  bool get(const StepSignature& signature, Ready ready);
  // Ends a build. A failed one is not remembered: the next get() tries again.
  void built(const StepSignature& signature, const Status& status, const Program& program);
  // Drops the programs that have a part on one of these tasks.
  void forget(const std::vector<TaskName>& tasks);
  // Drops those that no step runs and that nobody has asked for since `limit`. The next get()
  // builds anew.
  void forget_unused(std::chrono::nanoseconds limit);
  // Drops all that are built.
  void forget_all();
  // Drops all, and what is built later. Those who wait for a build, and all who ask from now on,
  // are called with CANCELLED.
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
  std::list<StepSignature> recently_used_;  // first: the last one used
  bool is_closed_ = false;
};

}  // namespace leat
