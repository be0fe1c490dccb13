#include "distributed/grpc/stream_core.h"

#include <algorithm>
#include <exception>

#include "distributed/grpc/convert.h"

namespace leat::transport {
namespace {

using Clock = std::chrono::steady_clock;

// The most that one message gathers from the queue. More would only delay its first byte.
constexpr size_t most_bytes = size_t{1} << 20;
constexpr size_t least_bytes = size_t{16} << 10;
constexpr size_t batch_slices = 512;
// Of the messages whose rate counts together. Small ones take what a call takes.
constexpr size_t measured_bytes = size_t{4} << 20;
constexpr std::chrono::nanoseconds longest_message = std::chrono::milliseconds(500);

}  // namespace

void MessageSize::written(size_t bytes, std::chrono::nanoseconds took) {
  if (bytes < least_bytes) return;
  measured_ += bytes;
  took_ += took;
  if (measured_ < measured_bytes && took_ < longest_message) return;
  const double fitting = static_cast<double>(measured_) *
                         static_cast<double>(longest_message.count()) /
                         static_cast<double>(std::max<int64_t>(took_.count(), 1));
  const size_t most = std::min(2 * bytes_, most_bytes);
  bytes_ = fitting >= static_cast<double>(most)
               ? most
               : std::max(static_cast<size_t>(fitting), least_bytes);
  measured_ = 0;
  took_ = {};
}

void StreamCore::start(RpcStream::Events events) {
  {
    std::unique_lock lock(mutex_);
    if (has_events_) return;
    has_events_ = true;
    if (is_done_) {  // it ended before anyone listened
      const RpcStatus status = status_;
      lock.unlock();
      if (events.on_end) events.on_end(status);
      return;
    }
    events_ = std::move(events);
    handed_over(this);
    begin_reading();
  }
}

// With the lock held, so that a server does not finish, and gRPC let go of the call, between the
// test and the read.
void StreamCore::begin_reading() {
  if (is_reading_ || is_finished_) return;
  is_reading_ = true;
  begin_read(&incoming_);
}

void StreamCore::write(Slices slices) {
  Write write;
  for (const ByteSlice& slice : slices) write.bytes += slice.size;
  append(std::move(slices), write.slices);
  {
    std::lock_guard lock(mutex_);
    if (is_closing_ || is_broken_ || has_read_all_ || is_finished_) return;
    queued_bytes_ += write.bytes;
    queue_.push_back(std::move(write));
  }
  pump();
}

size_t StreamCore::queued_bytes() const {
  std::lock_guard lock(mutex_);
  return queued_bytes_;
}

size_t StreamCore::message_bytes() const {
  std::lock_guard lock(mutex_);
  return message_size_.bytes();
}

void StreamCore::close() {
  {
    std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  pump();
}

void StreamCore::cancel() {
  std::deque<Write> dropped;
  {
    std::lock_guard lock(mutex_);
    if (is_done_ || is_cancelled_) return;
    is_cancelled_ = true;
    is_broken_ = true;
    dropped.swap(queue_);
    queued_bytes_ = outgoing_bytes_;
    try_cancel();
    begin_reading();  // the end is seen by reading
  }
  pump();
}

void StreamCore::abandon() {
  {
    std::lock_guard lock(mutex_);
    if (is_done_) return;
    if (is_closing_) return begin_reading();
  }
  cancel();
}

// Does the next thing that can be done, if nothing is under way.
void StreamCore::pump() {
  enum { nothing, write, half_close, end } next = nothing;
  {
    std::lock_guard lock(mutex_);
    if (is_writing_ || is_finished_) return;
    const bool may_write = !is_broken_ && !has_read_all_;
    if (may_write && !queue_.empty()) {
      next = write;
      std::vector<grpc::Slice> slices;
      outgoing_bytes_ = 0;
      do {
        Write& first = queue_.front();
        outgoing_bytes_ += first.bytes;
        if (slices.empty()) {
          slices = std::move(first.slices);
        } else {
          for (grpc::Slice& slice : first.slices) slices.push_back(std::move(slice));
        }
        queue_.pop_front();
      } while (!queue_.empty() && outgoing_bytes_ + queue_.front().bytes <= message_size_.bytes() &&
               slices.size() + queue_.front().slices.size() <= batch_slices);
      outgoing_ = grpc::ByteBuffer(slices.data(), slices.size());
      is_writing_ = true;
      outgoing_since_ = Clock::now();
    } else if (may_write && is_closing_ && !is_half_closed_) {
      next = half_close;
      is_half_closed_ = true;
      is_writing_ = true;
    } else if (has_read_all_) {
      next = end;
      is_finished_ = true;
    }
  }
  switch (next) {
    case write:
      begin_write(&outgoing_);
      break;
    case half_close:
      if (!begin_half_close()) {
        // A server ends both directions at once.
        {
          std::lock_guard lock(mutex_);
          is_writing_ = false;
          is_finished_ = true;
        }
        finish();
      }
      break;
    case end:
      finish();
      break;
    case nothing:
      break;
  }
}

void StreamCore::write_done(bool ok) {
  std::deque<Write> dropped;
  bool is_heard;
  {
    std::lock_guard lock(mutex_);
    is_writing_ = false;
    outgoing_.Clear();
    queued_bytes_ -= outgoing_bytes_;
    if (ok) message_size_.written(outgoing_bytes_, Clock::now() - outgoing_since_);
    outgoing_bytes_ = 0;
    if (!ok) {
      is_broken_ = true;
      dropped.swap(queue_);
      queued_bytes_ = 0;
    }
    is_heard = ok && has_events_ && !is_cancelled_;
  }
  pump();
  if (is_heard && events_.on_written) {
    taken_over(this);
    events_.on_written();
  }
}

void StreamCore::read_done(bool ok) {
  taken_over(this);
  if (!ok) {
    std::deque<Write> dropped;
    {
      std::lock_guard lock(mutex_);
      has_read_all_ = true;
      dropped.swap(queue_);
      queued_bytes_ = outgoing_bytes_;
    }
    pump();
    return;
  }
  bool is_heard;
  {
    std::lock_guard lock(mutex_);
    is_heard = has_events_ && !is_cancelled_;  // events_ stay as they are until done()
  }
  if (is_heard && events_.on_message) {
    try {
      events_.on_message(to_bytes(incoming_));
    } catch (const std::exception&) {
      cancel();  // on_end follows
    }
  }
  incoming_.Clear();
  begin_read(&incoming_);
}

void StreamCore::done(RpcStatus status) {
  taken_over(this);
  RpcStream::Events events;
  {
    std::lock_guard lock(mutex_);
    is_done_ = true;
    if (is_cancelled_)
      status = {static_cast<int>(grpc::StatusCode::CANCELLED), "the stream was cancelled here", {}};
    status_ = status;
    events = std::move(events_);
    events_ = {};
  }
  if (events.on_end) events.on_end(status);
}

}  // namespace leat::transport
