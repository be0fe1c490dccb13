// A sparse tensor with a dense one that is broadcast to it, at the positions of the entries:
// SparseDenseCwiseAdd, Mul and Div.
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/moves/strided_copy.h"
#include "kernels/sparse/sparse_tensor.h"
#include "kernels/wrapping.h"

namespace leat {
namespace {

struct Add {
  template <class C>
  C operator()(C x, C y) const {
    return static_cast<C>(Wrapping<C>(x) + Wrapping<C>(y));
  }
};

struct Mul {
  template <class C>
  C operator()(C x, C y) const {
    return static_cast<C>(Wrapping<C>(x) * Wrapping<C>(y));
  }
};

struct Div {
  template <class C>
  C operator()(C x, C y) const {
    if constexpr (std::is_integral_v<C>) {
      check(y != C(0), "Integer division by zero");
      if constexpr (std::is_signed_v<C>) {  // the one quotient that overflows wraps
        if (y == C(-1)) return static_cast<C>(-static_cast<std::make_unsigned_t<C>>(x));
      }
    }
    return static_cast<C>(x / y);
  }
};

template <class T, class F>
BoundKernel bind(const KernelRequest& r) {
  using C = ComputeType<T>;
  const Shape& dense = r.inputs[3].shape;
  const int64_t count = r.inputs[0].shape[0], rank = r.inputs[0].shape[1];
  check(rank > 0, "The sparse tensor must have a rank of 1 or more");
  check(rank >= dense.rank(),
        "SparseDenseBinaryOpShared broadcasts dense to sparse only; got "
        "rank ",
        rank, " and dense shape ", dense);
  return BoundKernel::of([=, strides = strides_of(dense)](const Arguments& a) {
    const int64_t *index = a.input<int64_t>(0), *shape = a.input<int64_t>(2);
    const auto first = static_cast<int>(rank - dense.rank());  // sparse's axis for dense's 0
    for (int d = 0; d < dense.rank(); ++d) {
      const int64_t extent = shape[first + d];
      check(dense[d] == extent || (dense[d] == 1 && extent > 1),
            "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
            "extent ",
            extent, " vs. dense shape ", dense, " at axis ", d);
    }
    for (int64_t i = 0; i < count; ++i, index += rank) {
      StepEnd::pace(16);
      int64_t at = 0;
      for (int axis = 0; axis < rank; ++axis) {
        check(index[axis] >= 0 && index[axis] < shape[axis], "indices[", i, "] holds ", index[axis],
              " for dimension ", axis, ", which is out of bounds: need 0 <= index < ", shape[axis]);
        const int d = axis - first;
        if (d >= 0 && dense[d] != 1) at += index[axis] * strides[d];
      }
      a.output<T>()[i] = T(F{}(C(a.input<T>(1)[i]), C(a.input<T>(3)[at])));
    }
  });
}

void infer(ShapeContext& c) {
  const Shape sparse = infer_sparse(c);
  check(sparse[1] == any || c.input(3).rank() <= sparse[1], "the rank of the dense tensor, ",
        c.input(3).rank(), ", must be at most that of the sparse one, ", sparse[1]);
  c.set_output(0, {sparse[0]});
}

template <class F>
Kernel kernel() {
  return cpu_kernel("T", NumberAndComplexTypes{},
                    []<class T>(TypeTag<T>, const KernelRequest& r) { return bind<T, F>(r); });
}

// The places of the entries in the dense tensor: the last columns of the indices, 0 along an axis
// that is repeated.
Output dense_places(Gradient& g) {
  const Output dense_shape = shape_of(g.x(3), i64), rank = size_of(dense_shape);
  const auto vector = [&](int32_t value) { return constant(g.graph(), ints({value})); };
  const Output first = reshape(size_of(g.x(2)) - rank, vector(1));
  const Output begin = op("ConcatV2", {vector(0), first, constant(g.graph(), Tensor::scalar(0))});
  const Output columns = op("Slice", {g.x(0), begin, constant(g.graph(), ints({-1, -1}))});
  return minimum(columns, dense_shape - 1);
}

// The gradient of the dense tensor: entries that share an element of it add up.
Output gathered(Gradient& g, Output places, Output dy) {
  return op("ScatterNd", {places, dy, shape_of(g.x(3), i64)});
}

const Op add_op{{
    .name = "SparseDenseCwiseAdd",
    .doc = "output = sp_values + the elements of dense, broadcast to sp_shape, at sp_indices.",
    .inputs = {"sp_indices: int64", "sp_values: T", "sp_shape: int64", "dense: T"},
    .outputs = {"output: T"},
    .attrs = {"T: numbertype"},
    .shape = infer,
    .kernels = {kernel<Add>()},
    .examples = {{.inputs = {longs({2, 2}, {0, 1, 1, 0}), floats({5, 6}), longs({2, 2}),
                             floats({1, 2})},
                  .outputs = {floats({7, 7})}}},
}};

const Op mul_op{{
    .name = "SparseDenseCwiseMul",
    .doc = "output = sp_values * the elements of dense, broadcast to sp_shape, at sp_indices.",
    .inputs = {"sp_indices: int64", "sp_values: T", "sp_shape: int64", "dense: T"},
    .outputs = {"output: T"},
    .attrs = {"T: numbertype"},
    .shape = infer,
    .gradient =
        [](Gradient& g) {
          const Output places = dense_places(g);
          g.dx(1) = g.dy() * op("GatherNd", {g.x(3), places});
          g.dx(3) = gathered(g, places, g.dy() * g.x(1));
        },
    .kernels = {kernel<Mul>()},
    .examples = {{.inputs = {longs({2, 2}, {0, 1, 1, 0}), floats({5, 6}), longs({2, 2}),
                             floats({2, 1}, {2, 3})},
                  .outputs = {floats({10, 18})}}},
}};

const Op div_op{{
    .name = "SparseDenseCwiseDiv",
    .doc = "output = sp_values / the elements of dense, broadcast to sp_shape, at sp_indices.",
    .inputs = {"sp_indices: int64", "sp_values: T", "sp_shape: int64", "dense: T"},
    .outputs = {"output: T"},
    .attrs = {"T: numbertype"},
    .shape = infer,
    .gradient =
        [](Gradient& g) {
          const Output places = dense_places(g), divisors = op("GatherNd", {g.x(3), places});
          g.dx(1) = g.dy() / divisors;
          g.dx(3) = gathered(g, places, -(g.dx(1) * (g.x(1) / divisors)));
        },
    .kernels = {kernel<Div>()},
    .examples = {{.inputs = {longs({2, 2}, {0, 1, 1, 0}), floats({5, 6}), longs({2, 2}),
                             floats({2, 1}, {2, 3})},
                  .outputs = {floats({2.5, 2})}}},
}};

}  // namespace
}  // namespace leat
