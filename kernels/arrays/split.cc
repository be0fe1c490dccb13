// leat: cpu+cuda
// Ops that take tensors apart along an axis: Split, SplitV, Unpack.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/arrays/blocks.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/moves/moves.h"

namespace leat {
namespace {

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
      copy_strided(blocks[i].copy, a, a.input<T>(input) + blocks[i].at, a.output<T>(i));
    }
  });
}

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
    .kernels = moving_kernels_and_for_variants(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_split(t, r); }),
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
    .kernels = moving_kernels_and_for_variants(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_split_v(t, r); }),
    .examples = {{.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({1, -1}),
                             Tensor::scalar<int32_t>(1)},
                  .attrs = {{"num_split", 2}},
                  .outputs = {floats({2, 1}, {1, 4}), floats({2, 2}, {2, 3, 5, 6})}}},
    .value_inputs = {1, 2},
}};

// ---- Unpack

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
BoundKernel prepare_unpack(TypeTag<T>, const KernelRequest& request) {
  const Shape& in = request.inputs[0].shape;
  const int axis = normalized_axis(request.attr<int64_t>("axis"), in.rank());
  return split<T>(request, outer_of(in, axis), 0);
}

const Op unpack_op{{
    .name = "Unpack",
    .doc = "output[i] = value at index i of `axis`, without that axis.",
    .inputs = {"value: T"},
    .outputs = {"output: num * T"},
    .attrs = {"num: int >= 0", "T: type", "axis: int = 0"},
    .shape = infer_unpack,
    .gradient = [](Gradient& g) { g.dx(0) = stack(all_gradients(g), g.attr<int64_t>("axis")); },
    .kernels = moving_kernels_and_for_variants(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_unpack(t, r); }),
    .examples = {{.inputs = {floats({2, 2}, {1, 3, 2, 4})},
                  .attrs = {{"num", 2}, {"axis", 1}},
                  .outputs = {floats({1, 2}), floats({3, 4})}}},
}};

}  // namespace
}  // namespace leat
