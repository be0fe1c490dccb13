// leat: cpu+cuda
// Pad and PadV2: a border around a tensor.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/moves/moves.h"

namespace leat {
namespace {

void infer(ShapeContext& c) {
  const Shape in = c.input(0), paddings = c.with_rank(1, 2);
  check(paddings[1] == any || paddings[1] == 2, "paddings must have two columns, got shape ",
        paddings);
  if (c.num_inputs() > 2) c.with_rank(2, 0);
  if (!in.has_rank()) {
    return c.set_output(
        0, paddings[0] == any ? Shape::unknown() : Shape::of_rank(static_cast<int>(paddings[0])));
  }
  check(paddings[0] == any || paddings[0] == in.rank(),
        "paddings must have a row per axis of the input ", in, ", got shape ", paddings);
  Shape out = Shape::of_rank(in.rank());
  if (const Tensor* value = c.value(1)) {
    const std::vector<int64_t> sizes = to_int64s(*value);
    for (int i = 0; i < in.rank(); ++i) {
      check(sizes[2 * i] >= 0 && sizes[2 * i + 1] >= 0,
            "Paddings must be non-negative: ", sizes[2 * i], " ", sizes[2 * i + 1]);
      if (in[i] == any) continue;
      out.set(i, sum_of_extents(sum_of_extents(sizes[2 * i], in[i]), sizes[2 * i + 1]));
    }
  }
  c.set_output(0, out);
}

// The border of a tensor, without what is inside.
class Border {
 public:
  Border(const Shape& in, const std::vector<int64_t>& paddings,
         const std::vector<int64_t>& strides) {
    for (int i = 0; i < in.rank(); ++i)
      axes_.push_back({in[i], paddings[2 * i], paddings[2 * i + 1], strides[i]});
    // Of the innermost axes without a border, runs are inside.
    while (axes_.size() > 1 && axes_.back().before + axes_.back().after == 0) axes_.pop_back();
  }

  template <class T>
  void fill(const Arguments& a, T* to, const T* value, size_t axis = 0) const {
    const auto [inside, before, after, stride] = axes_[axis];
    fill_elements(a, to, before * stride, value);
    to += before * stride;
    for (int64_t i = 0; axis + 1 < axes_.size() && i < inside; ++i)
      fill(a, to + i * stride, value, axis + 1);
    fill_elements(a, to + inside * stride, after * stride, value);
  }

 private:
  struct Axis {
    int64_t inside, before, after, stride;
  };
  std::vector<Axis> axes_;
};

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  const Shape &in = request.inputs[0].shape, &out = request.outputs[0].shape;
  if (in == out) return BoundKernel::view();
  const std::vector<int64_t> sizes = to_int64s(*request.inputs[1].value), from = strides_of(in),
                             to = strides_of(out);
  std::vector<StridedCopy::Axis> axes;
  int64_t offset = 0;
  for (int i = 0; i < in.rank(); ++i) {
    axes.push_back({in[i], from[i], to[i]});
    offset += sizes[2 * i] * to[i];
  }
  const bool has_value = request.inputs.size() == 3;
  return BoundKernel::of([copy = StridedCopy(std::move(axes)), offset,
                          border = Border(in, sizes, to), n = out.elements(),
                          has_value](const Arguments& a) {
    const T* const value = has_value ? a.input<T>(2) : nullptr;
    if (moves_on_host) {
      border.fill(a, a.output<T>(), value);
    } else {  // one launch
      fill_elements(a, a.output<T>(), n, value);
    }
    copy_strided(copy, a, a.input<T>(0), a.output<T>() + offset);
  });
}

// The part of dy inside the border; the elements of the border add up to the gradient of
// constant_values.
void gradient(Gradient& g) {
  const Output paddings = g.x(1);
  const auto at = [&](std::initializer_list<int32_t> index) {
    return constant(g.graph(), ints(index));
  };
  const Output before =
      strided_slice(paddings, at({0, 0}), at({0, 1}), at({1, 1}),
                    {{"begin_mask", 1}, {"end_mask", 1}, {"shrink_axis_mask", 2}});
  g.dx(0) = op("Slice", {g.dy(), before, shape_of(g.x(0), paddings.dtype())});
  if (g.num_inputs() == 3) g.dx(2) = sum(g.dy()) - sum(g.dx(0));
}

std::vector<Kernel> kernels() {
  return moving_kernels(
      "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); });
}

const Op pad_op{{
    .name = "Pad",
    .doc = "output = input with paddings[i, 0] zeros before and paddings[i, 1] zeros after it "
           "along axis i.",
    .inputs = {"input: T", "paddings: Tpaddings"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "Tpaddings: {int32, int64} = int32"},
    .shape = infer,
    .gradient = gradient,
    .kernels = kernels(),
    .examples = {{.inputs = {floats({1, 2}, {1, 2}), ints({2, 2}, {0, 1, 1, 0})},
                  .outputs = {floats({2, 3}, {0, 1, 2, 0, 0, 0})}}},
    .value_inputs = {1},
}};

const Op pad_v2_op{{
    .name = "PadV2",
    .doc = "output = input with paddings[i, 0] constant_values before and paddings[i, 1] after it "
           "along axis i.",
    .inputs = {"input: T", "paddings: Tpaddings", "constant_values: T"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "Tpaddings: {int32, int64} = int32"},
    .shape = infer,
    .gradient = gradient,
    .kernels = kernels(),
    .examples = {{.inputs = {floats({2}, {1, 2}), ints({1, 2}, {1, 0}), Tensor::scalar(7.0f)},
                  .outputs = {floats({7, 1, 2})}}},
    .value_inputs = {1},
}};

}  // namespace
}  // namespace leat
