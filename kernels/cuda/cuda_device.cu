// GPUs as devices: one compute stream each, memory kept for reuse, and a thread that waits for the
// stream when a caller requests a notification.
#include "kernels/cuda/cuda_device.cuh"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "core/memory_owner.h"
#include "core/pinned_memory.h"
#include "core/work_clock.h"
#include "kernels/cuda/block_pool.cuh"
#include "kernels/cuda/recording.cuh"

namespace leat {

void* CudaStream::native() const { return cuda::present_stream(*this); }

cudaStream_t cuda_stream(const Stream& stream) {
  const auto& own = static_cast<const CudaStream&>(stream);
  cuda::check_cuda(cudaSetDevice(own.ordinal()), "cudaSetDevice");
  return cuda::present_stream(own);
}

namespace {

std::string error_text(cudaError_t error) {
  return concat(cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
}

// After one of these every call fails, until the process ends (CUDA Runtime API, cudaError_t).
bool ends_use(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
      return true;
    default:
      return false;
  }
}

// What to say of a failed call. If an earlier one ended the use of the GPU, that is the cause.
std::string explain(int ordinal, const std::string& failure, cudaError_t error) {
  if (!ends_use(error)) return failure;
  static std::mutex mutex;
  static std::map<int, std::pair<cudaError_t, std::string>> first;  // by ordinal
  const std::lock_guard lock(mutex);
  auto& [known, cause] = first[ordinal];
  const bool is_first = known != error;  // the error stays the same
  if (is_first) std::tie(known, cause) = std::pair(error, failure);
  return concat(is_first ? "" : concat("GPU:", ordinal, " is lost since: "), cause,
                "; CUDA cannot use GPU:", ordinal, " again in this process: restart the task");
}

}  // namespace

void cuda::check_cuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // else the thread's next launch would report it again
  const Code code = error == cudaErrorMemoryAllocation ? Code::resource_exhausted : Code::internal;
  int ordinal = 0;
  (void)cudaGetDevice(&ordinal);
  fail(code, explain(ordinal, concat("CUDA: ", what, " failed: ", error_text(error)), error));
}

