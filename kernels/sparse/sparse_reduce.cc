// Combine entries that differ only along some axes: SparseReduceSum and Max, to dense and to sparse
// tensors, and SparseSoftmax.
#include <cmath>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"
#include "kernels/pieces.h"
#include "kernels/sparse/sparse_tensor.h"
#include "kernels/wrapping.h"

namespace leat {
namespace {

// f(begin, end) for every run of entries in `order` that are equal in these columns.
template <class F>
void for_each_group(const Tensor& indices, const std::vector<int64_t>& order,
                    const std::vector<int>& columns, F f) {
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    StepEnd::pace(16);
    for (end = begin + 1; end < order.size(); ++end) {
      if (compare_entries(indices, order[begin], indices, order[end], columns) != 0) break;
    }
    f(begin, end);
  }
}

// ---- Reductions

// The axes that remain, of `rank` axes.
std::vector<int> kept_axes(const Tensor& reduced, int64_t rank) {
  check(reduced.shape().rank() <= 1,
        "Expected reduction_axes to be a scalar or a vector; got shape: ", reduced.shape());
  std::vector<bool> is_reduced(rank, false);
  for (const int64_t axis : to_int64s(reduced)) {
    check(axis >= -rank && axis < rank, "Invalid reduction dimension ", axis, ", for input with ",
          rank, " dimensions.");
    is_reduced[axis < 0 ? axis + rank : axis] = true;
  }
  std::vector<int> kept;
  for (int axis = 0; axis < rank; ++axis) {
    if (!is_reduced[axis]) kept.push_back(axis);
  }
  return kept;
}

struct Sum {
  template <class C>
  C operator()(C x, C y) const {
    return static_cast<C>(Wrapping<C>(x) + Wrapping<C>(y));
  }
};

struct Max {
  template <class C>
  C operator()(C x, C y) const {
    return x >= y || x != x ? x : y;  // NaN wins
  }
};

template <class T, class Combine>
T reduced(const T* values, const std::vector<int64_t>& order, size_t begin, size_t end) {
  using C = ComputeType<T>;
  C out = C(values[order[begin]]);
  for (size_t i = begin + 1; i < end; ++i) out = Combine{}(out, C(values[order[i]]));
  return T(out);
}

// The checked inputs of a reduction, and the values derived from them.
struct Reduction {
  const Tensor &indices, &values;
  std::vector<int64_t> shape;  // of the input
  bool keeps_axes;
  std::vector<int> kept;
  std::vector<int64_t> out_shape;

  explicit Reduction(ExecuteContext& c)
      : indices(c.input(0)), values(c.input(1)), keeps_axes(c.node().attr<bool>("keep_dims")) {
    check_sparse(indices, values, c.input(2));
    shape = to_int64s(c.input(2));
    kept = kept_axes(c.input(3), static_cast<int64_t>(shape.size()));
    for (const int64_t extent : shape) {
      check(extent >= 0, "input_shape has a negative extent: ", extent);
    }
    if (keeps_axes) out_shape.assign(shape.size(), 1);
    for (const int axis : kept) {
      if (keeps_axes) {
        out_shape[axis] = shape[axis];
      } else {
        out_shape.push_back(shape[axis]);
      }
    }
  }
};

template <class T, class Combine>
void reduce_to_dense(ExecuteContext& c) {
  const Reduction r(c);
  Tensor out(dtype_of<T>, Shape(std::span<const int64_t>(r.out_shape)));
  fill_in_pieces(out.data<T>(), out.elements(), T(0));
  const std::vector<int64_t> order = sorted_entries(r.indices, r.kept);
  const int64_t rank = r.indices.shape()[1];
  for_each_group(r.indices, order, r.kept, [&](size_t begin, size_t end) {
    const int64_t* index = r.indices.data<int64_t>() + order[begin] * rank;
    int64_t at = 0;
    for (const int axis : r.kept) {
      check(index[axis] >= 0 && index[axis] < r.shape[axis], "indices[", order[begin], "] holds ",
            index[axis], " for dimension ", axis, ", which is not in [0, ", r.shape[axis], ")");
      at = at * r.shape[axis] + index[axis];
    }
    out.data<T>()[at] = reduced<T, Combine>(r.values.data<T>(), order, begin, end);
  });
  c.set_output(0, std::move(out));
}

template <class T, class Combine>
void reduce_to_sparse(ExecuteContext& c) {
  const Reduction r(c);
  const std::vector<int64_t> order = sorted_entries(r.indices, r.kept);
  const int64_t rank = r.indices.shape()[1], out_rank = static_cast<int64_t>(r.out_shape.size());
  int64_t count = 0;
  for_each_group(r.indices, order, r.kept, [&](size_t, size_t) { ++count; });
  Tensor out_indices(DType::i64, {count, out_rank}), out_values(dtype_of<T>, {count});
  auto* to = out_indices.data<int64_t>();
  T* value = out_values.data<T>();
  std::fill_n(to, out_indices.elements(), int64_t{0});
  for_each_group(r.indices, order, r.kept, [&](size_t begin, size_t end) {
    const int64_t* index = r.indices.data<int64_t>() + order[begin] * rank;
    for (size_t i = 0; i < r.kept.size(); ++i) {
      to[r.keeps_axes ? r.kept[i] : static_cast<int>(i)] = index[r.kept[i]];
    }
    *value++ = reduced<T, Combine>(r.values.data<T>(), order, begin, end);
    to += out_rank;
  });
  c.set_output(0, std::move(out_indices));
  c.set_output(1, std::move(out_values));
  c.set_output(2, Tensor::of<int64_t>({out_rank}, std::span<const int64_t>(r.out_shape)));
}

Shape infer_dense(ShapeContext& c) {
  infer_sparse(c);
  check(c.input(3).rank() <= 1,
        "Expected reduction_axes to be a scalar or a vector; got shape: ", c.input(3));
  const Shape shape = c.partial_value(2);
  const Tensor* axes = c.value(3);
  const bool keeps_axes = c.attr<bool>("keep_dims");
  if (!shape.has_rank()) return Shape::unknown();
  if (axes == nullptr) return keeps_axes ? Shape::of_rank(shape.rank()) : Shape::unknown();
  Shape out;
  const std::vector<int> kept = kept_axes(*axes, shape.rank());
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool is_kept = std::find(kept.begin(), kept.end(), axis) != kept.end();
    if (is_kept || keeps_axes) out.push_back(is_kept ? shape[axis] : 1);
  }
  return out;
}

