// Shared by the cells of recurrent networks: all computation is in float, on matrices whose rows
// are the examples of a batch.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/extents.h"
#include "kernels/linear_algebra/matmul.h"

namespace leat {

// A matrix product inside another kernel; its workspace is part of that kernel's.
template <class T>
class ProductOf {
 public:
  explicit ProductOf(const MatMul& extents)
      : is_empty_(extents.m <= 0 || extents.n <= 0 || extents.k <= 0),
        zeros_(is_empty_ && !extents.adds ? extents.m * extents.n : 0) {
    if (!is_empty_) kernel_ = bind_matmul(dtype_of<T>, extents);
  }
  size_t workspace_bytes() const { return kernel_.workspace_bytes; }
  void operator()(const T* a, const T* b, T* product, void* workspace, Stream* stream) const {
    if (is_empty_) return static_cast<void>(std::fill_n(product, zeros_, T(0)));
    void* const inputs[] = {const_cast<T*>(a), const_cast<T*>(b)};
    void* const outputs[] = {product};
    kernel_.function(kernel_.bound.get(), {inputs, outputs, workspace, stream});
  }

 private:
  bool is_empty_;
  int64_t zeros_;  // that it writes instead
  BoundKernel kernel_;
};
using Product = ProductOf<float>;

// A kernel's inputs and outputs as floats; those of 16 bits are copied in and out.
template <class T>
class Floats {
 public:
  explicit Floats(const Arguments& arguments) : arguments_(arguments) {}
  ~Floats() {
    if constexpr (!std::is_same_v<T, float>) {
      for (const auto& [output, copy] : outputs_) {
        T* to = arguments_.output<T>(output);
        for (const float x : *copy) *to++ = T(x);
      }
    }
  }
  Floats(const Floats&) = delete;

  const float* input(int i, int64_t elements) {
    if constexpr (std::is_same_v<T, float>) return arguments_.input<float>(i);
    const T* from = arguments_.input<T>(i);
    return copies_.emplace_back(from, from + elements).data();
  }
  float* output(int i, int64_t elements) {
    if constexpr (std::is_same_v<T, float>) return arguments_.output<float>(i);
    std::vector<float>& copy = copies_.emplace_back(elements);
    outputs_.push_back({i, &copy});
    return copy.data();
  }

 private:
  const Arguments& arguments_;
  std::deque<std::vector<float>> copies_;
  std::vector<std::pair<int, const std::vector<float>*>> outputs_;
};

// rows[r] = [left[r], right[r]], of `n` and `m` columns.
inline void join_columns(int64_t rows, const float* left, int64_t n, const float* right, int64_t m,
                         float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    to = std::copy_n(left + r * n, n, to);
    to = std::copy_n(right + r * m, m, to);
  }
}

// INVALID_ARGUMENT unless input `i` can have this shape.
inline void expect_shape(const ShapeContext& c, int i, const Shape& expected) {
  check(c.input(i).is_compatible(expected), c.input_name(i), " must have shape ", expected,
        ", got ", c.input(i));
}

// An extent that is a multiple of another one; either may be unknown.
inline int64_t times(int64_t factor, int64_t extent) {
  return extent == any ? any : product_of_extents(factor, extent);
}
inline int64_t plus(int64_t a, int64_t b) {
  return a == any || b == any ? any : sum_of_extents(a, b);
}

}  // namespace leat
