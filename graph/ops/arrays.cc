#include "graph/ops/arrays.h"

#include <algorithm>
#include <numeric>

#include "graph/ops/graph_of.h"
#include "graph/ops/math.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

Output int32(Graph& graph, int64_t value, std::string_view name, Location at) {
  return constant(graph, Tensor::scalar<int32_t>(static_cast<int32_t>(value)), name, at);
}
Output int32_vector(Graph& graph, std::span<const int32_t> values, std::string_view name,
                    Location at) {
  return constant(graph, Tensor::of<int32_t>({static_cast<int64_t>(values.size())}, values), name,
                  at);
}

// Of the band from `below` diagonals under the main one to `above` over it; -1: all.
Output band(Output x, int64_t below, int64_t above, Location at) {
  Graph& graph = graph_of(x, at);
  return op("MatrixBandPart",
            {x, Operand(below, at).as(graph, i64), Operand(above, at).as(graph, i64)}, {}, at);
}

// A number as a constant of that dtype; an Output of another dtype is cast.
Output converted(Graph& graph, const Operand& value, DType dtype, Location at) {
  const Output out = value.as(graph, dtype);
  return out.dtype() == dtype ? out : op("Cast", {out}, {{"DstT", dtype}}, at);
}

// The shape of x: numbers where all are known.
Dims dims_of(Output x, Location at) {
  return x.shape().is_complete() ? Dims(x.shape()) : Dims(shape_of(x, i32, at));
}

// The dtype of a range: that of an Output among its bounds.
DType dtype_of_bounds(std::initializer_list<const Operand*> bounds) {
  bool are_integers = true;
  for (const Operand* bound : bounds) {
    if (!bound->is_constant()) return bound->output().dtype();
    are_integers &= bound->is_integer();
  }
  return are_integers ? i32 : f32;
}

}  // namespace

// ---- Made ----

Output zeros(Graph& graph, const Dims& dims, DType dtype, Location at) {
  return op("Fill", {dims.in(graph, at), Operand(0, at).as(graph, dtype)}, {}, at);
}
Output ones(Graph& graph, const Dims& dims, DType dtype, Location at) {
  return op("Fill", {dims.in(graph, at), Operand(1, at).as(graph, dtype)}, {}, at);
}
Output full(Graph& graph, const Dims& dims, const Operand& value, Location at) {
  return op("Fill", {dims.in(graph, at), value.as(graph, value.is_integer() ? i32 : f32)}, {}, at);
}
Output full(Graph& graph, const Dims& dims, const Operand& value, DType dtype, Location at) {
  return op("Fill", {dims.in(graph, at), converted(graph, value, dtype, at)}, {}, at);
}
Output zeros_like(Output x, Location at) { return op("ZerosLike", {x}, {}, at); }
Output ones_like(Output x, Location at) { return op("OnesLike", {x}, {}, at); }
Output zeros_like(Output x, DType dtype, Location at) {
  return zeros(graph_of(x, at), dims_of(x, at), dtype, at);
}
Output ones_like(Output x, DType dtype, Location at) {
  return ones(graph_of(x, at), dims_of(x, at), dtype, at);
}
Output arange(Graph& graph, const Operand& stop, Location at) {
  return arange(graph, Operand(0, at), stop, Operand(1, at), at);
}
Output arange(Graph& graph, const Operand& stop, DType dtype, Location at) {
  return arange(graph, Operand(0, at), stop, Operand(1, at), dtype, at);
}
Output arange(Graph& graph, const Operand& start, const Operand& stop, const Operand& step,
              Location at) {
  const DType dtype = dtype_of_bounds({&start, &stop, &step});
  return op("Range", {start.as(graph, dtype), stop.as(graph, dtype), step.as(graph, dtype)}, {},
            at);
}
Output arange(Graph& graph, const Operand& start, const Operand& stop, const Operand& step,
              DType dtype, Location at) {
  return op("Range",
            {converted(graph, start, dtype, at), converted(graph, stop, dtype, at),
             converted(graph, step, dtype, at)},
            {}, at);
}
Output linspace(Graph& graph, double start, double stop, int count, DType dtype, Location at) {
  return op("LinSpace",
            {Operand(start, at).as(graph, dtype), Operand(stop, at).as(graph, dtype),
             int32(graph, count, "num", at)},
            {}, at);
}
Output eye(Graph& graph, int64_t rows, int64_t columns, DType dtype, Location at) {
  columns = columns < 0 ? rows : columns;
  const Output diagonal = ones(graph, {std::min(rows, columns)}, dtype, at);
  return op("MatrixDiagV2",
            {diagonal, int32(graph, 0, "k", at), int32(graph, rows, "num_rows", at),
             int32(graph, columns, "num_cols", at), Operand(0, at).as(graph, dtype)},
            {}, at);
}

