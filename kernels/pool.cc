// MaxPool and AvgPool with their gradients: loops over the channels of a pixel. Channels-first
// images are one channel per image here.
#include <limits>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/window.h"

namespace leat {
namespace {

// x[image, y, x, channel], pooled along height and width.
struct Pool {
  int64_t images, channels;
  Window height, width;

  int64_t x_elements() const { return images * height.in * width.in * channels; }
  int64_t y_elements() const { return images * height.out * width.out * channels; }

  // f(the input pixel) for each tap of the output pixel (oy, ox) of an image; how many there are.
  template <class F>
  LEAT_INLINE int64_t for_each_tap(int64_t image, int64_t oy, int64_t ox, F f) const {
    const Window::Range rows = height.taps(oy), columns = width.taps(ox);
    for (int64_t ky = rows.begin; ky < rows.end; ++ky) {
      const int64_t row = (image * height.in + height.input_of(oy, ky)) * width.in;
      for (int64_t kx = columns.begin; kx < columns.end; ++kx) f(row + width.input_of(ox, kx));
    }
    return (rows.end - rows.begin) * (columns.end - columns.begin);
  }
};

// ---- Shapes

int64_t channel_window(const NodeView& node) {
  return image_steps(node, "ksize")[image_axes(node).channels];
}

// Pooling over channels instead of pixels: windows that do not overlap, and not both at once.
void check_channel_window(const NodeView& node, const Shape& x) {
  const ImageAxes axes = image_axes(node);
  const std::vector<int64_t>& sizes = image_steps(node, "ksize");
  const auto need = [](bool condition, const char* message) {
    if (!condition) fail(Code::unimplemented, message);
  };
  need(node.op.starts_with("Max"), "Non-spatial pooling is not yet supported.");
  need(!axes.channels_first(), "Pooling over channels needs data_format NHWC.");
  need(sizes[axes.height] == 1 && sizes[axes.width] == 1,
       "MaxPooling supports exactly one of pooling across depth or pooling across width/height.");
  need(x[axes.channels] % channel_window(node) == 0,
       "Depthwise max pooling requires the depth window to evenly divide the input depth.");
  need(channel_window(node) == image_steps(node, "strides")[axes.channels],
       "Depthwise max pooling requires the depth window to equal the depth stride.");
}

Window window_of(const NodeView& node, int axis, const Shape& x) {
  return window_along(node, axis, x[axis], image_steps(node, "ksize")[axis]);
}

Shape output_shape(const NodeView& node, const Shape& x) {
  const ImageAxes axes = image_axes(node);
  Shape y = x;
  for (int axis : {axes.height, axes.width}) y.set(axis, window_of(node, axis, x).out);
  if (x[axes.channels] != any) y.set(axes.channels, x[axes.channels] / channel_window(node));
  return y;
}

Pool pool_of(const NodeView& node, const Shape& x) {
  const ImageAxes axes = image_axes(node);
  if (image_steps(node, "ksize")[axes.batch] != 1)
    fail(Code::unimplemented, "Pooling is not yet supported on the batch dimension.");
  if (const int64_t size = channel_window(node); size > 1) {
    check_channel_window(node, x);  // the channels of a pixel are the columns of an image
    const int64_t n = x[axes.channels];
    return {.images = n == 0 ? 0 : x.elements() / n,
            .channels = 1,
            .height = {.in = 1, .out = 1},
            .width = {.in = n, .out = n / size, .size = size, .stride = size}};
  }
  check_spatial_steps(node, "strides");
  const int64_t channels = axes.channels_first() ? 1 : x[axes.channels];
  return {.images = axes.channels_first() ? x[axes.batch] * x[axes.channels] : x[axes.batch],
          .channels = channels,
          .height = window_of(node, axes.height, x),
          .width = window_of(node, axes.width, x)};
}

void check_output_shape(const NodeView& node, const Shape& x, const Shape& y, const char* name) {
  const Shape expected = output_shape(node, x);
  check(expected.is_compatible(y), node.op, ": expected ", name, " shape to be ", expected,
        ", but got ", y);
}

void infer(ShapeContext& c) { c.set_output(0, output_shape(c.node(), c.with_rank(0, 4))); }

void infer_max_gradient(ShapeContext& c) {
  const Shape x = c.with_rank(0, 4);
  check_output_shape(c.node(), x, c.with_rank(1, 4), "orig_output");
  check_output_shape(c.node(), x, c.with_rank(2, 4), "grad");
  c.set_output(0, x);
}

void infer_max_gradient_gradient(ShapeContext& c) {
  const Shape x = c.with_rank(0, 4), y = c.with_rank(1, 4);
  check_output_shape(c.node(), x, y, "orig_output");
  check(x.is_compatible(c.with_rank(2, 4)), "Expected grad shape to be ", x, ", but got ",
        c.input(2));
  c.set_output(0, y.merged(output_shape(c.node(), x)));
}

void infer_average_gradient(ShapeContext& c) {
  const Shape dy = c.with_rank(1, 4), x = c.shape_from_value(0);
  if (!x.has_rank()) return c.set_output(0, Shape::of_rank(4));
  check(x.rank() == 4, "orig_input_shape must be 1-dimensional and 4 elements, got ", x.rank());
  check_output_shape(c.node(), x, dy, "grad");
  c.set_output(0, x);
}

// ---- Loops

// Versions for vector instructions only where they pay: for floats.
template <class T, class Loop>
void run_loop(const Loop& loop) {
  if constexpr (std::is_floating_point_v<ComputeType<T>>) {
    vectorized(loop);
  } else {
    loop();
  }
}

int64_t taps(const Pool& p) { return p.height.size * p.width.size; }
// Units of `elements` elements and as many times the window.
int64_t grain(const Pool& p, int64_t elements) {
  return 1 + 200'000 / std::max<int64_t>(1, elements * taps(p));
}
double cost_ns(const Pool& p) { return 0.3 * static_cast<double>(p.y_elements() * taps(p)); }

template <class T>
constexpr T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return T(std::numeric_limits<float>::lowest());
  }
}

