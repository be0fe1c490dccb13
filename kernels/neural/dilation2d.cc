// Dilation2D, grayscale morphology, and its two gradients.
#include <limits>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/window.h"

namespace leat {
namespace {

struct Dilation {
  int64_t images, channels;
  Window height, width;

  int64_t x_elements() const { return images * height.in * width.in * channels; }
  int64_t filter_elements() const { return height.size * width.size * channels; }

  // f(element of y, of x, of the filter) for each output, at the largest sum; of equal sums, at the
  // first. The sums of outputs without any tap are left out.
  template <class T, class F>
  void for_each_largest(const T* x, const T* filter, F f) const {
    using C = ComputeType<T>;
    for (int64_t y = 0; y < images * height.out * width.out * channels; ++y) {
      StepEnd::pace(16);
      const int64_t c = y % channels, ox = y / channels % width.out, row = y / channels / width.out,
                    oy = row % height.out, image = row / height.out;
      const Window::Range rows = height.taps(oy), columns = width.taps(ox);
      C best{};
      int64_t x_at = -1, filter_at = -1;
      for (int64_t ky = rows.begin; ky < rows.end; ++ky) {
        for (int64_t kx = columns.begin; kx < columns.end; ++kx) {
          const int64_t at =
              ((image * height.in + height.input_of(oy, ky)) * width.in + width.input_of(ox, kx)) *
                  channels +
              c;
          const int64_t tap = (ky * width.size + kx) * channels + c;
          const C sum = C(C(x[at]) + C(filter[tap]));
          if (x_at >= 0 && !(best < sum)) continue;
          best = sum;
          x_at = at;
          filter_at = tap;
        }
      }
      if (x_at >= 0) f(y, x_at, filter_at);
    }
  }
};

Shape output_shape(const NodeView& node, const Shape& x, const Shape& filter) {
  check(x[3] == any || filter[2] == any || x[3] == filter[2],
        "input and filter must have the same depth: ", x[3], " vs ", filter[2]);
  return {x[0], window_along(node, 1, x[1], filter[0]).out,
          window_along(node, 2, x[2], filter[1]).out, x[3] == any ? filter[2] : x[3]};
}

void infer(ShapeContext& c) {
  c.set_output(0, output_shape(c.node(), c.with_rank(0, 4), c.with_rank(1, 3)));
}

void check_gradient_shape(ShapeContext& c) {
  const Shape y = output_shape(c.node(), c.with_rank(0, 4), c.with_rank(1, 3));
  const Shape dy = c.with_rank(2, 4);
  check(y.is_compatible(dy), "out_backprop has shape ", dy, ", but the output has shape ", y);
}

Dilation dilation_of(const KernelRequest& r) {
  for (const char* attr : {"strides", "rates"}) check_spatial_steps(r.node, attr);
  const Shape &x = r.inputs[0].shape, &filter = r.inputs[1].shape;
  return {.images = x[0],
          .channels = x[3],
          .height = window_along(r.node, 1, x[1], filter[0]),
          .width = window_along(r.node, 2, x[2], filter[1])};
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  using C = ComputeType<T>;
  return BoundKernel::of(
      [d = dilation_of(r), n = r.outputs[0].shape.elements()](const Arguments& a) {
        const T *x = a.input<T>(0), *filter = a.input<T>(1);
        T* y = a.output<T>();
        std::fill_n(y, n, T(std::numeric_limits<C>::lowest()));
        d.for_each_largest(x, filter, [=](int64_t at, int64_t from, int64_t tap) {
          y[at] = T(C(x[from]) + C(filter[tap]));
        });
      });
}

// The gradient of the input, or of the filter.
template <bool of_input, class T>
BoundKernel prepare_gradient(TypeTag<T>, const KernelRequest& r) {
  using C = ComputeType<T>;
  return BoundKernel::of([d = dilation_of(r)](const Arguments& a) {
    const T* dy = a.input<T>(2);
    T* out = a.output<T>();
    std::fill_n(out, of_input ? d.x_elements() : d.filter_elements(), T(0));
    d.for_each_largest(a.input<T>(0), a.input<T>(1), [=](int64_t y, int64_t x, int64_t tap) {
      T& sum = out[of_input ? x : tap];
      sum = T(C(sum) + C(dy[y]));
    });
  });
}

template <bool of_input>
Kernel gradient_kernel() {
  return cpu_kernel("T", NumberTypes{}, []<class T>(TypeTag<T> t, const KernelRequest& r) {
    return prepare_gradient<of_input>(t, r);
  });
}

void gradient(Gradient& g) {
  AttrMap attrs;
  for (const char* name : {"strides", "rates", "padding"}) attrs[name] = g.node().attrs.at(name);
  g.dx(0) = op("Dilation2DBackpropInput", {g.x(0), g.x(1), g.dy()}, attrs);
  g.dx(1) = op("Dilation2DBackpropFilter", {g.x(0), g.x(1), g.dy()}, attrs);
}

const std::vector<std::string> attrs = {"T: realnumbertype", "strides: list(int) >= 4",
                                        "rates: list(int) >= 4", "padding: {'SAME', 'VALID'}"};
const AttrMap steps = {{"strides", std::vector<int64_t>{1, 1, 1, 1}},
                       {"rates", std::vector<int64_t>{1, 1, 1, 1}},
                       {"padding", "VALID"}};

const Op dilation_op{{
    .name = "Dilation2D",
    .doc = "output[n, y, x, c] = the largest input[n, y * stride + i * rate - pad, x * stride + j "
           "* rate - pad, c] + filter[i, j, c] over (i, j).",
    .inputs = {"input: T", "filter: T"},
    .outputs = {"output: T"},
    .attrs = attrs,
    .shape = infer,
    .gradient = gradient,
    .kernels = {cpu_kernel(
        "T", NumberTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({1, 2, 2, 1}, {1, 5, 2, 4}), floats({2, 1, 1}, {0, 2})},
                  .attrs = steps,
                  .outputs = {floats({1, 1, 2, 1}, {4, 6})}}},
}};

const Op input_gradient_op{{
    .name = "Dilation2DBackpropInput",
    .doc = "in_backprop = zeros like input, with out_backprop added where Dilation2D found the "
           "largest sums (the first of equal ones).",
    .inputs = {"input: T", "filter: T", "out_backprop: T"},
    .outputs = {"in_backprop: T"},
    .attrs = attrs,
    .shape =
        [](ShapeContext& c) {
          check_gradient_shape(c);
          c.set_output(0, c.with_rank(0, 4));
        },
    .kernels = {gradient_kernel<true>()},
    .examples = {{.inputs = {floats({1, 2, 2, 1}, {1, 5, 2, 4}), floats({2, 1, 1}, {0, 2}),
                             floats({1, 1, 2, 1}, {10, 20})},
                  .attrs = steps,
                  .outputs = {floats({1, 2, 2, 1}, {0, 0, 10, 20})}}},
}};

const Op filter_gradient_op{{
    .name = "Dilation2DBackpropFilter",
    .doc = "filter_backprop = zeros like filter, with out_backprop added where Dilation2D found "
           "the largest sums (the first of equal ones).",
    .inputs = {"input: T", "filter: T", "out_backprop: T"},
    .outputs = {"filter_backprop: T"},
    .attrs = attrs,
    .shape =
        [](ShapeContext& c) {
          check_gradient_shape(c);
          c.set_output(0, c.with_rank(1, 3));
        },
    .kernels = {gradient_kernel<false>()},
    .examples = {{.inputs = {floats({1, 2, 2, 1}, {1, 5, 2, 4}), floats({2, 1, 1}, {0, 2}),
                             floats({1, 1, 2, 1}, {10, 20})},
                  .attrs = steps,
                  .outputs = {floats({2, 1, 1}, {0, 30})}}},
}};

}  // namespace
}  // namespace leat
