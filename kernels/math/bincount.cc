// Bincount, DenseBincount, SparseBincount and RaggedBincount: histograms of small integers.
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/math/bins.h"
#include "kernels/pieces.h"
#include "kernels/sparse/sparse_tensor.h"

namespace leat {
namespace {

using BinTypes = Types<float, double, int32_t, int64_t>;

int64_t checked_size(const Tensor& size) {
  check(size.shape().rank() == 0, "size must be a scalar, got shape ", size.shape());
  const int64_t n = to_int64s(size)[0];
  check(n >= 0, "size (", n, ") must be non-negative");
  return n;
}

// Rows of counts, or of sums of weights; numbers that are `size` or more are left out.
template <class T, class Index>
BoundKernel bind(const KernelRequest& r) {
  return BoundKernel::of([bins = Bins(r)](const Arguments& a) {
    const Index* const input = a.input<Index>(0);
    fill_in_pieces(a.output<T>(), bins.rows * bins.size, T(0));
    for (int64_t i = 0; i < bins.numbers; ++i)
      check(input[i] >= 0, "Input arr must be non-negative!");
    for (int64_t i = 0; i < bins.numbers; ++i) {
      StepEnd::pace(4);
      const int64_t bin = bins.bin_of(input, i);
      if (bin < 0) continue;
      T& to = a.output<T>()[bin];
      to = bins.is_binary ? T(1) : T(to + (bins.is_weighted ? a.input<T>(2)[i] : T(1)));
    }
  });
}

const Op bincount_op{{
    .name = "Bincount",
    .doc =
        "bins[k] = the sum of weights[i] over all i with arr[i] = k < size; empty weights are 1.",
    .inputs = {"arr: int32", "size: int32", "weights: T"},
    .outputs = {"bins: T"},
    .attrs = {"T: {int32, int64, float, double}"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 0);
          c.set_output(0, Shape{c.value(1) == nullptr ? any : checked_size(*c.value(1))});
        },
    .kernels = {cpu_kernel(
        "T", BinTypes{},
        []<class T>(TypeTag<T>, const KernelRequest& r) { return bind<T, int32_t>(r); })},
    .examples = {{.inputs = {ints({1, 3, 1, 9}), Tensor::scalar(4), ints({})},
                  .outputs = {ints({0, 2, 0, 1})}},
                 {.inputs = {ints({1, 0, 1}), Tensor::scalar(2), floats({1, 2, 0.5f})},
                  .outputs = {floats({2, 1.5f})}}},
    .value_inputs = {1},
    .is_not_differentiable = true,
}};

const Op dense_bincount_op{{
    .name = "DenseBincount",
    .doc = "output[k] = the sum of weights[i] over all i with input[i] = k < size, separately for "
           "each row of a matrix; empty weights are 1. With binary_output: 1 where there is any.",
    .inputs = {"input: Tidx", "size: Tidx", "weights: T"},
    .outputs = {"output: T"},
    .attrs = {"Tidx: {int32, int64}", "T: {int32, int64, float, double}",
              "binary_output: bool = false"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 0);
          const int64_t size = c.value(1) == nullptr ? any : checked_size(*c.value(1));
          const Shape& input = c.input(0);
          if (!input.has_rank()) return c.set_output(0, Shape::unknown());
          check(input.rank() <= 2, "Shape must be at most rank 2 but is rank ", input.rank());
          c.set_output(0, input.rank() == 2 ? Shape{input[0], size} : Shape{size});
        },
    .kernels = {cpu_kernel("T", BinTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return r.inputs[0].dtype == DType::i64 ? bind<T, int64_t>(r)
                                                                    : bind<T, int32_t>(r);
                           })},
    .examples = {{.inputs = {ints({2, 2}, {1, 1, 0, 2}), Tensor::scalar(3), ints({})},
                  .outputs = {ints({2, 3}, {0, 2, 0, 1, 0, 1})}}},
    .value_inputs = {1},
    .is_not_differentiable = true,
}};

// ---- SparseBincount and RaggedBincount

// Adds up the counts of each row of a sparse or ragged matrix.
template <class T, class Index>
class RowCounts {
 public:
  RowCounts(const ExecuteContext& c, const Tensor& values, const Tensor& size,
            const Tensor& weights, const Shape& rows)
      : values_(values), weights_(weights), binary_(c.node().attr<bool>("binary_output")) {
    check(weights.elements() == 0 || weights.elements() == values.elements(),
          "Weights and values must have the same number of elements. Weight shape: ",
          weights.shape(), "; values shape: ", values.shape());
    size_ = checked_size(size);
    Shape shape = rows;
    shape.push_back(size_);
    counts_ = Tensor(dtype_of<T>, shape);
    std::fill_n(counts_.data<T>(), counts_.elements(), T(0));
  }

