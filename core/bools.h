// Makes C++ bools of bytes that come from outside.
#pragma once

#include "core/tensor.h"

namespace leat {

// Every nonzero byte becomes 1. A bool with any other value is undefined behaviour: it may be used
// as an index. Call it on every host tensor whose bytes were read, not computed.
inline void normalise_bools(Tensor& tensor) {
  if (tensor.dtype() != DType::boolean) return;
  auto* const bytes = static_cast<unsigned char*>(tensor.raw());
  for (int64_t i = 0; i < tensor.elements(); ++i) bytes[i] = bytes[i] != 0;
}

}  // namespace leat
