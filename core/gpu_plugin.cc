// Loads the GPU plug-in, libleat_cuda.so, which lies beside libleat.so, when GPUs are first asked
// for. Without a driver nothing of CUDA is opened: a machine without a GPU pays for one failed
// dlopen.
#include "core/gpu_plugin.h"

#include <dlfcn.h>

#include <cstdio>
#include <mutex>
#include <string>

#include "core/device.h"

namespace leat {
namespace {

// The plug-in's one symbol (kernels/cuda/device/cuda_device.cu).
using MakeDevices = void (*)(const DeviceName& task, std::vector<std::unique_ptr<Device>>& out);
constexpr const char* entry_point = "leat_cuda_make_devices";

std::string beside_this_library(const std::string& file) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&make_gpu_devices), &info) == 0 || info.dli_fname == nullptr)
    return file;
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? file : path.substr(0, slash + 1) + file;
}

struct Chosen {
  std::mutex mutex;
  std::string path;  // empty: libleat_cuda.so, if there is a driver
  bool is_loaded = false;
};
Chosen& chosen() {
  static Chosen out;
  return out;
}

MakeDevices load_plugin() {
  const std::lock_guard lock(chosen().mutex);
  chosen().is_loaded = true;
  if (!chosen().path.empty()) {
    void* plugin = dlopen(chosen().path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      const char* why = dlerror();
      fail(Code::not_found, "the GPU plug-in ", chosen().path,
           " cannot be loaded: ", why != nullptr ? why : "unknown error");
    }
    void* symbol = dlsym(plugin, entry_point);
    check(symbol != nullptr, chosen().path, " is no GPU plug-in: it has no ", entry_point);
    return reinterpret_cast<MakeDevices>(symbol);
  }
  // Left open: the plug-in's libraries look for the driver again by name.
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == nullptr) return nullptr;
  const std::string path = beside_this_library("libleat_cuda.so");
  void* plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    // A build without CUDA on a machine with a GPU is worth a line, and no error.
    std::fprintf(stderr, "leat: there is a GPU driver, but no GPU is used: %s\n", dlerror());
    return nullptr;
  }
  return reinterpret_cast<MakeDevices>(dlsym(plugin, entry_point));
}

}  // namespace

void use_gpu_plugin(const std::string& path) {
  const std::lock_guard lock(chosen().mutex);
  check_internal(!chosen().is_loaded,
                 "the GPU plug-in must be chosen before GPUs are first asked for");
  chosen().path = path;
}

std::vector<std::unique_ptr<Device>> make_gpu_devices(const DeviceName& task) {
  static const MakeDevices make_devices = load_plugin();
  std::vector<std::unique_ptr<Device>> devices;
  if (make_devices != nullptr) make_devices(task, devices);
  return devices;
}

}  // namespace leat
