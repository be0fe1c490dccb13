// What the ops of recurrent layers share, and their kernels for CPUs. See layer.h.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "graph/shape_inference.h"
#include "kernels/cpu_isa.h"
#include "kernels/linear_algebra/matmul.h"
#include "kernels/linear_algebra/packed_product.h"
#include "kernels/sequences/layer.h"
#include "kernels/sequences/recurrent.h"

namespace leat::layer {

inline const std::vector<std::string> attrs = {"T: {bfloat16, float, float16, float64}",
                                               "N: int >= 0 = 0", "reverse: bool = false"};

// Row::run(units), compiled for each set of instructions.
template <class Row>
struct RowLoop {
  using Run = void (*)(const Row& row, int64_t units);

  static void base(const Row& row, int64_t units) { row.run(units); }
  LEAT_TARGET_AVX2 static void avx2(const Row& row, int64_t units) { row.run(units); }
  LEAT_TARGET_AVX512 static void avx512(const Row& row, int64_t units) { row.run(units); }
  static Run choose() { return choose_isa<Run>(base, avx2, avx512); }
};

// Products with the recurrent kernel, one for each position: packed once, if that pays.
template <class T>
class KernelProduct {
 public:
  KernelProduct(const MatMul& extents, int64_t positions) : plain_(extents) {
    if constexpr (std::is_same_v<T, float>) {
      if (positions >= 4) packed_ = PackedProduct::make(extents);
    }
  }
  size_t workspace_bytes() const {
    return packed_ == nullptr ? plain_.workspace_bytes()
                              : packed_->packed_bytes() + packed_->workspace_bytes();
  }
  // Before the products of a run of the kernel, in the same workspace.
  void begin(const T* kernel, void* workspace) const {
    if constexpr (std::is_same_v<T, float>) {
      if (packed_ != nullptr) packed_->pack(kernel, workspace);
    }
  }
  void operator()(const T* a, const T* kernel, T* product, void* workspace, Stream* stream) const {
    if constexpr (std::is_same_v<T, float>) {
      if (packed_ != nullptr) {
        auto* const rest = static_cast<char*>(workspace) + packed_->packed_bytes();
        return packed_->run(a, workspace, product, rest, *stream);
      }
    }
    plain_(a, kernel, product, workspace, stream);
  }

 private:
  ProductOf<T> plain_;
  std::shared_ptr<const PackedProduct> packed_;
};

// The gradient of a recurrent kernel [units, gates · units]: the sum over all positions of hᵀ d, h
// the state before, d the gradients of the gates' sums [time, batch, gates · units].
template <class T>
class WeightGradient {
 public:
  WeightGradient(const Extents& n, int64_t gates)
      : n_(n),
        gates_(gates),
        first_({.m = n.units,
                .n = gates * n.units,
                .k = n.batch,
                .transpose_a = true,
                .transpose_b = false}),
        others_({.m = n.units,
                 .n = gates * n.units,
                 .k = (n.time - 1) * n.batch,
                 .transpose_a = true,
                 .transpose_b = false,
                 .adds = true}) {}
  size_t workspace_bytes() const {
    return std::max(first_.workspace_bytes(), others_.workspace_bytes());
  }
  void operator()(const T* first_state, const T* y, const T* d, T* out, void* workspace,
                  Stream* stream) const {
    if (n_.time == 0)
      return static_cast<void>(std::fill_n(out, gates_ * n_.units * n_.units, T(0)));
    const int64_t width = gates_ * n_.states();
    first_(first_state, d + n_.at(0) * width, out, workspace, stream);
    others_(y + (n_.reverse ? n_.states() : 0), d + (n_.reverse ? 0 : width), out, workspace,
            stream);
  }

 private:
  const Extents n_;
  const int64_t gates_;
  const ProductOf<T> first_, others_;
};

// The state of each row after its last step.
template <class T>
void copy_last(const Extents& n, const int32_t* lengths, const T* first, const T* all, T* last) {
  for (int64_t b = 0; b < n.batch; ++b) {
    const int64_t steps = n.length(lengths, b), row = b * n.units;
    std::copy_n(steps == 0 ? first + row : all + n.at(steps - 1) * n.states() + row, n.units,
                last + row);
  }
}

// Tens of microseconds of work for a thread.
inline int64_t rows_per_chunk(int64_t units) { return 1 + 4096 / (1 + units); }

// ---- Shapes

// {time, batch, units} of a sequence [time, batch, …] and a state [batch, units].
inline Shape infer(const Shape& sequence, const Shape& state) {
  return {sequence[0], sequence[1] == any ? state[0] : sequence[1], state[1]};
}

// Of the list `lengths`, which begins at input `first`.
inline void check_lengths(const ShapeContext& c, int first, int64_t batch) {
  if (c.num_inputs() <= first) return;
  expect_shape(c, first, {batch});
  check(!c.attr<bool>("reverse"), "lengths and reverse exclude each other: reverse the rows first");
}

[[noreturn]] inline void fail_second_gradient(std::string_view layer) {
  fail(Code::unimplemented, "gradients of gradients do not go through ", layer,
       ": build the layer with nn::RnnOptions{.as_loop = true}");
}

}  // namespace leat::layer
