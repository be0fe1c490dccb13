// RaggedTensorToTensor: a ragged tensor padded to a dense one.
#include <algorithm>
#include <string>
#include <vector>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/broadcast_gradient.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"

namespace leat {
namespace {

constexpr int first_partition = 3;  // the input; those before it are shape, values, default value

// ---- The attribute

// How the rows are given: the splits or the row of every value, one per ragged axis; the latter
// come after a number of rows.
struct Partitions {
  std::vector<std::string> kinds;
  bool has_size;

  explicit Partitions(const NodeView& node)
      : kinds(node.attr<std::vector<std::string>>("row_partition_types")) {
    check(!kinds.empty(), "Partition info types should not be empty");
    for (const std::string& kind : kinds) {
      check(kind == "FIRST_DIM_SIZE" || kind == "VALUE_ROWIDS" || kind == "ROW_SPLITS",
            "Unsupported partition type: ", kind);
      check(&kind == &kinds[0] || kind != "FIRST_DIM_SIZE", "FIRST_DIM_SIZE must be first");
    }
    has_size = kinds[0] == "FIRST_DIM_SIZE";
    check(!has_size || (kinds.size() > 1 && kinds[1] == "VALUE_ROWIDS"),
          "FIRST_DIM_SIZE must be followed by VALUE_ROWIDS");
    check(kinds[0] != "VALUE_ROWIDS", "VALUE_ROWIDS cannot be first");
    const int64_t given = node.attr<int64_t>("num_row_partition_tensors");
    check(given == std::ssize(kinds), "Number of row partition tensors (", given,
          ") does not equal the number of row partition types(", kinds.size(), ").");
  }
  int ragged_rank() const { return static_cast<int>(kinds.size()) - (has_size ? 1 : 0); }
  // Whether the partition of ragged axis `level` is given by splits.
  bool are_splits(int level) const { return kinds[level + (has_size ? 1 : 0)] == "ROW_SPLITS"; }
  int input(int level) const { return first_partition + level + (has_size ? 1 : 0); }
};

// ---- Shapes

void check_default(const Shape& given, const Shape& values) {
  if (!given.has_rank() || !values.has_rank()) return;
  check(given.rank() < values.rank(), "default_value.shape=", given,
        " and rt_input.flat_values.shape=", values,
        " are incompatible: default_value.rank must be less than rt_input.flat_values.rank");
  for (int i = 0; i < given.rank(); ++i) {
    check(given[i] == any || values[i + 1] == any || given[i] == 1 || given[i] == values[i + 1],
          "default_value.shape=", given, " and rt_input.flat_values.shape=", values,
          " are incompatible");
  }
}

// The shape of the output, as far as `shape` and the values determine it.
Shape combined(const Shape& shape, const Shape& values, int ragged_rank) {
  if (!values.has_rank()) return shape;
  Shape out = shape.has_rank() ? shape : Shape::of_rank(ragged_rank + values.rank());
  check(out.rank() == ragged_rank + values.rank(), "rt_input.shape and shape=", shape,
        " are incompatible: rt_input.rank = ", ragged_rank + values.rank(),
        " but shape.rank = ", out.rank());
  for (int i = 1; i < values.rank(); ++i) {
    check(out[ragged_rank + i] == any || values[i] == any || out[ragged_rank + i] == values[i],
          "rt_input.shape and shape=", shape, " are incompatible: rt_input.shape[", ragged_rank + i,
          "] = ", values[i]);
    if (values[i] != any) out.set(ragged_rank + i, values[i]);
  }
  return out;
}

void infer(ShapeContext& c) {
  const Partitions partitions(c.node());
  for (size_t i = 0; i < partitions.kinds.size(); ++i)
    c.with_rank(first_partition + static_cast<int>(i), partitions.has_size && i == 0 ? 0 : 1);
  check_default(c.input(2), c.input(1));
  const bool is_vector = c.input(0).has_rank() && c.input(0).rank() > 0;
  const Shape shape = is_vector ? c.shape_from_value(0) : Shape::unknown();
  c.set_output(0, combined(shape, c.input(1), partitions.ragged_rank()));
}

// The input `shape` of a call: a vector, or the scalar -1 where nothing is known.
Shape requested(const Tensor& shape) {
  const std::vector<int64_t> extents = to_int64s(shape);
  check(shape.shape().rank() <= 1, "shape must be a vector, got shape ", shape.shape());
  if (shape.shape().rank() == 0) {
    check(extents[0] == any,
          "The only valid scalar shape tensor is the fully unknown shape specified as -1.");
    return Shape::unknown();
  }
  for (const int64_t extent : extents) check(extent >= any, "Dimension ", extent, " must be >= -1");
  return Shape(extents);
}

int64_t longest_row(const std::vector<int64_t>& partition, bool are_splits) {
  int64_t longest = 0;
  if (are_splits) {
    for (size_t i = 1; i < partition.size(); ++i) {
      int64_t length = 0;
      check(!__builtin_sub_overflow(partition[i], partition[i - 1], &length), "Invalid row split ",
            partition[i]);
      longest = std::max(longest, length);
    }
    return longest;
  }
  size_t begin = 0;  // of the values in one row
  for (size_t i = 0; i < partition.size(); ++i) {
    if (partition[i] != partition[begin]) begin = i;
    longest = std::max(longest, static_cast<int64_t>(i - begin + 1));
  }
  return longest;
}

// ---- Where the values go

constexpr int64_t nowhere = -1;
using Places = std::vector<int64_t>;  // where each row or value begins in the output; or nowhere

// The places of the parts of rows: `step` apart, not more than `extent` of them.
Places places_of_splits(const std::vector<int64_t>& splits, const Places& rows, int64_t step,
                        int64_t extent) {
  const int64_t count = std::ssize(splits) - 1;
  check(count >= 0 && count <= std::ssize(rows),
        "Row partition size is greater than output size: ", count, " > ", rows.size());
  int64_t total = 0;
  for (int64_t row = 0; row < count; ++row) {
    int64_t length = 0;
    check(!__builtin_sub_overflow(splits[row + 1], splits[row], &length), "Invalid row split ",
          splits[row + 1]);
    total = sum_of_extents(total, std::max<int64_t>(0, length));
  }
  check(total == splits.back(), "Invalid row split size.");
  check_memory_for(total, 2 * sizeof(int64_t));
  Places out(total, nowhere);
  for (int64_t row = 0, at = 0; row < count; ++row) {
    const int64_t length = std::max<int64_t>(0, splits[row + 1] - splits[row]);
    for (int64_t i = 0; rows[row] != nowhere && i < std::min(length, extent); ++i) {
      StepEnd::pace(4);
      out[at + i] = rows[row] + i * step;
    }
    at += length;
  }
  return out;
}

Places places_of_ids(const std::vector<int64_t>& ids, const Places& rows, int64_t step,
                     int64_t extent) {
  Places out;
  out.reserve(ids.size());
  int64_t column = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    StepEnd::pace(8);
    check(ids[i] >= 0 && ids[i] < std::ssize(rows), "Got value_rowid=", ids[i],
          " which is not less than ", rows.size());
    column = i > 0 && ids[i] == ids[i - 1] ? column + 1 : 0;
    const int64_t row = rows[ids[i]];
    out.push_back(row == nowhere || column >= extent ? nowhere : row + column * step);
  }
  return out;
}

// ---- The kernel

// One value, made by repeating `given`.
template <class T>
std::vector<T> default_of(const Tensor& given, const Shape& value) {
  const int64_t n = value.elements();
  const T* from = given.data<T>();
  if (given.elements() == n) return std::vector<T>(from, from + n);
  if (given.elements() == 1) return std::vector<T>(n, *from);
  check(broadcast(given.shape(), value) == value, "Error broadcasting default_value");
  std::vector<T> out(n);
  for (int64_t i = 0; i < n; ++i) {
    StepEnd::pace(16);
    int64_t at = 0, stride = 1, rest = i;
    for (int axis = value.rank(); --axis >= 0; rest /= value[axis]) {
      const int own = axis - value.rank() + given.shape().rank();
      if (own < 0 || given.shape()[own] == 1) continue;
      at += rest % value[axis] * stride;
      stride *= given.shape()[own];
    }
    out[i] = from[at];
  }
  return out;
}

template <class T>
void to_tensor(ExecuteContext& c) {
  const Partitions partitions(c.node());
  const int ragged_rank = partitions.ragged_rank();
  const Tensor &values = c.input(1), &given = c.input(2), &first = c.input(first_partition);
  std::vector<std::vector<int64_t>> parts;
  for (int level = 0; level < ragged_rank; ++level)
    parts.push_back(to_int64s(c.input(partitions.input(level))));
  check(first.elements() > 0,
        "Invalid first partition input. Tensor requires at least one element.");
  const int64_t rows = partitions.has_size ? to_int64s(first)[0] : first.elements() - 1;
  check(rows >= 0, "Dimension ", rows, " must be >= 0");
  check_default(given.shape(), values.shape());

  Shape shape = combined(requested(c.input(0)), values.shape(), ragged_rank);
  if (shape[0] == any) shape.set(0, rows);
  for (int i = 1; i <= ragged_rank; ++i) {
    if (shape[i] == any) shape.set(i, longest_row(parts[i - 1], partitions.are_splits(i - 1)));
  }
  Tensor out(values.dtype(), shape);
  std::vector<int64_t> steps(ragged_rank + 1, 1);  // between neighbours of an axis, in values
  int64_t places = shape[ragged_rank];
  for (int i = ragged_rank; i-- > 0; places = product_of_extents(places, shape[i]))
    steps[i] = places;
  if (places == 0) return c.set_output(0, std::move(out));

  // Rows after the last row of the output are nowhere.
  check_memory_for(rows, 2 * sizeof(int64_t));
  Places to(rows, nowhere);
  for (int64_t row = 0; row < std::min(rows, shape[0]); ++row) to[row] = row * steps[0];
  for (int level = 0; level < ragged_rank; ++level) {
    to = (partitions.are_splits(level) ? places_of_splits : places_of_ids)(
        parts[level], to, steps[level + 1], shape[level + 1]);
  }
  check(std::ssize(to) <= values.shape()[0], "the row partitions have ", to.size(),
        " values, but there are only ", values.shape()[0]);
  const Shape value(shape.dims().subspan(ragged_rank + 1));
  const int64_t n = out.elements() == 0 ? 0 : value.elements();
  if (n == 0) return c.set_output(0, std::move(out));
  const std::vector<T> padding = default_of<T>(given, value);
  for (int64_t place = 0; place < places; ++place) {
    StepEnd::pace(4 + n);
    std::copy(padding.begin(), padding.end(), out.data<T>() + place * n);
  }
  for (size_t i = 0; i < to.size(); ++i) {
    StepEnd::pace(4 + n);
    if (to[i] != nowhere)
      std::copy_n(values.data<T>() + static_cast<int64_t>(i) * n, n, out.data<T>() + to[i] * n);
  }
  c.set_output(0, std::move(out));
}

// Computes, with the same op, the number of the value at every place of the output, or -1.
void to_tensor_gradient(Gradient& g) {
  const auto vector = [&](int32_t i) { return constant(g.graph(), ints({i})); };
  const auto scalar = [&](int32_t i) { return constant(g.graph(), Tensor::scalar<int32_t>(i)); };
  const Output count =
      strided_slice(shape_of(g.x(1)), vector(0), vector(1), vector(1), {{"shrink_axis_mask", 1}});
  const Partitions partitions(NodeView{g.node().name, "RaggedTensorToTensor", g.node().attrs});
  std::vector<Output> inputs = {
      strided_slice(shape_of(g.dy()), vector(0), vector(partitions.ragged_rank() + 1), vector(1)),
      arange(g.graph(), count), scalar(-1)};
  for (int i = first_partition; i < g.num_inputs(); ++i) inputs.push_back(g.x(i));
  const Output numbers =
      op("RaggedTensorToTensor", inputs, {{"row_partition_types", AttrValue(partitions.kinds)}});
  g.dx(1) = segment_sum(g.dy(), numbers, count);
  const Output is_padding = cast(equal(numbers, scalar(-1)), i32);  // 1 or 0; row 1 is kept
  const Output sums = segment_sum(g.dy(), is_padding, scalar(2));
  const Output sum =
      strided_slice(sums, vector(1), vector(2), vector(1), {{"shrink_axis_mask", 1}});
  g.dx(2) = sum_to_shape_of(g.x(2), sum, sum);
}

const Op to_tensor_op{{
    .name = "RaggedTensorToTensor",
    .doc = "The ragged tensor of these values as a dense one of `shape`, where -1 stands for the "
           "length of the longest row; longer rows are cut, shorter ones are filled up with "
           "default_value. The rows of each ragged axis, outer ones first, are given by their "
           "ROW_SPLITS or by VALUE_ROWIDS, the row of each value; the number of rows, "
           "FIRST_DIM_SIZE, comes in front of the outermost VALUE_ROWIDS.",
    .inputs = {"shape: Tshape", "values: T", "default_value: T",
               "row_partition_tensors: num_row_partition_tensors * Tindex"},
    .outputs = {"result: T"},
    .attrs = {"T: type", "Tindex: {int64, int32}", "Tshape: {int64, int32}",
              "num_row_partition_tensors: int >= 1", "row_partition_types: list(string)"},
    .shape = infer,
    .gradient = to_tensor_gradient,
    .kernels = {execute_kernel("T", AllTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { to_tensor<T>(c); })},
    .examples = {{.inputs = {longs({-1, -1}), floats({5, 6, 7}), Tensor::scalar(0.0F),
                             longs({0, 1, 1, 3})},
                  .attrs = {{"row_partition_types", std::vector<std::string>{"ROW_SPLITS"}}},
                  .outputs = {floats({3, 2}, {5, 0, 0, 0, 6, 7})}},
                 {.inputs = {longs({2, 1}), floats({5, 6, 7}), Tensor::scalar(0.0F),
                             Tensor::scalar<int64_t>(3), longs({0, 2, 2})},
                  .attrs = {{"row_partition_types",
                             std::vector<std::string>{"FIRST_DIM_SIZE", "VALUE_ROWIDS"}}},
                  .outputs = {floats({2, 1}, {5, 0})}}},
    .has_data_dependent_shape = true,
}};

}  // namespace
}  // namespace leat
