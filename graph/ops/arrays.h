// Makes tensors, joins, splits and rearranges them; names and meanings are NumPy's where NumPy has
// them.
#pragma once

#include "graph/ops/index.h"

namespace leat {

// ---- New tensors; with a dtype: zeros(g, {2, 3}, i32) or zeros(g, {2, 3}, {.dtype = i32}) ----
struct DTypeOption {
  DType dtype;
};
Output zeros(Graph& graph, const Dims& dims, DType dtype = f32, Location at = here());
inline Output zeros(Graph& graph, const Dims& dims, DTypeOption options, Location at = here()) {
  return zeros(graph, dims, options.dtype, at);
}
Output ones(Graph& graph, const Dims& dims, DType dtype = f32, Location at = here());
inline Output ones(Graph& graph, const Dims& dims, DTypeOption options, Location at = here()) {
  return ones(graph, dims, options.dtype, at);
}
// All elements are `value`. Without a dtype, a number is int32 if it is whole, else float32.
Output full(Graph& graph, const Dims& dims, const Operand& value, Location at = here());
Output full(Graph& graph, const Dims& dims, const Operand& value, DType dtype,
            Location at = here());
inline Output full(Graph& graph, const Dims& dims, const Operand& value, DTypeOption options,
                   Location at = here()) {
  return full(graph, dims, value, options.dtype, at);
}
// Of x's shape, and of its dtype if no other is given.
Output zeros_like(Output x, Location at = here());
Output zeros_like(Output x, DType dtype, Location at = here());
inline Output zeros_like(Output x, DTypeOption options, Location at = here()) {
  return zeros_like(x, options.dtype, at);
}
Output ones_like(Output x, Location at = here());
Output ones_like(Output x, DType dtype, Location at = here());
inline Output ones_like(Output x, DTypeOption options, Location at = here()) {
  return ones_like(x, options.dtype, at);
}
// Of x's shape and dtype, each element `value`.
Output full_like(Output x, const Operand& value, Location at = here());
// 0, 1, … below stop; start, start + step, … below stop. Without a dtype: int32 if all are whole
// numbers, else float32, or the dtype of those that are Outputs.
Output arange(Graph& graph, const Operand& stop, Location at = here());
Output arange(Graph& graph, const Operand& stop, DType dtype, Location at = here());
inline Output arange(Graph& graph, const Operand& stop, DTypeOption options, Location at = here()) {
  return arange(graph, stop, options.dtype, at);
}
Output arange(Graph& graph, const Operand& start, const Operand& stop, const Operand& step = 1,
              Location at = here());
Output arange(Graph& graph, const Operand& start, const Operand& stop, const Operand& step,
              DType dtype, Location at = here());
inline Output arange(Graph& graph, const Operand& start, const Operand& stop, DType dtype,
                     Location at = here()) {
  return arange(graph, start, stop, 1, dtype, at);
}
inline Output arange(Graph& graph, const Operand& start, const Operand& stop, DTypeOption options,
                     Location at = here()) {
  return arange(graph, start, stop, 1, options.dtype, at);
}
inline Output arange(Graph& graph, const Operand& start, const Operand& stop, const Operand& step,
                     DTypeOption options, Location at = here()) {
  return arange(graph, start, stop, step, options.dtype, at);
}
// `count` numbers from start to stop, both included.
Output linspace(Graph& graph, double start, double stop, int count, DType dtype = f32,
                Location at = here());
inline Output linspace(Graph& graph, double start, double stop, int count, DTypeOption options,
                       Location at = here()) {
  return linspace(graph, start, stop, count, options.dtype, at);
}
Output eye(Graph& graph, int64_t rows, int64_t columns = -1, DType dtype = f32,
           Location at = here());  // columns: rows if left out
inline Output eye(Graph& graph, int64_t rows, DTypeOption options, Location at = here()) {
  return eye(graph, rows, -1, options.dtype, at);
}
inline Output eye(Graph& graph, int64_t rows, int64_t columns, DTypeOption options,
                  Location at = here()) {
  return eye(graph, rows, columns, options.dtype, at);
}
// A matrix with the vector on its diagonal; of a matrix, its diagonal.
Output diag(Output x, Location at = here());
// Matrices [..., n, m] with zeros above (below) the k-th diagonal; 0 is the main one.
Output tril(Output x, int k = 0, Location at = here());
Output triu(Output x, int k = 0, Location at = here());

// ---- Shapes ----
Output shape_of(Output x, DType dtype = i32, Location at = here());  // as the step finds it
Output size_of(Output x, DType dtype = i32, Location at = here());
Output rank_of(Output x, Location at = here());
Output reshape(Output x, const Dims& dims, Location at = here());
Output broadcast_to(Output x, const Dims& dims, Location at = here());
Output expand_dims(Output x, int axis, Location at = here());
// Without the given axes of length 1, or all of them.
Output squeeze(Output x, const Axes& axes = {}, Location at = here());
// Axis i of the result is axis axes[i] of x; the axes in reverse if left out.
Output transpose(Output x, const Axes& axes = {}, Location at = here());

// ---- Joining and splitting ----
Output concatenate(const std::vector<Output>& values, int axis = 0, Location at = here());
// Along a new axis.
Output stack(const std::vector<Output>& values, int axis = 0, Location at = here());
// One Output for each position along the axis, whose length must be known.
std::vector<Output> unstack(Output x, int axis = 0, Location at = here());
// `parts` equal parts; or parts of the given sizes, one of which may be -1: the rest.
std::vector<Output> split(Output x, int parts, int axis = 0, Location at = here());
std::vector<Output> split(Output x, const std::vector<int64_t>& sizes, int axis = 0,
                          Location at = here());
Output tile(Output x, const Dims& repeats, Location at = here());
// Repeats each slice of x along the axis: repeat(x, 2, 0) of [a, b] is [a, a, b, b].
// `repeats`: an integer >= 0, or a vector with one for each slice. Without an axis x is flattened.
Output repeat(Output x, const TensorLike& repeats, int axis, Location at = here());
Output repeat(Output x, const TensorLike& repeats, Location at = here());
// In reverse order along the axes.
Output flip(Output x, const Axes& axes = {}, Location at = here());
Output roll(Output x, int shift, int axis, Location at = here());
// The first lengths[b] elements of row b in reverse order, the others as they are: rows are along
// axis `batch_axis`, elements along `seq_axis`.
struct ReverseSequenceOptions {
  int seq_axis = 1, batch_axis = 0;
};
Output reverse_sequence(Output x, Output lengths, const ReverseSequenceOptions& options = {},
                        Location at = here());
// Coordinates of a grid, of vectors x [n] and y [m]: those of x and those of y, [m, n] each.
//   const auto [columns, rows] = meshgrid(arange(g, 3), arange(g, 2));
struct Grid {
  Output x, y;
};
Grid meshgrid(Output x, Output y, Location at = here());

// ---- Borders ----
enum class PadMode { constant, reflect, symmetric };
struct PadOptions {
  PadMode mode = PadMode::constant;
  Operand value = 0;  // of constant
};
// widths: {before, after} of each axis.
Output pad(Output x, const std::vector<std::pair<int64_t, int64_t>>& widths,
           const PadOptions& options = {}, Location at = here());

// ---- Selecting elements ----
// Slices of x at the indices along the axis: [..., indices' shape, ...]. Out of range is
// INVALID_ARGUMENT in the step.
Output take(Output x, const TensorLike& indices, int axis = 0, Location at = here());
// y[i…, j, k…] = x[i…, indices[i…, j, k…], k…]: what argsort() and argmax() say, along the axis.
// indices: integers >= 0, of x's shape but for the axis; ranks must be known. Out of range is
// INVALID_ARGUMENT in the step.
//   Output in_order = take_along_axis(x, argsort(x), -1);
Output take_along_axis(Output x, Output indices, int axis, Location at = here());
// x at index tuples, which are the last axis of `indices`.
Output gather_nd(Output x, Output indices, Location at = here());
// Zeros of the shape `dims`, with updates[i] added at the index tuple indices[i], which is along
// the last axis of `indices`: the reverse of gather_nd(). Tuples that occur twice add up; one out
// of range is INVALID_ARGUMENT in the step.
Output scatter_nd(const TensorLike& indices, Output updates, const Dims& dims,
                  Location at = here());
// Where the elements are not zero: [how many, rank of x], int64.
Output argwhere(Output x, Location at = here());
// The elements where the mask, of x's shape or its first axes, holds: [how many, ...].
Output boolean_mask(Output x, Output mask, Location at = here());
struct OneHotOptions {
  Operand on_value = 1, off_value = 0;
  int axis = -1;  // where the new axis goes
  DType dtype = f32;
};
// [indices' shape, depth]; a row of `off_value` for an index outside [0, depth).
Output one_hot(Output indices, const Operand& depth, const OneHotOptions& options = {},
               Location at = here());
// The distinct values of a vector in the order of their first occurrence, and for each element the
// position of its value: auto [values, indices] = unique(x).
struct Unique {
  Output values, indices;
};
Unique unique(Output x, DType index_dtype = i32, Location at = here());
// The rows of data by the part, in [0, parts), that each belongs to; and the rows of all data at
// their indices, which is the reverse.
std::vector<Output> dynamic_partition(Output data, Output which, int64_t parts,
                                      Location at = here());
Output dynamic_stitch(const std::vector<Output>& indices, const std::vector<Output>& data,
                      Location at = here());
// How often 0, 1, … occur in x, int32: [max(x) + 1], or [minlength] if that is more; with weights,
// of x's shape, the sums of what goes with each. x: integers >= 0, of any shape.
struct BincountOptions {
  Output weights = {};
  int64_t minlength = 0;
};
Output bincount(Output x, const BincountOptions& options = {}, Location at = here());
// Where each value belongs in the sorted vector: the number of its elements that are less, or with
// .right those that are at most the value; int32, of the values' shape.
struct SearchOptions {
  Flag right = false;
};
Output searchsorted(Output sorted, const TensorLike& values, SearchOptions options = {},
                    Location at = here());
// Sums of the rows of data whose ids are equal; ids in [0, segments).
Output segment_sum(Output data, Output segment_ids, const Operand& segments, Location at = here());

}  // namespace leat
