// Bytes from outside where C++ has bools.
#pragma once

#include "core/tensor.h"

namespace leat {

// Every byte that is not 0 becomes 1. A bool of any other value is undefined behaviour: it may be
// used as an index. To be called on every host tensor whose bytes were read and not computed.
inline void normalise_bools(Tensor& tensor) {
  if (tensor.dtype() != DType::boolean) return;
  auto* const bytes = static_cast<unsigned char*>(tensor.raw());
  for (int64_t i = 0; i < tensor.elements(); ++i) bytes[i] = bytes[i] != 0;
}

}  // namespace leat
