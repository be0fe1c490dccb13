// Sums of whole host tensors, of any dtype that is a number, outside of a tape.
#pragma once

#include "core/tensor.h"
#include "kernels/types.h"

namespace leat {

// to += from, which has the same dtype and shape.
inline void add_to(Tensor& to, const Tensor& from) {
  visit_type(NumberAndComplexTypes{}, to.dtype(), [&]<class T>(TypeTag<T>) {
    T* sum = to.data<T>();
    const T* x = from.data<T>();
    for (int64_t i = 0; i < to.elements(); ++i)
      sum[i] =
          static_cast<T>(static_cast<ComputeType<T>>(sum[i]) + static_cast<ComputeType<T>>(x[i]));
    return 0;
  });
}

}  // namespace leat
