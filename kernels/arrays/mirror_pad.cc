// MirrorPad: a border that mirrors the tensor, and its gradient, which folds a border back.
#include "kernels/arrays/mirror_pad.h"

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/moves/strided_copy.h"
#include "kernels/pieces.h"

namespace leat {
namespace {

bool repeats_edge(const NodeView& node) { return node.attr<std::string>("mode") == "SYMMETRIC"; }

// sign 1: the shape that MirrorPad returns; -1: the shape that its gradient returns.
template <int sign>
void infer(ShapeContext& c) {
  const Shape in = c.input(0), paddings = c.with_rank(1, 2);
  check(paddings[1] == any || paddings[1] == 2,
        "paddings must be a matrix with 2 columns: ", paddings);
  if (!in.has_rank()) {
    return c.set_output(
        0, paddings[0] == any ? Shape::unknown() : Shape::of_rank(static_cast<int>(paddings[0])));
  }
  check(paddings[0] == any || paddings[0] == in.rank(),
        "The first dimension of paddings must be the rank of inputs: ", paddings, ", ", in);
  Shape out = Shape::of_rank(in.rank());
  if (const Tensor* value = c.value(1)) {
    const std::vector<int64_t> sizes = to_int64s(*value);
    for (int i = 0; i < in.rank(); ++i) {
      const int64_t before = sizes[2 * i], after = sizes[2 * i + 1];
      check(before >= 0 && after >= 0, "paddings must be non-negative: ", before, " ", after);
      if (in[i] == any) continue;
      const int64_t border = sum_of_extents(before, after),
                    extent = sum_of_extents(in[i], sign * border),
                    inner = sign > 0 ? in[i] : extent;
      const int64_t most = repeats_edge(c.node()) ? inner : inner - 1;
      check(before <= most && after <= most, "paddings must be ",
            repeats_edge(c.node()) ? "no greater than" : "less than",
            " the dimension size: ", before, ", ", after, ", ", inner);
      out.set(i, extent);
    }
  }
  c.set_output(0, out);
}

// Where the elements of the padded tensor come from.
struct Mirror {
  int64_t elements;                          // of the padded tensor
  std::vector<std::vector<int64_t>> offset;  // of each index along each axis, in the inner tensor

  Mirror(const Shape& inner, const Shape& padded, const std::vector<int64_t>& paddings,
         bool repeats_edge)
      : elements(padded.elements()) {
    if (elements == 0) {  // its extents may still be vast
      offset.push_back({});
      return;
    }
    const std::vector<int64_t> strides = strides_of(inner);
    for (int axis = 0; axis < inner.rank(); ++axis) {
      const int64_t n = inner[axis], edge = repeats_edge ? 1 : 0;
      offset.emplace_back();
      for (int64_t i = 0; i < padded[axis]; ++i) {
        offset.back().push_back(mirrored(i, paddings[2 * axis], n, edge) * strides[axis]);
      }
    }
    if (offset.empty()) offset.push_back({0});
  }

  // f(element of the padded tensor, element of the inner one) for all.
  template <class F>
  void for_each(F f) const {
    const std::vector<int64_t>& row = offset.back();
    const int64_t width = static_cast<int64_t>(row.size());
    for (int64_t begin = 0; begin < elements; begin += width) {
      StepEnd::pace(width);
      int64_t from = 0, rest = begin / width;
      for (size_t axis = offset.size() - 1; axis-- > 0;) {
        const int64_t extent = static_cast<int64_t>(offset[axis].size());
        from += offset[axis][rest % extent];
        rest /= extent;
      }
      for (int64_t i = 0; i < width; ++i) f(begin + i, from + row[i]);
    }
  }
};

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  return BoundKernel::of(
      [mirror = Mirror(r.inputs[0].shape, r.outputs[0].shape, to_int64s(*r.inputs[1].value),
                       repeats_edge(r.node))](const Arguments& a) {
        const T* x = a.input<T>(0);
        T* y = a.output<T>();
        mirror.for_each([=](int64_t padded, int64_t inner) { y[padded] = x[inner]; });
      });
}

template <class T>
BoundKernel prepare_gradient(TypeTag<T>, const KernelRequest& r) {
  using C = ComputeType<T>;
  const int64_t n = r.outputs[0].shape.elements();
  return BoundKernel::of(
      [n, mirror = Mirror(r.outputs[0].shape, r.inputs[0].shape, to_int64s(*r.inputs[1].value),
                          repeats_edge(r.node))](const Arguments& a) {
        const T* dy = a.input<T>(0);
        T* dx = a.output<T>();
        fill_in_pieces(dx, n, T(0));
        mirror.for_each(
            [=](int64_t padded, int64_t inner) { dx[inner] = T(C(dx[inner]) + C(dy[padded])); });
      });
}

void gradient(Gradient& g, const char* name) {
  g.dx(0) = op(name, {g.dy(), g.x(1)}, {{"mode", g.attr<std::string>("mode")}});
}

const std::vector<std::string> attrs = {"T: type", "Tpaddings: {int32, int64} = int32",
                                        "mode: {'REFLECT', 'SYMMETRIC'}"};

const Op mirror_pad_op{{
    .name = "MirrorPad",
    .doc = "output = input with a border of paddings[i, 0] before and paddings[i, 1] after it "
           "along axis i; the border mirrors the input, with the edge itself if mode is SYMMETRIC, "
           "without it if REFLECT.",
    .inputs = {"input: T", "paddings: Tpaddings"},
    .outputs = {"output: T"},
    .attrs = attrs,
    .shape = infer<1>,
    .gradient = [](Gradient& g) { gradient(g, "MirrorPadGrad"); },
    .kernels = {cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({1, 2, 3}), ints({1, 2}, {2, 1})},
                  .attrs = {{"mode", "REFLECT"}},
                  .outputs = {floats({3, 2, 1, 2, 3, 2})}},
                 {.inputs = {floats({1, 2, 3}), ints({1, 2}, {2, 1})},
                  .attrs = {{"mode", "SYMMETRIC"}},
                  .outputs = {floats({2, 1, 1, 2, 3, 3})}}},
    .value_inputs = {1},
}};

const Op mirror_pad_grad_op{{
    .name = "MirrorPadGrad",
    .doc = "output = input without its border, every element of which is added to the one that "
           "MirrorPad took it from.",
    .inputs = {"input: T", "paddings: Tpaddings"},
    .outputs = {"output: T"},
    .attrs = attrs,
    .shape = infer<-1>,
    .gradient = [](Gradient& g) { gradient(g, "MirrorPad"); },
    .kernels = {cpu_kernel(
        "T", NumberAndComplexTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_gradient(t, r); })},
    .examples = {{.inputs = {floats({1, 2, 3, 4, 5, 6}), ints({1, 2}, {2, 1})},
                  .attrs = {{"mode", "REFLECT"}},
                  .outputs = {floats({3, 12, 6})}}},
    .value_inputs = {1},
}};

}  // namespace
}  // namespace leat
