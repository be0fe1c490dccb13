// Training for quantised inference (Jacob et al., "Quantization and training of neural networks for
// efficient integer-arithmetic-only inference", 2018): the ops FakeQuantWithMinMax… round to the
// values that num_bits can represent in a range; their gradients pass within it.
#include "kernels/neural/fake_quant.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

using fake_quant::Bounds;
using fake_quant::Levels;
using fake_quant::Range;

void round(const Range& range, const float* x, int64_t n, int64_t stride, float* y) {
  for (int64_t i = 0; i < n * stride; i += stride) y[i] = range.rounded(x[i]);
}

// The gradients with respect to x, and the sums of those with respect to min and max.
void backward(const Range& range, const float* dy, const float* x, int64_t n, int64_t stride,
              float* dx, float& d_min, float& d_max) {
  double below = 0, above = 0;
  for (int64_t i = 0; i < n * stride; i += stride) {
    if (range.is_below(x[i])) below += static_cast<double>(dy[i]);
    if (range.is_above(x[i])) above += static_cast<double>(dy[i]);
    dx[i] = range.has(x[i]) ? dy[i] : 0;
  }
  d_min = static_cast<float>(below);
  d_max = static_cast<float>(above);
}

const char* const bits = "num_bits: int = 8";
const char* const narrow = "narrow_range: bool = false";

// ---- The range as attributes

Range range_of_attrs(const KernelRequest& r) {
  const Bounds bounds(r);
  return Range::of(Levels(r), bounds.min, bounds.max);
}

const Op args_op{{
    .name = "FakeQuantWithMinMaxArgs",
    .doc = "outputs = the inputs, rounded to the nearest of 2^num_bits numbers (one less with "
           "narrow_range) from min to max at equal distances, one of which is 0.",
    .inputs = {"inputs: float"},
    .outputs = {"outputs: float"},
    .attrs = {"min: float = -6.0", "max: float = 6.0", bits, narrow},
    .shape = shapes::same_as(0),
    .gradient =
        [](Gradient& g) {
          g.dx() = op("FakeQuantWithMinMaxArgsGradient", {g.dy(), g.x()}, g.node().attrs);
        },
    .kernels = {cpu_kernel([](const KernelRequest& r) {
      return BoundKernel::of(
                 [range = range_of_attrs(r), n = r.inputs[0].shape.elements()](const Arguments& a) {
                   round(range, a.input<float>(0), n, 1, a.output<float>());
                 })
          .sharing(0, 0);
    })},
    .examples = {{.inputs = {floats({-9, 0.6F, 1.4F, 9})},
                  .attrs = {{"min", -2.0}, {"max", 1.0}, {"num_bits", 2}},
                  .outputs = {floats({-2, 1, 1, 1})}}},
}};

const Op args_gradient_op{{
    .name = "FakeQuantWithMinMaxArgsGradient",
    .doc = "backprops = the gradients where the inputs are within the range, else 0.",
    .inputs = {"gradients: float", "inputs: float"},
    .outputs = {"backprops: float"},
    .attrs = {"min: float = -6.0", "max: float = 6.0", bits, narrow},
    .shape = shapes::same_for_all(),
    .kernels = {cpu_kernel([](const KernelRequest& r) {
      return BoundKernel::of(
          [range = range_of_attrs(r), n = r.inputs[0].shape.elements()](const Arguments& a) {
            float d_min = 0, d_max = 0;
            backward(range, a.input<float>(0), a.input<float>(1), n, 1, a.output<float>(), d_min,
                     d_max);
          });
    })},
    .examples = {{.inputs = {floats({1, 2, 3, 4}), floats({-9, 0.6F, 1, 9})},
                  .attrs = {{"min", -2.0}, {"max", 1.0}, {"num_bits", 2}},
                  .outputs = {floats({0, 2, 3, 0})}}},
    .is_not_differentiable = true,
}};

// ---- The range as inputs: one, or one per channel, which is the last axis

const char* const range_inputs[] = {"min: float", "max: float"};

// Checks input `first` and the two after it.
void check_ranges(const ShapeContext& c, int first, bool per_channel) {
  const Shape& x = c.input(first);
  Shape expected;
  if (per_channel) {
    const Shape with_channels = c.with_rank_at_least(first, 1);
    expected = {x.has_rank() ? with_channels[x.rank() - 1] : any};
  }
  for (const int i : {first + 1, first + 2}) {
    check(c.input(i).is_compatible(expected), c.input_name(i), " must have shape ", expected,
          ", got ", c.input(i));
  }
}

