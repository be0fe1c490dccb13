// Work of a device beside its compute stream: what waits for other devices, such as a collective,
// must not hold up work that they may wait for.
#pragma once

#include <memory>

#include "core/device.h"

namespace leat {

// A place in a device's compute stream.
class StreamMark {
 public:
  virtual ~StreamMark() = default;
  // To the present end: after all that is on the compute stream now.
  virtual void set() = 0;
};

// For one thread at a time.
class SideStream {
 public:
  virtual ~SideStream() = default;
  // Where to enqueue. Begins after all that was on the compute stream at the last call of follow();
  // the compute stream does not wait for it.
  virtual Stream& stream() = 0;
  virtual void follow() = 0;
  // Begins where the mark was set last. What follows writes to the memory `written`, which was
  // allocated since for MemoryUse::copy, and whose former users may be behind the mark: it begins
  // after them, too.
  virtual void follow(const StreamMark& mark, const void* written) = 0;
  // Calls `done` when all work enqueued on stream() so far has run. Until then its memory must not
  // be given back, for the device would hand it out to its compute stream.
  virtual void when_finished(Device::Done done) = 0;
};

// What the context of a collective is, too: dynamic_cast<HasMarks&>(context).
class HasMarks {
 public:
  virtual ~HasMarks() = default;
  // Where the compute stream has computed that input; null: not known, so at its present end.
  virtual std::shared_ptr<const StreamMark> mark(int input) const = 0;
};

// What a device with such streams is, too: dynamic_cast<HasSideStreams*>(&device).
class HasSideStreams {
 public:
  virtual ~HasSideStreams() = default;
  // Goes back to the device with the last copy of the handle.
  virtual std::shared_ptr<SideStream> take_side_stream() = 0;
  virtual std::shared_ptr<StreamMark> make_mark() = 0;
};

}  // namespace leat
