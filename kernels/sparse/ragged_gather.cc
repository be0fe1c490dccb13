// RaggedGather: rows of a ragged tensor by index.
#include <algorithm>
#include <vector>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/moves/copy_elements.h"
#include "kernels/row_splits.h"
#include "kernels/types.h"

namespace leat {
namespace {

using Splits = std::vector<int64_t>;

// Checks that splits are sorted and within the rows of the next level, and the last within
// `values`.
void check_splits(const std::vector<Splits>& nested, int64_t values) {
  for (size_t level = 0; level < nested.size(); ++level) {
    const Splits& splits = nested[level];
    check(!splits.empty(), "Ragged splits may not be empty");
    check(splits.front() >= 0, "Ragged splits must be non-negative, got ", splits.front());
    check(std::is_sorted(splits.begin(), splits.end()), "Ragged splits must be sorted");
    const int64_t most = level + 1 < nested.size() ? std::ssize(nested[level + 1]) - 1 : values;
    check(splits.back() <= most, "Ragged splits must not point past values: ", splits.back(),
          " of ", most);
  }
}

void add_split(Splits& out, int64_t length) { out.push_back(out.back() + length); }

// The splits for the axes of the indices: all rows have the same length.
void add_uniform_splits(const Shape& indices, std::vector<Splits>& out) {
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < indices.rank(); ++axis) {
    rows = product_of_extents(rows, indices[axis]);
    const int64_t length = indices[axis + 1];
    product_of_extents(rows, length);
    check_memory_for(rows, sizeof(int64_t));
    for (int64_t row = 0; row < rows; ++row) {
      StepEnd::pace(8);
      add_split(out[axis], length);
    }
  }
}

void gather_rows(ExecuteContext& c) {
  const int levels = c.num_inputs() - 2;
  const Tensor &values = c.input(levels), &indices = c.input(levels + 1);
  check(values.shape().rank() > 0, "params.rank must be nonzero");
  std::vector<Splits> nested;
  for (int i = 0; i < levels; ++i) nested.push_back(to_int64s(c.input(i)));
  check_splits(nested, values.shape()[0]);
  const int64_t num_rows = std::ssize(nested[0]) - 1;
  const Splits rows = to_int64s(indices);
  const int outer = indices.shape().rank() - 1;  // levels of splits before those of params
  check(c.node().attr<int64_t>("OUTPUT_RAGGED_RANK") == outer + levels, "indices ", indices.shape(),
        " do not result in ", c.node().attr<int64_t>("OUTPUT_RAGGED_RANK"), " row splits");

  // Computes the size of the result first: an index may appear any number of times.
  std::vector<int64_t> counts(levels + 1, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    check(rows[i] >= 0 && rows[i] < num_rows, "indices[", i, "] = ", rows[i], " is not in [0, ",
          num_rows, ")");
    int64_t start = rows[i], limit = rows[i] + 1;
    for (int level = 0; level < levels; ++level) {
      counts[level] = sum_of_extents(counts[level], limit - start);
      start = nested[level][start];
      limit = nested[level][limit];
    }
    counts[levels] = sum_of_extents(counts[levels], limit - start);
  }
  std::vector<Splits> out(outer + levels, Splits{0});
  add_uniform_splits(indices.shape(), out);
  for (int level = 0; level < levels; ++level) {
    check_memory_for(counts[level], 2 * sizeof(int64_t));
    if (outer + level >= 0) out[outer + level].reserve(counts[level] + 1);
  }
  Tensor out_values(values.dtype(), rows_of(counts[levels], values.shape()));
  const int64_t value = values.elements() == 0 ? 0 : values.elements() / values.shape()[0];
  int64_t at = 0;
  for (const int64_t row : rows) {
    int64_t start = row, limit = row + 1;
    for (int level = 0; level < levels; ++level) {
      const Splits& splits = nested[level];
      for (int64_t i = start; outer + level >= 0 && i < limit; ++i) {
        StepEnd::pace(8);
        add_split(out[outer + level], splits[i + 1] - splits[i]);
      }
      start = splits[start];
      limit = splits[limit];
    }
    copy_elements(values, start * value, out_values, at * value, (limit - start) * value);
    at += limit - start;
  }
  for (size_t i = 0; i < out.size(); ++i)
    c.set_output(static_cast<int>(i), row_splits(out[i], c.input(0).dtype()));
  c.set_output(static_cast<int>(out.size()), std::move(out_values));
}

void infer(ShapeContext& c) {
  const int levels = c.num_inputs() - 2, splits = c.num_outputs() - 1;
  c.with_rank(levels + 1, splits - levels + 1);
  for (int i = 0; i < levels; ++i) c.with_rank(i, 1);
  const Shape values = c.with_rank_at_least(levels, 1);
  for (int i = 0; i < splits; ++i) c.set_output(i, {any});
  c.set_output(splits, values.has_rank() ? rows_of(any, values) : Shape::unknown());
}

// Adds the gradients of the values of every row to the place where the row was taken.
void gather_gradient(Gradient& g) {
  const int levels = g.num_inputs() - 2;
  const auto vector = [&](int32_t i) { return constant(g.graph(), ints({i})); };
  Output splits = g.x(0);  // of the outer rows, in values
  for (int i = 1; i < levels; ++i) splits = take(g.x(i), splits);
  const Output rows = reshape(g.x(levels + 1), vector(-1));
  const Output ends = strided_slice(splits, vector(1), vector(0), vector(1), {{"end_mask", 1}});
  const DType dtype = splits.dtype();
  const Output one = constant(
      g.graph(), dtype == DType::i64 ? Tensor::scalar<int64_t>(1) : Tensor::scalar<int32_t>(1));
  const Output places = op_outputs("RaggedRange", {take(splits, rows), take(ends, rows), one})[1];
  const Output count = strided_slice(shape_of(g.x(levels)), vector(0), vector(1), vector(1),
                                     {{"shrink_axis_mask", 1}});
  g.dx(levels) =
      segment_sum(g.dy(static_cast<int>(g.attr<int64_t>("OUTPUT_RAGGED_RANK"))), places, count);
}

const Op gather_op{{
    .name = "RaggedGather",
    .doc = "output[i…] = params[indices[i…]], where params is a ragged tensor: its nested row "
           "splits and its values.",
    .inputs = {"params_nested_splits: PARAMS_RAGGED_RANK * Tsplits", "params_dense_values: Tvalues",
               "indices: Tindices"},
    .outputs = {"output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits",
                "output_dense_values: Tvalues"},
    .attrs = {"Tvalues: type", "Tindices: {int32, int64}", "Tsplits: {int32, int64} = int64",
              "PARAMS_RAGGED_RANK: int >= 1", "OUTPUT_RAGGED_RANK: int >= 0"},
    .shape = infer,
    .gradient = gather_gradient,
    .kernels = {{.types = {{"Tvalues", AllTypes::list()}}, .execute = gather_rows}},
    .examples = {{.inputs = {longs({0, 1, 4}), floats({1, 2, 3, 4}), longs({1, 0, 1})},
                  .attrs = {{"OUTPUT_RAGGED_RANK", 1}},
                  .outputs = {longs({0, 3, 4, 7}), floats({2, 3, 4, 1, 2, 3, 4})}}},
    .has_data_dependent_shape = true,
}};

}  // namespace
}  // namespace leat
