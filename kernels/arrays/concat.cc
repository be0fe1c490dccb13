// leat: cpu+cuda
// Ops that join tensors along an axis: ConcatV2, Pack, ParallelConcat.
#include <cstring>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/arrays/blocks.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/moves/handles.h"
#include "kernels/moves/moves.h"

namespace leat {
namespace {

// Joins the inputs from `first` on.
template <class T>
BoundKernel join(std::vector<Block> blocks, int first = 0) {
  return BoundKernel::of([blocks = std::move(blocks), first](const Arguments& a) {
    for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
      copy_strided(blocks[i].copy, a, a.input<T>(first + i), a.output<T>() + blocks[i].at);
    }
  });
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
    .kernels = moving_kernels(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_concat_v1(t, r); }),
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
    .kernels = moving_kernels_and_for_variants(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_concat(t, r); }),
    .examples = {{.inputs = {floats({2, 1}, {1, 2}), floats({2, 2}, {3, 4, 5, 6}),
                             Tensor::scalar<int32_t>(1)},
                  .outputs = {floats({2, 3}, {1, 3, 4, 2, 5, 6})}}},
    .value_inputs = {-1},
}};

// ---- _ConcatInPlace

// The buffer that inputs were received into; a new one if there is none.
std::shared_ptr<Buffer> joint_buffer(ExecuteContext& c, size_t total) {
  const auto joint = c.node().attr<int64_t>("joint");
  for (const int64_t i : c.node().attr<std::vector<int64_t>>("received")) {
    check(i >= 0 && i < c.num_inputs() - 1, c.node().name, ": there is no input ", i);
    const std::shared_ptr<Buffer>& buffer = c.input(static_cast<int>(i)).buffer();
    if (buffer == nullptr || buffer->joint() != joint || buffer->bytes() != total) continue;
    buffer->set_joint(0);  // it is whole: its memory may become a variable's
    return buffer;
  }
  return Buffer::allocate(total);
}

void concat_in_place(ExecuteContext& c) {
  const int parts = c.num_inputs() - 1;
  Shape shape = c.input(0).shape();
  const int axis = normalized_axis(axis_value(c.input(parts)), shape.rank());
  std::vector<size_t> offsets;
  size_t total = 0;
  int64_t length = 0;
  for (int i = 0; i < parts; ++i) {
    const Tensor& part = c.input(i);
    shape.set(axis, part.shape().rank() == shape.rank() ? part.shape()[axis] : -1);
    check(part.shape() == shape && outer_of(shape, axis) == 1, c.node().name, ": input ", i,
          " has shape ", part.shape(), ", which does not lie in one piece behind the others");
    offsets.push_back(total);
    total += part.bytes();
    length += shape[axis];
  }
  shape.set(axis, length);
  const std::shared_ptr<Buffer> buffer = joint_buffer(c, total);
  auto* const to = static_cast<char*>(buffer->data());
  for (int i = 0; i < parts; ++i) {
    const Tensor& part = c.input(i);
    char* const place = to + offsets[static_cast<size_t>(i)];
    if (part.raw() != place && part.bytes() > 0) std::memcpy(place, part.raw(), part.bytes());
  }
  c.set_output(0, Tensor(c.input(0).dtype(), shape, buffer));
}

const Op concat_in_place_op{{
    .name = "_ConcatInPlace",
    .doc = "ConcatV2 of values that lie in the output in one piece each. Those that were received "
           "into their places in it are not copied. `joint`: the node's number in the step; "
           "`received`: the inputs that come from other tasks.",
    .inputs = {"values: N * T", "axis: Tidx"},
    .outputs = {"output: T"},
    .attrs = {"N: int >= 2", "T: type", "Tidx: {int32, int64} = int32", "joint: int >= 1",
              "received: list(int)"},
    .shape = [](ShapeContext& c) { infer_concat(c, 0, c.num_inputs() - 1); },
    .kernels = {{.execute = concat_in_place}},
    .value_inputs = {-1},
    .is_not_differentiable = true,
}};

// ---- Pack

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

template <class T>
BoundKernel prepare_pack(TypeTag<T>, const KernelRequest& request) {
  const Shape& out = request.outputs[0].shape;
  const int axis = normalized_axis(request.attr<int64_t>("axis"), out.rank());
  if (request.inputs.size() == 1) return BoundKernel::view();
  return join<T>(blocks_of(request.inputs, outer_of(out, axis), true));
}

std::vector<Kernel> pack_kernels() {
  std::vector<Kernel> kernels = moving_kernels_and_for_variants(
      "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_pack(t, r); });
  return moves_on_host ? and_pack_handles(std::move(kernels)) : kernels;
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
    .kernels = pack_kernels(),
    .examples = {{.inputs = {floats({1, 2}), floats({3, 4})},
                  .attrs = {{"axis", 1}},
                  .outputs = {floats({2, 2}, {1, 3, 2, 4})}}},
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
    .kernels = moving_kernels("T",
                              []<class T>(TypeTag<T>, const KernelRequest& r) {
                                return join<T>(blocks_of(r.inputs, 1, true));
                              }),
    .examples = {{.inputs = {floats({1, 2}, {1, 2}), floats({1, 2}, {3, 4})},
                  .attrs = {{"shape", Shape{2, 2}}},
                  .outputs = {floats({2, 2}, {1, 2, 3, 4})}}},
}};

}  // namespace
}  // namespace leat
