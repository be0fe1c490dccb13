// Loads the GPU plug-in, libleat_cuda.so, which lies beside libleat.so, when GPUs are first asked
// for. Without a driver nothing of CUDA is opened: a machine without a GPU pays for one failed
// dlopen.
#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "core/device.h"

namespace leat {
namespace {

// The plug-in's one symbol (kernels/cuda/cuda_device.cu).
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

MakeDevices load_plugin() {
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

std::vector<std::unique_ptr<Device>> make_gpu_devices(const DeviceName& task) {
  static const MakeDevices make_devices = load_plugin();
  std::vector<std::unique_ptr<Device>> devices;
  if (make_devices != nullptr) make_devices(task, devices);
  return devices;
}

}  // namespace leat
