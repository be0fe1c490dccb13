// EnsureShape: passes a tensor on if its shape fits.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/any_device.h"
#include "kernels/examples.h"

namespace leat {
namespace {

void check_shape(const Shape& actual, const Shape& expected) {
  check(actual.is_compatible(expected), "Shape of tensor ", actual,
        " is not compatible with expected shape ", expected, ".");
}

const Op ensure_shape_op{{
    .name = "EnsureShape",
    .doc = "output = input; INVALID_ARGUMENT if its shape is not compatible with attribute shape.",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = {"shape: shape", "T: type"},
    .shape =
        [](ShapeContext& c) {
          check_shape(c.input(0), c.attr<Shape>("shape"));
          c.set_output(0, c.input(0).merged(c.attr<Shape>("shape")));
        },
    .gradient = [](Gradient& g) { g.dx(0) = g.dy(); },
    .kernels = kernels_for_any_device([](const KernelRequest& r) {
      check_shape(r.inputs[0].shape, r.attr<Shape>("shape"));
      return BoundKernel::view();
    }),
    .examples = {{.inputs = {floats({1, 2})},
                  .attrs = {{"shape", Shape{any}}},
                  .outputs = {floats({1, 2})}}},
}};

}  // namespace
}  // namespace leat
