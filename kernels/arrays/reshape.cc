// Ops that give the same elements another shape: views, which run nothing.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/any_device.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"

namespace leat {
namespace {

// The requested shape, which may be a scalar: one extent.
Shape requested_shape(const ShapeContext& c) {
  if (c.input(1).rank() != 0) return c.shape_from_value(1);
  if (c.value(1) == nullptr) return {any};
  const int64_t extent = to_int64s(*c.value(1))[0];
  check(extent >= -1, "size 0 must be non-negative, not ", extent);
  return {extent};
}

// The requested shape with its one -1 replaced by the extent that the number of elements leaves for
// it. Where both shapes have an extent of 0, TensorFlow leaves the zeros out of both products.
void infer_reshape(ShapeContext& c) {
  const Shape in = c.input(0);
  Shape out = requested_shape(c);
  const Tensor* value = c.value(1);
  if (value == nullptr || !in.is_complete()) return c.set_output(0, out);
  int free_axis = -1;
  int64_t known = 1, elements = 1;
  bool zero = false;
  for (int i = 0; i < out.rank(); ++i) {
    if (out[i] == any) {
      check(free_axis < 0, "only one extent may be -1, but the new shape is ", out);
      free_axis = i;
    } else if (out[i] == 0) {
      zero = true;
    } else {
      known = product_of_extents(known, out[i]);
    }
  }
  if (free_axis < 0 || !zero) elements = in.elements();
  for (const int64_t extent : in.dims())
    if (free_axis >= 0 && zero && extent != 0) elements = product_of_extents(elements, extent);
  if (free_axis < 0) {
    check(elements == (zero ? 0 : known), "Input to reshape is a tensor with ", elements,
          " values, but the requested shape ", out, " has ", zero ? 0 : known);
  } else {
    check((zero && in.elements() == 0) || elements % known == 0,
          "Input to reshape is a tensor with ", elements, " values, but the requested shape ", out,
          " requires a multiple of ", known);
    check(!zero || in.elements() == 0, "Input to reshape is a tensor with ", in.elements(),
          " values, but the requested shape ", out, " has none");
    out.set(free_axis, elements / known);
  }
  c.set_output(0, out);
}

void infer_expand_dims(ShapeContext& c) {
  const Shape in = c.input(0);
  const Tensor* value = c.value(1);
  if (!in.has_rank()) return c.set_output(0, Shape::unknown());
  if (value == nullptr) return c.set_output(0, Shape::of_rank(in.rank() + 1));
  check(value->elements() == 1, "dim must be one number, got shape ", value->shape());
  const int axis = normalized_axis(to_int64s(*value)[0], in.rank() + 1);
  Shape out;
  for (int i = 0; i <= in.rank(); ++i) out.push_back(i == axis ? 1 : in[i < axis ? i : i - 1]);
  c.set_output(0, out);
}

void infer_squeeze(ShapeContext& c) {
  const Shape in = c.input(0);
  const std::vector<int64_t>& axes = c.attr<std::vector<int64_t>>("squeeze_dims");
  if (!in.has_rank()) return c.set_output(0, Shape::unknown());
  std::array<bool, Shape::max_rank> dropped{};
  for (int64_t axis : axes) dropped[normalized_axis(axis, in.rank())] = true;
  Shape out;
  for (int i = 0; i < in.rank(); ++i) {
    if (axes.empty() && in[i] == any) return c.set_output(0, Shape::unknown());
    check(!dropped[i] || in[i] == any || in[i] == 1, "Can not squeeze dim[", i,
          "], expected a dimension of 1, got ", in[i], " in shape ", in);
    if (axes.empty() ? in[i] != 1 : !dropped[i]) out.push_back(in[i]);
  }
  c.set_output(0, out);
}

BoundKernel same_memory(const KernelRequest&) { return BoundKernel::view(); }

void gradient(Gradient& g) { g.dx(0) = reshape(g.dy(), shape_of(g.x(0))); }

const Op reshape_op{{
    .name = "Reshape",
    .doc = "output = the elements of tensor in row-major order under `shape`; one extent may be "
           "-1: what is left over.",
    .inputs = {"tensor: T", "shape: Tshape"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "Tshape: {int32, int64} = int32"},
    .shape = infer_reshape,
    .gradient = gradient,
    .kernels = kernels_for_any_device(same_memory),
    .examples = {{.inputs = {floats({1, 2, 3, 4}), ints({2, -1})},
                  .outputs = {floats({2, 2}, {1, 2, 3, 4})}}},
    .value_inputs = {1},
}};

const Op expand_dims_op{{
    .name = "ExpandDims",
    .doc =
        "output = input with an axis of extent 1 inserted at `dim`; negative counts from the end.",
    .inputs = {"input: T", "dim: Tdim"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "Tdim: {int32, int64} = int32"},
    .shape = infer_expand_dims,
    .gradient = gradient,
    .kernels = kernels_for_any_device(same_memory),
    .examples = {{.inputs = {floats({1, 2}), Tensor::scalar<int32_t>(-1)},
                  .outputs = {floats({2, 1}, {1, 2})}}},
    .value_inputs = {1},
}};

const Op squeeze_op{{
    .name = "Squeeze",
    .doc = "output = input without the axes `squeeze_dims`, which must have extent 1; without all "
           "such axes if none is named.",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "squeeze_dims: list(int) >= 0 = []"},
    .shape = infer_squeeze,
    .gradient = gradient,
    .kernels = kernels_for_any_device(same_memory),
    .examples = {{.inputs = {floats({1, 2, 1}, {1, 2})}, .outputs = {floats({1, 2})}},
                 {.inputs = {floats({1, 2, 1}, {1, 2})},
                  .attrs = {{"squeeze_dims", std::vector<int64_t>{-1}}},
                  .outputs = {floats({1, 2}, {1, 2})}}},
}};

}  // namespace
}  // namespace leat