Output diag(Output x, Location at) {
  Graph& graph = graph_of(x, at);
  const int rank = x.shape().rank();
  check(rank == 1 || rank == 2, "diag (", at, "): '", x.name(), "' ", x.shape(),
        " must be a vector or a matrix");
  const Output main = int32(graph, 0, "k", at), zero = Operand(0, at).as(graph, x.dtype());
  if (rank == 2) return op("MatrixDiagPartV2", {x, main, zero}, {}, at);
  const Output as_long = int32(graph, -1, "num_rows", at);
  return op("MatrixDiagV2", {x, main, as_long, as_long, zero}, {}, at);
}
// A band holds the main diagonal: what has not got it is what is outside of one.
Output tril(Output x, int k, Location at) {
  if (k >= 0) return band(x, -1, k, at);
  const Output ones = ones_like(x, at);
  return where(equal({band(ones, -int64_t{k} - 1, -1, at), at}, 0), x, 0, at);
}
Output triu(Output x, int k, Location at) {
  if (k <= 0) return band(x, -int64_t{k}, -1, at);
  const Output ones = ones_like(x, at);
  return where(equal({band(ones, -1, int64_t{k} - 1, at), at}, 0), x, 0, at);
}

// ---- Shapes ----

Output shape_of(Output x, DType dtype, Location at) {
  return op("Shape", {x}, {{"out_type", dtype}}, at);
}
Output size_of(Output x, DType dtype, Location at) {
  return op("Size", {x}, {{"out_type", dtype}}, at);
}
Output rank_of(Output x, Location at) { return op("Rank", {x}, {}, at); }
Output reshape(Output x, const Dims& dims, Location at) {
  return op("Reshape", {x, dims.in(graph_of(x, at), at)}, {}, at);
}
Output broadcast_to(Output x, const Dims& dims, Location at) {
  return op("BroadcastTo", {x, dims.in(graph_of(x, at), at)}, {}, at);
}
Output expand_dims(Output x, int axis, Location at) {
  return op("ExpandDims", {x, int32(graph_of(x, at), axis, "dim", at)}, {}, at);
}
Output squeeze(Output x, const Axes& axes, Location at) {
  const std::vector<int>* list = axes.list();
  check(list != nullptr || axes.is_all(), "squeeze (", at, "): its axes must be numbers");
  const std::vector<int64_t> dims =
      list == nullptr ? std::vector<int64_t>() : std::vector<int64_t>(list->begin(), list->end());
  return op("Squeeze", {x}, {{"squeeze_dims", dims}}, at);
}
Output transpose(Output x, const Axes& axes, Location at) {
  Graph& graph = graph_of(x, at);
  if (!axes.is_all()) return op("Transpose", {x, axes.of(x, at)}, {}, at);
  if (!x.shape().has_rank()) {
    const Output last = Operand(rank_of(x, at), at) - Operand(1, at);
    return op("Transpose",
              {x, op("Range", {last, int32(graph, -1, "limit", at), int32(graph, -1, "delta", at)},
                     {}, at)},
              {}, at);
  }
  std::vector<int32_t> reversed(x.shape().rank());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return op("Transpose", {x, int32_vector(graph, reversed, "perm", at)}, {}, at);
}

// ---- Put together, taken apart ----

