// Kernels that run between segments: their output shapes depend on the data.
#pragma once

#include <string>

#include "core/kernel.h"
#include "kernels/types.h"

namespace leat {

// A kernel that gets whole tensors, for every type in `types` that attribute `attr` may name:
//   execute_kernel("T", AllTypes{}, []<class T>(TypeTag<T>, ExecuteContext& c) { … })
template <class... T, class F>
Kernel execute_kernel(std::string attr, Types<T...> types, F execute) {
  return {.types = {{attr, {dtype_of<T>...}}}, .execute = [=](ExecuteContext& c) {
            visit_type(types, c.node().attr<DType>(attr), [&](auto type) {
              execute(type, c);
              return 0;
            });
          }};
}

}  // namespace leat
