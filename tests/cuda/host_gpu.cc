#include "tests/cuda/host_gpu.h"

#include <dlfcn.h>

#include <vector>

#include "core/gpu_plugin.h"
#include "tests/support/cuda/control.h"

namespace leat {
namespace {

template <class F>
F* control(const char* name) {
  (void)host_gpu();
  static void* const library = dlopen(LEAT_CUDA_ON_HOST, RTLD_NOW | RTLD_NOLOAD);
  check_internal(library != nullptr, LEAT_CUDA_ON_HOST, " is not loaded");
  void* const symbol = dlsym(library, name);
  check_internal(symbol != nullptr, LEAT_CUDA_ON_HOST, " has no ", name);
  return reinterpret_cast<F*>(symbol);
}
#define CONTROL(name) control<decltype(leat_cuda_on_host_##name)>("leat_cuda_on_host_" #name)

}  // namespace

Device& host_gpu() {
  static const std::unique_ptr<Device> gpu = [] {
    use_gpu_plugin(LEAT_CUDA_ON_HOST);
    auto gpus = make_gpu_devices(DeviceName::parse("/job:localhost/replica:0/task:0"));
    check_internal(gpus.size() == 1, gpus.size(), " GPUs on the host");
    return std::move(gpus[0]);
  }();
  return *gpu;
}

std::shared_ptr<Buffer> allocate_exactly(Device& device, size_t bytes) {
  void* block = CONTROL(allocate)(bytes);
  check_internal(block != nullptr || bytes == 0, "no device memory for ", bytes, " bytes");
  return std::make_shared<Buffer>(
      block, bytes,
      [](void* each) {
        CONTROL(free)
        (each);
      },
      &device);
}

void set_order_of_threads(uint64_t seed) { CONTROL(set_order)(seed); }
void limit_gpu_memory(size_t bytes) { CONTROL(limit_memory)(bytes); }
CudaCalls count_gpu_calls() {
  CudaCalls calls;
  CONTROL(count)(&calls);
  return calls;
}
void delay_copies_from_host(int milliseconds) { CONTROL(delay_copies_from_host)(milliseconds); }
void call_before_copies_to_host(void (*function)()) {
  CONTROL(call_before_copies_to_host)(function);
}
void enqueue_call(const Stream& stream, void (*function)(void*), void* data) {
  CONTROL(enqueue_call)(stream.native(), function, data);
}
void set_gpus(int count) { CONTROL(set_devices)(count); }
void break_gpu() { CONTROL(fault)(); }
void recover_gpu() { CONTROL(recover)(); }
void refuse_attention(bool refuse) { CONTROL(refuse_attention)(refuse); }
int64_t count_attention() { return CONTROL(count_attention)(); }

}  // namespace leat
