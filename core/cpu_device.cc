// The CPU as a device: its memory is host memory, work is done when the bound function returns, and
// copies are memcpy.
#include <unistd.h>

#include <cstring>

#include "core/device.h"
#include "core/file_roots.h"

namespace leat {
namespace {

class CpuStream : public Stream {
 public:
  explicit CpuStream(ThreadPool& pool) : pool_(pool) {}
  ThreadPool* pool() const override { return &pool_; }

 private:
  ThreadPool& pool_;
};

class CpuDevice : public Device {
 public:
  CpuDevice(const DeviceName& name, ThreadPool& pool, FileRoots files)
      : Device(name, DeviceType::cpu), stream_(pool), files_(std::move(files)) {}

  const FileRoots& files() const { return files_; }

  int64_t memory_limit() const override {
    return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  }
  std::shared_ptr<Buffer> allocate(size_t bytes) override { return Buffer::allocate(bytes); }
  Stream& stream() override { return stream_; }

  void copy_from_host(const void* host, void* device, size_t bytes, Done done) override {
    copy_within(host, device, bytes);
    done({});
  }
  void copy_to_host(const void* device, void* host, size_t bytes, Done done) override {
    copy_within(device, host, bytes);
    done({});
  }
  void copy_within(const void* from, void* to, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void when_finished(Done done) override { done({}); }

 private:
  CpuStream stream_;
  const FileRoots files_;
};

}  // namespace

std::string_view device_type_name(DeviceType type) {
  return type == DeviceType::gpu ? "GPU" : "CPU";
}

DeviceType device_type_from_name(std::string_view name) {
  if (name == "CPU") return DeviceType::cpu;
  check(name == "GPU", "no device type is called '", name, "'; known: CPU, GPU");
  return DeviceType::gpu;
}

std::unique_ptr<Device> make_cpu_device(const DeviceName& name, ThreadPool& pool) {
  return make_cpu_device(name, pool, any_file);
}

std::unique_ptr<Device> make_cpu_device(const DeviceName& name, ThreadPool& pool, FileRoots files) {
  check(name.is_complete(), "a device needs a complete name, not '", name, "'");
  return std::make_unique<CpuDevice>(name, pool, std::move(files));
}

const FileRoots& files_of(const Device& device) {
  const auto* cpu = dynamic_cast<const CpuDevice*>(&device);
  check_internal(cpu != nullptr, "kernels reach files on CPUs only, not on ", device.name());
  return cpu->files();
}

}  // namespace leat
