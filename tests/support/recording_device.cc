#include "tests/support/recording_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace leat {

RecordingStream::RecordingStream() : thread_([this] { run(); }) {}

RecordingStream::~RecordingStream() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    is_held_ = false;
  }
  wake_.notify_all();
  thread_.join();
}

void RecordingStream::enqueue(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  wake_.notify_all();
}

void RecordingStream::hold() {
  const std::lock_guard lock(mutex_);
  is_held_ = true;
}

void RecordingStream::resume() {
  {
    const std::lock_guard lock(mutex_);
    is_held_ = false;
  }
  wake_.notify_all();
}

void RecordingStream::run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return is_stopping_ || (!is_held_ && !queue_.empty()); });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

RecordingDevice::RecordingDevice(const DeviceName& name) : Device(name, DeviceType::gpu) {
  const int file = memfd_create("leat recording device", MFD_CLOEXEC);
  check_internal(file >= 0 && ftruncate(file, size) == 0, "no memory for a recording device");
  device_ = static_cast<char*>(mmap(nullptr, size, PROT_NONE, MAP_SHARED, file, 0));
  view_ = static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  close(file);
  check_internal(device_ != MAP_FAILED && view_ != MAP_FAILED, "no memory for a recording device");
}

RecordingDevice::~RecordingDevice() {
  // The stream runs what was enqueued first: it is a member, so it must be idle before the memory
  // goes.
  std::mutex mutex;
  std::condition_variable idle;
  bool is_idle = false;
  stream_.resume();
  stream_.enqueue([&] {
    const std::lock_guard lock(mutex);
    is_idle = true;
    idle.notify_all();
  });
  {
    std::unique_lock lock(mutex);
    idle.wait(lock, [&] { return is_idle; });
  }
  munmap(device_, size);
  munmap(view_, size);
}

std::shared_ptr<Buffer> RecordingDevice::allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  ++record_.allocations;
  if (bytes == 0) return std::make_shared<Buffer>(nullptr, 0, nullptr, this);
  const size_t rounded = (bytes + 255) / 256 * 256;
  size_t offset = used_;
  if (std::vector<size_t>& free = free_[rounded]; !free.empty()) {
    offset = free.back();
    free.pop_back();
  } else {
    used_ += rounded;
    if (used_ > size) fail(Code::resource_exhausted, name(), " has no ", bytes, " bytes left");
  }
  return std::make_shared<Buffer>(
      device_ + offset, bytes,
      [this, rounded, offset](void*) {
        const std::lock_guard lock(mutex_);
        free_[rounded].push_back(offset);
      },
      this);
}

void* RecordingDevice::view(const void* device) const {
  const auto* address = static_cast<const char*>(device);
  check_internal(address >= device_ && address < device_ + size, "an address that is not of ",
                 name(), " was used on it");
  return view_ + (address - device_);
}

void RecordingDevice::copy_from_host(const void* host, void* device, size_t bytes, Done done) {
  {
    const std::lock_guard lock(mutex_);
    ++record_.from_host;
    record_.bytes_from_host += bytes;
  }
  stream_.enqueue([this, host, device, bytes, done = std::move(done)] {
    std::memcpy(view(device), host, bytes);
    done({});
  });
}

void RecordingDevice::copy_to_host(const void* device, void* host, size_t bytes, Done done) {
  {
    const std::lock_guard lock(mutex_);
    ++record_.to_host;
    record_.bytes_to_host += bytes;
  }
  stream_.enqueue([this, host, device, bytes, done = std::move(done)] {
    std::memcpy(host, view(device), bytes);
    done(next_status());
  });
}

void RecordingDevice::copy_within(const void* from, void* to, size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    ++record_.within;
  }
  stream_.enqueue([this, from, to, bytes] { std::memmove(view(to), view(from), bytes); });
}

void RecordingDevice::when_finished(Done done) {
  if (is_sick_) fail(Code::internal, "the device takes no more work");
  stream_.enqueue([this, done = std::move(done)] { done(next_status()); });
}

RecordingDevice::Record RecordingDevice::record() const {
  const std::lock_guard lock(mutex_);
  return record_;
}

void RecordingDevice::clear_record() {
  const std::lock_guard lock(mutex_);
  record_ = {};
}

void RecordingDevice::fail_next(Status status) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(status);
}

Status RecordingDevice::next_status() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, {});
}

}  // namespace leat
