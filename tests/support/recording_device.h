// A GPU for tests on machines without one: memory that the host cannot touch, work that runs later,
// in order, on its own thread, and a record of all requests.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "core/device.h"

namespace leat {

// The stream that test kernels enqueue on.
class RecordingStream : public Stream {
 public:
  RecordingStream();
  ~RecordingStream() override;  // runs the enqueued work

  void enqueue(std::function<void()> work);
  // While held, no enqueued work runs: the host gets ahead of the device.
  void hold();
  void resume();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool is_held_ = false, is_stopping_ = false;
  std::thread thread_;
};

// Reads and writes of its addresses fault; view() is the same memory, accessible to test kernels.
class RecordingDevice : public Device {
 public:
  explicit RecordingDevice(const DeviceName& name);
  ~RecordingDevice() override;

  int64_t memory_limit() const override { return static_cast<int64_t>(size); }
  std::shared_ptr<Buffer> allocate(size_t bytes) override;
  Stream& stream() override { return stream_; }
  void copy_from_host(const void* host, void* device, size_t bytes, Done done) override;
  void copy_to_host(const void* device, void* host, size_t bytes, Done done) override;
  void copy_within(const void* from, void* to, size_t bytes) override;
  void when_finished(Done done) override;

  RecordingStream& recording_stream() { return stream_; }
  void* view(const void* device) const;

  struct Record {
    int allocations = 0, from_host = 0, to_host = 0, within = 0;
    size_t bytes_from_host = 0, bytes_to_host = 0;
  };
  Record record() const;
  void clear_record();
  // The next copy to the host, or the next when_finished(), fails with this status.
  void fail_next(Status status);
  // While it is sick when_finished() throws, like a GPU that accepts no more work after a fault.
  void make_sick(bool is_sick = true) { is_sick_ = is_sick; }

 private:
  static constexpr size_t size = size_t{16} << 20;

  Status next_status();

  char* device_ = nullptr;  // no access
  char* view_ = nullptr;    // the same pages
  mutable std::mutex mutex_;
  std::map<size_t, std::vector<size_t>> free_;  // by size: offsets, reused in stream order
  size_t used_ = 0;
  Record record_;
  Status failure_;
  std::atomic<bool> is_sick_{false};
  RecordingStream stream_;
};

}  // namespace leat
