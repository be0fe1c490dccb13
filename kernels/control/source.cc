// Ops without computation: constants and fed values, NoOp and ControlTrigger.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/any_device.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

BoundKernel nothing(const KernelRequest&) { return {}; }

template <class T>
BoundKernel copy_of_value(TypeTag<T>, const KernelRequest& request) {
  return BoundKernel::of([value = request.attr<Tensor>("value")](const Arguments& a) {
    copy_elements(static_cast<const T*>(value.raw()), value.elements(), a.output<T>());
  });
}

const Op no_op{{
    .name = "NoOp",
    .doc = "Does nothing: a place for control edges to meet.",
    .shape = shapes::none(),
    .kernels = kernels_for_any_device(nothing),
    .examples = {{}},
    .is_not_differentiable = true,
}};

const Op control_trigger_op{{
    .name = "ControlTrigger",
    .doc = "Does nothing, as NoOp, but runs even if its control inputs are dead.",
    .shape = shapes::none(),
    .kernels = kernels_for_any_device(nothing),
    .examples = {{}},
    .is_not_differentiable = true,
}};

const Op const_op{{
    .name = "Const",
    .doc = "output = value, a tensor that the graph holds.",
    .outputs = {"output: dtype"},
    .attrs = {"value: tensor", "dtype: type"},
    .shape =
        [](ShapeContext& c) {
          const Tensor& value = c.attr<Tensor>("value");
          check(value.dtype() == c.attr<DType>("dtype"), "attribute 'value' holds ", value.dtype(),
                ", but 'dtype' is ", c.attr<DType>("dtype"));
          c.set_output(0, value.shape());
        },
    .kernels = {cpu_moving_kernel("dtype",
                                  []<class T>(TypeTag<T> t, const KernelRequest& r) {
                                    return copy_of_value(t, r);
                                  }),
                // The runtime puts it into the memory of a GPU before the first step.
                {.device = DeviceType::gpu, .prepare = nothing}},
    .examples = {{.attrs = {{"value", floats({1, 2})}, {"dtype", f32}},
                  .outputs = {floats({1, 2})}}},
    .is_not_differentiable = true,
}};

const Op placeholder_op{{
    .name = "Placeholder",
    .doc = "output = what the caller feeds; a step that needs it and feeds nothing fails.",
    .outputs = {"output: dtype"},
    .attrs = {"dtype: type", "shape: shape = <unknown>"},
    .shape = shapes::from_attr("shape"),
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       fail(Code::invalid_argument,
                            "You must feed a value for placeholder tensor '", c.node().name,
                            "' with dtype ", c.node().attr<DType>("dtype"), " and shape ",
                            c.node().attr<Shape>("shape"));
                     }}},
    .is_not_differentiable = true,
}};

const Op placeholder_with_default_op{{
    .name = "PlaceholderWithDefault",
    .doc = "output = what the caller feeds, or else input.",
    .inputs = {"input: dtype"},
    .outputs = {"output: dtype"},
    .attrs = {"dtype: type", "shape: shape"},
    .shape =
        [](ShapeContext& c) {
          // The fed value need only fit `shape`, so the shape of the input says nothing about the
          // output.
          check(c.input(0).is_compatible(c.attr<Shape>("shape")), "the input has shape ",
                c.input(0), ", but attribute 'shape' is ", c.attr<Shape>("shape"));
          c.set_output(0, c.attr<Shape>("shape"));
        },
    .gradient = [](Gradient& g) { g.dx() = g.dy(); },
    .kernels = {{.execute = [](ExecuteContext& c) { c.set_output(0, c.input(0)); }}},
    .examples = {{.inputs = {floats({1, 2})},
                  .attrs = {{"shape", Shape{any}}},
                  .outputs = {floats({1, 2})}}},
}};

}  // namespace
}  // namespace leat
