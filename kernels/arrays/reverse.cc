// leat: cpu+cuda
// ReverseV2: the elements in reverse order along some axes.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/moves/moves.h"

namespace leat {
namespace {

// A scalar or a tensor without elements has no reversed axes, whatever `axes` says, as in
// TensorFlow.
std::vector<bool> reversed_axes(const Tensor& axes, const Shape& shape) {
  const int rank = shape.rank();
  std::vector<bool> reversed(rank, false);
  if (rank == 0 || (shape.is_complete() && shape.elements() == 0)) return reversed;
  const std::vector<int64_t> list = to_int64s(axes);
  for (size_t i = 0; i < list.size(); ++i) {
    check(list[i] >= -rank && list[i] < rank, "'axis'[", i, "] = ", list[i],
          " is out of valid range [", -rank, ", ", rank - 1, "]");
    const size_t axis = static_cast<size_t>(list[i] < 0 ? list[i] + rank : list[i]);
    check(!reversed[axis], "axis ", axis, " specified more than once.");
    reversed[axis] = true;
  }
  return reversed;
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const std::vector<bool> reversed = reversed_axes(*request.inputs[1].value, shape);
  const std::vector<int64_t> strides = strides_of(shape);
  std::vector<StridedCopy::Axis> axes;
  int64_t first = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    axes.push_back({shape[i], reversed[i] ? -strides[i] : strides[i], strides[i]});
    if (reversed[i]) first += (shape[i] - 1) * strides[i];
  }
  if (shape.elements() == 0) return {};
  if (first == 0) return BoundKernel::view();
  return BoundKernel::of([copy = StridedCopy(std::move(axes)), first](const Arguments& a) {
    copy_strided(copy, a, a.input<T>(0) + first, a.output<T>());
  });
}

const Op reverse_op{{
    .name = "ReverseV2",
    .doc = "output = tensor with the order of the elements reversed along each of the axes.",
    .inputs = {"tensor: T", "axis: Tidx"},
    .outputs = {"output: T"},
    .attrs = {"Tidx: {int32, int64} = int32",
              "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, "
              "float, double, complex64, complex128, string}"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 1);
          if (c.input(0).has_rank() && c.value(1) != nullptr)
            reversed_axes(*c.value(1), c.input(0));
          c.set_output(0, c.input(0));
        },
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("ReverseV2", {g.dy(), g.x(1)});
        },
    .kernels = moving_kernels(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); }),
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4}), ints({-1})},
                  .outputs = {floats({2, 2}, {2, 1, 4, 3})}},
                 {.inputs = {floats({2, 2}, {1, 2, 3, 4}), ints({0, 1})},
                  .outputs = {floats({2, 2}, {4, 3, 2, 1})}}},
    .value_inputs = {1},
}};

}  // namespace
}  // namespace leat
