// QuantizeAndDequantizeV2, V3, V4: round numbers to the values that integers of num_bits represent,
// to train for quantised inference. Unlike fake_quant.cc the scale is symmetric: 0 is always 0.
#include <algorithm>
#include <limits>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/neural/quantize_range.h"

namespace leat {
namespace {

using quantize::Extents;
using quantize::Options;
using quantize::Range;

template <class T>
BoundKernel bind(const KernelRequest& r, const Options& options) {
  using Wide = ComputeType<T>;
  return BoundKernel::of(
      [options, extents = Extents(r.inputs[0].shape, options.axis)](const Arguments& a) {
        const T* x = a.input<T>(0);
        T* y = a.output<T>();
        for (int64_t c = 0; c < extents.depth; ++c) {
          Wide low = 0, high = 0;
          if (options.has_range) {
            low = static_cast<Wide>(a.input<T>(1)[c]);
            high = static_cast<Wide>(a.input<T>(2)[c]);
            check(low <= high, "Invalid range: input_min ", low, " > input_max ", high);
          } else {
            low = std::numeric_limits<Wide>::infinity();
            high = -low;
            extents.visit(c, [&](int64_t first, int64_t count) {
              for (int64_t i = first; i < first + count; ++i) {
                low = std::min(low, static_cast<Wide>(x[i]));
                high = std::max(high, static_cast<Wide>(x[i]));
              }
            });
          }
          const auto range = Range<Wide>::of(options, low, high);
          extents.visit(c, [&](int64_t first, int64_t count) {
            for (int64_t i = first; i < first + count; ++i)
              y[i] = static_cast<T>(range.rounded(static_cast<Wide>(x[i]), options));
          });
        }
      });
}

void infer(ShapeContext& c) {
  const auto axis = c.attr<int64_t>("axis");
  check(axis >= -1, "axis should be at least -1, got ", axis);
  const Shape& x = c.input(0);
  Shape range{};
  if (axis >= 0) {
    c.with_rank_at_least(0, static_cast<int>(std::min<int64_t>(axis + 1, Shape::max_rank)));
    range = {x.has_rank() && axis < x.rank() ? x[static_cast<int>(axis)] : any};
  }
  for (const int i : {1, 2}) {
    check(c.input(i).is_compatible(range) || (axis >= 0 && !c.attr<bool>("range_given")),
          c.input_name(i), " must have shape ", range, ", got ", c.input(i));
  }
  c.set_output(0, x);
}

const char* const sign = "signed_input: bool = true";
const char* const bits_attr = "num_bits: int = 8";
const char* const type = "T: {bfloat16, half, float, double}";
const char* const mode = "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'";
const char* const narrow = "narrow_range: bool = false";
const char* const axis_attr = "axis: int = -1";

Example example(AttrMap attrs) {
  attrs.emplace("num_bits", 3);
  attrs.emplace("range_given", true);
  return {.inputs = {floats({-9, 0.4F, 1.6F, 9}), Tensor::scalar(-4.0F), Tensor::scalar(3.0F)},
          .attrs = std::move(attrs),
          .outputs = {floats({-4, 0, 2, 3})}};
}

// Within the range, or everywhere without a range, the gradient passes as if nothing were rounded.
void pass_gradient(Gradient& g) { g.dx() = g.dy(); }

OpDef with_bits_attr(const char* name, GradientFunction gradient) {
  return {.name = name,
          .doc =
              "output = the input, rounded to the nearest of the numbers that the integers of "
              "num_bits stand for when they are spread over the range from input_min to input_max, "
              "or over the input's own range unless range_given.",
          .inputs = {"input: T", "input_min: T", "input_max: T"},
          .outputs = {"output: T"},
          .attrs = {sign, bits_attr, "range_given: bool = false", type, mode, narrow, axis_attr},
          .shape = infer,
          .gradient = std::move(gradient),
          .kernels = {cpu_kernel("T", FloatTypes{},
                                 []<class T>(TypeTag<T>, const KernelRequest& r) {
                                   return bind<T>(r, Options(r, r.attr<int64_t>("num_bits")));
                                 })},
          .examples = {example({})}};
}

const Op v2_op{with_bits_attr("QuantizeAndDequantizeV2", pass_gradient)};

const Op v4_op{with_bits_attr("QuantizeAndDequantizeV4", [](Gradient& g) {
  const std::vector<Output> dx =
      op_outputs("QuantizeAndDequantizeV4Grad", {g.dy(), g.x(0), g.x(1), g.x(2)},
                 {{"axis", g.attr<int64_t>("axis")}});
  for (int i = 0; i < 3; ++i) g.dx(i) = dx[i];
})};

const Op v3_op{{
    .name = "QuantizeAndDequantizeV3",
    .doc = "As QuantizeAndDequantizeV2, with num_bits as an input.",
    .inputs = {"input: T", "input_min: T", "input_max: T", "num_bits: int32"},
    .outputs = {"output: T"},
    .attrs = {sign, "range_given: bool = true", type, narrow, axis_attr},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(3, 0);
          infer(c);
        },
    .gradient = pass_gradient,
    .kernels = {cpu_kernel("T", FloatTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return bind<T>(r, Options(r, r.inputs[3].value->item<int32_t>()));
                           })},
    .examples = {{.inputs = {floats({-9, 0.4F, 1.6F, 9}), Tensor::scalar(-4.0F),
                             Tensor::scalar(3.0F), Tensor::scalar<int32_t>(3)},
                  .outputs = {floats({-4, 0, 2, 3})}}},
    .value_inputs = {3},
}};

