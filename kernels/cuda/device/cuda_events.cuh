// What a device uses events for: to call back, to tell the time, to order its streams.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/device.h"
#include "core/execution/work_clock.h"
#include "kernels/cuda/device/cuda_device.cuh"

namespace leat::cuda {

// Calls back, in order, when events have happened. A thread of its own, because CUDA forbids calls
// into CUDA from its own callbacks and compute threads must not wait.
class CompletionThread {
 public:
  explicit CompletionThread(int ordinal) : ordinal_(ordinal), thread_([this] { run(); }) {}
  ~CompletionThread() {
    stop();
    for (cudaEvent_t event : unused_) (void)cudaEventDestroy(event);
  }

  // Has called back for all that was enqueued, and does not call any more.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // Calls back after all work that is on `stream` now.
  void call_after(cudaStream_t stream, Device::Done done) {
    cudaEvent_t event = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (!unused_.empty()) {
        event = unused_.back();
        unused_.pop_back();
      }
    }
    if (event == nullptr) {
      check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
                 "cudaEventCreate");
    }
    if (const cudaError_t error = cudaEventRecord(event, stream); error != cudaSuccess) {
      {
        const std::lock_guard lock(mutex_);
        unused_.push_back(event);
      }
      check_cuda(error, "cudaEventRecord");
    }
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back({event, std::move(done)});
    }
    changed_.notify_all();
  }

 private:
  struct Waiting {
    cudaEvent_t event;
    Device::Done done;
  };

  void run() {
    (void)cudaSetDevice(ordinal_);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      const cudaError_t error = cudaEventSynchronize(next.event);
      Status status;
      if (error != cudaSuccess) {
        status = {Code::internal, explain(ordinal_,
                                          concat("GPU:", ordinal_, ": ", error_text(error),
                                                 ", in work that was enqueued before"),
                                          error)};
      }
      next.done(status);
      next.done = nullptr;
      lock.lock();
      unused_.push_back(next.event);
    }
  }

  const int ordinal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::vector<cudaEvent_t> unused_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

// Marks are events. Before the first the stream is idle, so that one comes when it is enqueued.
class EventClock : public WorkClock {
 public:
  EventClock(int ordinal, cudaStream_t stream) : ordinal_(ordinal), stream_(stream) {
    check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
    check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    start_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    mark();
  }
  ~EventClock() override {
    for (cudaEvent_t event : events_) (void)cudaEventDestroy(event);
  }
  void mark() override {
    check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventBlockingSync), "cudaEventCreate");
    events_.push_back(event);
    check_cuda(cudaEventRecord(event, stream_), "cudaEventRecord");
  }
  std::vector<int64_t> times_ns() override {
    check_cuda(cudaEventSynchronize(events_.back()), "cudaEventSynchronize");
    std::vector<int64_t> out;
    for (size_t i = 1; i < events_.size(); ++i) {
      float milliseconds = 0;
      check_cuda(cudaEventElapsedTime(&milliseconds, events_[0], events_[i]),
                 "cudaEventElapsedTime");
      out.push_back(start_ns_ + static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6));
    }
    return out;
  }

 private:
  const int ordinal_;
  const cudaStream_t stream_;
  int64_t start_ns_ = 0;
  std::vector<cudaEvent_t> events_;  // the first: the start
};

// An event that is recorded again and again. Who waits for it waits for what was recorded last.
class StreamEvent {
 public:
  explicit StreamEvent(int ordinal) : ordinal_(ordinal) {
    check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~StreamEvent() { (void)cudaEventDestroy(event_); }
  StreamEvent(const StreamEvent&) = delete;
  void record(cudaStream_t stream) {
    check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
    check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  void hold(cudaStream_t stream) const {
    check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
    check_cuda(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }

 private:
  const int ordinal_;
  cudaEvent_t event_ = nullptr;
};

// An event that is forgotten once it has been recorded and waited for.
class PassingEvent {
 public:
  // The present device's.
  PassingEvent() {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~PassingEvent() { (void)cudaEventDestroy(event_); }  // after it has happened
  PassingEvent(const PassingEvent&) = delete;
  void record(cudaStream_t stream) {
    check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  void hold(cudaStream_t stream) {
    check_cuda(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace leat::cuda
