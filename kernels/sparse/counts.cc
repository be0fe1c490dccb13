// How often each number occurs, as a sparse tensor: DenseCountSparseOutput,
// SparseCountSparseOutput, RaggedCountSparseOutput.
#include <algorithm>
#include <limits>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"
#include "kernels/sparse/sparse_tensor.h"

namespace leat {
namespace {

using CountTypes = Types<int32_t, int64_t, float, double>;

// The counts, or the sums of weights, of the numbers of each row.
template <class W>
class Counts {
 public:
  Counts(ExecuteContext& c, const Tensor& values, const Tensor& weights)
      : context_(c),
        values_(values),
        weights_(weights),
        least_(c.node().attr<int64_t>("minlength")),
        most_(c.node().attr<int64_t>("maxlength")),
        binary_(c.node().attr<bool>("binary_output")) {
    for (int64_t i = 0; i < values.elements(); ++i)
      check(value(i) >= 0, "Input values must all be non-negative, but values[", i, "] is ",
            value(i));
    check(weights.elements() == 0 || weights.shape() == values.shape(),
          "Weights and values must have the same shape. Weight shape: ", weights.shape(),
          "; values shape: ", values.shape());
  }

  // Element i of the values is in this row.
  void add(int64_t row, int64_t i) {
    if (most_ < 0 || value(i) < most_) entries_.push_back({row, value(i), i});
  }

  // Sets the outputs; `rows` is the number of rows, or -1 if there is a single row, whose number is
  // left out.
  void set_outputs(int64_t rows) {
    const auto comes_first = [](const Entry& a, const Entry& b) {
      return a.row != b.row ? a.row < b.row : a.value < b.value;
    };
    std::ranges::stable_sort(entries_, StepEnd::pacing(comes_first));
    std::vector<int64_t> indices;
    std::vector<W> counts;
    int64_t largest = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& e = entries_[i];
      if (i == 0 || e.row != entries_[i - 1].row || e.value != entries_[i - 1].value) {
        if (rows >= 0) indices.push_back(e.row);
        indices.push_back(e.value);
        counts.push_back(0);
      }
      counts.back() = binary_ ? W(1) : counts.back() + weight(e.element);
      largest = std::max(largest, e.value);
    }
    const int64_t width = most_ >= 0 ? most_ : std::max(sum_of_extents(largest, 1), least_);
    const auto n = std::ssize(counts);
    context_.set_output(
        0, Tensor::of<int64_t>({n, rows < 0 ? 1 : 2}, std::span<const int64_t>(indices)));
    context_.set_output(1, Tensor::of<W>({n}, std::span<const W>(counts)));
    context_.set_output(2, rows < 0 ? longs({width}) : longs({rows, width}));
  }

 private:
  struct Entry {
    int64_t row, value, element;
  };

  int64_t value(int64_t i) const {
    return values_.dtype() == i64 ? values_.data<int64_t>()[i] : values_.data<int32_t>()[i];
  }
  W weight(int64_t i) const { return weights_.elements() == 0 ? W(1) : weights_.data<W>()[i]; }

