// GPUs as devices: one compute stream each, memory kept for reuse, and a thread that waits for the
// stream when a caller requests a notification.
#include "kernels/cuda/device/cuda_device.cuh"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/execution/side_stream.h"
#include "core/execution/work_clock.h"
#include "core/memory/memory_owner.h"
#include "core/memory/pinned_memory.h"
#include "kernels/cuda/device/block_pool.cuh"
#include "kernels/cuda/device/cuda_events.cuh"
#include "kernels/cuda/device/recording.cuh"

namespace leat {

void* CudaStream::native() const { return cuda::present_stream(*this); }

cudaStream_t cuda_stream(const Stream& stream) {
  const auto& own = static_cast<const CudaStream&>(stream);
  cuda::check_cuda(cudaSetDevice(own.ordinal()), "cudaSetDevice");
  return cuda::present_stream(own);
}

namespace {

using cuda::BlockPool;
using cuda::check_cuda;
using cuda::CompletionThread;
using cuda::EventClock;
using cuda::PassingEvent;
using cuda::StreamEvent;

cudaStream_t make_stream(int ordinal) {
  check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return stream;
}

// Whether the user wants graphs: LEAT_CUDA_GRAPHS=0 launches kernels one by one, which shows which
// of them fails.
bool wants_graphs() {
  const char* const text = std::getenv("LEAT_CUDA_GRAPHS");
  return text == nullptr || std::string_view(text) != "0";
}

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

class CudaMark : public StreamMark {
 public:
  CudaMark(int ordinal, cudaStream_t compute) : compute_(compute), event_(ordinal) {}
  void set() override { event_.record(compute_); }
  void hold(cudaStream_t stream) const { event_.hold(stream); }

 private:
  const cudaStream_t compute_;
  StreamEvent event_;
};

// It has a thread of its own for its events: one that waits holds up no others.
class CudaSideStream : public SideStream {
 public:
  CudaSideStream(int ordinal, cudaStream_t compute, std::shared_ptr<BlockPool> memory)
      : ordinal_(ordinal),
        memory_(std::move(memory)),
        now_(ordinal, compute),
        stream_(ordinal, make_stream(ordinal)),
        completions_(ordinal) {}

  Stream& stream() override { return stream_; }
  void follow() override {
    now_.set();
    now_.hold(stream_.handle());
  }
  void follow(const StreamMark& mark, const void* written) override {
    const cudaEvent_t end_of_use = memory_->end_of_use(written);
    if (end_of_use == nullptr) return follow();
    check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
    check_cuda(cudaStreamWaitEvent(stream_.handle(), end_of_use, 0), "cudaStreamWaitEvent");
    static_cast<const CudaMark&>(mark).hold(stream_.handle());
  }
  void when_finished(Device::Done done) override {
    check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
    completions_.call_after(stream_.handle(), std::move(done));
  }
  void stop() { completions_.stop(); }

 private:
  const int ordinal_;
  const std::shared_ptr<BlockPool> memory_;
  CudaMark now_;
  CudaStream stream_;
  CompletionThread completions_;  // last: it waits for the stream
};

// A device's, kept for reuse. Shared with the handles, of which the last may go after the device.
struct SideStreams {
  std::mutex mutex;
  std::vector<std::unique_ptr<CudaSideStream>> all;
  std::vector<CudaSideStream*> unused;
};

class CudaDevice : public Device,
                   public HasSideStreams,
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
    for (const auto& side : side_streams_->all) side->stop();
    memory_->end_of_stream();
    (void)cudaStreamSynchronize(stream_.handle());
    (void)cudaStreamSynchronize(uploads_.handle());
  }

  int64_t memory_limit() const override { return static_cast<int64_t>(properties_.totalGlobalMem); }

  std::string problem() const override {
    (void)cudaSetDevice(ordinal_);
    const cudaError_t error = cudaStreamQuery(stream_.handle());
    (void)cudaGetLastError();
    return cuda::ends_use(error) ? cuda::explain(ordinal_, cuda::error_text(error), error) : "";
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

  // Not ended by whoever has it: that may be one of its own callbacks.
  std::shared_ptr<SideStream> take_side_stream() override {
    const std::lock_guard lock(side_streams_->mutex);
    if (side_streams_->unused.empty()) {
      side_streams_->all.push_back(
          std::make_unique<CudaSideStream>(ordinal_, stream_.handle(), memory_));
      side_streams_->unused.push_back(side_streams_->all.back().get());
    }
    CudaSideStream* const out = side_streams_->unused.back();
    side_streams_->unused.pop_back();
    return {out, [owner = side_streams_](CudaSideStream* stream) {
              const std::lock_guard lock(owner->mutex);
              owner->unused.push_back(stream);
            }};
  }

  std::shared_ptr<StreamMark> make_mark() override {
    return std::make_shared<CudaMark>(ordinal_, stream_.handle());
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
    if (pinned_->has(host)) return download(device, host, bytes, std::move(done));
    const Pinned pinned = take_pinned(bytes);
    download(device, pinned.get(), bytes,
             [pinned, host, bytes, done = std::move(done)](const Status& status) {
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
      (void)memory_->end_of_use(device);  // it is used from here on
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
    try {
      check_cuda(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, uploads),
                 "cudaMemcpyAsync");
      PassingEvent is_there;
      is_there.record(uploads);
      is_there.hold(stream_.handle());
    } catch (...) {
      (void)cudaStreamSynchronize(uploads);  // as in when_copied()
      throw;
    }
    when_copied(uploads_, std::move(done));
  }

  // Large copies run beside what is enqueued later.
  void download(const void* device, void* host, size_t bytes, Done done) {
    constexpr size_t large = 64 << 10;
    if (bytes < large) {
      copy(device, host, bytes, cudaMemcpyDeviceToHost);
      return when_copied(stream_, std::move(done));
    }
    const std::lock_guard lock(downloads_mutex_);
    if (downloads_ == nullptr) downloads_ = take_side_stream();
    const cudaStream_t downloads = cuda_stream(downloads_->stream());
    downloads_->follow();
    try {
      check_cuda(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, downloads),
                 "cudaMemcpyAsync");
      downloads_->when_finished(std::move(done));
    } catch (...) {
      (void)cudaStreamSynchronize(downloads);  // as in when_copied()
      throw;
    }
  }

  void copy(const void* from, void* to, size_t bytes, cudaMemcpyKind kind) {
    check_cuda(cudaMemcpyAsync(to, from, bytes, kind, cuda_stream(stream_)), "cudaMemcpyAsync");
  }

  const int ordinal_;
  cudaDeviceProp properties_{};
  CudaStream stream_, uploads_;
  std::shared_ptr<BlockPool> memory_;  // shared with the buffers, which may be the last to go
  std::shared_ptr<BlockPool> pinned_;  // this one, too
  const std::shared_ptr<SideStreams> side_streams_ = std::make_shared<SideStreams>();
  std::mutex downloads_mutex_;
  std::shared_ptr<SideStream> downloads_;  // null: nothing large was copied yet
  CompletionThread completions_;           // last: its callbacks use the others
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