template <class T>
BoundKernel prepare_max(TypeTag<T>, const KernelRequest& r) {
  using C = ComputeType<T>;
  const Pool p = pool_of(r.node, r.inputs[0].shape);
  if (p.y_elements() == 0) return {};
  BoundKernel kernel = BoundKernel::of([p](const Arguments& a) {
    const T* x = a.input<T>(0);
    T* y = a.output<T>();
    a.stream->parallel_for(p.images * p.height.out, grain(p, p.width.out * p.channels),
                           [&](int64_t begin, int64_t end) {
                             run_loop<T>([=]() LEAT_INLINE {
                               for (int64_t row = begin; row < end; ++row) {
                                 for (int64_t ox = 0; ox < p.width.out; ++ox) {
                                   T* best = y + (row * p.width.out + ox) * p.channels;
                                   std::fill_n(best, p.channels, lowest<T>());
                                   p.for_each_tap(row / p.height.out, row % p.height.out, ox,
                                                  [=](int64_t pixel) LEAT_INLINE {
                                                    const T* from = x + pixel * p.channels;
                                                    for (int64_t c = 0; c < p.channels; ++c)
                                                      best[c] = C(best[c]) < C(from[c]) ? from[c]
                                                                                        : best[c];
                                                  });
                                 }
                               }
                             });
                           });
  });
  kernel.cost_ns = cost_ns(p);
  return kernel;
}

// Calls f(output element, input element) for every output of the images [begin, end): where its
// largest input is, the first of equal ones.
template <class T, class F>
LEAT_INLINE inline void for_each_largest(const Pool& p, const T* x, int64_t begin, int64_t end,
                                         F f) {
  using C = ComputeType<T>;
  constexpr int64_t width = 64;
  C best[width];
  int64_t where[width];
  for (int64_t row = begin * p.height.out; row < end * p.height.out; ++row) {
    for (int64_t ox = 0; ox < p.width.out; ++ox) {
      const int64_t y = (row * p.width.out + ox) * p.channels;
      for (int64_t first = 0; first < p.channels; first += width) {
        const int64_t n = std::min(width, p.channels - first);
        std::fill_n(where, n, int64_t{-1});
        p.for_each_tap(row / p.height.out, row % p.height.out, ox, [&](int64_t pixel) LEAT_INLINE {
          const int64_t at = pixel * p.channels + first;
          for (int64_t c = 0; c < n; ++c) {
            const C value = x[at + c];
            const bool better = where[c] < 0 || best[c] < value;
            best[c] = better ? value : best[c];
            where[c] = better ? at + c : where[c];
          }
        });
        for (int64_t c = 0; c < n; ++c) {
          if (where[c] >= 0) f(y + first + c, where[c]);
        }
      }
    }
  }
}