  ExecuteContext& context_;
  const Tensor &values_, &weights_;
  const int64_t least_, most_;
  const bool binary_;
  std::vector<Entry> entries_;
};

template <class W>
void count_dense(ExecuteContext& c) {
  const Tensor& values = c.input(0);
  const Shape& shape = values.shape();
  check(shape.rank() == 1 || shape.rank() == 2,
        "Input must be a 1 or 2-dimensional tensor. Got: ", shape);
  check(shape.rank() == 1 || shape[0] > 0, "Input has no rows: ", shape);
  Counts<W> counts(c, values, c.input(1));
  const int64_t columns = shape[shape.rank() - 1];
  for (int64_t i = 0; i < values.elements(); ++i) counts.add(i / columns, i);
  counts.set_outputs(shape.rank() == 1 ? -1 : shape[0]);
}

template <class W>
void count_sparse(ExecuteContext& c) {
  const Tensor &indices = c.input(0), &values = c.input(1), &shape = c.input(2);
  check_sparse(indices, values, shape);
  const int64_t rank = shape.elements();
  check(rank > 0, "The shape argument requires at least one element.");
  const int64_t* extents = shape.data<int64_t>();
  for (int64_t i = 0; i < indices.elements(); ++i) {
    const int64_t index = indices.data<int64_t>()[i], extent = extents[i % rank];
    check(index >= 0 && index < extent, "Invalid index value at ", i / rank, ": dimension ",
          i % rank, " has value ", index, " which is not in [0, ", extent, ")");
  }
  const int64_t rows = rank == 1 ? 1 : extents[0];
  check(rows > 0 && rows < std::numeric_limits<int32_t>::max(), "Cannot allocate ", rows,
        " batches, is the dense shape too wide?");
  Counts<W> counts(c, values, c.input(3));
  for (int64_t i = 0; i < values.elements(); ++i)
    counts.add(rank == 1 ? 0 : indices.data<int64_t>()[i * rank], i);
  counts.set_outputs(rank == 1 ? -1 : rows);
}

template <class W>
void count_ragged(ExecuteContext& c) {
  const Tensor &splits = c.input(0), &values = c.input(1);
  const int64_t rows = splits.elements() - 1, n = values.elements();
  const int64_t* starts = splits.data<int64_t>();
  check(rows > 0, "Must provide at least 2 elements for the splits argument");
  check(starts[0] == 0, "Splits must start with 0, not with ", starts[0]);
  check(starts[rows] == n, "Splits must end with the number of values, got ", starts[rows],
        " instead of ", n);
  for (int64_t row = 0; row < rows; ++row) {  // so that none is past the last
    check(starts[row] <= starts[row + 1], "Splits must not decrease, but ", starts[row],
          " is followed by ", starts[row + 1]);
  }
  Counts<W> counts(c, values, c.input(2));
  for (int64_t row = 0, i = 0; row < rows; ++row) {
    for (; i < starts[row + 1]; ++i) counts.add(row, i);
  }
  counts.set_outputs(rows);
}

// The rank of the input is that of the result.
void set_rank(ShapeContext& c, int64_t rank) {
  c.set_output(0, {any, rank});
  c.set_output(1, {any});
  c.set_output(2, {rank});
}

OpDef counting(std::string name, std::string what, std::vector<std::string> inputs,
               ShapeFunction shape, Kernel kernel) {
  return {
      .name = std::move(name),
      .doc =
          "The sparse matrix whose entry [row, k] is how often k occurs in that row of " + what +
          "; with weights the sum of theirs, with binary_output 1. Its width is maxlength if that "
          "is >= 0 (larger numbers are left out), else one more than the largest number, and at "
          "least minlength.",
      .inputs = std::move(inputs),
      .outputs = {"output_indices: int64", "output_values: output_type",
                  "output_dense_shape: int64"},
      .attrs = {"T: {int32, int64}", "minlength: int >= -1 = -1", "maxlength: int >= -1 = -1",
                "binary_output: bool", "output_type: {int32, int64, float, double}"},
      .shape = std::move(shape),
      .kernels = {std::move(kernel)},
      .has_data_dependent_shape = true,
      .is_not_differentiable = true,
  };
}

OpDef with_example(OpDef op, std::vector<Tensor> inputs, std::vector<Tensor> outputs) {
  op.examples = {{.inputs = std::move(inputs),
                  .attrs = {{"binary_output", false}},
                  .outputs = std::move(outputs)}};
  return op;
}

const Op dense_op{with_example(
    counting(
        "DenseCountSparseOutput", "a matrix, or in a vector", {"values: T", "weights: output_type"},
        [](ShapeContext& c) {
          const Shape& values = c.input(0);
          set_rank(c, values.rank() == 1 || values.rank() == 2 ? values.rank() : any);
        },
        execute_kernel("output_type", CountTypes{},
                       []<class W>(TypeTag<W>, ExecuteContext& c) { count_dense<W>(c); })),
    {ints({2, 3}, {1, 1, 3, 0, 1, 0}), floats({})},
    {longs({4, 2}, {0, 1, 0, 3, 1, 0, 1, 1}), floats({2, 1, 2, 1}), longs({2, 4})})};

const Op sparse_op{with_example(
    counting(
        "SparseCountSparseOutput", "a sparse matrix, or in a sparse vector",
        {"indices: int64", "values: T", "dense_shape: int64", "weights: output_type"},
        [](ShapeContext& c) {
          const int64_t rank = infer_sparse(c)[1];
          set_rank(c, rank == any ? any : std::min<int64_t>(rank, 2));
        },
        execute_kernel("output_type", CountTypes{},
                       []<class W>(TypeTag<W>, ExecuteContext& c) { count_sparse<W>(c); })),
    {longs({3, 2}, {0, 0, 0, 2, 2, 1}), ints({1, 1, 3}), longs({3, 3}), floats({0.5F, 1, 4})},
    {longs({2, 2}, {0, 1, 2, 3}), floats({1.5F, 4}), longs({3, 4})})};

const Op ragged_op{with_example(
    counting(
        "RaggedCountSparseOutput", "a ragged tensor",
        {"splits: int64", "values: T", "weights: output_type"},
        [](ShapeContext& c) { set_rank(c, 2); },
        execute_kernel("output_type", CountTypes{},
                       []<class W>(TypeTag<W>, ExecuteContext& c) { count_ragged<W>(c); })),
    {longs({0, 2, 2, 3}), ints({1, 1, 3}), floats({})},
    {longs({2, 2}, {0, 1, 2, 3}), floats({2, 1}), longs({3, 4})})};

}  // namespace
}  // namespace leat
