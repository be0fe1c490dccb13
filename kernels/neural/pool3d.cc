// MaxPool3D and AvgPool3D with their gradients: schemas. pooling.h has shapes and loops.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "kernels/examples.h"
#include "kernels/neural/pooling.h"
#include "kernels/window.h"

namespace leat {
namespace {

std::vector<std::string> attrs(std::vector<std::string> types) {
  std::vector<std::string> out = {"ksize: list(int) >= 5", "strides: list(int) >= 5",
                                  "padding: {'SAME', 'VALID'}",
                                  "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'"};
  out.insert(out.end(), types.begin(), types.end());
  return out;
}

const char* const floating = "T: {half, bfloat16, float, double}";

AttrMap windows(int64_t size, int64_t stride, const char* padding) {
  return {{"ksize", std::vector<int64_t>{1, size, 1, size, 1}},
          {"strides", std::vector<int64_t>{1, stride, 1, stride, 1}},
          {"padding", padding}};
}

const Op max_pool_op{{
    .name = "MaxPool3D",
    .doc = "MaxPool of volumes [batch, planes, height, width, channels].",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = attrs({"T: {half, bfloat16, float}"}),
    .shape = infer_pool,
    .gradient =
        [](Gradient& g) {
          g.dx() = op("MaxPool3DGrad", {g.x(), g.y(), g.dy()}, window_attrs(g));
        },
    .kernels = {max_pool_kernel()},
    .examples = {{.inputs = {floats({1, 2, 1, 3, 1}, {1, 5, 2, 4, 3, 6})},
                  .attrs = windows(2, 1, "VALID"),
                  .outputs = {floats({1, 1, 1, 2, 1}, {5, 6})}}},
}};

// TInput is T in every graph of TensorFlow's client.
Kernel gradient_kernel() {
  Kernel kernel = max_pool_gradient_kernel();
  kernel.prepare = [prepare = std::move(kernel.prepare)](const KernelRequest& r) {
    check(r.inputs[0].dtype == r.outputs[0].dtype, "MaxPool3DGrad needs TInput = T, got ",
          r.inputs[0].dtype, " and ", r.outputs[0].dtype);
    return prepare(r);
  };
  return kernel;
}

const Op max_pool_grad_op{{
    .name = "MaxPool3DGrad",
    .doc = "output = zeros like orig_input, with grad added where MaxPool3D took its outputs from "
           "(the first of equal ones).",
    .inputs = {"orig_input: TInput", "orig_output: TInput", "grad: T"},
    .outputs = {"output: T"},
    .attrs =
        attrs({"T: {half, bfloat16, float} = float", "TInput: {half, bfloat16, float} = float"}),
    .shape = infer_max_pool_gradient,
    .gradient =
        [](Gradient& g) {
          g.dx(2) = op("MaxPool3DGradGrad", {g.x(0), g.x(1), g.dy()}, window_attrs(g));
        },
    .kernels = {gradient_kernel()},
    .examples = {{.inputs = {floats({1, 2, 1, 3, 1}, {1, 5, 2, 4, 3, 5}),
                             floats({1, 1, 1, 2, 1}, {5, 5}), floats({1, 1, 1, 2, 1}, {10, 1})},
                  .attrs = windows(2, 1, "VALID"),
                  .outputs = {floats({1, 2, 1, 3, 1}, {0, 11, 0, 0, 0, 0})}}},
}};

const Op max_pool_grad_grad_op{{
    .name = "MaxPool3DGradGrad",
    .doc =
        "output = the elements of grad at the places from which MaxPool3D took its outputs. grad "
        "has orig_input's shape.",
    .inputs = {"orig_input: T", "orig_output: T", "grad: T"},
    .outputs = {"output: T"},
    .attrs = attrs({"T: realnumbertype"}),
    .shape = infer_max_pool_gradient_gradient,
    .gradient =
        [](Gradient& g) {
          g.dx(2) = op("MaxPool3DGrad", {g.x(0), g.x(1), g.dy()}, window_attrs(g));
        },
    .kernels = {max_pool_gradient_gradient_kernel()},
    .examples = {{.inputs = {floats({1, 2, 1, 3, 1}, {1, 5, 2, 4, 3, 6}),
                             floats({1, 1, 1, 2, 1}, {5, 6}),
                             floats({1, 2, 1, 3, 1}, {10, 20, 30, 40, 50, 60})},
                  .attrs = windows(2, 1, "VALID"),
                  .outputs = {floats({1, 1, 1, 2, 1}, {20, 60})}}},
}};

const Op avg_pool_op{{
    .name = "AvgPool3D",
    .doc = "AvgPool of volumes [batch, planes, height, width, channels].",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = attrs({floating}),
    .shape = infer_pool,
    .gradient =
        [](Gradient& g) {
          g.dx() = op("AvgPool3DGrad", {shape_of(g.x()), g.dy()}, window_attrs(g));
        },
    .kernels = {average_pool_kernel()},
    .examples = {{.inputs = {floats({1, 2, 1, 3, 1}, {1, 5, 2, 4, 2, 6})},
                  .attrs = windows(2, 2, "SAME"),
                  .outputs = {floats({1, 1, 1, 2, 1}, {3, 4})}}},
}};

const Op avg_pool_grad_op{{
    .name = "AvgPool3DGrad",
    .doc = "output = zeros of the shape orig_input_shape, with each element of grad spread evenly "
           "over its window.",
    .inputs = {"orig_input_shape: int32", "grad: T"},
    .outputs = {"output: T"},
    .attrs = attrs({floating}),
    .shape = infer_average_pool_gradient,
    .gradient = [](Gradient& g) { g.dx(1) = op("AvgPool3D", {g.dy()}, window_attrs(g)); },
    .kernels = {average_pool_gradient_kernel()},
    .examples = {{.inputs = {ints({1, 2, 1, 3, 1}), floats({1, 1, 1, 2, 1}, {4, 6})},
                  .attrs = windows(2, 2, "SAME"),
                  .outputs = {floats({1, 2, 1, 3, 1}, {1, 1, 3, 1, 1, 3})}}},
    .value_inputs = {0},
}};

}  // namespace
}  // namespace leat
