// Shared by CPU kernels: dispatch on element types in `prepare`, and loops compiled for the vector
// instructions of this processor.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "core/execution/thread_pool.h"
#include "core/kernel.h"
#include "kernels/cpu_isa.h"
#include "kernels/moves/moved_elements.h"
#include "kernels/types.h"

// For the body of `vectorized`: it must be inlined to be compiled for the vectors of its caller.
#define LEAT_INLINE __attribute__((always_inline))

namespace leat {

// A CPU kernel whose prepare is a template over the type that attribute `attr` names:
//   cpu_kernel("T", FloatTypes{}, []<class T>(TypeTag<T>, const KernelRequest& request) { … })
template <class F, class... T>
Kernel cpu_kernel(std::string attr, Types<T...>, F prepare) {
  return {.device = DeviceType::cpu,
          .types = {{attr, {dtype_of<T>...}}},
          .prepare = [attr, prepare](const KernelRequest& request) {
            return visit_type(Types<T...>{}, request.attr<DType>(attr),
                              [&](auto type) { return BoundKernel(prepare(type, request)); });
          }};
}

// A CPU kernel that only moves elements: one instance per element size, and one for strings.
template <class F>
Kernel cpu_moving_kernel(std::string attr, F prepare) {
  return {.device = DeviceType::cpu,
          .types = {{attr, AllTypes::list()}},
          .prepare = [attr, prepare](const KernelRequest& request) -> BoundKernel {
            return visit_moved(request.attr<DType>(attr),
                               [&](auto type) { return BoundKernel(prepare(type, request)); });
          }};
}

// A CPU kernel for every type that the op allows.
inline Kernel cpu_kernel(Prepare prepare) {
  return {.device = DeviceType::cpu, .prepare = std::move(prepare)};
}

template <class Loop>
LEAT_TARGET_AVX2 void vectorized_avx2(const Loop& loop) {
  loop();
}
template <class Loop>
LEAT_TARGET_AVX512 void vectorized_avx512(const Loop& loop) {
  loop();
}

// Runs a loop in the version for this processor's vectors. The whole loop goes inside:
//   vectorized([=]() LEAT_INLINE { for (int64_t i = 0; i < n; ++i) y[i] = x[i] + b; });
template <class Loop>
void vectorized(const Loop& loop) {
  switch (cpu_isa()) {
    case Isa::avx512:
      return vectorized_avx512(loop);
    case Isa::avx2:
      return vectorized_avx2(loop);
    case Isa::base:
      return loop();
  }
}

// `axis` as a TensorFlow op reads it: negative counts from the end. INVALID_ARGUMENT outside
// [-rank, rank).
inline int normalized_axis(int64_t axis, int rank) {
  check(axis >= -rank && axis < rank, "axis ", axis, " is out of range [", -rank, ", ", rank, ")");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// Copies n elements; memory for plain types, assignment for strings.
template <class T>
void copy_elements(const T* from, int64_t n, T* to) {
  std::copy_n(from, n, to);
}

}  // namespace leat