namespace {

using cuda::BlockPool;
using cuda::check_cuda;

// Calls back, in order, when events have happened. A thread of its own, because CUDA forbids calls
// into CUDA from its own callbacks and compute threads must not wait.
class CompletionThread {
 public:
  explicit CompletionThread(int ordinal) : ordinal_(ordinal), thread_([this] { run(); }) {}
  ~CompletionThread() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
    for (cudaEvent_t event : unused_) (void)cudaEventDestroy(event);
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

cudaStream_t make_stream(int ordinal) {
  check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return stream;
}

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

// Whether the user wants graphs: LEAT_CUDA_GRAPHS=0 launches kernels one by one, which shows which
// of them fails.
bool wants_graphs() {
  const char* const text = std::getenv("LEAT_CUDA_GRAPHS");
  return text == nullptr || std::string_view(text) != "0";
}

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

// Lets the present device read the other's memory by itself, where the machine can. Where it
// cannot, CUDA copies through the host.
void allow_access(int ordinal, int peer) {
  static std::mutex mutex;
  static auto* const asked = new std::set<std::pair<int, int>>;
  const std::lock_guard lock(mutex);
  if (!asked->insert({ordinal, peer}).second) return;
  int can = 0;
  if (cudaDeviceCanAccessPeer(&can, ordinal, peer) == cudaSuccess && can != 0)
    (void)cudaDeviceEnablePeerAccess(peer, 0);
  (void)cudaGetLastError();
}

class CudaDevice : public Device,
                   public HasWorkClock,
                   public HasWorkRecorder,
                   public HasPinnedMemory {
 public:
  CudaDevice(const DeviceName& name, int ordinal)
      : Device(name, DeviceType::gpu),
        ordinal_(ordinal),
        stream_(ordinal, make_stream(ordinal)),
        uploads_(ordinal, make_stream(ordinal)),
        memory_(std::make_shared<BlockPool>(
            ordinal, "device", [](void** block, size_t bytes) { return cudaMalloc(block, bytes); },
            cudaFree, stream_.handle())),
        pinned_(std::make_shared<BlockPool>(
            ordinal, "pinned host",
            [](void** block, size_t bytes) { return cudaMallocHost(block, bytes); }, cudaFreeHost)),
        completions_(ordinal) {
    check_cuda(cudaGetDeviceProperties(&properties_, ordinal), "cudaGetDeviceProperties");
  }
  ~CudaDevice() override {
    memory_->end_of_stream();
    (void)cudaStreamSynchronize(stream_.handle());
    (void)cudaStreamSynchronize(uploads_.handle());
  }

  int64_t memory_limit() const override { return static_cast<int64_t>(properties_.totalGlobalMem); }

  std::string problem() const override {
    (void)cudaSetDevice(ordinal_);
    const cudaError_t error = cudaStreamQuery(stream_.handle());
    (void)cudaGetLastError();
    return ends_use(error) ? explain(ordinal_, error_text(error), error) : "";
  }

  // Everything runs in order on one stream, so a block that is given back may be handed out at
  // once, even if work that uses it is still enqueued.
  std::shared_ptr<Buffer> allocate(size_t bytes) override {
    return std::make_shared<Buffer>(
        memory_->take(bytes), bytes, [memory = memory_](void* block) { memory->give_back(block); },
        this);
  }
  Stream& stream() override { return stream_; }
  std::unique_ptr<WorkClock> start_clock() override {
    return std::make_unique<EventClock>(ordinal_, stream_.handle());
  }

  std::unique_ptr<WorkRecording> start_recording() override {
    return wants_graphs() ? cuda::start_recording(stream_) : nullptr;
  }

  std::shared_ptr<Buffer> allocate_pinned(size_t bytes) override {
    return std::make_shared<Buffer>(pinned_->take(bytes), bytes,
                                    [pinned = pinned_](void* block) { pinned->give_back(block); });
  }

  // Through pinned memory: a copy from or to pageable memory would make the calling thread wait.
  void copy_from_host(const void* host, void* device, size_t bytes, Done done) override {
    if (bytes == 0) return when_finished(std::move(done));
    if (pinned_->has(host)) return upload(host, device, bytes, std::move(done));
    const Pinned pinned = take_pinned(bytes);
    std::memcpy(pinned.get(), host, bytes);
    upload(pinned.get(), device, bytes,
           [pinned, done = std::move(done)](const Status& status) { done(status); });
  }
  void copy_to_host(const void* device, void* host, size_t bytes, Done done) override {
    if (bytes == 0) return when_finished(std::move(done));
    if (pinned_->has(host)) {
      copy(device, host, bytes, cudaMemcpyDeviceToHost);
      return when_copied(stream_, std::move(done));
    }
    const Pinned pinned = take_pinned(bytes);
    copy(device, pinned.get(), bytes, cudaMemcpyDeviceToHost);
    when_copied(stream_, [pinned, host, bytes, done = std::move(done)](const Status& status) {
      if (status.is_ok()) std::memcpy(host, pinned.get(), bytes);
      done(status);
    });
  }
  void copy_within(const void* from, void* to, size_t bytes) override {
    if (bytes > 0 && from != to) copy(from, to, bytes, cudaMemcpyDeviceToDevice);
  }
  bool copy_from_peer(Device& peer, const void* from, void* to, size_t bytes) override {
    auto* const other = dynamic_cast<CudaDevice*>(&peer);
    if (other == nullptr) return false;
    if (bytes == 0) return true;
    const cudaStream_t own = stream_.handle(), its = other->stream_.handle();
    check_cuda(cudaSetDevice(other->ordinal_), "cudaSetDevice");
    PassingEvent is_there;
    is_there.record(its);
    check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
    allow_access(ordinal_, other->ordinal_);
    is_there.hold(own);
    check_cuda(cudaMemcpyPeerAsync(to, ordinal_, from, other->ordinal_, bytes, own),
               "cudaMemcpyPeerAsync");
    PassingEvent is_copied;
    is_copied.record(own);
    is_copied.hold(its);
    return true;
  }
  void when_finished(Done done) override {
    check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
    completions_.call_after(stream_.handle(), std::move(done));
  }

 private:
  // Goes back to its pool with the last copy of the handle, whoever throws before.
  using Pinned = std::shared_ptr<void>;
  Pinned take_pinned(size_t bytes) {
    return {pinned_->take(bytes), [this](void* block) { pinned_->give_back(block); }};
  }

  // `done` holds pinned memory that a copy on the stream uses.
  void when_copied(CudaStream& stream, Done done) {
    try {
      check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
      completions_.call_after(stream.handle(), std::move(done));
    } catch (...) {
      (void)cudaStreamSynchronize(stream.handle());  // else others get it while it is copied
      throw;
    }
  }

  // Large copies run beside the work of the step before, if that does not use the memory. To all
  // others it looks as if they were in the order of the compute stream.
  void upload(const void* host, void* device, size_t bytes, Done done) {
    constexpr size_t large = 256 << 10;
    if (bytes < large) {
      copy(host, device, bytes, cudaMemcpyHostToDevice);
      return when_copied(stream_, std::move(done));
    }
    check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
    const cudaStream_t uploads = uploads_.handle();
    if (const cudaEvent_t end_of_use = memory_->end_of_use(device); end_of_use != nullptr) {
      check_cuda(cudaStreamWaitEvent(uploads, end_of_use, 0), "cudaStreamWaitEvent");
    } else {
      PassingEvent now;
      now.record(stream_.handle());
      now.hold(uploads);
    }
    check_cuda(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, uploads),
               "cudaMemcpyAsync");
    PassingEvent is_there;
    is_there.record(uploads);
    is_there.hold(stream_.handle());
    when_copied(uploads_, std::move(done));
  }

