// Kernels that do not touch elements themselves: one serves the CPU and every GPU.
#pragma once

#include <utility>
#include <vector>

#include "core/kernel.h"
#include "core/state/variable.h"

namespace leat {

// The bound function only names memory or asks request.device to copy. The op's `value_inputs` are
// on the host in any case.
inline std::vector<Kernel> kernels_for_any_device(Prepare prepare) {
  return {{.device = DeviceType::cpu, .prepare = prepare},
          {.device = DeviceType::gpu, .prepare = std::move(prepare)}};
}

// The bound function writes facts about a tensor to output 0, in host memory on any device.
inline std::vector<Kernel> host_kernels_for_any_device(Prepare prepare) {
  std::vector<Kernel> out = kernels_for_any_device(std::move(prepare));
  out[1].host_outputs = {0};
  return out;
}

// Output 0: whether variable 0 has a value. Has kernels on every device, because a variable is
// placed where all of its users have kernels.
inline std::vector<Kernel> is_initialized_kernels() {
  const auto execute = [](ExecuteContext& c) {
    c.set_output(0, Tensor::scalar(c.variable(0).is_initialized()));
  };
  return {{.execute = execute},
          {.device = DeviceType::gpu, .execute = execute, .host_outputs = {0}}};
}

}  // namespace leat
