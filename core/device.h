// A device: a place that allocates, runs tapes in order, and copies.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/device_name.h"
#include "core/error.h"
#include "core/execution/thread_pool.h"
#include "core/tensor.h"

namespace leat {

enum class DeviceType : uint8_t { cpu, gpu };
std::string_view device_type_name(DeviceType type);       // "CPU", "GPU"
DeviceType device_type_from_name(std::string_view name);  // INVALID_ARGUMENT otherwise

// An ordered queue of work on a device. On the CPU, work is done when the bound function returns.
// On a GPU it has only been enqueued; native() is the cudaStream_t.
class Stream {
 public:
  virtual ~Stream() = default;
  // CPU: for parallel_for; null on other devices
  virtual ThreadPool* pool() const { return nullptr; }
  virtual void* native() const { return nullptr; }

  template <class Body>
  void parallel_for(int64_t n, int64_t grain, Body&& body) {
    if (ThreadPool* threads = pool()) {
      threads->parallel_for(n, grain, body);
    } else if (n > 0) {
      body(int64_t{0}, n);
    }
  }
};

// Thread-safe. Lives as long as the process's device list.
class Device {
 public:
  Device(DeviceName name, DeviceType type) : name_(std::move(name)), type_(type) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;

  // complete: /job:localhost/replica:0/task:0/device:CPU:0
  const DeviceName& name() const { return name_; }
  DeviceType type() const { return type_; }
  virtual int64_t memory_limit() const = 0;  // bytes
  // Why nothing can run here any more, as after a fault of a GPU; empty if all is well.
  virtual std::string problem() const { return {}; }

  // Uninitialised memory of this device. If there is none: RESOURCE_EXHAUSTED with the size, and on
  // a GPU with the device.
  virtual std::shared_ptr<Buffer> allocate(size_t bytes) = 0;
  // The compute stream.
  virtual Stream& stream() = 0;

  // Copies between host memory and this device's, in stream order. `done` may run on any thread;
  // both buffers must live until then, and what is copied to the host must not change.
  using Done = std::function<void(const Status&)>;
  virtual void copy_from_host(const void* host, void* device, size_t bytes, Done done) = 0;
  virtual void copy_to_host(const void* device, void* host, size_t bytes, Done done) = 0;
  // Copies within this device's memory, in stream order: for values that leave a tape, and for copy
  // on write.
  virtual void copy_within(const void* from, void* to, size_t bytes) = 0;
  // Copies from another device's memory without going through the host, after the work that is
  // enqueued on both streams now, and before what is enqueued on either later. False, and nothing
  // is copied, if the two devices cannot do so.
  virtual bool copy_from_peer(Device& /*peer*/, const void* /*from*/, void* /*to*/,
                              size_t /*bytes*/) {
    return false;
  }
  // Calls `done` when all work enqueued on stream() so far has run. A CPU calls it at once.
  virtual void when_finished(Done done) = 0;

 private:
  DeviceName name_;
  DeviceType type_;
};

// The CPU of this process as device `name`. The pool must outlive it.
std::unique_ptr<Device> make_cpu_device(const DeviceName& name, ThreadPool& pool);

// The GPUs of this process as devices `task`/device:GPU:0, …. Loads the CUDA plug-in if a driver
// can be opened; otherwise the result is empty, which is normal. Loading adds the plug-in's kernels
// to the op registry.
std::vector<std::unique_ptr<Device>> make_gpu_devices(const DeviceName& task);

}  // namespace leat
