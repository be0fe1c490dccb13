// Tensors made, put together, taken apart and turned round; names and meanings are NumPy's where
// NumPy has them.
#pragma once

#include "graph/ops/index.h"

namespace leat {

// ---- Made ----
Output zeros(Graph& graph, const Dims& dims, DType dtype = f32, Location at = here());
Output ones(Graph& graph, const Dims& dims, DType dtype = f32, Location at = here());
// All elements are `value`: int32 or float32 if it is a number.
Output full(Graph& graph, const Dims& dims, const Operand& value, Location at = here());
Output zeros_like(Output x, Location at = here());
Output ones_like(Output x, Location at = here());
// 0, 1, … below stop; start, start + step, … below stop. int32 if all are whole numbers, else
// float32, or the dtype of those that are Outputs.
Output arange(Graph& graph, const Operand& stop, Location at = here());
Output arange(Graph& graph, const Operand& start, const Operand& stop, const Operand& step = 1,
              Location at = here());
// `count` numbers from start to stop, both included.
Output linspace(Graph& graph, double start, double stop, int count, DType dtype = f32,
                Location at = here());
Output eye(Graph& graph, int64_t rows, int64_t columns = -1, DType dtype = f32,
           Location at = here());  // columns: rows if left out
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

// ---- Put together, taken apart ----
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
Output flip(Output x, const Axes& axes = {}, Location at = here());
Output roll(Output x, int shift, int axis, Location at = here());

// ---- Borders ----
enum class PadMode { constant, reflect, symmetric };
struct PadOptions {
  PadMode mode = PadMode::constant;
  Operand value = 0;  // of constant
};
// widths: {before, after} of each axis.
Output pad(Output x, const std::vector<std::pair<int64_t, int64_t>>& widths,
           const PadOptions& options = {}, Location at = here());

// ---- Chosen ----
// Slices of x at the indices along the axis: [..., indices' shape, ...]. Out of range is
// INVALID_ARGUMENT in the step.
Output take(Output x, const TensorLike& indices, int axis = 0, Location at = here());
// x at index tuples, which are the last axis of `indices`.
Output gather_nd(Output x, Output indices, Location at = here());
// Where the elements are not zero: [how many, rank of x], int64.
Output argwhere(Output x, Location at = here());
// The elements where the mask, of x's shape or its first axes, holds: [how many, ...].
Output boolean_mask(Output x, Output mask, Location at = here());
struct OneHotOptions {
  Operand on = 1, off = 0;
  int axis = -1;  // where the new axis goes
  DType dtype = f32;
};
// [indices' shape, depth]; a row of `off` for an index outside [0, depth).
Output one_hot(Output indices, const Operand& depth, const OneHotOptions& options = {},
               Location at = here());
// The different values of a vector in the order in which they come, and for each element the
// number of its value: auto [values, indices] = unique(x).
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
// Sums of the rows of data whose ids are equal; ids in [0, segments).
Output segment_sum(Output data, Output segment_ids, const Operand& segments, Location at = here());

}  // namespace leat
