// Ops that join and split tensors along an axis: ConcatV2, ConcatOffset, Split, Pack, Unpack,
// ParallelConcat.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/handles.h"
#include "kernels/moved_variants.h"
#include "kernels/strided_copy.h"

namespace leat {
namespace {

// Every tensor of a list is a block of each row of the whole: [outer, block], beginning at column
// `at`.
struct Block {
  StridedCopy copy;
  int64_t at;
};

int64_t outer_of(const Shape& shape, int axis) {
  int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  return outer;
}

std::vector<Block> blocks_of(std::span<const TensorSpec> parts, int64_t outer, bool join) {
  int64_t row = 0;
  std::vector<int64_t> widths;
  for (const TensorSpec& part : parts) {
    widths.push_back(outer == 0 ? 0 : part.shape.elements() / outer);
    row += widths.back();
  }
  std::vector<Block> blocks;
  int64_t at = 0;
  for (int64_t width : widths) {
    blocks.push_back(
        {StridedCopy(join ? std::vector<StridedCopy::Axis>{{outer, width, row}, {width, 1, 1}}
                          : std::vector<StridedCopy::Axis>{{outer, row, width}, {width, 1, 1}}),
         at});
    at += width;
  }
  return blocks;
}

// Joins the inputs from `first` on.
template <class T>
BoundKernel join(std::vector<Block> blocks, int first = 0) {
  return BoundKernel::of([blocks = std::move(blocks), first](const Arguments& a) {
    for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
      blocks[i].copy.run(*a.stream, a.input<T>(first + i), a.output<T>() + blocks[i].at);
    }
  });
}

template <class T>
BoundKernel split(const KernelRequest& request, int64_t outer, int input) {
  std::vector<Block> blocks = blocks_of(request.outputs, outer, false);
  if (outer == 1) {  // they lie one after another
    BoundKernel out;
    for (int i = 0; i < static_cast<int>(blocks.size()); ++i)
      out.views.push_back({i, input, static_cast<size_t>(blocks[i].at) * sizeof(T)});
    return out;
  }
  return BoundKernel::of([blocks = std::move(blocks), input](const Arguments& a) {
    for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
      blocks[i].copy.run(*a.stream, a.input<T>(input) + blocks[i].at, a.output<T>(i));
    }
  });
}

int64_t axis_value(const Tensor& axis, int max_rank = 1) {
  check(axis.elements() == 1 && axis.shape().rank() <= max_rank,
        "the axis must be one number, got shape ", axis.shape());
  return to_int64s(axis)[0];
}

// ---- ConcatV2

// `first` is the first of the values, `axis_at` the input that holds the axis.
void infer_concat(ShapeContext& c, int first, int axis_at) {
  const int end = first + c.num_inputs() - 1;
  const Tensor* value = c.value(axis_at);
  int rank = -1;
  for (int i = first; i < end && rank < 0; ++i) rank = c.input(i).rank();
  if (rank < 0) return c.set_output(0, Shape::unknown());
  if (value == nullptr) return c.set_output(0, Shape::of_rank(rank));
  const int axis = normalized_axis(axis_value(*value), rank);
  Shape out = Shape::of_rank(rank);
  int64_t length = 0;
  for (int i = first; i < end; ++i) {
    Shape part = c.with_rank(i, rank);
    length = length == any || part[axis] == any ? any : sum_of_extents(length, part[axis]);
    part.set(axis, any);
    check(part.is_compatible(out),
          "ConcatOp : Dimensions of inputs should match except along axis ", axis, ", but input ",
          i, " is ", c.input(i), " and those before it ", out);
    out = out.merged(part);
  }
  out.set(axis, length);
  c.set_output(0, out);
}

// Concat, the predecessor of ConcatV2, has the axis as its first input.
template <class T>
BoundKernel prepare_concat_v1(TypeTag<T>, const KernelRequest& request) {
  const Shape& out = request.outputs[0].shape;
  const int axis = normalized_axis(axis_value(*request.inputs[0].value), out.rank());
  return join<T>(blocks_of(request.inputs.subspan(1), outer_of(out, axis), true), 1);
}

