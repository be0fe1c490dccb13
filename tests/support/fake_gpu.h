// A GPU that does not exist: its memory is host memory, its stream runs nothing by itself, and it
// records the calls it receives. For tests of GPU work on machines without a GPU.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/device.h"

namespace leat {

class FakeGpu : public Device {
 public:
  explicit FakeGpu(int id = 0)
      : Device(DeviceName::parse(concat("/job:localhost/replica:0/task:0/device:GPU:", id)),
               DeviceType::gpu) {}

  // "allocate 64", "copy_from_host 16", "copy_to_host 16", "copy_within 16", "when_finished", in
  // order.
  const std::vector<std::string>& log() const { return log_; }
  void clear_log() { log_.clear(); }

  int64_t memory_limit() const override { return int64_t{1} << 40; }
  std::shared_ptr<Buffer> allocate(size_t bytes) override {
    write("allocate", bytes);
    const std::shared_ptr<Buffer> host = Buffer::allocate(bytes);
    return std::make_shared<Buffer>(
        host->data(), bytes, [host](void*) {}, this);
  }
  Stream& stream() override { return stream_; }
  void copy_from_host(const void* host, void* device, size_t bytes, Done done) override {
    write("copy_from_host", bytes);
    std::memcpy(device, host, bytes);
    done({});
  }
  void copy_to_host(const void* device, void* host, size_t bytes, Done done) override {
    write("copy_to_host", bytes);
    std::memcpy(host, device, bytes);
    done({});
  }
  void copy_within(const void* from, void* to, size_t bytes) override {
    write("copy_within", bytes);
    std::memcpy(to, from, bytes);
  }
  void when_finished(Done done) override {
    log_.push_back("when_finished");
    done({});
  }

 private:
  class FakeStream : public Stream {
   public:
    void* native() const override { return const_cast<FakeStream*>(this); }
  };

  void write(const char* what, size_t bytes) { log_.push_back(concat(what, " ", bytes)); }

  FakeStream stream_;
  std::vector<std::string> log_;
};

}  // namespace leat