void infer_gradient(ShapeContext& c) {
  c.set_output(0, c.input(0).merged(c.input(1)));
  for (const int i : {1, 2}) c.set_output(i, c.input(i + 1));
}

const Op v4_gradient_op{{
    .name = "QuantizeAndDequantizeV4Grad",
    .doc = "input_backprop = the gradients where the input is within the range, else 0; those of "
           "the range are 0.",
    .inputs = {"gradients: T", "input: T", "input_min: T", "input_max: T"},
    .outputs = {"input_backprop: T", "input_min_backprop: T", "input_max_backprop: T"},
    .attrs = {type, axis_attr},
    .shape = infer_gradient,
    .kernels = {cpu_kernel("T", FloatTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             const auto axis = static_cast<int>(r.attr<int64_t>("axis"));
                             const Extents extents(r.inputs[1].shape, axis);
                             const int64_t ranges = r.inputs[2].shape.elements();
                             check(
                                 ranges == extents.depth && r.inputs[3].shape.elements() == ranges,
                                 "input_min and input_max must have ", extents.depth,
                                 " elements, got ", r.inputs[2].shape, " and ", r.inputs[3].shape);
                             return BoundKernel::of([extents, ranges](const Arguments& a) {
                               for (int64_t c = 0; c < extents.depth; ++c) {
                                 const auto min = static_cast<ComputeType<T>>(a.input<T>(2)[c]),
                                            max = static_cast<ComputeType<T>>(a.input<T>(3)[c]);
                                 extents.visit(c, [&](int64_t first, int64_t count) {
                                   for (int64_t i = first; i < first + count; ++i) {
                                     const auto x = static_cast<ComputeType<T>>(a.input<T>(1)[i]);
                                     a.output<T>(0)[i] =
                                         x >= min && x <= max ? a.input<T>(0)[i] : T(0);
                                   }
                                 });
                               }
                               std::fill_n(a.output<T>(1), ranges, T(0));
                               std::fill_n(a.output<T>(2), ranges, T(0));
                             });
                           })},
    .examples = {{.inputs = {floats({1, 2, 3}), floats({-9, 0.5F, 9}), Tensor::scalar(-1.0F),
                             Tensor::scalar(1.0F)},
                  .outputs = {floats({0, 2, 0}), Tensor::scalar(0.0F), Tensor::scalar(0.0F)}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