  void copy(const void* from, void* to, size_t bytes, cudaMemcpyKind kind) {
    check_cuda(cudaMemcpyAsync(to, from, bytes, kind, cuda_stream(stream_)), "cudaMemcpyAsync");
  }

  const int ordinal_;
  cudaDeviceProp properties_{};
  CudaStream stream_, uploads_;
  std::shared_ptr<BlockPool> memory_;  // shared with the buffers, which may be the last to go
  std::shared_ptr<BlockPool> pinned_;  // this one, too
  CompletionThread completions_;       // last: its callbacks use the others
};

}  // namespace

int cuda_ordinal(Device& device) {
  check_internal(device.type() == DeviceType::gpu, device.name(), " is not a GPU");
  return static_cast<CudaStream&>(device.stream()).ordinal();
}

}  // namespace leat

namespace {

__global__ void probe_kernel() {}

// Why the GPU cannot be used; empty if this build has code for it and its driver gives us a
// context.
std::string why_unusable(int ordinal) {
  cudaError_t error = cudaSetDevice(ordinal);
  cudaFuncAttributes attributes;
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, probe_kernel);
  if (error == cudaSuccess) return "";
  (void)cudaGetLastError();
  return cudaGetErrorString(error);
}

}  // namespace

// The function that libleat.so looks up (core/gpu_plugin.cc). Without a driver or a device it makes
// no devices and reports no error. It reports a GPU that cannot be used on standard error, and
// leaves it out.
extern "C" __attribute__((visibility("default"))) void leat_cuda_make_devices(
    const leat::DeviceName& task, std::vector<std::unique_ptr<leat::Device>>& out) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    (void)cudaGetLastError();
    int driver = 0;
    (void)cudaDriverGetVersion(&driver);  // 0: no driver
    if (driver > 0 && error != cudaErrorNoDevice)
      std::fprintf(stderr, "leat: no GPU is used: %s\n", cudaGetErrorString(error));
    return;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    if (const std::string why = why_unusable(ordinal); !why.empty()) {
      std::fprintf(stderr, "leat: GPU %d is not used: %s\n", ordinal, why.c_str());
      continue;
    }
    leat::DeviceName name = task;
    name.type = "GPU";
    name.id = static_cast<int>(out.size());
    out.push_back(std::make_unique<leat::CudaDevice>(name, ordinal));
  }
}
