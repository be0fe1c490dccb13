// ReduceJoin: strings joined along axes, in the order in which the axes are named.
#include <algorithm>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// The axes that `indices` names, in its order; negative ones count from the end.
std::vector<int> joined_axes(const Tensor& indices, int rank) {
  std::vector<int> out;
  for (const int64_t index : to_int64s(indices)) {
    if (index < -rank || index >= rank) {
      fail(Code::out_of_range, "Invalid reduction dimension ", index, " for input with ", rank,
           " dimension(s)");
    }
    const int axis = static_cast<int>(index < 0 ? index + rank : index);
    check(std::find(out.begin(), out.end(), axis) == out.end(), "Duplicate reduction dimension ",
          index);
    out.push_back(axis);
  }
  return out;
}

std::vector<int> other_axes(const std::vector<int>& axes, int rank) {
  std::vector<int> out;
  for (int axis = 0; axis < rank; ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) out.push_back(axis);
  }
  return out;
}

void infer(ShapeContext& c) {
  const Shape x = c.input(0);
  const bool keep = c.attr<bool>("keep_dims");
  if (!x.has_rank()) return c.set_output(0, Shape::unknown());
  const Tensor* indices = c.value(1);
  if (indices == nullptr)
    return c.set_output(0, keep ? Shape::of_rank(x.rank()) : Shape::unknown());
  const std::vector<int> joined = joined_axes(*indices, x.rank());
  Shape out = x;
  if (keep) {
    for (const int axis : joined) out.set(axis, 1);
  } else {
    out = {};
    for (const int axis : other_axes(joined, x.rank())) out.push_back(x[axis]);
  }
  c.set_output(0, out);
}

// The offsets of the elements that differ only along these axes, the last axis fastest.
std::vector<int64_t> offsets_along(const std::vector<int>& axes, const Shape& shape) {
  std::vector<int64_t> out = {0};
  for (const int axis : axes) {
    if (shape[axis] == 0) return {};
  }
  for (const int axis : axes) {
    int64_t stride = 1;
    for (int inner = axis + 1; inner < shape.rank(); ++inner) stride *= shape[inner];
    std::vector<int64_t> more;
    for (const int64_t offset : out) {
      for (int64_t i = 0; i < shape[axis]; ++i) more.push_back(offset + i * stride);
    }
    out = std::move(more);
  }
  return out;
}

BoundKernel prepare(const KernelRequest& request) {
  const Shape& x = request.inputs[0].shape;
  if (request.outputs[0].shape.elements() == 0) return {};
  std::vector<int> joined = joined_axes(*request.inputs[1].value, x.rank());
  std::reverse(joined.begin(), joined.end());
  return BoundKernel::of([parts = offsets_along(joined, x),
                          starts = offsets_along(other_axes(joined, x.rank()), x),
                          separator = request.attr<std::string>("separator")](const Arguments& a) {
    const std::string* in = a.input<std::string>(0);
    for (size_t i = 0; i < starts.size(); ++i) {
      std::string out;
      for (size_t part = 0; part < parts.size(); ++part) {
        StepEnd::pace(16);
        if (part > 0) out += separator;
        out += in[starts[i] + parts[part]];
      }
      a.output<std::string>()[i] = std::move(out);
    }
  });
}

const Op reduce_join_op{{
    .name = "ReduceJoin",
    .doc = "output = the strings along the axes reduction_indices joined, with separator between; "
           "the axis named first changes fastest.",
    .inputs = {"inputs: string", "reduction_indices: int32"},
    .outputs = {"output: string"},
    .attrs = {"keep_dims: bool = false", "separator: string = ''"},
    .shape = infer,
    .kernels = {cpu_kernel(prepare)},
    .examples = {{.inputs = {Tensor::of<std::string>({2, 2}, {"a", "b", "c", "d"}), ints({0})},
                  .attrs = {{"separator", "."}},
                  .outputs = {texts({"a.c", "b.d"})}},
                 {.inputs = {Tensor::of<std::string>({2, 2}, {"a", "b", "c", "d"}), ints({0, 1})},
                  .attrs = {{"keep_dims", true}},
                  .outputs = {Tensor::of<std::string>({1, 1}, {"acbd"})}}},
    .value_inputs = {1},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