template <class T>
BoundKernel prepare_concat(TypeTag<T>, const KernelRequest& request) {
  const std::span<const TensorSpec> parts = request.inputs.first(request.inputs.size() - 1);
  const Shape& out = request.outputs[0].shape;
  const int axis = normalized_axis(axis_value(*request.inputs.back().value), out.rank());
  return join<T>(blocks_of(parts, outer_of(out, axis), true));
}

void concat_gradient(Gradient& g) {
  const int n = g.num_inputs() - 1;
  const Output axis = g.x(n);
  if (n == 1) {
    g.dx(0) = g.dy();
    return;
  }
  const std::vector<Output> parts(g.node().inputs.begin(), g.node().inputs.begin() + n);
  const std::vector<Output> shapes = shape_n(parts);
  Output dim = axis.dtype() == i32 ? axis : cast(axis, i32);
  // ConcatOffset does not accept a negative axis.
  if (const Tensor value = constant_value(axis); value.is_valid() && axis_value(value) < 0) {
    const int rank = g.y().shape().rank();
    check(rank >= 0, "the gradient of ConcatV2 along a negative axis needs a known rank");
    dim = constant(g.graph(), Tensor::scalar(static_cast<int32_t>(axis_value(value) + rank)));
  }
  const std::vector<Output> offsets = concat_offset(dim, shapes);
  for (int i = 0; i < n; ++i) g.dx(i) = op("Slice", {g.dy(), offsets[i], shapes[i]});
}

const Op concat_v1_op{{
    .name = "Concat",
    .doc = "output = the values one after the other along concat_dim.",
    .inputs = {"concat_dim: int32", "values: N * T"},
    .outputs = {"output: T"},
    .attrs = {"N: int >= 2", "T: type"},
    .shape = [](ShapeContext& c) { infer_concat(c, 1, 0); },
    .gradient =
        [](Gradient& g) {
          const std::vector<Output> parts(g.node().inputs.begin() + 1, g.node().inputs.end());
          const std::vector<Output> shapes = shape_n(parts), at = concat_offset(g.x(0), shapes);
          for (size_t i = 0; i < parts.size(); ++i)
            g.dx(static_cast<int>(i) + 1) = op("Slice", {g.dy(), at[i], shapes[i]});
        },
    .kernels = {cpu_moving_kernel(
        "T",
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_concat_v1(t, r); })},
    .examples = {{.inputs = {Tensor::scalar<int32_t>(1), floats({2, 1}, {1, 2}),
                             floats({2, 2}, {3, 4, 5, 6})},
                  .outputs = {floats({2, 3}, {1, 3, 4, 2, 5, 6})}}},
    .value_inputs = {0},
}};

const Op concat_op{{
    .name = "ConcatV2",
    .doc = "output = the values one after the other along `axis`; negative counts from the end.",
    .inputs = {"values: N * T", "axis: Tidx"},
    .outputs = {"output: T"},
    .attrs = {"N: int >= 2", "T: type", "Tidx: {int32, int64} = int32"},
    .shape = [](ShapeContext& c) { infer_concat(c, 0, c.num_inputs() - 1); },
    .gradient = concat_gradient,
    .kernels = and_for_variants(cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_concat(t, r); })),
    .examples = {{.inputs = {floats({2, 1}, {1, 2}), floats({2, 2}, {3, 4, 5, 6}),
                             Tensor::scalar<int32_t>(1)},
                  .outputs = {floats({2, 3}, {1, 3, 4, 2, 5, 6})}}},
    .value_inputs = {-1},
}};

// ---- ConcatOffset

