// Sparse matrices as indices, values and a dense shape: SparseToDense, SparseTensorDenseMatMul.
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/moves/strided_copy.h"
#include "kernels/pieces.h"
#include "kernels/sparse/dense_form.h"

namespace leat {
namespace {

// ---- SparseToDense

template <class T, class Index>
BoundKernel bind_dense(const KernelRequest& r) {
  const Shape& dense = r.outputs[0].shape;
  const auto [count, depth, repeats] = DenseForm(r);
  const bool validates = r.attr<bool>("validate_indices");
  return BoundKernel::of([=, count = count, depth = depth, repeats = repeats,
                          strides = strides_of(dense), n = dense.elements()](const Arguments& a) {
    fill_in_pieces(a.output<T>(), n, *a.input<T>(3));
    int64_t last = -1;
    for (int64_t i = 0; i < count; ++i) {
      StepEnd::pace(8);
      int64_t at = 0;
      for (int d = 0; d < depth; ++d) {
        const int64_t index = a.input<Index>(0)[i * depth + d];
        check(index >= 0 && index < dense[d], "indices[", i, "] holds ", index, " for axis ", d,
              ", which is out of bounds: need 0 <= index < ", dense[d]);
        at += index * strides[d];
      }
      if (validates) {
        check(at != last, "indices[", i, "] is repeated");
        check(at > last, "indices[", i,
              "] is out of order. Many sparse ops require sorted indices.");
        last = at;
      }
      a.output<T>()[at] = a.input<T>(2)[repeats ? 0 : i];
    }
  });
}

const Op to_dense_op{{
    .name = "SparseToDense",
    .doc = "dense[sparse_indices[i, :]] = sparse_values[i], or sparse_values if that is a scalar; "
           "default_value elsewhere. With validate_indices, the indices must be sorted and "
           "different.",
    .inputs = {"sparse_indices: Tindices", "output_shape: Tindices", "sparse_values: T",
               "default_value: T"},
    .outputs = {"dense: T"},
    .attrs = {"validate_indices: bool = true", "T: type", "Tindices: {int32, int64}"},
    .shape =
        [](ShapeContext& c) {
          check(!c.input(0).has_rank() || c.input(0).rank() <= 2,
                "sparse_indices should be a scalar, vector, or matrix, got shape ", c.input(0));
          c.with_rank(3, 0);
          c.set_output(0, c.shape_from_value(1));
        },
    .gradient =
        [](Gradient& g) {
          const Output values = op("GatherNd", {g.dy(), g.x(0)});
          g.dx(2) = values;
          g.dx(3) = sum(g.dy()) - sum(values);
        },
    .kernels = {cpu_kernel("T", AllTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return r.inputs[0].dtype == DType::i64 ? bind_dense<T, int64_t>(r)
                                                                    : bind_dense<T, int32_t>(r);
                           })},
    .examples = {{.inputs = {ints({2, 2}, {0, 1, 1, 0}), ints({2, 2}), floats({5, 6}),
                             Tensor::scalar(-1.0f)},
                  .outputs = {floats({2, 2}, {-1, 5, 6, -1})}}},
    .value_inputs = {1},
}};

// ---- SparseTensorDenseMatMul

void infer_product(ShapeContext& c) {
  const Shape indices = c.with_rank(0, 2), values = c.with_rank(1, 1), b = c.with_rank(3, 2);
  check(indices[0] == any || values[0] == any || indices[0] == values[0],
        "Number of rows of a_indices does not match number of entries in a_values: ", indices,
        " and ", values);
  check(indices[1] == any || indices[1] == 2, "a_indices must have 2 columns, got ", indices);
  c.with_rank(2, 1);
  const bool adjoint_a = c.attr<bool>("adjoint_a"), adjoint_b = c.attr<bool>("adjoint_b");
  Shape out{any, b[adjoint_b ? 0 : 1]};
  const Shape a = c.partial_value(2);
  if (a.has_rank()) {
    check(a.rank() == 2, "Tensor 'a_shape' must have 2 elements, got shape ", a);
    const int64_t inner = a[adjoint_a ? 0 : 1], rows = b[adjoint_b ? 1 : 0];
    check(inner == any || rows == any || inner == rows,
          "Cannot multiply A and B because inner dimension does not match: ", inner, " vs. ", rows);
    out.set(0, a[adjoint_a ? 1 : 0]);
  }
  c.set_output(0, out);
}

template <class T>
T conjugate_if(bool condition, const T& x) {
  if constexpr (is_complex_type<T>) return condition ? std::conj(x) : x;
  return x;
}

template <class T, class Index>
BoundKernel bind_product(const KernelRequest& r) {
  using C = ComputeType<T>;
  const bool adjoint_a = r.attr<bool>("adjoint_a"), adjoint_b = r.attr<bool>("adjoint_b");
  const int64_t count = r.inputs[1].shape[0], rows = r.outputs[0].shape[0],
                columns = r.outputs[0].shape[1], inner = r.inputs[3].shape[adjoint_b ? 1 : 0];
  return BoundKernel::of([=](const Arguments& a) {
    const Index* index = a.input<Index>(0);
    T* out = a.output<T>();
    fill_in_pieces(out, rows * columns, T(0));
    for (int64_t i = 0; i < count; ++i) {
      StepEnd::pace(4 + columns);
      const int64_t m = index[2 * i + (adjoint_a ? 1 : 0)], k = index[2 * i + (adjoint_a ? 0 : 1)];
      check(k >= 0 && k < inner, "k (", k, ") from index[", i, ",", adjoint_a ? 0 : 1,
            "] out of bounds (>=", inner, ")");
      check(m >= 0 && m < rows, "m (", m, ") from index[", i, ",", adjoint_a ? 1 : 0,
            "] out of bounds (>=", rows, ")");
      const C value = conjugate_if(adjoint_a, C(a.input<T>(1)[i]));
      const T* b = a.input<T>(3) + (adjoint_b ? k : k * columns);
      const int64_t step = adjoint_b ? inner : 1;
      T* to = out + m * columns;
      for (int64_t j = 0; j < columns; ++j)
        to[j] = T(C(to[j]) + value * conjugate_if(adjoint_b, C(b[j * step])));
    }
  });
}

// da[i] is the product of a row of dy and one of b (or their columns); db is a product with the
// transpose.
void product_gradient(Gradient& g) {
  const bool adjoint_a = g.attr<bool>("adjoint_a"), adjoint_b = g.attr<bool>("adjoint_b");
  const auto transposed = [&](Output x) {
    return op("ConjugateTranspose", {x, constant(g.graph(), ints({1, 0}))});
  };
  const Output db = op("SparseTensorDenseMatMul", {g.x(0), g.x(1), g.x(2), g.dy()},
                       {{"adjoint_a", !adjoint_a}, {"adjoint_b", false}});
  g.dx(3) = adjoint_b ? transposed(db) : db;
  const auto column = [&](int32_t i) {
    return op("GatherV2", {g.x(0), constant(g.graph(), Tensor::scalar(i)),
                           constant(g.graph(), Tensor::scalar<int32_t>(1))});
  };
  const Output rows = take(g.dy(), column(adjoint_a ? 1 : 0));
  const Output others = take(adjoint_b ? transposed(g.x(3)) : g.x(3), column(adjoint_a ? 0 : 1));
  const Output products = rows * conj(others);
  g.dx(1) = sum(adjoint_a ? conj(products) : products, 1);
}

const Op product_op{{
    .name = "SparseTensorDenseMatMul",
    .doc = "product = A b, where A is the sparse matrix of a_indices, a_values and a_shape; either "
           "may be transposed (and conjugated) first.",
    .inputs = {"a_indices: Tindices", "a_values: T", "a_shape: int64", "b: T"},
    .outputs = {"product: T"},
    .attrs = {"T: type", "Tindices: {int32, int64} = int64", "adjoint_a: bool = false",
              "adjoint_b: bool = false"},
    .shape = infer_product,
    .gradient = product_gradient,
    .kernels = {cpu_kernel("T",
                           Types<float, double, half, bfloat16, int32_t, complex64, complex128>{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return r.inputs[0].dtype == DType::i64 ? bind_product<T, int64_t>(r)
                                                                    : bind_product<T, int32_t>(r);
                           })},
    .examples = {{.inputs = {longs({2, 2}, {0, 1, 1, 0}), floats({2, 3}), longs({2, 2}),
                             floats({2, 1}, {5, 7})},
                  .outputs = {floats({2, 1}, {14, 15})}}},
    .value_inputs = {2},
    .has_complex_gradient = true,
}};

}  // namespace
}  // namespace leat
