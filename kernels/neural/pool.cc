// MaxPool, with or without the positions of its outputs, and AvgPool with their gradients: schemas.
// pooling.h has shapes and loops.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "kernels/examples.h"
#include "kernels/neural/pooling.h"
#include "kernels/window.h"

namespace leat {
namespace {

std::vector<std::string> attrs(std::string types, bool has_explicit) {
  std::vector<std::string> out = {
      std::move(types), "ksize: list(int) >= 4", "strides: list(int) >= 4",
      has_explicit ? "padding: {'SAME', 'VALID', 'EXPLICIT'}" : "padding: {'SAME', 'VALID'}"};
  if (has_explicit) out.push_back("explicit_paddings: list(int) = []");
  return out;
}
std::vector<std::string> with(std::vector<std::string> attrs, const char* more) {
  attrs.push_back(more);
  return attrs;
}

const char* const real = "T: realnumbertype";
const char* const real_by_default = "T: realnumbertype = float";
const char* const floating = "T: {half, bfloat16, float, double}";
const char* const two_formats = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";

AttrMap windows(int64_t size, int64_t stride, const char* padding) {
  return {{"ksize", std::vector<int64_t>{1, size, size, 1}},
          {"strides", std::vector<int64_t>{1, stride, stride, 1}},
          {"padding", padding}};
}

const Op max_pool_op{{
    .name = "MaxPool",
    .doc = "output[n, y, x, c] = the largest input[n, y * stride + i - pad, x * stride + j - pad, "
           "c] over the window (i, j).",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = with(attrs("T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, "
                        "uint16} = float",
                        true),
                  "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"),
    .shape = infer_pool,
    .gradient =
        [](Gradient& g) {
          g.dx() = op("MaxPoolGrad", {g.x(), g.y(), g.dy()}, window_attrs(g));
        },
    .kernels = {max_pool_kernel()},
    .examples = {{.inputs = {floats({1, 2, 3, 1}, {1, 5, 2, 4, 3, 6})},
                  .attrs = windows(2, 1, "VALID"),
                  .outputs = {floats({1, 1, 2, 1}, {5, 6})}},
                 {.inputs = {floats({1, 2, 3, 1}, {1, 5, 2, 4, 3, -6})},
                  .attrs = windows(2, 2, "SAME"),
                  .outputs = {floats({1, 1, 2, 1}, {5, 2})}},
                 {.inputs = {floats({1, 1, 1, 4}, {1, 5, 2, 4})},
                  .attrs = {{"ksize", std::vector<int64_t>{1, 1, 1, 2}},
                            {"strides", std::vector<int64_t>{1, 1, 1, 2}},
                            {"padding", "VALID"}},
                  .outputs = {floats({1, 1, 1, 2}, {5, 4})}}},
}};

const Op max_pool_grad_op{{
    .name = "MaxPoolGrad",
    .doc = "output = zeros like orig_input, with grad added where MaxPool took its outputs from "
           "(the first of equal ones).",
    .inputs = {"orig_input: T", "orig_output: T", "grad: T"},
    .outputs = {"output: T"},
    .attrs = with(attrs(real_by_default, true), two_formats),
    .shape = infer_max_pool_gradient,
    .gradient =
        [](Gradient& g) {
          AttrMap attrs = window_attrs(g);
          check(attrs.at("padding") != AttrValue("EXPLICIT"),
                "MaxPoolGradGrad has no explicit padding");
          attrs.erase("explicit_paddings");
          g.dx(2) = op("MaxPoolGradGrad", {g.x(0), g.x(1), g.dy()}, std::move(attrs));
        },
    .kernels = {max_pool_gradient_kernel()},
    .examples = {{.inputs = {floats({1, 2, 3, 1}, {1, 5, 2, 4, 3, 5}), floats({1, 1, 2, 1}, {5, 5}),
                             floats({1, 1, 2, 1}, {10, 1})},
                  .attrs = windows(2, 1, "VALID"),
                  .outputs = {floats({1, 2, 3, 1}, {0, 11, 0, 0, 0, 0})}}},
}};

// Made by the pass simplify.
const Op max_pool_relu_grad_op{{
    .name = "_MaxPoolReluGrad",
    .doc =
        "ReluGrad(MaxPoolGrad(orig_input, orig_output, grad), orig_input) of windows that do not "
        "overlap.",
    .inputs = {"orig_input: T", "orig_output: T", "grad: T"},
    .outputs = {"output: T"},
    .attrs = with(attrs(real_by_default, true), two_formats),
    .shape = infer_max_pool_gradient,
    .kernels = {max_pool_relu_gradient_kernel()},
    .examples = {{.inputs = {floats({1, 2, 4, 1}, {1, 5, -2, -4, 3, 5, -3, -3}),
                             floats({1, 1, 2, 1}, {5, -2}), floats({1, 1, 2, 1}, {10, 1})},
                  .attrs = windows(2, 2, "VALID"),
                  .outputs = {floats({1, 2, 4, 1}, {0, 10, 0, 0, 0, 0, 0, 0})}}},
    .is_not_differentiable = true,
}};

const Op max_pool_grad_grad_op{{
    .name = "MaxPoolGradGrad",
    .doc = "output = the elements of grad at the places from which MaxPool took its outputs. grad "
           "has orig_input's shape.",
    .inputs = {"orig_input: T", "orig_output: T", "grad: T"},
    .outputs = {"output: T"},
    .attrs = with(attrs(real, false), two_formats),
    .shape = infer_max_pool_gradient_gradient,
    .gradient =
        [](Gradient& g) {
          g.dx(2) = op("MaxPoolGrad", {g.x(0), g.x(1), g.dy()}, window_attrs(g));
        },
    .kernels = {max_pool_gradient_gradient_kernel()},
    .examples = {{.inputs = {floats({1, 2, 3, 1}, {1, 5, 2, 4, 3, 6}), floats({1, 1, 2, 1}, {5, 6}),
                             floats({1, 2, 3, 1}, {10, 20, 30, 40, 50, 60})},
                  .attrs = windows(2, 1, "VALID"),
                  .outputs = {floats({1, 1, 2, 1}, {20, 60})}}},
}};

const Op avg_pool_op{{
    .name = "AvgPool",
    .doc = "output[n, y, x, c] = the mean of value[n, y * stride + i - pad, x * stride + j - pad, "
           "c] over those (i, j) of the "
           "window that lie within the image.",
    .inputs = {"value: T"},
    .outputs = {"output: T"},
    .attrs = with(attrs(floating, false), two_formats),
    .shape = infer_pool,
    .gradient =
        [](Gradient& g) {
          g.dx() = op("AvgPoolGrad", {shape_of(g.x()), g.dy()}, window_attrs(g));
        },
    .kernels = {average_pool_kernel()},
    .examples = {{.inputs = {floats({1, 2, 3, 1}, {1, 5, 2, 4, 2, 6})},
                  .attrs = windows(2, 2, "SAME"),
                  .outputs = {floats({1, 1, 2, 1}, {3, 4})}}},
}};

const Op avg_pool_grad_op{{
    .name = "AvgPoolGrad",
    .doc = "output = zeros of the shape orig_input_shape, with each element of grad spread evenly "
           "over its window.",
    .inputs = {"orig_input_shape: int32", "grad: T"},
    .outputs = {"output: T"},
    .attrs = with(attrs(floating, false), two_formats),
    .shape = infer_average_pool_gradient,
    .gradient = [](Gradient& g) { g.dx(1) = op("AvgPool", {g.dy()}, window_attrs(g)); },
    .kernels = {average_pool_gradient_kernel()},
    .examples = {{.inputs = {ints({1, 2, 3, 1}), floats({1, 1, 2, 1}, {4, 6})},
                  .attrs = windows(2, 2, "SAME"),
                  .outputs = {floats({1, 2, 3, 1}, {1, 1, 3, 1, 1, 3})}}},
    .value_inputs = {0},
}};

// ---- Places

const Op max_pool_with_argmax_op{{
    .name = "MaxPoolWithArgmax",
    .doc = "MaxPool; argmax = where in its image each output was taken from, (y * width + x) * "
           "channels + c, the first of equal ones. With include_batch_in_index: where in input.",
    .inputs = {"input: T"},
    .outputs = {"output: T", "argmax: Targmax"},
    .attrs = {"ksize: list(int) >= 4", "strides: list(int) >= 4", "Targmax: {int32, int64} = int64",
              "padding: {'SAME', 'VALID'}", "include_batch_in_index: bool = false", real},
    .shape = infer_max_pool_argmax,
    .gradient =
        [](Gradient& g) {
          if (!g.dy(0)) return;
          g.dx() = op("MaxPoolGradWithArgmax", {g.x(), g.dy(0), g.y(1)}, window_attrs(g));
        },
    .kernels = {max_pool_argmax_kernel()},
    .examples = {{.inputs = {floats({2, 1, 3, 1}, {1, 5, 2, 4, 3, 6})},
                  .attrs = {{"ksize", std::vector<int64_t>{1, 1, 2, 1}},
                            {"strides", std::vector<int64_t>{1, 1, 1, 1}},
                            {"padding", "VALID"}},
                  .outputs = {floats({2, 1, 2, 1}, {5, 5, 4, 6}),
                              longs({2, 1, 2, 1}, {1, 1, 0, 2})}}},
}};

const Op max_pool_grad_with_argmax_op{{
    .name = "MaxPoolGradWithArgmax",
    .doc = "output = zeros like input, with grad added where argmax says that MaxPoolWithArgmax "
           "took its outputs from.",
    .inputs = {"input: T", "grad: T", "argmax: Targmax"},
    .outputs = {"output: T"},
    .attrs = {"ksize: list(int) >= 4", "strides: list(int) >= 4", "padding: {'SAME', 'VALID'}",
              "include_batch_in_index: bool = false", "Targmax: {int32, int64}", real},
    .shape = infer_max_pool_argmax_gradient,
    .kernels = {max_pool_argmax_gradient_kernel()},
    .examples = {{.inputs = {floats({2, 1, 3, 1}, {1, 5, 2, 4, 3, 6}),
                             floats({2, 1, 2, 1}, {1, 2, 3, 4}), longs({2, 1, 2, 1}, {1, 1, 0, 2})},
                  .attrs = {{"ksize", std::vector<int64_t>{1, 1, 2, 1}},
                            {"strides", std::vector<int64_t>{1, 1, 1, 1}},
                            {"padding", "VALID"}},
                  .outputs = {floats({2, 1, 3, 1}, {0, 3, 0, 3, 0, 4})}}},
}};

}  // namespace
}  // namespace leat
