// Tensors made of one value.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

void infer(ShapeContext& c) {
  check(c.input(1).is_compatible(Shape{}), "value must be a scalar, got ", c.input(1));
  if (const Tensor* dims = c.value(0)) {
    for (int64_t extent : to_int64s(*dims))
      check(extent >= 0, "extent ", extent, " in dims is negative");
  }
  c.set_output(0, c.shape_from_value(0));
}

const Op fill_op{{
    .name = "Fill",
    .doc = "output = a tensor of shape dims, every element of which is value.",
    .inputs = {"dims: index_type", "value: T"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "index_type: {int32, int64} = int32"},
    .shape = infer,
    .gradient = [](Gradient& g) { g.dx(1) = sum(g.dy()); },
    .kernels = {cpu_moving_kernel("T",
                                  []<class T>(TypeTag<T>, const KernelRequest& r) {
                                    return BoundKernel::of(
                                        [n = r.outputs[0].shape.elements()](const Arguments& a) {
                                          std::fill_n(a.output<T>(), n, *a.input<T>(1));
                                        });
                                  })},
    .examples = {{.inputs = {ints({2, 1}), Tensor::scalar(9.0f)},
                  .outputs = {floats({2, 1}, {9, 9})}}},
    .value_inputs = {0},
}};

}  // namespace
}  // namespace leat