void infer_sparse_reduction(ShapeContext& c) {
  const Shape out = infer_dense(c);
  c.set_output(0, {any, out.has_rank() ? out.rank() : any});
  c.set_output(1, {any});
  c.set_output(2, {out.has_rank() ? out.rank() : any});
}

// Every entry gets the gradient of the element that it went into.
void sum_gradient(Gradient& g) {
  const Output indices = g.x(0), shape = g.x(2), rank = size_of(shape);
  const Output axes = g.x(3) % rank;
  const Output ones = cast(op("OnesLike", {axes}), i64);
  const Output kept_shape = dynamic_stitch({arange(g.graph(), rank), axes}, {shape, ones});
  g.dx(1) = op("GatherNd", {reshape(g.dy(), kept_shape), minimum(indices, kept_shape - 1)});
}

const Op sum_op{{
    .name = "SparseReduceSum",
    .doc = "output = the sum of the entries over reduction_axes, dense; keep_dims leaves the axes "
           "with extent 1.",
    .inputs = {"input_indices: int64", "input_values: T", "input_shape: int64",
               "reduction_axes: int32"},
    .outputs = {"output: T"},
    .attrs = {"keep_dims: bool = false", "T: numbertype"},
    .shape = [](ShapeContext& c) { c.set_output(0, infer_dense(c)); },
    .gradient = sum_gradient,
    .kernels = {execute_kernel(
        "T", NumberAndComplexTypes{},
        []<class T>(TypeTag<T>, ExecuteContext& c) { reduce_to_dense<T, Sum>(c); })},
    .examples = {{.inputs = {longs({3, 2}, {0, 1, 1, 0, 0, 2}), floats({1, 2, 3}), longs({3, 3}),
                             ints({1})},
                  .outputs = {floats({4, 2, 0})}},
                 {.inputs = {longs({3, 2}, {0, 1, 1, 0, 0, 2}), floats({1, 2, 3}), longs({3, 3}),
                             ints({0, -1})},
                  .attrs = {{"keep_dims", true}},
                  .outputs = {floats({1, 1}, {6})}}},
    .has_data_dependent_shape = true,
}};

const Op max_op{{
    .name = "SparseReduceMax",
    .doc = "output = the largest of the entries over reduction_axes, dense, and 0 where there are "
           "none; keep_dims leaves the axes with extent 1.",
    .inputs = {"input_indices: int64", "input_values: T", "input_shape: int64",
               "reduction_axes: int32"},
    .outputs = {"output: T"},
    .attrs = {"keep_dims: bool = false", "T: realnumbertype"},
    .shape = [](ShapeContext& c) { c.set_output(0, infer_dense(c)); },
    .kernels = {execute_kernel(
        "T", NumberTypes{},
        []<class T>(TypeTag<T>, ExecuteContext& c) { reduce_to_dense<T, Max>(c); })},
    .examples = {{.inputs = {longs({3, 2}, {0, 1, 1, 0, 0, 2}), floats({-1, 2, -3}), longs({3, 3}),
                             ints({1})},
                  .outputs = {floats({-1, 2, 0})}}},
    .has_data_dependent_shape = true,
}};

