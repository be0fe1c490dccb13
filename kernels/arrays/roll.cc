// Roll: shifts the elements along some axes, with wrap-around.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/moves/strided_copy.h"

namespace leat {
namespace {

int64_t int_at(const Arguments& a, int input, DType dtype, int64_t i) {
  return dtype == DType::i64 ? a.input<int64_t>(input)[i] : a.input<int32_t>(input)[i];
}

// to[(i + shift) mod extent] = from[i] along all axes from `axis` on.
template <class T>
void roll(const Shape& shape, const std::vector<int64_t>& strides,
          const std::array<int64_t, Shape::max_rank>& shifts, int axis, const T* from, T* to) {
  const int64_t extent = shape[axis], shift = shifts[axis], stride = strides[axis];
  if (axis + 1 == shape.rank()) {
    copy_elements(from, extent - shift, to + shift);
    copy_elements(from + extent - shift, shift, to);
    return;
  }
  for (int64_t i = 0; i < extent; ++i) {
    const int64_t moved = i + shift < extent ? i + shift : i + shift - extent;
    roll(shape, strides, shifts, axis + 1, from + i * stride, to + moved * stride);
  }
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  if (shape.elements() == 0) return {};
  return BoundKernel::of([shape, strides = strides_of(shape), shift = request.inputs[1],
                          axis = request.inputs[2]](const Arguments& a) {
    std::array<int64_t, Shape::max_rank> shifts{};
    for (int64_t i = 0; i < axis.shape.elements(); ++i) {
      const int at = normalized_axis(int_at(a, 2, axis.dtype, i), shape.rank());
      const int64_t sum = (shifts[at] + int_at(a, 1, shift.dtype, i) % shape[at]) % shape[at];
      shifts[at] = sum < 0 ? sum + shape[at] : sum;
    }
    roll(shape, strides, shifts, 0, a.input<T>(0), a.output<T>());
  });
}

const Op roll_op{{
    .name = "Roll",
    .doc = "output[(i + shift) mod extent] = input[i] along each of the axes; shifts of an axis "
           "that is named twice add up.",
    .inputs = {"input: T", "shift: Tshift", "axis: Taxis"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "Tshift: {int32, int64}", "Taxis: {int32, int64}"},
    .shape =
        [](ShapeContext& c) {
          const Shape input = c.with_rank_at_least(0, 1);
          for (int i : {1, 2}) {
            check(!c.input(i).has_rank() || c.input(i).rank() <= 1, c.input_name(i),
                  " must be a scalar or a 1-D vector. Found: ", c.input(i));
          }
          check(c.input(1).is_compatible(c.input(2)),
                "shift and axis must have the same size: ", c.input(1), " and ", c.input(2));
          c.set_output(0, input);
        },
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("Roll", {g.dy(), -g.x(1), g.x(2)});
        },
    .kernels = {cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {ints({1, 2, 3, 4}), Tensor::scalar(1), Tensor::scalar(0)},
                  .outputs = {ints({4, 1, 2, 3})}},
                 {.inputs = {ints({2, 2}, {1, 2, 3, 4}), ints({1, -1}), ints({0, 1})},
                  .outputs = {ints({2, 2}, {4, 3, 2, 1})}}},
}};

}  // namespace
}  // namespace leat