template <class T>
BoundKernel prepare_concat_offset(TypeTag<T>, const KernelRequest& request) {
  const int n = static_cast<int>(request.outputs.size());
  const int rank = static_cast<int>(request.inputs[1].shape[0]);
  for (int i = 1; i < n; ++i) {
    check(request.inputs[1 + i].shape[0] == rank, "shape ", i, " should contain ", rank,
          " elements, but has ", request.inputs[1 + i].shape[0]);
  }
  return BoundKernel::of([n, rank](const Arguments& a) {
    const int axis = normalized_axis(*a.input<int32_t>(0), rank);
    T at = 0;
    for (int i = 0; i < n; ++i) {
      for (int d = 0; d < rank; ++d) {
        check(d == axis || a.input<T>(1 + i)[d] == a.input<T>(1)[d], "shape ", i, " has extent ",
              a.input<T>(1 + i)[d], " in axis ", d, ", shape 0 has ", a.input<T>(1)[d]);
      }
      std::fill_n(a.output<T>(i), rank, T(0));
      a.output<T>(i)[axis] = at;
      check(!__builtin_add_overflow(at, a.input<T>(1 + i)[axis], &at),
            "the sum of the extents along axis ", axis, " overflows");
    }
  });
}

const Op concat_offset_op{{
    .name = "ConcatOffset",
    .doc = "offset[i] = where a tensor of shape[i] begins in the concatenation along concat_dim.",
    .inputs = {"concat_dim: int32", "shape: N * shape_type"},
    .outputs = {"offset: N * shape_type"},
    .attrs = {"N: int >= 2", "shape_type: {int32, int64} = int32"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.with_rank(i + 1, 1));
        },
    .kernels = {cpu_kernel(
        "shape_type", Types<int32_t, int64_t>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_concat_offset(t, r); })},
    .examples = {{.inputs = {Tensor::scalar<int32_t>(1), ints({2, 3}), ints({2, 5})},
                  .outputs = {ints({0, 0}), ints({0, 3})}}},
    .is_not_differentiable = true,
}};

// ---- Split

void infer_split(ShapeContext& c) {
  Shape out = c.input(1);
  const Tensor* value = c.value(0);
  if (!out.has_rank() || value == nullptr) {
    out = out.has_rank() ? Shape::of_rank(out.rank()) : Shape::unknown();
  } else {
    const int axis = normalized_axis(axis_value(*value, 0), out.rank());
    check(out[axis] == any || out[axis] % c.num_outputs() == 0, "axis ", axis, " of ", out,
          " does not split into ", c.num_outputs(), " equal parts");
    if (out[axis] != any) out.set(axis, out[axis] / c.num_outputs());
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
}

template <class T>
BoundKernel prepare_split(TypeTag<T>, const KernelRequest& request) {
  const Shape& in = request.inputs[1].shape;
  const int axis = normalized_axis(axis_value(*request.inputs[0].value), in.rank());
  return split<T>(request, outer_of(in, axis), 1);
}

// The gradients of all outputs, zeros for those that nothing depends on.
Output joined(std::vector<Output> parts, Output axis) {
  parts.push_back(axis);
  return op("ConcatV2", parts);
}

std::vector<Output> all_gradients(Gradient& g) {
  std::vector<Output> out;
  for (int i = 0; i < static_cast<int>(g.node().outputs.size()); ++i) {
    out.push_back(g.dy(i) ? g.dy(i) : zeros_like(g.y(i)));
  }
  return out;
}

const Op split_op{{
    .name = "Split",
    .doc = "output[i] = part i of num_split equal parts of value along split_dim.",
    .inputs = {"split_dim: int32", "value: T"},
    .outputs = {"output: num_split * T"},
    .attrs = {"num_split: int >= 1", "T: type"},
    .shape = infer_split,
    .gradient =
        [](Gradient& g) {
          std::vector<Output> parts = all_gradients(g);
          g.dx(1) = parts.size() == 1 ? parts[0] : joined(parts, g.x(0));
        },
    .kernels = and_for_variants(cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_split(t, r); })),
    .examples = {{.inputs = {Tensor::scalar<int32_t>(1), floats({2, 2}, {1, 2, 3, 4})},
                  .attrs = {{"num_split", 2}},
                  .outputs = {floats({2, 1}, {1, 3}), floats({2, 1}, {2, 4})}}},
    .value_inputs = {0},
}};

// ---- SplitV

