// Work that a device repeats: recorded once, then enqueued by one call (CUDA graphs).
#pragma once

#include <memory>
#include <string>

#include "core/error.h"

namespace leat {

// What a kernel throws while its work is recorded, if that must not be: it is called at every run,
// between what is recorded.
class NotRecordable : public Error {
 public:
  explicit NotRecordable(const std::string& why) : Error(Code::unimplemented, why) {}
};

// Runs on the device's stream, in order with what is enqueued there. May be destroyed while it
// runs.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  // Enqueues it once more.
  virtual void run() = 0;
};

// While one lives, what its thread enqueues on the device is recorded and does not run. What other
// threads enqueue runs as usual. Without end() nothing was recorded.
class WorkRecording {
 public:
  virtual ~WorkRecording() = default;
  // Throws if something cannot be repeated: it waited, allocated or copied to the host.
  virtual std::unique_ptr<RecordedWork> end() = 0;
};

// What a device that can record is, too: dynamic_cast<HasWorkRecorder*>(&device).
class HasWorkRecorder {
 public:
  virtual ~HasWorkRecorder() = default;
  // Null if the user wants none.
  virtual std::unique_ptr<WorkRecording> start_recording() = 0;
};

}  // namespace leat