  void add(int64_t row, int64_t i) {
    const int64_t bin = values_.data<Index>()[i];
    check(bin >= 0, "Input must be non-negative, but values[", i, "] is ", bin);
    if (bin >= size_) return;
    T& to = counts_.data<T>()[row * size_ + bin];
    to = binary_ ? T(1) : T(to + (weights_.elements() > 0 ? weights_.data<T>()[i] : T(1)));
  }

  Tensor take() { return std::move(counts_); }

 private:
  const Tensor &values_, &weights_;
  const bool binary_;
  int64_t size_ = 0;
  Tensor counts_;
};

template <class T, class Index>
void count_sparse(ExecuteContext& c) {
  const Tensor &indices = c.input(0), &values = c.input(1), &shape = c.input(2);
  check_sparse(indices, values, shape);
  const int64_t rank = shape.elements();
  check(rank > 0, "The shape argument requires at least one element.");
  const int64_t rows = shape.data<int64_t>()[0];
  check(rows >= 0, "dense_shape[0] must not be negative, but is ", rows);
  RowCounts<T, Index> counts(c, values, c.input(3), c.input(4), rank == 1 ? Shape{} : Shape{rows});
  for (int64_t i = 0; i < values.elements(); ++i) {
    StepEnd::pace(16);
    const int64_t first = indices.data<int64_t>()[i * rank];
    check(first >= 0 && first < rows, "indices[", i, ", 0] = ", first,
          " is out of bounds: it is not in [0, ", rows, ")");
    counts.add(rank == 1 ? 0 : first, i);
  }
  c.set_output(0, counts.take());
}

template <class T, class Index>
void count_ragged(ExecuteContext& c) {
  const Tensor &splits = c.input(0), &values = c.input(1);
  const int64_t rows = splits.elements() - 1, n = values.elements();
  check(rows >= 0, "Must provide at least 1 element for the splits argument");
  const int64_t* starts = splits.data<int64_t>();
  check(starts[0] == 0, "Splits must start with 0, not with ", starts[0]);
  check(starts[rows] == n, "Splits must end with the number of values, got ", starts[rows],
        " instead of ", n);
  RowCounts<T, Index> counts(c, values, c.input(2), c.input(3), Shape{rows});
  for (int64_t row = 0; row < rows; ++row) {
    check(starts[row] >= 0 && starts[row] <= starts[row + 1] && starts[row + 1] <= n,
          "Splits must not decrease, but ", starts[row], " is followed by ", starts[row + 1]);
    for (int64_t i = starts[row]; i < starts[row + 1]; ++i) {
      StepEnd::pace(16);
      counts.add(row, i);
    }
  }
  c.set_output(0, counts.take());
}

const std::vector<std::string> row_attrs = {
    "Tidx: {int32, int64}", "T: {int32, int64, float, double}", "binary_output: bool = false"};

int64_t known_size(const ShapeContext& c, int input) {
  return c.value(input) == nullptr ? any : checked_size(*c.value(input));
}

const Op sparse_bincount_op{{
    .name = "SparseBincount",
    .doc = "DenseBincount of a sparse vector or matrix, whose missing elements are not counted.",
    .inputs = {"indices: int64", "values: Tidx", "dense_shape: int64", "size: Tidx", "weights: T"},
    .outputs = {"output: T"},
    .attrs = row_attrs,
    .shape =
        [](ShapeContext& c) {
          const int64_t rank = infer_sparse(c)[1], size = known_size(c, 3);
          if (rank == any) return c.set_output(0, Shape::unknown());
          c.set_output(0, rank == 1 ? Shape{size} : Shape{any, size});
        },
    .kernels = {execute_kernel("T", BinTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) {
                                 c.input(1).dtype() == DType::i64 ? count_sparse<T, int64_t>(c)
                                                                  : count_sparse<T, int32_t>(c);
                               })},
    .examples = {{.inputs = {longs({3, 2}, {0, 0, 0, 2, 1, 1}), ints({1, 1, 2}), longs({2, 3}),
                             Tensor::scalar(3), ints({})},
                  .outputs = {ints({2, 3}, {0, 2, 0, 0, 0, 1})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

const Op ragged_bincount_op{{
    .name = "RaggedBincount",
    .doc = "DenseBincount of each row of a ragged matrix.",
    .inputs = {"splits: int64", "values: Tidx", "size: Tidx", "weights: T"},
    .outputs = {"output: T"},
    .attrs = row_attrs,
    .shape =
        [](ShapeContext& c) {
          const Shape splits = c.with_rank(0, 1);
          c.set_output(0, Shape{splits[0] == any ? any : std::max<int64_t>(0, splits[0] - 1),
                                known_size(c, 2)});
        },
    .kernels = {execute_kernel("T", BinTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) {
                                 c.input(1).dtype() == DType::i64 ? count_ragged<T, int64_t>(c)
                                                                  : count_ragged<T, int32_t>(c);
                               })},
    .examples = {{.inputs = {longs({0, 2, 3}), ints({1, 1, 2}), Tensor::scalar(3), ints({})},
                  .outputs = {ints({2, 3}, {0, 2, 0, 0, 0, 1})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