OpDef vars_op(bool per_channel) {
  const std::string name =
      per_channel ? "FakeQuantWithMinMaxVarsPerChannel" : "FakeQuantWithMinMaxVars";
  return {
      .name = name,
      .doc = std::string("As FakeQuantWithMinMaxArgs, with the range as inputs") +
             (per_channel ? ", one for each index of the last axis." : "."),
      .inputs = {"inputs: float", range_inputs[0], range_inputs[1]},
      .outputs = {"outputs: float"},
      .attrs = {bits, narrow},
      .shape =
          [per_channel](ShapeContext& c) {
            check_ranges(c, 0, per_channel);
            c.set_output(0, c.input(0));
          },
      .gradient =
          [name](Gradient& g) {
            const std::vector<Output> dx =
                op_outputs(name + "Gradient", {g.dy(), g.x(0), g.x(1), g.x(2)}, g.node().attrs);
            for (int i = 0; i < 3; ++i) g.dx(i) = dx[i];
          },
      .kernels = {cpu_kernel([](const KernelRequest& r) {
        return BoundKernel::of([levels = Levels(r), n = r.inputs[0].shape.elements(),
                                channels = r.inputs[1].shape.elements()](const Arguments& a) {
                 for (int64_t c = 0; c < channels; ++c) {
                   round(Range::of(levels, a.input<float>(1)[c], a.input<float>(2)[c]),
                         a.input<float>(0) + c, n / channels, channels, a.output<float>() + c);
                 }
               })
            .sharing(0, 0);
      })},
      .examples = {{.inputs = {floats({2, 1}, {-9, 0.6F}),
                               per_channel ? floats({-2}) : Tensor::scalar(-2.0F),
                               per_channel ? floats({1}) : Tensor::scalar(1.0F)},
                    .attrs = {{"num_bits", 2}},
                    .outputs = {floats({2, 1}, {-2, 1})}}},
  };
}

OpDef vars_gradient_op(bool per_channel) {
  return {
      .name = per_channel ? "FakeQuantWithMinMaxVarsPerChannelGradient"
                          : "FakeQuantWithMinMaxVarsGradient",
      .doc =
          "backprops_wrt_input = the gradients where the inputs are within the range, else 0; "
          "backprop_wrt_min, backprop_wrt_max = the sums of those below and above it.",
      .inputs = {"gradients: float", "inputs: float", range_inputs[0], range_inputs[1]},
      .outputs = {"backprops_wrt_input: float", "backprop_wrt_min: float",
                  "backprop_wrt_max: float"},
      .attrs = {bits, narrow},
      .shape =
          [per_channel](ShapeContext& c) {
            check_ranges(c, 1, per_channel);
            c.set_output(0, c.input(0).merged(c.input(1)));
            for (const int i : {1, 2}) c.set_output(i, c.input(2).merged(c.input(3)));
          },
      .kernels = {cpu_kernel([](const KernelRequest& r) {
        return BoundKernel::of([levels = Levels(r), n = r.inputs[0].shape.elements(),
                                channels = r.inputs[2].shape.elements()](const Arguments& a) {
          for (int64_t c = 0; c < channels; ++c) {
            backward(Range::of(levels, a.input<float>(2)[c], a.input<float>(3)[c]),
                     a.input<float>(0) + c, a.input<float>(1) + c, n / channels, channels,
                     a.output<float>(0) + c, a.output<float>(1)[c], a.output<float>(2)[c]);
          }
        });
      })},
      .examples = {{.inputs = {floats({3, 1}, {1, 2, 3}), floats({3, 1}, {-9, 0.6F, 9}),
                               per_channel ? floats({-2}) : Tensor::scalar(-2.0F),
                               per_channel ? floats({1}) : Tensor::scalar(1.0F)},
                    .attrs = {{"num_bits", 2}},
                    .outputs = {floats({3, 1}, {0, 2, 0}),
                                per_channel ? floats({1}) : Tensor::scalar(1.0F),
                                per_channel ? floats({3}) : Tensor::scalar(3.0F)}}},
      .is_not_differentiable = true,
  };
}

const Op vars_one_op{vars_op(false)}, vars_channels_op{vars_op(true)};
const Op vars_one_gradient_op{vars_gradient_op(false)},
    vars_channels_gradient_op{vars_gradient_op(true)};

}  // namespace
}  // namespace leat