const Op sparse_sum_op{{
    .name = "SparseReduceSumSparse",
    .doc = "output = the sum of the entries over reduction_axes, sparse, with an entry wherever "
           "there is one to reduce; keep_dims leaves the axes with extent 1.",
    .inputs = {"input_indices: int64", "input_values: T", "input_shape: int64",
               "reduction_axes: int32"},
    .outputs = {"output_indices: int64", "output_values: T", "output_shape: int64"},
    .attrs = {"keep_dims: bool = false", "T: numbertype"},
    .shape = infer_sparse_reduction,
    .kernels = {execute_kernel(
        "T", NumberAndComplexTypes{},
        []<class T>(TypeTag<T>, ExecuteContext& c) { reduce_to_sparse<T, Sum>(c); })},
    .examples = {{.inputs = {longs({3, 2}, {0, 1, 2, 0, 0, 2}), floats({1, 2, 3}), longs({3, 3}),
                             ints({1})},
                  .outputs = {longs({2, 1}, {0, 2}), floats({4, 2}), longs({3})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

const Op sparse_max_op{{
    .name = "SparseReduceMaxSparse",
    .doc = "output = the largest of the entries over reduction_axes, sparse, with an entry "
           "wherever there is one to reduce; keep_dims leaves the axes with extent 1.",
    .inputs = {"input_indices: int64", "input_values: T", "input_shape: int64",
               "reduction_axes: int32"},
    .outputs = {"output_indices: int64", "output_values: T", "output_shape: int64"},
    .attrs = {"keep_dims: bool = false", "T: realnumbertype"},
    .shape = infer_sparse_reduction,
    .kernels = {execute_kernel(
        "T", NumberTypes{},
        []<class T>(TypeTag<T>, ExecuteContext& c) { reduce_to_sparse<T, Max>(c); })},
    .examples = {{.inputs = {longs({3, 2}, {0, 1, 2, 0, 0, 2}), floats({1, 2, 3}), longs({3, 3}),
                             ints({1})},
                  .attrs = {{"keep_dims", true}},
                  .outputs = {longs({2, 2}, {0, 0, 2, 0}), floats({3, 2}), longs({3, 1})}}},
    .has_data_dependent_shape = true,
}};

// ---- SparseSoftmax

// Results lie in row-major order of their entries, whatever the order of the input.
template <class T>
void softmax(ExecuteContext& c) {
  using C = ComputeType<T>;
  const Tensor &indices = c.input(0), &values = c.input(1);
  check_sparse(indices, values, c.input(2));
  check(c.input(2).elements() >= 2,
        "Input should have rank >= 2, but received shape: ", c.input(2));
  int64_t elements = 1;
  for (const int64_t extent : c.input(2).span<int64_t>()) {
    check(extent >= 0, "Expected shape dimensions to be non-negative, got ", extent);
    elements = product_of_extents(elements, extent);
  }
  std::vector<int> rows = all_columns(indices);
  const std::vector<int64_t> order = sorted_entries(indices, rows);
  rows.pop_back();
  const T* x = values.data<T>();
  Tensor out(dtype_of<T>, values.shape());
  T* y = out.data<T>();
  for_each_group(indices, order, rows, [&](size_t begin, size_t end) {
    const C largest = C(reduced<T, Max>(x, order, begin, end));
    C sum = 0;
    for (size_t i = begin; i < end; ++i) sum += std::exp(C(x[order[i]]) - largest);
    for (size_t i = begin; i < end; ++i) y[i] = T(std::exp(C(x[order[i]]) - largest) / sum);
  });
  c.set_output(0, std::move(out));
}

// dx = (dy - sum of dy y over the row) y
void softmax_gradient(Gradient& g) {
  const Output indices = g.x(0), shape = g.x(2);
  const Output sums =
      op("SparseReduceSum", {indices, g.dy() * g.y(), shape, constant(g.graph(), ints({-1}))},
         {{"keep_dims", true}});
  g.dx(1) = op("SparseDenseCwiseAdd", {indices, g.dy(), shape, -sums}) * g.y();
}

const Op softmax_op{{
    .name = "SparseSoftmax",
    .doc = "output = exp(x) / sum of exp(x) over the entries that differ along the last axis only, "
           "in row-major order of the entries.",
    .inputs = {"sp_indices: int64", "sp_values: T", "sp_shape: int64"},
    .outputs = {"output: T"},
    .attrs = {"T: {half, float, double}"},
    .shape = [](ShapeContext& c) { c.set_output(0, {infer_sparse(c)[0]}); },
    .gradient = softmax_gradient,
    .kernels = {execute_kernel("T", Types<half, float, double>{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { softmax<T>(c); })},
    .examples = {{.inputs = {longs({3, 2}, {0, 1, 0, 3, 2, 0}), floats({0, 0, 5}), longs({3, 4})},
                  .outputs = {floats({0.5, 0.5, 1})}}},
}};

}  // namespace
}  // namespace leat
