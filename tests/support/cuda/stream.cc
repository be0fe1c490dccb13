#include "tests/support/cuda/stream.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "tests/support/cuda/block.h"

namespace cuda_on_host {
namespace {

thread_local bool runs_a_stream = false;

struct Streams {
  std::mutex mutex;
  std::set<cudaStream_t> all;
};
// Never destroyed: devices that are static objects go after it otherwise.
Streams& streams() {
  static auto* const out = new Streams;
  return *out;
}

std::string extents(const dim3& d) {
  return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
}

}  // namespace

bool is_stream_thread() { return runs_a_stream; }

void Moment::happen() {
  const std::lock_guard lock(mutex);
  has_happened = true;
  time = std::chrono::steady_clock::now();
  changed.notify_all();
}
void Moment::wait() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return has_happened; });
}

Counts& counts() {
  static auto* const out = new Counts;
  return *out;
}

cudaStream_t stream_or_default(cudaStream_t stream) {
  static cudaStream_t const standard = new CUstream_st(0);
  return stream != nullptr ? stream : standard;
}

void wait_for_all_streams() {
  const std::lock_guard lock(streams().mutex);
  for (cudaStream_t stream : streams().all) stream->wait_until_idle();
}

bool has_work_beside(cudaStream_t stream) {
  const std::unique_lock lock(streams().mutex, std::try_to_lock);
  if (!lock) return false;  // somebody waits for all of them
  return std::any_of(streams().all.begin(), streams().all.end(),
                     [&](cudaStream_t each) { return each != stream && !each->is_idle(); });
}

cudaError_t enqueue(cudaStream_t stream, Work work) {
  if (runs_a_stream) return report(cudaErrorNotPermitted, "called by work of a stream");
  if (const cudaError_t error = sticky_error(); error != cudaSuccess) return report(error);
  stream = stream_or_default(stream);
  if (capture_work(stream, work)) return cudaSuccess;
  ++counts().enqueued;
  stream->push(std::move(work));
  return cudaSuccess;
}

cudaError_t enqueue_launch(const cudaLaunchConfig_t& config, const void* kernel,
                           void (*call)(const void*, const char*), const void* const* arguments,
                           const size_t* sizes, const size_t* starts, const bool* are_pointers,
                           int count) {
  const dim3 &grid = config.gridDim, &block = config.blockDim;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads < 1 || threads > 1024 || block.z > 64)
    return report(cudaErrorInvalidConfiguration, "a block of " + extents(block) + " threads");
  if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > 2147483647u || grid.y > 65535 ||
      grid.z > 65535) {
    return report(cudaErrorInvalidConfiguration, "a grid of " + extents(grid) + " blocks");
  }
  if (config.dynamicSmemBytes > 48 * 1024)
    return report(cudaErrorInvalidValue,
                  std::to_string(config.dynamicSmemBytes) + " bytes of shared memory");
  const int device = stream_or_default(config.stream)->device;
  if (device != present_device())
    return report(cudaErrorInvalidResourceHandle,
                  "a stream of device " + std::to_string(device) + ", and device " +
                      std::to_string(present_device()) + " is the present one");
  const size_t bytes = starts[count];
  if (bytes > 4096)
    return report(cudaErrorInvalidValue, std::to_string(bytes) + " bytes of arguments");
  const std::shared_ptr<char[]> copies(new char[bytes + 1]);
  Launch launch{grid, block, kernel, call, copies};
  for (int i = 0; i < count; ++i) {
    std::memcpy(copies.get() + starts[i], arguments[i], sizes[i]);
    if (!are_pointers[i]) continue;
    const void* pointer = nullptr;
    std::memcpy(&pointer, arguments[i], sizeof pointer);
    const Memory kind = kind_of(pointer, 1);
    if (pointer == nullptr || kind == Memory::pinned ||
        (kind == Memory::device && device_of(pointer) == device))
      continue;
    // A GPU would only find out when it runs the kernel.
    const std::string why = "argument " + std::to_string(i) + " points at no memory of the device";
    return enqueue(config.stream, [launch, why] {
      fault(cudaErrorIllegalAddress, describe(launch) + ": " + why);
    });
  }
  return enqueue(config.stream, [launch = std::move(launch)] {
    if (const std::string failure = run(launch); !failure.empty())
      fault(cudaErrorLaunchFailure, failure);
  });
}

}  // namespace cuda_on_host

using namespace cuda_on_host;

CUstream_st::CUstream_st(int device) : device(device), thread_([this] { run(); }) {
  const std::lock_guard lock(streams().mutex);
  streams().all.insert(this);
}

CUstream_st::~CUstream_st() {
  {
    const std::lock_guard lock(streams().mutex);
    streams().all.erase(this);
  }
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CUstream_st::push(Work work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void CUstream_st::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !is_running_; });
}

bool CUstream_st::is_idle() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !is_running_;
}

void CUstream_st::run() {
  runs_a_stream = true;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    is_running_ = true;
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    is_running_ = false;
    if (queue_.empty()) changed_.notify_all();
  }
}

// ---- The interface

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  if (const cudaError_t error = sticky_error(); error != cudaSuccess) return report(error);
  *stream = new CUstream_st(present_device());
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  stream = stream_or_default(stream);
  if (runs_a_stream) return report(cudaErrorNotPermitted, "called by work of a stream");
  if (const cudaError_t error = forbid_if_capturing(stream, "cudaStreamSynchronize");
      error != cudaSuccess) {
    return error;
  }
  ++counts().waits;
  stream->wait_until_idle();
  return report(sticky_error());
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  stream = stream_or_default(stream);
  if (const cudaError_t error = forbid_if_capturing(stream, "cudaStreamQuery");
      error != cudaSuccess) {
    return error;
  }
  if (const cudaError_t error = sticky_error(); error != cudaSuccess) return report(error);
  return stream->is_idle() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize() {
  if (runs_a_stream) return report(cudaErrorNotPermitted, "called by work of a stream");
  if (const cudaError_t error = forbid_in_capture("cudaDeviceSynchronize"); error != cudaSuccess)
    return error;
  ++counts().waits;
  wait_for_all_streams();
  return report(sticky_error());
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* data) {
  return enqueue(stream, [=] { function(data); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (const cudaError_t error = sticky_error(); error != cudaSuccess) return report(error);
  *event = new CUevent_st{present_device()};
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return report(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  std::shared_ptr<Moment> moment;
  {
    const std::lock_guard lock(event->mutex);
    if (event->is_captured)
      return report(cudaErrorCapturedEvent, "cudaEventSynchronize on an event of a capture");
    moment = event->moment;
  }
  if (moment != nullptr) moment->wait();
  return report(sticky_error());
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(event->mutex);
  if (event->is_captured)
    return report(cudaErrorCapturedEvent, "cudaEventQuery on an event of a capture");
  if (const cudaError_t error = sticky_error(); error != cudaSuccess) return report(error);
  if (event->moment == nullptr) return cudaSuccess;
  const std::lock_guard also(event->moment->mutex);
  return event->moment->has_happened ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  for (cudaEvent_t event : {begin, end}) {
    if (event->moment == nullptr) return report(cudaErrorInvalidResourceHandle);
    if (const cudaError_t error = cudaEventQuery(event); error != cudaSuccess) return error;
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->moment->time - begin->moment->time).count();
  return cudaSuccess;
}
