#include "core/byte_size.h"

#include "core/error.h"

namespace leat {
namespace {

constexpr size_t most = size_t{1} << 48;  // of an address space

}  // namespace

size_t byte_size(DType dtype, const Shape& shape) {
  const auto elements = static_cast<size_t>(shape.elements());
  if (dtype_size(dtype) > 0 && elements > most / dtype_size(dtype)) {
    fail(Code::resource_exhausted, "a tensor of dtype ", dtype, " and shape ", shape, " has ",
         elements, " elements of ", dtype_size(dtype), " bytes: no machine has so much memory");
  }
  return elements * dtype_size(dtype);
}

}  // namespace leat
