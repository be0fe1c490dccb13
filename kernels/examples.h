// Small tensors for the `.examples` of OpDefs: floats({1, 2}) is a vector, floats({2, 1}, {1, 2})
// has that shape.
#pragma once

#include "core/tensor.h"

namespace leat {

inline Shape vector_of(size_t n) { return {static_cast<int64_t>(n)}; }

inline Tensor floats(std::initializer_list<float> values) {
  return Tensor::of<float>(vector_of(values.size()), values);
}
inline Tensor floats(const Shape& shape, std::initializer_list<float> values) {
  return Tensor::of<float>(shape, values);
}
inline Tensor ints(std::initializer_list<int32_t> values) {
  return Tensor::of<int32_t>(vector_of(values.size()), values);
}
inline Tensor ints(const Shape& shape, std::initializer_list<int32_t> values) {
  return Tensor::of<int32_t>(shape, values);
}
inline Tensor longs(std::initializer_list<int64_t> values) {
  return Tensor::of<int64_t>(vector_of(values.size()), values);
}
inline Tensor longs(const Shape& shape, std::initializer_list<int64_t> values) {
  return Tensor::of<int64_t>(shape, values);
}
inline Tensor bools(std::initializer_list<bool> values) {
  return Tensor::of<bool>(vector_of(values.size()), values);
}
inline Tensor bools(const Shape& shape, std::initializer_list<bool> values) {
  return Tensor::of<bool>(shape, values);
}
inline Tensor texts(std::initializer_list<std::string> values) {
  return Tensor::of<std::string>(vector_of(values.size()), values);
}

}  // namespace leat
