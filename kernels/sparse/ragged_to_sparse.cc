// RaggedTensorToSparse: the values of a ragged tensor with their indices.
#include <algorithm>
#include <vector>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/types.h"

namespace leat {
namespace {

using Splits = std::vector<int64_t>;

void check_splits(const std::vector<Splits>& nested, int64_t values) {
  for (size_t level = 0; level < nested.size(); ++level) {
    const Splits& splits = nested[level];
    check(!splits.empty(), "ragged splits may not be empty.");
    check(splits.front() == 0, "First value of ragged splits must be 0, got ", splits.front());
    for (size_t i = 1; i < splits.size(); ++i) {
      check(splits[i] >= splits[i - 1], "Ragged splits should be non decreasing, but we got ",
            splits[i - 1], " followed by ", splits[i]);
    }
    const int64_t rows = level + 1 < nested.size() ? std::ssize(nested[level + 1]) - 1 : values;
    check(splits.back() == rows,
          "Final value of ragged splits must match the length the corresponding ragged values: ",
          splits.back(), " and ", rows);
  }
}

// The indices of all elements, row-major.
Tensor indices_of(const std::vector<Splits>& nested, const Shape& values) {
  const size_t levels = nested.size();
  const int64_t n = values.elements();
  Tensor out(DType::i64, {n, static_cast<int64_t>(levels) + values.rank()});
  if (n == 0) return out;
  auto* index = out.data<int64_t>();
  std::vector<int64_t> row(levels, 0);  // at each level: the row that the value is in
  std::vector<int64_t> prefix(levels + 1);
  for (int64_t value = 0; value < values[0]; ++value) {
    StepEnd::pace(32);
    int64_t child = value;
    for (size_t level = levels; level-- > 0; child = row[level]) {
      while (nested[level][row[level] + 1] <= child) ++row[level];
      prefix[level + 1] = child - nested[level][row[level]];
    }
    prefix[0] = row[0];
    for (int64_t i = 0; i < n / values[0]; ++i) {
      std::copy(prefix.begin(), prefix.end(), index);
      int64_t rest = i;
      for (int axis = values.rank(); --axis > 0; rest /= values[axis])
        index[levels + axis] = rest % values[axis];
      index += levels + values.rank();
    }
  }
  return out;
}

void to_sparse(ExecuteContext& c) {
  const int levels = c.num_inputs() - 1;
  const Tensor& values = c.input(levels);
  check(values.shape().rank() > 0, "rt_dense_values must have at least rank 1");
  std::vector<Splits> nested;
  for (int i = 0; i < levels; ++i) nested.push_back(to_int64s(c.input(i)));
  check_splits(nested, values.shape()[0]);
  std::vector<int64_t> shape = {std::ssize(nested[0]) - 1};
  for (const Splits& splits : nested) {
    int64_t longest = 0;
    for (size_t i = 1; i < splits.size(); ++i)
      longest = std::max(longest, splits[i] - splits[i - 1]);
    shape.push_back(longest);
  }
  for (int axis = 1; axis < values.shape().rank(); ++axis) shape.push_back(values.shape()[axis]);
  c.set_output(0, indices_of(nested, values.shape()));
  c.set_output(1, values.reshaped({values.elements()}));
  c.set_output(2, Tensor::of<int64_t>({std::ssize(shape)}, std::span<const int64_t>(shape)));
}

void infer(ShapeContext& c) {
  const int levels = c.num_inputs() - 1;
  for (int i = 0; i < levels; ++i) c.with_rank(i, 1);
  const Shape values = c.with_rank_at_least(levels, 1);
  const int64_t rank = values.has_rank() ? values.rank() + levels : any,
                n = values.has_rank() ? values.elements() : any;
  c.set_output(0, {n, rank});
  c.set_output(1, {n});
  c.set_output(2, {rank});
}

const Op to_sparse_op{{
    .name = "RaggedTensorToSparse",
    .doc = "The ragged tensor of these nested row splits and values as a sparse one: indices and "
           "values of all its elements, and the shape that holds them.",
    .inputs = {"rt_nested_splits: RAGGED_RANK * Tsplits", "rt_dense_values: T"},
    .outputs = {"sparse_indices: int64", "sparse_values: T", "sparse_dense_shape: int64"},
    .attrs = {"RAGGED_RANK: int >= 1", "T: type", "Tsplits: {int32, int64} = int64"},
    .shape = infer,
    .gradient =
        [](Gradient& g) {
          const int values = g.num_inputs() - 1;
          g.dx(values) = reshape(g.dy(1), shape_of(g.x(values)));
        },
    .kernels = {{.types = {{"T", AllTypes::list()}}, .execute = to_sparse}},
    .examples = {{.inputs = {longs({0, 1, 1, 3}), floats({5, 6, 7})},
                  .outputs = {longs({3, 2}, {0, 0, 2, 0, 2, 1}), floats({5, 6, 7}),
                              longs({3, 2})}}},
    .has_data_dependent_shape = true,
}};

}  // namespace
}  // namespace leat
