// leat: cpu+cuda
// ClipByValue.
#include "kernels/math/functors.h"

namespace leat {
namespace {

void infer(ShapeContext& c) {
  Shape shape = c.input(0);
  for (const int i : {1, 2}) {
    const Shape& bound = c.input(i);
    check(bound.rank() == 0 || bound.is_compatible(shape),
          "clip_value_min and clip_value_max must be either of the same shape as input, or a "
          "scalar; input ",
          shape, ", ", c.input_name(i), " ", bound);
    if (bound.rank() > 0) shape = shape.merged(bound);
  }
  c.set_output(0, shape);
}

std::vector<Kernel> kernels() {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{"T", NumberTypes::list()}};
  kernel.prepare = [](const KernelRequest& request) {
    const BroadcastPlan plan = plan_broadcast(request);
    BoundKernel bound = visit_type(NumberTypes{}, request.outputs[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return bind_elementwise<Clip, T, T, T, T>({}, plan);
    });
    return share_where_equal(std::move(bound), request);
  };
  return {kernel};
}

const Op clip_op{{
    .name = "ClipByValue",
    .doc = "output = max(min(t, clip_value_max), clip_value_min); the bounds are scalars or have "
           "the shape of t.",
    .inputs = {"t: T", "clip_value_min: T", "clip_value_max: T"},
    .outputs = {"output: T"},
    .attrs = {"T: numbertype"},
    .shape = infer,
    .gradient =
        [](Gradient& g) {
          const Output x = g.x(0), low = g.x(1), high = g.x(2), dy = g.dy(), none = zeros_like(dy);
          const Output is_below = less(x, low), is_above = greater(x, high);
          g.dx(0) = where(logical_or(is_below, is_above), none, dy);
          g.dx(1) = sum_to_shape_of(low, x, where(is_below, dy, none));
          g.dx(2) = sum_to_shape_of(high, x, where(is_above, dy, none));
        },
    .kernels = kernels(),
    .examples = {{.inputs = {floats({-2, 0.5F, 3}), Tensor::scalar(-1.0F), floats({1, 1, 2})},
                  .outputs = {floats({-1, 0.5F, 2})}}},
}};

}  // namespace
}  // namespace leat
