// Streams: queues of work, each with a thread of its own, so that the host gets ahead of it as it
// does of a GPU. What several files of the runtime share.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cuda/include/cuda_runtime.h"

namespace cuda_on_host {

using Work = std::function<void()>;

// What control.h counts.
struct Counts {
  std::atomic<int64_t> enqueued{0}, graphs{0}, recorded{0}, allocations{0}, waits{0}, from_host{0},
      to_host{0}, between_devices{0}, from_host_beside_work{0}, collectives{0};
};
Counts& counts();

// ---- Errors (errors.cc)

// Remembers an error for cudaGetLastError(), and what caused it for cudaGetErrorString().
cudaError_t report(cudaError_t error, std::string why = "");
// A fault of a kernel: the device returns it from now on, from every call.
void fault(cudaError_t error, std::string why);
cudaError_t sticky_error();
// ---- Devices (errors.cc): how many there are, and this thread's
void set_devices(int count);
int present_device();

// ---- Memory (memory.cc)

enum class Memory { pageable, pinned, device };
// What the `bytes` at an address are; pageable if they are not all within one block.
Memory kind_of(const void* address, size_t bytes);
// Of which device; -1: of none.
int device_of(const void* address);

// ---- Captures (capture.cc)

struct Capture;
// Where a stream records instead of running, if it does.
struct CaptureOfStream {
  std::shared_ptr<Capture> capture;
  uint64_t recorded = 0;  // works so far
  uint64_t joined = 0;    // of these, the origin waits for so many
};
// Fails, and ends a capture, if this thread may not allocate, wait or read now.
cudaError_t forbid_in_capture(const char* call);
// The same for what waits for one stream.
cudaError_t forbid_if_capturing(cudaStream_t stream, const char* call);
// Adds work to the capture of this stream, if there is one.
bool capture_work(cudaStream_t stream, const Work& work);

void wait_for_all_streams();
bool has_work_beside(cudaStream_t stream);
// The calling thread runs a stream: CUDA must not be called from there.
bool is_stream_thread();

// A point in a stream that an event stands for.
struct Moment {
  std::mutex mutex;
  std::condition_variable changed;
  bool has_happened = false;
  std::chrono::steady_clock::time_point time;

  void happen();
  void wait();
};

cudaStream_t stream_or_default(cudaStream_t stream);

}  // namespace cuda_on_host

struct CUstream_st {
  explicit CUstream_st(int device);
  ~CUstream_st();  // runs what is enqueued
  void push(cuda_on_host::Work work);
  void wait_until_idle();
  bool is_idle();

  const int device;
  cuda_on_host::CaptureOfStream captured;  // guarded by capture.cc's mutex

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<cuda_on_host::Work> queue_;
  bool is_running_ = false, is_stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

struct CUevent_st {
  const int device;
  std::mutex mutex;
  std::shared_ptr<cuda_on_host::Moment> moment;  // null: never recorded
  // recorded in a capture: whose, by which stream, and how much it had recorded
  std::weak_ptr<cuda_on_host::Capture> capture;
  bool is_captured = false;
  cudaStream_t stream = nullptr;
  uint64_t recorded = 0;
};

struct CUgraph_st {
  std::vector<cuda_on_host::Work> works;
};
struct CUgraphExec_st {
  std::vector<cuda_on_host::Work> works;
};
