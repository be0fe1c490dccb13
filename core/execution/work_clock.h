// When work really runs on a device that a host only enqueues work for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace leat {

// Marks points in the work of a device's stream. For one thread.
class WorkClock {
 public:
  virtual ~WorkClock() = default;
  // Behind all that was enqueued so far.
  virtual void mark() = 0;
  // When the work came to each mark, in ns since the epoch. Waits for the last.
  virtual std::vector<int64_t> times_ns() = 0;
};

// What a device with a clock of its own is, too: dynamic_cast<HasWorkClock*>(&device).
class HasWorkClock {
 public:
  virtual ~HasWorkClock() = default;
  // Waits until the device has done what was enqueued before, so that marks tell when the work that
  // follows runs, not when it was enqueued.
  virtual std::unique_ptr<WorkClock> start_clock() = 0;
};

}  // namespace leat