// The sizes of the parts, of which one may be -1: what the others leave.
std::vector<int64_t> part_sizes(const Tensor& sizes, int64_t extent) {
  std::vector<int64_t> out = to_int64s(sizes);
  int64_t sum = 0;
  int64_t* rest = nullptr;
  for (int64_t& size : out) {
    if (size == -1) {
      check(rest == nullptr, "There can only be one -1 in the input, size_splits is ", sizes);
      rest = &size;
    } else {
      check(size >= 0, "Split size ", size, " must not be negative, size_splits is ", sizes);
      sum = sum_of_extents(sum, size);
    }
  }
  if (extent == any) return out;
  check(
      rest == nullptr ? sum == extent : sum <= extent,
      "Determined shape must either match input shape along split_dim exactly if fully specified, "
      "or be less than the size of the input along split_dim if not fully specified.  Got: ",
      sum, ", the size of the input is ", extent);
  if (rest != nullptr) *rest = extent - sum;
  return out;
}

void infer_split_v(ShapeContext& c) {
  const Shape in = c.input(0), sizes_shape = c.with_rank(1, 1);
  const int parts = c.num_outputs();
  check(sizes_shape[0] == any || sizes_shape[0] == parts,
        "size_splits must have one element per output, got ", sizes_shape[0], " elements and ",
        parts, " outputs");
  if (!in.has_rank() || c.value(2) == nullptr) {
    for (int i = 0; i < parts; ++i)
      c.set_output(i, in.has_rank() ? Shape::of_rank(in.rank()) : Shape::unknown());
    return;
  }
  const int axis = normalized_axis(axis_value(*c.value(2)), in.rank());
  std::vector<int64_t> sizes(parts, any);
  if (c.value(1) != nullptr) sizes = part_sizes(*c.value(1), in[axis]);
  for (int i = 0; i < parts; ++i) {
    Shape part = in;
    part.set(axis, sizes[i]);
    c.set_output(i, part);
  }
}

template <class T>
BoundKernel prepare_split_v(TypeTag<T>, const KernelRequest& request) {
  const Shape& in = request.inputs[0].shape;
  const int axis = normalized_axis(axis_value(*request.inputs[2].value), in.rank());
  return split<T>(request, outer_of(in, axis), 0);
}

const Op split_v_op{{
    .name = "SplitV",
    .doc = "output[i] = part i of value along split_dim, size_splits[i] long; one size may be -1, "
           "the rest.",
    .inputs = {"value: T", "size_splits: Tlen", "split_dim: int32"},
    .outputs = {"output: num_split * T"},
    .attrs = {"num_split: int >= 1", "T: type", "Tlen: {int8, int32, int64} = int64"},
    .shape = infer_split_v,
    .gradient =
        [](Gradient& g) {
          std::vector<Output> parts = all_gradients(g);
          g.dx(0) = parts.size() == 1 ? parts[0] : joined(parts, g.x(2));
        },
    .kernels = and_for_variants(cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_split_v(t, r); })),
    .examples = {{.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({1, -1}),
                             Tensor::scalar<int32_t>(1)},
                  .attrs = {{"num_split", 2}},
                  .outputs = {floats({2, 1}, {1, 4}), floats({2, 2}, {2, 3, 5, 6})}}},
    .value_inputs = {1, 2},
}};

// ---- Pack, Unpack

void infer_pack(ShapeContext& c) {
  Shape part = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    check(part.is_compatible(c.input(i)),
          "Shapes of all inputs must match: values[0].shape = ", c.input(0), " != values[", i,
          "].shape = ", c.input(i));
    part = part.merged(c.input(i));
  }
  if (!part.has_rank()) return c.set_output(0, Shape::unknown());
  const int axis = normalized_axis(c.attr<int64_t>("axis"), part.rank() + 1);
  Shape out;
  for (int i = 0; i <= part.rank(); ++i) {
    out.push_back(i == axis ? c.num_inputs() : part[i < axis ? i : i - 1]);
  }
  c.set_output(0, out);
}

void infer_unpack(ShapeContext& c) {
  const Shape value = c.input(0);
  Shape part = Shape::unknown();
  if (value.has_rank()) {
    const int axis = normalized_axis(c.attr<int64_t>("axis"), value.rank());
    check(value[axis] == any || value[axis] == c.num_outputs(), "axis ", axis, " of ", value,
          " has ", value[axis], " entries, but num is ", c.num_outputs());
    part = {};
    for (int i = 0; i < value.rank(); ++i) {
      if (i != axis) part.push_back(value[i]);
    }
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, part);
}

