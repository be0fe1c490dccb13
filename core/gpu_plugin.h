// Which library makes the GPUs of this process (make_gpu_devices() in core/device.h).
#pragma once

#include <string>

namespace leat {

// From the first make_gpu_devices() on: this library in place of libleat_cuda.so, loaded without
// asking for a driver. For tests, whose library runs CUDA's kernels on the host. INTERNAL if GPUs
// have been asked for before.
void use_gpu_plugin(const std::string& path);

}  // namespace leat