template <class T>
BoundKernel prepare_max_gradient(TypeTag<T>, const KernelRequest& r) {
  using C = ComputeType<T>;
  const Pool p = pool_of(r.node, r.inputs[0].shape);
  if (p.x_elements() == 0) return {};
  BoundKernel kernel = BoundKernel::of([p](const Arguments& a) {
    const T *x = a.input<T>(0), *dy = a.input<T>(2);
    T* dx = a.output<T>();
    const int64_t image = p.height.in * p.width.in * p.channels;
    a.stream->parallel_for(p.images, grain(p, image), [&](int64_t begin, int64_t end) {
      run_loop<T>([=]() LEAT_INLINE {
        std::fill(dx + begin * image, dx + end * image, T(0));
        for_each_largest(p, x, begin, end, [=](int64_t y, int64_t at) LEAT_INLINE {
          dx[at] = T(C(dx[at]) + C(dy[y]));
        });
      });
    });
  });
  kernel.cost_ns = 2 * cost_ns(p);
  return kernel;
}

template <class T>
BoundKernel prepare_max_gradient_gradient(TypeTag<T>, const KernelRequest& r) {
  const Pool p = pool_of(r.node, r.inputs[0].shape);
  if (p.y_elements() == 0) return {};
  BoundKernel kernel = BoundKernel::of([p](const Arguments& a) {
    const T *x = a.input<T>(0), *dx = a.input<T>(2);
    T* dy = a.output<T>();
    const int64_t image = p.height.out * p.width.out * p.channels;
    a.stream->parallel_for(p.images, grain(p, image), [&](int64_t begin, int64_t end) {
      std::fill(dy + begin * image, dy + end * image, T(0));
      for_each_largest(p, x, begin, end, [=](int64_t y, int64_t at) { dy[y] = dx[at]; });
    });
  });
  kernel.cost_ns = 2 * cost_ns(p);
  return kernel;
}

// Sums in float for 16-bit floats; a block of channels at a time stays in registers or close to
// them.
template <class T>
BoundKernel prepare_average(TypeTag<T>, const KernelRequest& r) {
  using C = ComputeType<T>;
  const Pool p = pool_of(r.node, r.inputs[0].shape);
  if (p.y_elements() == 0) return {};
  BoundKernel kernel = BoundKernel::of([p](const Arguments& a) {
    const T* x = a.input<T>(0);
    T* y = a.output<T>();
    a.stream->parallel_for(p.images * p.height.out, grain(p, p.width.out * p.channels),
                           [&](int64_t begin, int64_t end) {
                             vectorized([=]() LEAT_INLINE {
                               constexpr int64_t width = 64;
                               C sum[width];
                               for (int64_t row = begin; row < end; ++row) {
                                 for (int64_t ox = 0; ox < p.width.out; ++ox) {
                                   for (int64_t first = 0; first < p.channels; first += width) {
                                     const int64_t n = std::min(width, p.channels - first);
                                     std::fill_n(sum, n, C(0));
                                     C* const total = sum;
                                     const int64_t count = p.for_each_tap(
                                         row / p.height.out, row % p.height.out, ox,
                                         [=](int64_t pixel) LEAT_INLINE {
                                           const T* from = x + pixel * p.channels + first;
                                           for (int64_t c = 0; c < n; ++c) total[c] += C(from[c]);
                                         });
                                     T* to = y + (row * p.width.out + ox) * p.channels + first;
                                     for (int64_t c = 0; c < n; ++c) to[c] = T(sum[c] / C(count));
                                   }
                                 }
                               }
                             });
                           });
  });
  kernel.cost_ns = cost_ns(p);
  return kernel;
}

