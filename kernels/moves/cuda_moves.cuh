// The GPU's side of moves.h: every copy and every fill is one launch (cuda/moves.cu).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "kernels/moves/moved_elements.h"
#include "kernels/moves/strided_copy.h"
#include "kernels/types.h"

namespace leat {

inline constexpr bool moves_on_host = false;  // the bound function must not read elements

namespace cuda {

// Of elements of `size` bytes: 1, 2, 4, 8 or 16.
void enqueue_copy(const StridedCopy& copy, const Arguments& a, size_t size, const void* from,
                  void* to);
// `value`: an element in the GPU's memory; null for zeros.
void enqueue_fill(const Arguments& a, size_t size, const void* value, int64_t n, void* to);

}  // namespace cuda

template <class T>
void copy_strided(const StridedCopy& copy, const Arguments& a, const T* from, T* to) {
  cuda::enqueue_copy(copy, a, sizeof(T), from, to);
}

template <class T>
void fill_elements(const Arguments& a, T* to, int64_t n, const T* value = nullptr) {
  cuda::enqueue_fill(a, sizeof(T), value, n, to);
}

// For all types of fixed size; strings and variants live on the CPU.
template <class F>
std::vector<Kernel> moving_kernels(std::string attr, F prepare) {
  return {{.device = DeviceType::gpu,
           .types = {{attr, NumberComplexAndBoolTypes::list()}},
           .prepare = [attr, prepare](const KernelRequest& request) {
             return visit_size(request.attr<DType>(attr),
                               [&](auto type) { return BoundKernel(prepare(type, request)); });
           }}};
}
template <class F>
std::vector<Kernel> moving_kernels_and_for_variants(std::string attr, F prepare) {
  return moving_kernels(std::move(attr), std::move(prepare));
}

}  // namespace leat