template <class T>
BoundKernel prepare_pack(TypeTag<T>, const KernelRequest& request) {
  const Shape& out = request.outputs[0].shape;
  const int axis = normalized_axis(request.attr<int64_t>("axis"), out.rank());
  if (request.inputs.size() == 1) return BoundKernel::view();
  return join<T>(blocks_of(request.inputs, outer_of(out, axis), true));
}

template <class T>
BoundKernel prepare_unpack(TypeTag<T>, const KernelRequest& request) {
  const Shape& in = request.inputs[0].shape;
  const int axis = normalized_axis(request.attr<int64_t>("axis"), in.rank());
  return split<T>(request, outer_of(in, axis), 0);
}

const Op pack_op{{
    .name = "Pack",
    .doc = "output = the values, all of one shape, side by side along a new axis.",
    .inputs = {"values: N * T"},
    .outputs = {"output: T"},
    .attrs = {"N: int >= 1", "T: type", "axis: int = 0"},
    .shape = infer_pack,
    .gradient =
        [](Gradient& g) {
          const std::vector<Output> parts = op_outputs(
              "Unpack", {g.dy()}, {{"num", g.num_inputs()}, {"axis", g.attr<int64_t>("axis")}});
          for (int i = 0; i < g.num_inputs(); ++i) g.dx(i) = parts[i];
        },
    .kernels = and_pack_handles(and_for_variants(cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_pack(t, r); }))),
    .examples = {{.inputs = {floats({1, 2}), floats({3, 4})},
                  .attrs = {{"axis", 1}},
                  .outputs = {floats({2, 2}, {1, 3, 2, 4})}}},
}};

const Op unpack_op{{
    .name = "Unpack",
    .doc = "output[i] = value at index i of `axis`, without that axis.",
    .inputs = {"value: T"},
    .outputs = {"output: num * T"},
    .attrs = {"num: int >= 0", "T: type", "axis: int = 0"},
    .shape = infer_unpack,
    .gradient = [](Gradient& g) { g.dx(0) = stack(all_gradients(g), g.attr<int64_t>("axis")); },
    .kernels = and_for_variants(cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_unpack(t, r); })),
    .examples = {{.inputs = {floats({2, 2}, {1, 3, 2, 4})},
                  .attrs = {{"num", 2}, {"axis", 1}},
                  .outputs = {floats({1, 2}), floats({3, 4})}}},
}};

// ---- ParallelConcat: tf.parallel_stack

void infer_parallel_concat(ShapeContext& c) {
  const Shape& out = c.attr<Shape>("shape");
  check(out.is_complete(), "shape attr must be fully defined.");
  check(out.rank() > 0 && out[0] == c.num_inputs(), "got ", c.num_inputs(),
        " values, which cannot be stacked to shape ", out);
  const Shape row = rows_of(1, out);
  for (int i = 0; i < c.num_inputs(); ++i) {
    check(row.is_compatible(c.input(i)), "values[", i, "] must have shape ", row, ", got ",
          c.input(i));
  }
  c.set_output(0, out);
}

const Op parallel_concat_op{{
    .name = "ParallelConcat",
    .doc = "output = the values, each a single row, one after the other; `shape` must be complete.",
    .inputs = {"values: N * T"},
    .outputs = {"output: T"},
    .attrs = {"N: int >= 1", "T: type", "shape: shape"},
    .shape = infer_parallel_concat,
    .kernels = {cpu_moving_kernel("T",
                                  []<class T>(TypeTag<T>, const KernelRequest& r) {
                                    return join<T>(blocks_of(r.inputs, 1, true));
                                  })},
    .examples = {{.inputs = {floats({1, 2}, {1, 2}), floats({1, 2}, {3, 4})},
                  .attrs = {{"shape", Shape{2, 2}}},
                  .outputs = {floats({2, 2}, {1, 2, 3, 4})}}},
}};

}  // namespace
}  // namespace leat
