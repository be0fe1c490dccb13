// MaxPoolV2 and its gradients: windows and strides are inputs instead of attributes.
#include "kernels/neural/pool_by_values.h"
#include "graph/gradient.h"
#include "graph/op_def.h"
#include "graph/ops.h"
#include "kernels/examples.h"
#include "kernels/neural/pooling.h"
#include "kernels/window.h"

namespace leat {
namespace {

// The context that the shape functions of pooling.h see.
class WithWindows : public ShapeContext {
 public:
  WithWindows(ShapeContext& context, const AttrMap& attrs) : context_(context), attrs_(attrs) {}
  NodeView node() const override { return {context_.node().name, context_.node().op, attrs_}; }
  int num_inputs() const override { return context_.num_inputs(); }
  const Shape& input(int i) const override { return context_.input(i); }
  DType input_dtype(int i) const override { return context_.input_dtype(i); }
  std::string input_name(int i) const override { return context_.input_name(i); }
  const Tensor* value(int i) const override { return context_.value(i); }
  int num_outputs() const override { return context_.num_outputs(); }
  void set_output(int i, const Shape& shape) override { context_.set_output(i, shape); }

 private:
  ShapeContext& context_;
  const AttrMap& attrs_;
};

void infer(ShapeContext& c, void (*infer_with_windows)(ShapeContext&)) {
  const int windows = c.num_inputs() - 2;
  const Tensor *ksize = c.value(windows), *strides = c.value(windows + 1);
  for (const int i : {windows, windows + 1}) {
    const Shape shape = c.with_rank(i, 1);
    check(shape[0] == any || shape[0] == 4, "Sliding window ", c.input_name(i),
          " must specify 4 dimensions, got shape ", shape);
  }
  if (ksize == nullptr || strides == nullptr) return c.set_output(0, Shape::of_rank(4));
  const AttrMap attrs = with_windows(c.node().attrs, *ksize, *strides);
  WithWindows context(c, attrs);
  infer_with_windows(context);
}

const char* const padding = "padding: {'SAME', 'VALID'}";
const char* const two_formats = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";

Tensor window(int32_t extent) { return ints({1, extent, extent, 1}); }

const Op max_pool_op{{
    .name = "MaxPoolV2",
    .doc = "MaxPool with ksize and strides as inputs.",
    .inputs = {"input: T", "ksize: int32", "strides: int32"},
    .outputs = {"output: T"},
    .attrs = {"T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16} = "
              "float",
              padding, "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"},
    .shape = [](ShapeContext& c) { infer(c, infer_pool); },
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("MaxPoolGradV2", {g.x(0), g.y(), g.dy(), g.x(1), g.x(2)}, window_attrs(g));
        },
    .kernels = {by_values(max_pool_kernel())},
    .examples = {{.inputs = {floats({1, 2, 3, 1}, {1, 5, 2, 4, 3, 6}), window(2), window(1)},
                  .attrs = {{"padding", "VALID"}},
                  .outputs = {floats({1, 1, 2, 1}, {5, 6})}}},
    .value_inputs = {1, 2},
}};

const Op max_pool_grad_op{{
    .name = "MaxPoolGradV2",
    .doc = "MaxPoolGrad with ksize and strides as inputs.",
    .inputs = {"orig_input: T", "orig_output: T", "grad: T", "ksize: int32", "strides: int32"},
    .outputs = {"output: T"},
    .attrs = {"T: realnumbertype = float", padding, two_formats},
    .shape = [](ShapeContext& c) { infer(c, infer_max_pool_gradient); },
    .gradient =
        [](Gradient& g) {
          g.dx(2) =
              op("MaxPoolGradGradV2", {g.x(0), g.x(1), g.dy(), g.x(3), g.x(4)}, window_attrs(g));
        },
    .kernels = {by_values(max_pool_gradient_kernel())},
    .examples = {{.inputs = {floats({1, 2, 3, 1}, {1, 5, 2, 4, 3, 5}), floats({1, 1, 2, 1}, {5, 5}),
                             floats({1, 1, 2, 1}, {10, 1}), window(2), window(1)},
                  .attrs = {{"padding", "VALID"}},
                  .outputs = {floats({1, 2, 3, 1}, {0, 11, 0, 0, 0, 0})}}},
    .value_inputs = {3, 4},
}};

const Op max_pool_grad_grad_op{{
    .name = "MaxPoolGradGradV2",
    .doc = "MaxPoolGradGrad with ksize and strides as inputs.",
    .inputs = {"orig_input: T", "orig_output: T", "grad: T", "ksize: int32", "strides: int32"},
    .outputs = {"output: T"},
    .attrs = {"T: realnumbertype", padding, two_formats},
    .shape = [](ShapeContext& c) { infer(c, infer_max_pool_gradient_gradient); },
    .gradient =
        [](Gradient& g) {
          g.dx(2) = op("MaxPoolGradV2", {g.x(0), g.x(1), g.dy(), g.x(3), g.x(4)}, window_attrs(g));
        },
    .kernels = {by_values(max_pool_gradient_gradient_kernel())},
    .examples = {{.inputs = {floats({1, 2, 3, 1}, {1, 5, 2, 4, 3, 6}), floats({1, 1, 2, 1}, {5, 6}),
                             floats({1, 2, 3, 1}, {10, 20, 30, 40, 50, 60}), window(2), window(1)},
                  .attrs = {{"padding", "VALID"}},
                  .outputs = {floats({1, 1, 2, 1}, {20, 60})}}},
    .value_inputs = {3, 4},
}};

}  // namespace
}  // namespace leat