Output concatenate(const std::vector<Output>& values, int axis, Location at) {
  check(!values.empty(), "concatenate (", at, "): there is nothing to concatenate");
  std::vector<Output> inputs = values;
  inputs.push_back(int32(graph_of(values.front(), at), axis, "axis", at));
  return op("ConcatV2", inputs, {}, at);
}
Output stack(const std::vector<Output>& values, int axis, Location at) {
  check(!values.empty(), "stack (", at, "): there is nothing to stack");
  return op("Pack", values, {{"axis", axis}}, at);
}
std::vector<Output> unstack(Output x, int axis, Location at) {
  graph_of(x, at);
  const int rank = x.shape().rank();
  const int from_front = axis < 0 ? axis + rank : axis;
  check(rank >= 0 && from_front >= 0 && from_front < rank && x.shape()[from_front] != -1,
        "unstack (", at, "): the length of axis ", axis, " of '", x.name(), "' ", x.shape(),
        " must be known");
  return op_outputs("Unpack", {x}, {{"num", x.shape()[from_front]}, {"axis", axis}}, at);
}
std::vector<Output> split(Output x, int parts, int axis, Location at) {
  return op_outputs("Split", {int32(graph_of(x, at), axis, "split_dim", at), x},
                    {{"num_split", parts}}, at);
}
std::vector<Output> split(Output x, const std::vector<int64_t>& sizes, int axis, Location at) {
  const auto parts = static_cast<int64_t>(sizes.size());
  return op_outputs(
      "SplitV",
      {x,
       constant(graph_of(x, at), Tensor::of<int64_t>({parts}, std::span<const int64_t>(sizes)),
                "size_splits", at),
       int32(graph_of(x, at), axis, "split_dim", at)},
      {{"num_split", parts}}, at);
}
Output tile(Output x, const Dims& repeats, Location at) {
  return op("Tile", {x, repeats.in(graph_of(x, at), at)}, {}, at);
}
Output repeat(Output x, const TensorLike& repeats, int axis, Location at) {
  Graph& graph = graph_of(x, at);
  const Output count = repeats.in(graph);
  const int rank = count.shape().rank();
  check(is_integer(count.dtype()) && (rank == 0 || rank == 1), "repeat (", at,
        "): repeats must be an integer or a vector of integers, got '", count.name(), "' ",
        count.dtype(), count.shape());
  const Output times = converted(graph, count, i32, at);
  const int from_front = axis < 0 ? axis + x.shape().rank() : axis;
  check(!x.shape().has_rank() || (from_front >= 0 && from_front < x.shape().rank()), "repeat (", at,
        "): '", x.name(), "' ", x.shape(), " has no axis ", axis);
  const Operand each(times, at);
  if (rank == 1) {
    // Slice i of the result is the first slice of x whose running total exceeds i.
    const Output totals = cumsum(times, 0, {}, at),
                 numbers = arange(graph, sum(times, Axes(), {}, at), at);
    const Output found =
        op("UpperBound", {expand_dims(totals, 0, at), expand_dims(numbers, 0, at)}, {}, at);
    return take(x, squeeze(found, 0, at), axis, at);
  }
  const Tensor number = constant_value(times);
  const int64_t length = x.shape().has_rank() ? x.shape()[from_front] : any;
  const Output total = number.is_valid() && length != any
                           ? int32(graph, length * number.item<int32_t>(), "total", at)
                           : each * Operand(shape_of(x, i32, at)[Index(axis, at)], at);
  return take(x, floor_div({arange(graph, total, at), at}, maximum(each, 1)), axis, at);
}
Output repeat(Output x, const TensorLike& repeats, Location at) {
  return repeat(x.shape().rank() == 1 ? x : reshape(x, -1, at), repeats, 0, at);
}
Output flip(Output x, const Axes& axes, Location at) {
  return op("ReverseV2", {x, axes.of(x, at)}, {}, at);
}
Output roll(Output x, int shift, int axis, Location at) {
  return op(
      "Roll",
      {x, int32(graph_of(x, at), shift, "shift", at), int32(graph_of(x, at), axis, "axis", at)}, {},
      at);
}

