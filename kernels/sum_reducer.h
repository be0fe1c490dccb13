// Sums, for reduction.h and cumulative ops. Signed integers wrap around. The struct belongs to the
// file that includes this, as all reducers do: g++ and nvcc make different kernels of it.
#pragma once

#include "kernels/reduction.h"
#include "kernels/wrapping.h"

namespace leat {
namespace {

struct SumReducer : Reducer {
  template <class T>
  LEAT_DEVICE static T identity() {
    return T(0);
  }
  template <class T>
  LEAT_DEVICE static T combine(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};

}  // namespace
}  // namespace leat
