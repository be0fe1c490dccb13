// GPU kernels whose prepare is a template over a type.
#pragma once

#include <string>
#include <utility>

#include "core/kernel.h"
#include "kernels/types.h"

namespace leat::cuda {

// As cpu_kernel() in kernels/cpu.h, for GPUs: `attr` names the type.
//   kernel_for("T", FloatTypes{}, []<class T>(TypeTag<T>, const KernelRequest& request) { … })
template <class F, class... T>
Kernel kernel_for(std::string attr, Types<T...>, F prepare) {
  return {.device = DeviceType::gpu,
          .types = {{attr, {dtype_of<T>...}}},
          .prepare = [attr, prepare](const KernelRequest& request) {
            return visit_type(Types<T...>{}, request.attr<DType>(attr),
                              [&](auto type) { return BoundKernel(prepare(type, request)); });
          }};
}

}  // namespace leat::cuda
