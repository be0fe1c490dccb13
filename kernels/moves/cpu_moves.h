// The CPU's side of moves.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu.h"
#include "kernels/moves/moved_variants.h"
#include "kernels/moves/strided_copy.h"
#include "kernels/pieces.h"

namespace leat {

inline constexpr bool moves_on_host = true;  // the bound function may read elements

template <class T>
void copy_strided(const StridedCopy& copy, const Arguments& a, const T* from, T* to) {
  copy.run(*a.stream, from, to);
}

// to[i] = *value; 0 or "" if value is null. `value` lies on the device.
template <class T>
void fill_elements(const Arguments&, T* to, int64_t n, const T* value = nullptr) {
  fill_in_pieces(to, n, value == nullptr ? T{} : *value);
}

// The kernels of an op that only moves elements, whose type attribute `attr` names:
//   moving_kernels("T", []<class T>(TypeTag<T>, const KernelRequest& request) { … })
template <class F>
std::vector<Kernel> moving_kernels(std::string attr, F prepare) {
  return {cpu_moving_kernel(std::move(attr), std::move(prepare))};
}

// The same, with a kernel for variants (moved_variants.h), which live on the CPU only.
template <class F>
std::vector<Kernel> moving_kernels_and_for_variants(std::string attr, F prepare) {
  return and_for_variants(cpu_moving_kernel(std::move(attr), std::move(prepare)));
}

}  // namespace leat