template <class T>
BoundKernel prepare_average_gradient(TypeTag<T>, const KernelRequest& r) {
  using C = ComputeType<T>;
  const Pool p = pool_of(r.node, r.outputs[0].shape);
  if (p.x_elements() == 0) return {};
  BoundKernel kernel = BoundKernel::of([p](const Arguments& a) {
    const T* dy = a.input<T>(1);
    T* dx = a.output<T>();
    const int64_t image = p.height.in * p.width.in * p.channels;
    a.stream->parallel_for(p.images, grain(p, image), [&](int64_t begin, int64_t end) {
      vectorized([=]() LEAT_INLINE {
        std::fill(dx + begin * image, dx + end * image, T(0));
        for (int64_t row = begin * p.height.out; row < end * p.height.out; ++row) {
          for (int64_t ox = 0; ox < p.width.out; ++ox) {
            const T* from = dy + (row * p.width.out + ox) * p.channels;
            const Window::Range rows = p.height.taps(row % p.height.out),
                                columns = p.width.taps(ox);
            const C share = C(1) / C((rows.end - rows.begin) * (columns.end - columns.begin));
            p.for_each_tap(row / p.height.out, row % p.height.out, ox,
                           [=](int64_t pixel) LEAT_INLINE {
                             T* to = dx + pixel * p.channels;
                             for (int64_t c = 0; c < p.channels; ++c)
                               to[c] = T(C(to[c]) + C(from[c]) * share);
                           });
          }
        }
      });
    });
  });
  kernel.cost_ns = cost_ns(p);
  return kernel;
}

// ---- The ops

AttrMap attrs_of(Gradient& g) {
  AttrMap attrs;
  for (const char* name : {"ksize", "strides", "padding", "explicit_paddings", "data_format"}) {
    const auto attr = g.node().attrs.find(name);
    if (attr != g.node().attrs.end()) attrs[name] = attr->second;
  }
  return attrs;
}

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
    .shape = infer,
    .gradient =
        [](Gradient& g) {
          g.dx() = op("MaxPoolGrad", {g.x(), g.y(), g.dy()}, attrs_of(g));
        },
    .kernels = {cpu_kernel(
        "T",
        Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
              uint16_t>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_max(t, r); })},
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
    .shape = infer_max_gradient,
    .gradient =
        [](Gradient& g) {
          AttrMap attrs = attrs_of(g);
          check(attrs.at("padding") != AttrValue("EXPLICIT"),
                "MaxPoolGradGrad has no explicit padding");
          attrs.erase("explicit_paddings");
          g.dx(2) = op("MaxPoolGradGrad", {g.x(0), g.x(1), g.dy()}, std::move(attrs));
        },
    .kernels = {cpu_kernel(
        "T", NumberTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_max_gradient(t, r); })},
    .examples = {{.inputs = {floats({1, 2, 3, 1}, {1, 5, 2, 4, 3, 5}), floats({1, 1, 2, 1}, {5, 5}),
                             floats({1, 1, 2, 1}, {10, 1})},
                  .attrs = windows(2, 1, "VALID"),
                  .outputs = {floats({1, 2, 3, 1}, {0, 11, 0, 0, 0, 0})}}},
}};

const Op max_pool_grad_grad_op{{
    .name = "MaxPoolGradGrad",
    .doc = "output = of grad, which has orig_input's shape, the elements where MaxPool took its "
           "outputs from.",
    .inputs = {"orig_input: T", "orig_output: T", "grad: T"},
    .outputs = {"output: T"},
    .attrs = with(attrs(real, false), two_formats),
    .shape = infer_max_gradient_gradient,
    .gradient =
        [](Gradient& g) {
          g.dx(2) = op("MaxPoolGrad", {g.x(0), g.x(1), g.dy()}, attrs_of(g));
        },
    .kernels = {cpu_kernel("T", NumberTypes{},
                           []<class T>(TypeTag<T> t, const KernelRequest& r) {
                             return prepare_max_gradient_gradient(t, r);
                           })},
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
    .shape = infer,
    .gradient =
        [](Gradient& g) {
          g.dx() = op("AvgPoolGrad", {shape_of(g.x()), g.dy()}, attrs_of(g));
        },
    .kernels = {cpu_kernel(
        "T", FloatTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_average(t, r); })},
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
    .shape = infer_average_gradient,
    .gradient = [](Gradient& g) { g.dx(1) = op("AvgPool", {g.dy()}, attrs_of(g)); },
    .kernels = {cpu_kernel("T", FloatTypes{},
                           []<class T>(TypeTag<T> t, const KernelRequest& r) {
                             return prepare_average_gradient(t, r);
                           })},
    .examples = {{.inputs = {ints({1, 2, 3, 1}), floats({1, 1, 2, 1}, {4, 6})},
                  .attrs = windows(2, 2, "SAME"),
                  .outputs = {floats({1, 2, 3, 1}, {1, 1, 3, 1, 1, 3})}}},
    .value_inputs = {0},
}};

}  // namespace
}  // namespace leat
