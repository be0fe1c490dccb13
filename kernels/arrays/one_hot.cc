// OneHot: class numbers as rows of a table.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/pieces.h"

namespace leat {
namespace {

void infer(ShapeContext& c) {
  const Shape indices = c.input(0);
  c.with_rank(1, 0);
  c.with_rank(2, 0);
  c.with_rank(3, 0);
  if (!indices.has_rank()) return c.set_output(0, Shape::unknown());
  const Tensor* depth = c.value(1);
  check(depth == nullptr || to_int64s(*depth)[0] >= 0, "depth must be non-negative");
  const int64_t axis_attr = c.attr<int64_t>("axis");
  const int axis =
      axis_attr == -1 ? indices.rank() : normalized_axis(axis_attr, indices.rank() + 1);
  Shape out;
  for (int i = 0; i <= indices.rank(); ++i) {
    out.push_back(i == axis ? (depth == nullptr ? any : to_int64s(*depth)[0])
                            : indices[i < axis ? i : i - 1]);
  }
  c.set_output(0, out);
}

// indices as [prefix, suffix], output as [prefix, depth, suffix].
template <class T, class Index>
BoundKernel bind(const KernelRequest& request) {
  const Shape &indices = request.inputs[0].shape, &out = request.outputs[0].shape;
  const int64_t axis_attr = request.attr<int64_t>("axis");
  const int axis =
      axis_attr == -1 ? indices.rank() : normalized_axis(axis_attr, indices.rank() + 1);
  if (are_empty(request.outputs)) return {};
  int64_t prefix = 1, suffix = 1;
  for (int i = 0; i < indices.rank(); ++i) (i < axis ? prefix : suffix) *= indices[i];
  return BoundKernel::of([prefix, suffix, depth = out[axis]](const Arguments& a) {
    const T on = *a.input<T>(2), off = *a.input<T>(3);
    T* out = a.output<T>();
    fill_in_pieces(out, prefix * depth * suffix, off);
    for (int64_t p = 0; p < prefix; ++p) {
      for (int64_t s = 0; s < suffix; ++s) {
        const int64_t index = a.input<Index>(0)[p * suffix + s];
        if (index >= 0 && index < depth) out[(p * depth + index) * suffix + s] = on;
      }
    }
  });
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  switch (request.attr<DType>("TI")) {
    case DType::u8:
      return bind<T, uint8_t>(request);
    case DType::i8:
      return bind<T, int8_t>(request);
    case DType::i32:
      return bind<T, int32_t>(request);
    default:
      return bind<T, int64_t>(request);
  }
}

const Op one_hot_op{{
    .name = "OneHot",
    .doc = "output[i…, k] = on_value if indices[i…] = k, else off_value, for k < depth; `axis` "
           "says where k goes (-1: last).",
    .inputs = {"indices: TI", "depth: int32", "on_value: T", "off_value: T"},
    .outputs = {"output: T"},
    .attrs = {"axis: int = -1", "T: type", "TI: {uint8, int8, int32, int64} = int64"},
    .shape = infer,
    .kernels = {cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {longs({1, -1, 0}), Tensor::scalar<int32_t>(2), Tensor::scalar(1.0f),
                             Tensor::scalar(0.0f)},
                  .outputs = {floats({3, 2}, {0, 1, 0, 0, 1, 0})}}},
    .value_inputs = {1},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