// ---- Borders ----

Output pad(Output x, const std::vector<std::pair<int64_t, int64_t>>& widths,
           const PadOptions& options, Location at) {
  std::vector<int64_t> values;
  for (const auto& [before, after] : widths) values.insert(values.end(), {before, after});
  const Output paddings = constant(graph_of(x, at),
                                   Tensor::of<int64_t>({static_cast<int64_t>(widths.size()), 2},
                                                       std::span<const int64_t>(values)),
                                   "paddings", at);
  if (options.mode != PadMode::constant) {
    return op("MirrorPad", {x, paddings},
              {{"mode", options.mode == PadMode::reflect ? "REFLECT" : "SYMMETRIC"}}, at);
  }
  return op("PadV2", {x, paddings, options.value.as(Operand(x, at))}, {}, at);
}

// ---- Chosen ----

Output take(Output x, const TensorLike& indices, int axis, Location at) {
  Graph& graph = graph_of(x, at);
  return op("GatherV2", {x, indices.in(graph), int32(graph, axis, "axis", at)}, {}, at);
}
Output gather_nd(Output x, Output indices, Location at) {
  return op("GatherNd", {x, indices}, {}, at);
}
Output scatter_nd(const TensorLike& indices, Output updates, const Dims& dims, Location at) {
  Graph& graph = graph_of(updates, at);
  const Output shape = dims.in(graph, at), tuples = indices.in(graph);
  return op(
      "ScatterNd",
      {converted(graph, {tuples, at}, shape.dtype() == i64 ? i64 : tuples.dtype(), at), updates,
       converted(graph, {shape, at}, shape.dtype() == i64 ? i64 : tuples.dtype(), at)},
      {}, at);
}
Output argwhere(Output x, Location at) { return op("Where", {x}, {}, at); }
Output boolean_mask(Output x, Output mask, Location at) {
  return gather_nd(x, argwhere(mask, at), at);
}
Output one_hot(Output indices, const Operand& depth, const OneHotOptions& options, Location at) {
  Graph& graph = graph_of(indices, at);
  return op("OneHot",
            {indices, depth.as(graph, i32), options.on_value.as(graph, options.dtype),
             options.off_value.as(graph, options.dtype)},
            {{"axis", options.axis}}, at);
}
Unique unique(Output x, DType index_dtype, Location at) {
  const std::vector<Output> out = op_outputs("Unique", {x}, {{"out_idx", index_dtype}}, at);
  return {out[0], out[1]};
}
std::vector<Output> dynamic_partition(Output data, Output which, int64_t parts, Location at) {
  return op_outputs("DynamicPartition", {data, which}, {{"num_partitions", parts}}, at);
}
Output dynamic_stitch(const std::vector<Output>& indices, const std::vector<Output>& data,
                      Location at) {
  std::vector<Output> all = indices;
  all.insert(all.end(), data.begin(), data.end());
  return op("DynamicStitch", all, {}, at);
}
Output segment_sum(Output data, Output segment_ids, const Operand& segments, Location at) {
  return op("UnsortedSegmentSum", {data, segment_ids, segments.as(graph_of(data, at), i32)}, {},
            at);
}

Output full_like(Output x, const Operand& value, Location at) {
  Graph& graph = graph_of(x, at);
  return op("Fill", {shape_of(x, i32, at), value.as(graph, x.dtype())}, {}, at);
}

Output reverse_sequence(Output x, Output lengths, const ReverseSequenceOptions& options,
                        Location at) {
  return op("ReverseSequence", {x, lengths},
            {{"seq_dim", options.seq_axis}, {"batch_dim", options.batch_axis}}, at);
}

