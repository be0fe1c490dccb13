// Tensors made of one value.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

template <class T>
void fill(const Arguments& a, int64_t n, const T& value) {
  a.stream->parallel_for(n, 65'536, [&](int64_t begin, int64_t end) {
    std::fill_n(a.output<T>() + begin, end - begin, value);
  });
}

// As in old graphs, one extent may be given as a scalar, and the value as a vector of one element.
void infer(ShapeContext& c) {
  check(c.input(1).is_compatible(Shape{}) || c.input(1).is_compatible(Shape{1}),
        "value must be a scalar, got ", c.input(1));
  if (const Tensor* dims = c.value(0)) {
    for (int64_t extent : to_int64s(*dims))
      check(extent >= 0, "extent ", extent, " in dims is negative");
  }
  if (c.input(0).rank() != 0) return c.set_output(0, c.shape_from_value(0));
  c.set_output(0, {c.value(0) == nullptr ? any : to_int64s(*c.value(0))[0]});
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
                                          fill(a, n, *a.input<T>(1));
                                        });
                                  })},
    .examples = {{.inputs = {ints({2, 1}), Tensor::scalar(9.0f)},
                  .outputs = {floats({2, 1}, {9, 9})}}},
    .value_inputs = {0},
}};

const Op empty_op{{
    .name = "Empty",
    .doc =
        "output = a tensor of this shape. Its elements are 0, false or \"\", with or without init: "
        "nothing is seen of what was in the memory before.",
    .inputs = {"shape: int32"},
    .outputs = {"output: dtype"},
    .attrs = {"dtype: type", "init: bool = false"},
    .shape =
        [](ShapeContext& c) {
          if (const Tensor* shape = c.value(0)) {
            for (const int64_t extent : to_int64s(*shape))
              check(extent >= 0, "extent ", extent, " in shape is negative");
          }
          c.set_output(0, c.shape_from_value(0));
        },
    .kernels = {cpu_moving_kernel("dtype",
                                  []<class T>(TypeTag<T>, const KernelRequest& r) {
                                    return BoundKernel::of(
                                        [n = r.outputs[0].shape.elements()](const Arguments& a) {
                                          fill(a, n, T());
                                        });
                                  })},
    .examples = {{.inputs = {ints({2})},
                  .attrs = {{"dtype", f32}, {"init", true}},
                  .outputs = {floats({0, 0})}}},
    .value_inputs = {0},
    .is_stateful = true,
}};

}  // namespace
}  // namespace leat
