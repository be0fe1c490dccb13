// Two sparse tensors entry by entry: SparseAdd with its gradient, SparseSparseMaximum and Minimum.
// Both have their entries in row-major order, so a single pass merges them.
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/sparse/sparse_tensor.h"

namespace leat {
namespace {

// Inputs 0 to 2 and 3 to 5 are sparse tensors of one shape.
void check_operands(ExecuteContext& c) {
  check_sparse(c.input(0), c.input(1), c.input(2));
  check_sparse(c.input(3), c.input(4), c.input(5));
  const Tensor &a = c.input(2), &b = c.input(5);
  check(a.shape() == b.shape(), "Operands do not have the same ranks; got shapes: ", a, " and ", b);
  for (int64_t i = 0; i < a.elements(); ++i) {
    StepEnd::pace(16);
    check(a.data<int64_t>()[i] == b.data<int64_t>()[i], "Operands' shapes do not match: got ",
          a.data<int64_t>()[i], " and ", b.data<int64_t>()[i], " for dimension ", i);
  }
}

// f(i, j) for every place at which an operand has an entry, in order: entry i of a and j of b, or
// -1 for an operand without an entry there.
template <class F>
void for_each_place(const Tensor& a_indices, const Tensor& b_indices, F f) {
  const std::vector<int> columns = all_columns(a_indices);
  const int64_t a_count = a_indices.shape()[0], b_count = b_indices.shape()[0];
  for (int64_t i = 0, j = 0; i < a_count || j < b_count;) {
    StepEnd::pace(16);
    const int order = i == a_count   ? 1
                      : j == b_count ? -1
                                     : compare_entries(a_indices, i, b_indices, j, columns);
    f(order <= 0 ? i : -1, order >= 0 ? j : -1);
    if (order <= 0) ++i;
    if (order >= 0) ++j;
  }
}

// The sparse tensor with combine(a's value or null, b's value or null, result), where that returns
// true. The operands are checked.
template <class T, class F>
void merge_entries(ExecuteContext& c, F combine) {
  const Tensor &a = c.input(0), &b = c.input(3);
  const T *a_values = c.input(1).data<T>(), *b_values = c.input(4).data<T>();
  const int64_t rank = a.shape()[1];
  std::vector<int64_t> indices;
  std::vector<T> values;
  for_each_place(a, b, [&](int64_t i, int64_t j) {
    T value{};
    if (!combine(i < 0 ? nullptr : a_values + i, j < 0 ? nullptr : b_values + j, value)) return;
    const int64_t* from = i < 0 ? b.data<int64_t>() + j * rank : a.data<int64_t>() + i * rank;
    indices.insert(indices.end(), from, from + rank);
    values.push_back(value);
  });
  const auto count = static_cast<int64_t>(values.size());
  c.set_output(0, Tensor::of<int64_t>({count, rank}, std::span<const int64_t>(indices)));
  c.set_output(1, Tensor::of<T>({count}, std::span<const T>(values)));
}

// ---- SparseAdd

// thresh <= |value|, also where the magnitude of an integer does not fit its type.
template <class C>
bool reaches(C value, C thresh) {
  if constexpr (std::is_unsigned_v<C>) return value >= thresh;
  return value >= thresh || value <= -thresh;
}
template <class C>
bool reaches(const std::complex<C>& value, C thresh) {
  return std::abs(value) >= thresh;
}

// The type of |x|.
template <class T>
struct MagnitudeOf {
  using type = T;
};
template <class T>
struct MagnitudeOf<std::complex<T>> {
  using type = T;
};

template <class T>
void add(ExecuteContext& c) {
  using C = ComputeType<T>;
  using Magnitude = typename MagnitudeOf<T>::type;
  check_operands(c);
  const Tensor& thresh = c.input(6);
  check(thresh.shape().rank() == 0, "The magnitude threshold must be a scalar: got shape ",
        thresh.shape());
  check(thresh.dtype() == dtype_of<Magnitude>, "The magnitude threshold must be of type ",
        dtype_of<Magnitude>, ", like the values, not ", thresh.dtype());
  merge_entries<T>(c, [least = ComputeType<Magnitude>(thresh.item<Magnitude>())](
                          const T* a, const T* b, T& sum) {
    sum = a == nullptr ? *b : b == nullptr ? *a : T(C(*a) + C(*b));
    return a == nullptr || b == nullptr || reaches(C(sum), least);
  });
  c.set_output(2, c.input(2));
}

void infer_merged(ShapeContext& c) {
  const Shape a = infer_sparse(c, 0), b = infer_sparse(c, 3);
  const int64_t rank = a[1] == any ? b[1] : a[1];
  check(b[1] == any || b[1] == rank, "Operands do not have the same ranks: ", a[1], " and ", b[1]);
  c.set_output(0, {any, rank});
  c.set_output(1, {any});
  if (c.num_outputs() > 2) c.set_output(2, {rank});
}

const Op add_op{{
    .name = "SparseAdd",
    .doc = "sum = a + b; leaves out entries that both have if the magnitude of their sum is below "
           "thresh. Entries are in row-major order.",
    .inputs = {"a_indices: int64", "a_values: T", "a_shape: int64", "b_indices: int64",
               "b_values: T", "b_shape: int64", "thresh: Treal"},
    .outputs = {"sum_indices: int64", "sum_values: T", "sum_shape: int64"},
    .attrs = {"T: numbertype", "Treal: realnumbertype"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(6, 0);
          infer_merged(c);
        },
    .gradient =
        [](Gradient& g) {
          const std::vector<Output> dx =
              op_outputs("SparseAddGrad", {g.dy(1), g.x(0), g.x(3), g.y(0)});
          g.dx(1) = dx[0];
          g.dx(4) = dx[1];
        },
    .kernels = {execute_kernel("T", NumberAndComplexTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { add<T>(c); })},
    .examples = {{.inputs = {longs({2, 1}, {0, 2}), floats({1, 2}), longs({4}),
                             longs({2, 1}, {1, 2}), floats({3, -2}), longs({4}),
                             Tensor::scalar(0.5F)},
                  .outputs = {longs({2, 1}, {0, 1}), floats({1, 3}), longs({4})}}},
    .has_data_dependent_shape = true,
}};

// dx[i] = dy[k] where entry i of x is entry k of the sum, 0 where it was left out.
template <class T>
void take_gradients(const Tensor& x_indices, const Tensor& sum_indices, const T* dy, T* dx) {
  const int64_t count = x_indices.shape()[0], sum_count = sum_indices.shape()[0];
  std::fill_n(dx, count, T(0));
  if (count == 0 || sum_count == 0) return;  // whatever the rank
  const std::vector<int> columns = all_columns(x_indices);
  for (int64_t i = 0, k = 0; i < count && k < sum_count;) {
    StepEnd::pace(16);
    const int order = compare_entries(x_indices, i, sum_indices, k, columns);
    if (order == 0) dx[i] = dy[k];
    if (order <= 0) ++i;
    if (order >= 0) ++k;
  }
}

template <class T>
void add_gradient(ExecuteContext& c) {
  const Tensor &dy = c.input(0), &a = c.input(1), &b = c.input(2), &sum = c.input(3);
  check(a.shape().rank() == 2 && b.shape().rank() == 2 && sum.shape().rank() == 2,
        "Input indices should be matrices but received shapes: ", a.shape(), " and ", b.shape(),
        " and ", sum.shape());
  check(dy.shape().rank() == 1,
        "Input backprop_val_grad should be a vector but received shape: ", dy.shape());
  check(a.shape()[1] == b.shape()[1] && b.shape()[1] == sum.shape()[1],
        "The densified operands should have the same ndims; for A, B, sum got: ", a.shape()[1],
        ", ", b.shape()[1], " and ", sum.shape()[1]);
  check(
      dy.elements() == sum.shape()[0],
      "# elements of backprop_val_grad and # rows of sum_indices should match (#nnz of sum): got ",
      dy.elements(), " and ", sum.shape()[0]);
  for (int x : {0, 1}) {
    const Tensor& indices = c.input(1 + x);
    Tensor dx(dy.dtype(), {indices.shape()[0]});
    take_gradients(indices, sum, dy.data<T>(), dx.data<T>());
    c.set_output(x, std::move(dx));
  }
}

const Op add_gradient_op{{
    .name = "SparseAddGrad",
    .doc = "The gradients of SparseAdd with respect to the values of a and b: that of the sum's "
           "entry at the same place, 0 if there is none.",
    .inputs = {"backprop_val_grad: T", "a_indices: int64", "b_indices: int64",
               "sum_indices: int64"},
    .outputs = {"a_val_grad: T", "b_val_grad: T"},
    .attrs = {"T: numbertype"},
    .shape =
        [](ShapeContext& c) {
          c.set_output(0, {c.with_rank(1, 2)[0]});
          c.set_output(1, {c.with_rank(2, 2)[0]});
        },
    .kernels = {execute_kernel("T", NumberAndComplexTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { add_gradient<T>(c); })},
    .examples = {{.inputs = {floats({5, 6}), longs({2, 1}, {0, 2}), longs({2, 1}, {1, 2}),
                             longs({2, 1}, {0, 1})},
                  .outputs = {floats({5, 0}), floats({6, 0})}}},
    .is_not_differentiable = true,
}};

// ---- SparseSparseMaximum, SparseSparseMinimum

struct Larger {
  template <class T>
  T operator()(T x, T y) const {
    return x >= y || x != x ? x : y;  // NaN wins
  }
};

struct Smaller {
  template <class T>
  T operator()(T x, T y) const {
    return x <= y || x != x ? x : y;
  }
};

// Checks input `first` and the two after it; SparseAdd accepts any index.
void check_bounds(ExecuteContext& c, int first) {
  const Tensor &indices = c.input(first), &shape = c.input(first + 2);
  const int64_t rank = shape.elements();
  for (int64_t i = 0; i < indices.elements(); ++i) {
    const int64_t index = indices.data<int64_t>()[i], extent = shape.data<int64_t>()[i % rank];
    check(index >= 0 && index < extent, "Sparse index tuple indices[", i / rank, "] is out of ",
          "bounds: ", index, " for dimension ", i % rank, " is not in [0, ", extent, ")");
  }
}

template <class Choice>
Kernel choosing() {
  return execute_kernel("T", NumberTypes{}, []<class T>(TypeTag<T>, ExecuteContext& c) {
    using C = ComputeType<T>;
    check_operands(c);
    for (int operand : {0, 3}) check_bounds(c, operand);
    merge_entries<T>(c, [](const T* a, const T* b, T& out) {
      out = T(Choice{}(a == nullptr ? C(0) : C(*a), b == nullptr ? C(0) : C(*b)));
      return true;
    });
  });
}

const Op maximum_op{{
    .name = "SparseSparseMaximum",
    .doc = "output = max(a, b) at every place where a or b has an entry; 0 stands for the other. "
           "Entries are in row-major order.",
    .inputs = {"a_indices: int64", "a_values: T", "a_shape: int64", "b_indices: int64",
               "b_values: T", "b_shape: int64"},
    .outputs = {"output_indices: int64", "output_values: T"},
    .attrs = {"T: realnumbertype"},
    .shape = infer_merged,
    .kernels = {choosing<Larger>()},
    .examples = {{.inputs = {longs({2, 1}, {0, 2}), floats({-1, 2}), longs({4}),
                             longs({2, 1}, {1, 2}), floats({3, -2}), longs({4})},
                  .outputs = {longs({3, 1}, {0, 1, 2}), floats({0, 3, 2})}}},
    .has_data_dependent_shape = true,
}};

const Op minimum_op{{
    .name = "SparseSparseMinimum",
    .doc = "output = min(a, b) at every place where a or b has an entry; 0 stands for the other. "
           "Entries are in row-major order.",
    .inputs = {"a_indices: int64", "a_values: T", "a_shape: int64", "b_indices: int64",
               "b_values: T", "b_shape: int64"},
    .outputs = {"output_indices: int64", "output_values: T"},
    .attrs = {"T: numbertype"},
    .shape = infer_merged,
    .kernels = {choosing<Smaller>()},
    .examples = {{.inputs = {longs({2, 1}, {0, 2}), floats({-1, 2}), longs({4}),
                             longs({2, 1}, {1, 2}), floats({3, -2}), longs({4})},
                  .outputs = {longs({3, 1}, {0, 1, 2}), floats({-1, 0, -2})}}},
    .has_data_dependent_shape = true,
}};

}  // namespace
}  // namespace leat
