// SparseMatMul: matrix products that skip the zeros of one operand, which is mostly zeros. As in
// TensorFlow, zero times NaN or infinity therefore adds nothing.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/linear_algebra/matmul.h"

namespace leat {
namespace {

// An operand with its transposition resolved: element [i, j] is data[i * row + j * column].
struct Strides {
  int64_t row, column;
  Strides transposed() const { return {column, row}; }
};

Strides strides_of(const Shape& shape, bool transpose) {
  const Strides plain{shape[1], 1};
  return transpose ? plain.transposed() : plain;
}

// out[i, j] = sum over k of sparse[i, k] dense[k, j]; `dense` is read as rows of floats, which the
// workspace holds.
template <class S, class D>
struct Product {
  int64_t m, n, k;
  Strides sparse, dense, out;
  int sparse_input;

  void operator()(const Arguments& a) const {
    float* rows = static_cast<float*>(a.workspace);
    const D* from = a.input<D>(1 - sparse_input);
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < n; ++j)
        rows[i * n + j] = static_cast<float>(from[i * dense.row + j * dense.column]);
    }
    const int64_t grain = 1 + matmul_flops_per_chunk / (2 * std::max<int64_t>(1, n * k));
    a.stream->parallel_for(m, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) multiply_row(a, rows, i);
    });
  }

  void multiply_row(const Arguments& a, const float* rows, int64_t i) const {
    const S* factors = a.input<S>(sparse_input);
    float* to = a.output<float>();
    const auto at = [&](int64_t j) { return i * out.row + j * out.column; };
    for (int64_t j = 0; j < n; ++j) to[at(j)] = 0;
    for (int64_t l = 0; l < k; ++l) {
      const float factor = static_cast<float>(factors[i * sparse.row + l * sparse.column]);
      if (factor == 0) continue;
      const float* row = rows + l * n;
      for (int64_t j = 0; j < n; ++j) to[at(j)] += factor * row[j];
    }
  }
};

void infer(ShapeContext& c) {
  const Shape a = c.with_rank(0, 2), b = c.with_rank(1, 2);
  const bool transpose_a = c.attr<bool>("transpose_a"), transpose_b = c.attr<bool>("transpose_b");
  const int64_t k_of_a = a[transpose_a ? 0 : 1], k_of_b = b[transpose_b ? 1 : 0];
  check(k_of_a == any || k_of_b == any || k_of_a == k_of_b, "Matrix size incompatible: a: ", a,
        ", b: ", b, ": extents ", k_of_a, " and ", k_of_b, " differ");
  c.set_output(0, Shape{a[transpose_a ? 1 : 0], b[transpose_b ? 0 : 1]});
}

template <class A, class B>
BoundKernel prepare(const KernelRequest& r) {
  const bool transpose_a = r.attr<bool>("transpose_a"), transpose_b = r.attr<bool>("transpose_b");
  const bool a_is_sparse = r.attr<bool>("a_is_sparse"), b_is_sparse = r.attr<bool>("b_is_sparse");
  const int64_t m = r.outputs[0].shape[0], n = r.outputs[0].shape[1],
                k = r.inputs[0].shape[transpose_a ? 0 : 1];
  if (m == 0 || n == 0) return {};
  if constexpr (std::is_same_v<A, float> && std::is_same_v<B, float>) {
    if (!a_is_sparse && !b_is_sparse) return bind_matmul(f32, {m, n, k, transpose_a, transpose_b});
  }
  const Strides a = strides_of(r.inputs[0].shape, transpose_a),
                b = strides_of(r.inputs[1].shape, transpose_b), out{n, 1};
  if (b_is_sparse && !a_is_sparse) {  // productᵀ = bᵀ aᵀ
    return BoundKernel::of(
               Product<B, A>{n, m, k, b.transposed(), a.transposed(), out.transposed(), 1})
        .with_workspace(sizeof(float) * k * m);
  }
  return BoundKernel::of(Product<A, B>{m, n, k, a, b, out, 0})
      .with_workspace(sizeof(float) * k * n);
}

// MatMul in float, whose result is cast to the operand's type. The gradient of a Relu has too few
// zeros to justify a sparse product here.
Output product(const Output& a, const Output& b, bool transpose_a, bool transpose_b, DType dtype) {
  const Output in_float =
      matmul(cast(a, f32), cast(b, f32), {.transpose_a = transpose_a, .transpose_b = transpose_b});
  return dtype == f32 ? in_float : cast(in_float, dtype);
}

void differentiate(Gradient& g) {
  const Output a = g.x(0), b = g.x(1), dy = g.dy();
  const bool ta = g.attr<bool>("transpose_a"), tb = g.attr<bool>("transpose_b");
  g.dx(0) = ta ? product(b, dy, tb, true, a.dtype()) : product(dy, b, false, !tb, a.dtype());
  g.dx(1) = tb ? product(dy, a, true, ta, b.dtype()) : product(a, dy, !ta, false, b.dtype());
}

template <class A, class B>
Kernel kernel() {
  return {.types = {{"Ta", {dtype_of<A>}}, {"Tb", {dtype_of<B>}}}, .prepare = prepare<A, B>};
}

const Op sparse_matmul_op{{
    .name = "SparseMatMul",
    .doc = "product = a b, each transposed if asked to; zeros of the operand that is declared "
           "sparse are skipped (those of a if neither is and one is bfloat16).",
    .inputs = {"a: Ta", "b: Tb"},
    .outputs = {"product: float"},
    .attrs = {"transpose_a: bool = false", "transpose_b: bool = false", "a_is_sparse: bool = false",
              "b_is_sparse: bool = false", "Ta: {float, bfloat16} = float",
              "Tb: {float, bfloat16} = float"},
    .shape = infer,
    .gradient = differentiate,
    .kernels = {kernel<float, float>(), kernel<float, bfloat16>(), kernel<bfloat16, float>(),
                kernel<bfloat16, bfloat16>()},
    .examples = {{.inputs = {floats({2, 2}, {0, 2, 3, 0}), floats({2, 1}, {5, 7})},
                  .attrs = {{"a_is_sparse", true}},
                  .outputs = {floats({2, 1}, {14, 15})}},
                 {.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({2, 2}, {0, 2, 3, 0})},
                  .attrs = {{"transpose_a", true}, {"transpose_b", true}, {"b_is_sparse", true}},
                  .outputs = {floats({3, 2}, {8, 3, 10, 6, 12, 9})}}},
}};

}  // namespace
}  // namespace leat