Grid meshgrid(Output x, Output y, Location at) {
  for (const auto& [name, each] : {std::pair{"x", x}, {"y", y}}) {
    graph_of(each, at);
    check(each.shape().is_compatible(Shape{any}), "meshgrid (", at, "): ", name,
          " must be a vector, got '", each.name(), "' ", each.shape());
  }
  const Output rows = size_of(y, i32, at), columns = size_of(x, i32, at);
  return {broadcast_to(x, {rows, columns}, at),
          broadcast_to(expand_dims(y, 1, at), {rows, columns}, at)};
}

Output take_along_axis(Output x, Output indices, int axis, Location at) {
  graph_of(x, at);
  graph_of(indices, at);
  const int rank = x.shape().rank(), which = axis < 0 ? axis + rank : axis;
  check(rank > 0 && indices.shape().rank() == rank && which >= 0 && which < rank &&
            is_integer(indices.dtype()),
        "take_along_axis (", at, ") along axis ", axis,
        ": the indices must be integers of the same known rank as x, got '", x.name(), "' ",
        x.shape(), " and '", indices.name(), "' ", indices.dtype(), indices.shape());
  for (int i = 0; i < rank; ++i) {
    const int64_t a = x.shape()[i], b = indices.shape()[i];
    check(i == which || a == b || a == any || b == any, "take_along_axis (", at, ") along axis ",
          axis, ": the other extents must be equal, got x ", x.shape(), " and indices ",
          indices.shape());
  }
  std::vector<int> exchanged(rank);  // with the last axis
  std::iota(exchanged.begin(), exchanged.end(), 0);
  std::swap(exchanged[which], exchanged.back());
  const bool is_last = which == rank - 1;
  const Output values = is_last ? x : transpose(x, exchanged, at),
               places = is_last ? indices : transpose(indices, exchanged, at);
  const Output extent = shape_of(values, i32, at)[Index(rank - 1, at)],
               count = shape_of(places, i32, at)[Index(rank - 1, at)];
  const Output in_rows = reshape(places, {-1, count}, at);  // [rows, count]
  const Output row = expand_dims(
      arange(x.graph(), shape_of(in_rows, i32, at)[Index(0, at)], in_rows.dtype(), at), 1, at);
  const Output pairs = stack({broadcast_to(row, shape_of(in_rows, i32, at), at), in_rows}, 2, at);
  const Output taken = reshape(gather_nd(reshape(values, {-1, extent}, at), pairs, at),
                               shape_of(places, i32, at), at);
  return is_last ? taken : transpose(taken, exchanged, at);
}

Output bincount(Output x, const BincountOptions& options, Location at) {
  Graph& graph = graph_of(x, at);
  check(is_integer(x.dtype()), "bincount (", at, "): x must be integers, got '", x.name(), "' ",
        x.dtype());
  check(options.minlength >= 0, "bincount (", at, "): minlength must not be negative, got ",
        options.minlength);
  const Output numbers = reshape(x.dtype() == i32 ? x : cast(x, i32, at), {-1}, at);
  // Of no numbers, the largest is the least of all.
  const Output largest = max(numbers, Axes(), {}, at) + Operand(1, at);
  const Output size = maximum(largest, Operand(options.minlength, at));
  Output weights = options.weights;
  if (weights) {
    check(weights.shape().is_compatible(x.shape()), "bincount (", at,
          "): the weights must have the shape of x, got ", weights.shape(), " and ", x.shape());
    weights = reshape(weights, {-1}, at);
  } else {
    weights = constant(graph, Tensor(i32, {0}), "weights", at);
  }
  return op("Bincount", {numbers, size, weights}, {}, at);
}

Output searchsorted(Output sorted, const TensorLike& values, SearchOptions options, Location at) {
  graph_of(sorted, at);
  check(sorted.shape().is_compatible(Shape{any}), "searchsorted (", at,
        "): it needs a sorted vector, got '", sorted.name(), "' ", sorted.shape());
  const Output wanted = values.like(sorted);
  const Output found =
      op(options.right ? "UpperBound" : "LowerBound",
         {expand_dims(sorted, 0, at), reshape(wanted, {1, -1}, at)}, {{"out_type", i32}}, at);
  return reshape(found, shape_of(wanted, i32, at), at);
}

}  // namespace leat
