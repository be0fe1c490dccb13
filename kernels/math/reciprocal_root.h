// 1 / √x of floats. A loop over it calls a function for whole vectors, where the compiler and the
// processor can.
#pragma once

#include <cmath>

#include "kernels/elementwise.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define LEAT_SIMD __attribute__((simd("notinbranch"), const))
extern "C" LEAT_SIMD float leat_reciprocal_root(float x) noexcept;
#undef LEAT_SIMD
#else
inline float leat_reciprocal_root(float x) { return 1.0F / std::sqrt(x); }
#endif

namespace leat {

template <class T>
LEAT_DEVICE T reciprocal_root(T x) {
  if constexpr (has_host_types && std::is_same_v<T, float>) {
    return leat_reciprocal_root(x);
  } else {
    return T(1) / std::sqrt(x);
  }
}

}  // namespace leat
