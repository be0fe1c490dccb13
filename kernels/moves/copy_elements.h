// Elements of any dtype from one host tensor to another.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/tensor.h"
#include "core/variant.h"

namespace leat {

// Copies `count` elements, from index `from_at` on, to index `to_at` on. The dtypes are the same.
inline void copy_elements(const Tensor& from, int64_t from_at, Tensor& to, int64_t to_at,
                          int64_t count) {
  if (count == 0) return;
  if (from.dtype() == DType::string) {
    std::copy_n(from.data<std::string>() + from_at, count, to.data<std::string>() + to_at);
    return;
  }
  if (from.dtype() == DType::variant) {
    std::copy_n(from.data<VariantPointer>() + from_at, count, to.data<VariantPointer>() + to_at);
    return;
  }
  const size_t size = dtype_size(from.dtype());
  std::memcpy(static_cast<char*>(to.raw()) + to_at * size,
              static_cast<const char*>(from.raw()) + from_at * size, count * size);
}

// A tensor of zeros or empty strings.
inline Tensor zeros(DType dtype, const Shape& shape) {
  Tensor out(dtype, shape);
  if (dtype != DType::string && out.bytes() > 0) std::memset(out.raw(), 0, out.bytes());
  return out;
}

// Element `at` along the first axis, as a new tensor.
inline Tensor slice_of(const Tensor& batch, int64_t at) {
  Tensor out(batch.dtype(), Shape(batch.shape().dims().subspan(1)));
  copy_elements(batch, at * out.elements(), out, 0, out.elements());
  return out;
}

}  // namespace leat
