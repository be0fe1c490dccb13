// Sparse tensors as indices [n, rank], values [n] and a dense shape [rank]: SparseReorder,
// SparseReshape, SparseTensorDenseAdd.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"
#include "kernels/moves/strided_copy.h"
#include "kernels/sparse/dense_form.h"
#include "kernels/sparse/sparse_tensor.h"

namespace leat {
namespace {

// ---- SparseReorder

template <class T>
void reorder(ExecuteContext& c) {
  const Tensor &indices = c.input(0), &values = c.input(1);
  check_sparse(indices, values, c.input(2));
  const std::vector<int64_t> order = sorted_entries(indices, all_columns(indices));
  const int64_t rank = indices.shape()[1];
  Tensor out_indices(DType::i64, indices.shape()), out_values(values.dtype(), values.shape());
  for (size_t i = 0; i < order.size(); ++i) {
    copy_elements(indices.data<int64_t>() + order[i] * rank, rank,
                  out_indices.data<int64_t>() + static_cast<int64_t>(i) * rank);
    out_values.data<T>()[i] = values.data<T>()[order[i]];
  }
  c.set_output(0, std::move(out_indices));
  c.set_output(1, std::move(out_values));
}

// The gradient of entry i is that of its place in the output: reorders the places with the indices,
// and inverts this order.
void reorder_gradient(Gradient& g) {
  const Output count = cast(size_of(g.x(1)), i64);
  const Output numbers = arange(g.graph(), count);
  const Output order = op_outputs("SparseReorder", {g.x(0), numbers, g.x(2)})[1];
  g.dx(1) = take(g.dy(1), invert_permutation(order));
}

const Op reorder_op{{
    .name = "SparseReorder",
    .doc = "The same sparse tensor with its entries in row-major order of their indices.",
    .inputs = {"input_indices: int64", "input_values: T", "input_shape: int64"},
    .outputs = {"output_indices: int64", "output_values: T"},
    .attrs = {"T: type"},
    .shape =
        [](ShapeContext& c) {
          const Shape indices = infer_sparse(c);
          c.set_output(0, indices);
          c.set_output(1, {indices[0]});
        },
    .gradient = reorder_gradient,
    .kernels = {execute_kernel("T", AllTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { reorder<T>(c); })},
    .examples = {{.inputs = {longs({2, 2}, {1, 0, 0, 2}), floats({5, 6}), longs({2, 3})},
                  .outputs = {longs({2, 2}, {0, 2, 1, 0}), floats({6, 5})}}},
}};

// ---- SparseReshape

// The new shape, with a -1 replaced by its extent.
std::vector<int64_t> complete_shape(const std::vector<int64_t>& old_shape,
                                    std::vector<int64_t> new_shape) {
  int64_t elements = 1, known = 1;
  for (int64_t extent : old_shape) {
    check(extent >= 0, "Expected shape dimensions to be non-negative, got ", extent);
    elements = product_of_extents(elements, extent);
  }
  int64_t* missing = nullptr;
  for (int64_t& extent : new_shape) {
    if (extent == -1) {
      check(missing == nullptr, "only one output dimension may be -1");
      missing = &extent;
    } else {
      check(extent >= 0, "size ", extent, " must be non-negative");
      known = product_of_extents(known, extent);
    }
  }
  if (missing != nullptr) {
    check(known > 0,
          "reshape cannot infer the missing input size for an empty tensor unless all specified "
          "input sizes are non-zero");
    *missing = elements / known;
    known *= *missing;
  }
  check(known == elements, "Input to reshape is a tensor with ", elements,
        " dense values, but the requested shape has ", known);
  return new_shape;
}

void reshape_entries(ExecuteContext& c) {
  const Tensor& indices = c.input(0);
  check(indices.shape().rank() == 2, "Input indices should be a matrix but received shape ",
        indices.shape());
  for (int i : {1, 2}) {
    check(c.input(i).shape().rank() == 1, "shapes should be vectors but received shape ",
          c.input(i).shape());
  }
  const std::vector<int64_t> from = to_int64s(c.input(1)),
                             to = complete_shape(from, to_int64s(c.input(2)));
  const auto from_rank = static_cast<int64_t>(from.size()),
             to_rank = static_cast<int64_t>(to.size());
  check(indices.shape()[1] == from_rank,
        "Input tensor rank must match input shape length: ", indices.shape(), " and ", from_rank);
  const int64_t n = indices.shape()[0];
  c.set_output(1, Tensor::of<int64_t>({to_rank}, std::span<const int64_t>(to)));
  if (from == to) return c.set_output(0, indices);
  check(n == 0 || std::count(to.begin(), to.end(), 0) == 0, "Input tensor has ", n,
        " non zero elements but its shape is empty");
  Tensor out(DType::i64, {n, to_rank});
  std::vector<int64_t> strides(to_rank, 1);
  for (int64_t axis = to_rank - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * to[axis];
  for (int64_t i = 0; i < n; ++i) {
    uint64_t place = 0;  // wraps where an index lies outside of the shape
    for (int64_t axis = 0; axis < from_rank; ++axis) {
      place = place * static_cast<uint64_t>(from[axis]) +
              static_cast<uint64_t>(indices.data<int64_t>()[i * from_rank + axis]);
    }
    auto at = static_cast<int64_t>(place);
    for (int64_t axis = 0; axis < to_rank; ++axis) {
      const int64_t stride = strides[axis];
      out.data<int64_t>()[i * to_rank + axis] = at / stride;
      at %= stride;
    }
  }
  c.set_output(0, std::move(out));
}

const Op reshape_op{{
    .name = "SparseReshape",
    .doc = "The indices that the entries have when the dense tensor is reshaped to new_shape, in "
           "which one extent may be -1: the rest.",
    .inputs = {"input_indices: int64", "input_shape: int64", "new_shape: int64"},
    .outputs = {"output_indices: int64", "output_shape: int64"},
    .shape =
        [](ShapeContext& c) {
          const Shape indices = c.with_rank(0, 2), shape = c.with_rank(2, 1);
          c.with_rank(1, 1);
          c.set_output(0, {indices[0], shape[0]});
          c.set_output(1, shape);
        },
    .kernels = {{.execute = reshape_entries}},
    .examples = {{.inputs = {longs({2, 2}, {0, 1, 1, 2}), longs({2, 3}), longs({3, -1})},
                  .outputs = {longs({2, 2}, {0, 1, 2, 1}), longs({3, 2})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

// ---- SparseTensorDenseAdd

template <class T, class Index>
BoundKernel bind_dense_add(const KernelRequest& r) {
  using C = ComputeType<T>;
  const Shape &indices = r.inputs[0].shape, &dense = r.inputs[3].shape;
  check_dense_add(r);
  return BoundKernel::of([count = indices[0], rank = dense.rank(), dense,
                          strides = strides_of(dense)](const Arguments& a) {
    const Index *index = a.input<Index>(0), *shape = a.input<Index>(2);
    for (int axis = 0; axis < rank; ++axis) {
      check(shape[axis] == dense[axis], "Dimension ", axis, " does not equal: ", shape[axis],
            " in a_shape vs ", dense[axis], " in b");
    }
    T* y = a.output<T>();
    if (y != a.input<T>(3)) copy_elements(a.input<T>(3), dense.elements(), y);
    for (int64_t i = 0; i < count; ++i, index += rank) {
      int64_t at = 0;
      for (int axis = 0; axis < rank; ++axis) {
        check(index[axis] >= 0 && index[axis] < dense[axis],
              "Sparse tensor has some invalid index on dimension ", axis, ": ", index[axis],
              " is not in [0, ", dense[axis], ")");
        at += index[axis] * strides[axis];
      }
      y[at] = T(C(y[at]) + C(a.input<T>(1)[i]));
    }
  });
}

const Op dense_add_op{{
    .name = "SparseTensorDenseAdd",
    .doc = "output = b, with a_values[i] added at a_indices[i, :].",
    .inputs = {"a_indices: Tindices", "a_values: T", "a_shape: Tindices", "b: T"},
    .outputs = {"output: T"},
    .attrs = {"T: numbertype", "Tindices: {int32, int64}"},
    .shape =
        [](ShapeContext& c) {
          infer_sparse(c);
          c.set_output(0, c.input(3));
        },
    .gradient =
        [](Gradient& g) {
          g.dx(1) = op("GatherNd", {g.dy(), g.x(0)});
          g.dx(3) = g.dy();
        },
    .kernels = {cpu_kernel("T", NumberAndComplexTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return r.inputs[0].dtype == DType::i64 ? bind_dense_add<T, int64_t>(r)
                                                                    : bind_dense_add<T, int32_t>(r);
                           })},
    .examples = {{.inputs = {longs({2, 2}, {0, 1, 0, 1}), floats({5, 6}), longs({1, 2}),
                             floats({1, 2}, {1, 2})},
                  .outputs = {floats({1, 2}, {1, 13})}}},
}};

}  // namespace
}  // namespace leat
