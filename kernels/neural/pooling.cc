// leat: fast-math-loops
// The shape functions of poolings, and average pooling.
#include "kernels/neural/pooling.h"

#include <cstring>

#include "kernels/neural/pooling_loops.h"

namespace leat {
namespace {

int64_t channel_window(const NodeView& node) {
  return image_steps(node, "ksize")[image_axes(node).channels];
}

// Pooling over channels instead of pixels, not over both: the windows must not overlap.
void check_channel_window(const NodeView& node, const Shape& x) {
  const ImageAxes axes = image_axes(node);
  const std::vector<int64_t>& sizes = image_steps(node, "ksize");
  const auto need = [](bool condition, const char* message) {
    if (!condition) fail(Code::unimplemented, message);
  };
  need(node.op.starts_with("Max"), "Non-spatial pooling is not yet supported.");
  need(!axes.has_planes(), "Pooling over the channels of volumes is not yet supported.");
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
  for (int axis : axes.spatial()) y.set(axis, window_of(node, axis, x).out);
  if (x[axes.channels] != any) y.set(axes.channels, x[axes.channels] / channel_window(node));
  return y;
}

void check_output_shape(const NodeView& node, const Shape& x, const Shape& y, const char* name) {
  const Shape expected = output_shape(node, x);
  check(expected.is_compatible(y), node.op, ": expected ", name, " shape to be ", expected,
        ", but got ", y);
}

}  // namespace

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
  Pool pool{.images = axes.channels_first() ? x[axes.batch] * x[axes.channels] : x[axes.batch],
            .channels = channels,
            .height = window_of(node, axes.height, x),
            .width = window_of(node, axes.width, x)};
  if (axes.has_planes()) pool.planes = window_of(node, axes.planes, x);
  for (const Window* window : {&pool.height, &pool.width}) {
    const int64_t padding = std::max(window->before, window->after);
    check(padding == 0 || padding < window->size, "padding ", padding,
          " needs to be smaller than the window size ", window->size);
  }
  return pool;
}

namespace {

// The means of count * lanes channels.
template <int count, class Taps, class T>
LEAT_INLINE inline void average_lanes(const Pool& p, const Taps& taps, int64_t row, int64_t ox,
                                      const T* x, T* to) {
  Lanes sum[count];
  for (Lanes& s : sum) s = Lanes{};
  const int64_t summed = taps.for_each_tap(row, ox, [&](int64_t pixel) LEAT_INLINE {
    for (int i = 0; i < count; ++i) {
      Lanes value;
      load_lanes(x + pixel * p.channels + i * lanes, value);
      sum[i] += value;
    }
  });
  for (int i = 0; i < count; ++i) {
    sum[i] /= static_cast<float>(summed);
    round_lanes<T>(sum[i]);
    store_lanes(to + i * lanes, sum[i]);
  }
}

// Sums in float for 16-bit floats.
template <class Taps, class T>
LEAT_INLINE inline void average_rows(const Pool& p, const Taps& taps, int64_t begin, int64_t end,
                                     const T* x, T* y) {
  using C = ComputeType<T>;
  for_each_pixel(p, begin, end, [&](int64_t row, int64_t ox) LEAT_INLINE {
    T* to = y + (row * p.width.out + ox) * p.channels;
    int64_t done = 0;
    if constexpr (has_lanes<T>) {
      done = for_channel_lanes<4>(p.channels, [&](auto count, int64_t first) LEAT_INLINE {
        average_lanes<count>(p, taps, row, ox, x + first, to + first);
      });
    }
    const auto average = [&](int64_t first, int64_t n) LEAT_INLINE {
      C sum[channel_block];
      C* const total = sum;
      for (int64_t c = 0; c < n; ++c) total[c] = C(0);
      const int64_t count = taps.for_each_tap(row, ox, [&](int64_t pixel) LEAT_INLINE {
        const T* from = x + pixel * p.channels + first;
        for (int64_t c = 0; c < n; ++c) total[c] += C(from[c]);
      });
      for (int64_t c = 0; c < n; ++c) to[first + c] = T(total[c] / C(count));
    };
    for_channel_blocks(p.channels, average, done);
  });
}

// f(arguments, taps, begin, end) for ranges of rows of the output.
template <class F>
BoundKernel bind_rows(const Pool& p, F f) {
  return bound_kernel(cost_ns(p), [p, f](const Arguments& a) {
    a.stream->parallel_for(p.rows(), grain(p, p.width.out * p.channels),
                           [&](int64_t begin, int64_t end) {
                             with_taps_of(p, [=, &a](const auto& taps) {
                               vectorized([=, &a]() LEAT_INLINE { f(a, taps, begin, end); });
                             });
                           });
  });
}

constexpr auto prepare_average = []<class T>(TypeTag<T>, const KernelRequest& r) -> BoundKernel {
  const Pool p = pool_of(r.node, r.inputs[0].shape);
  if (p.y_elements() == 0) return {};
  return bind_rows(
      p, [p](const Arguments& a, const auto& taps, int64_t begin, int64_t end)
             LEAT_INLINE { average_rows(p, taps, begin, end, a.input<T>(0), a.output<T>()); });
};

// Where each pixel is in exactly one window: its share of that window's gradient. 0 is added as to
// the first of several shares, which makes 0 of -0.
template <class Taps, class T>
LEAT_INLINE inline void share_rows(const Pool& p, const Taps& taps, int64_t begin, int64_t end,
                                   const T* dy, T* dx) {
  using C = ComputeType<T>;
  for_each_pixel(p, begin, end, [&](int64_t row, int64_t ox) LEAT_INLINE {
    const T* from = dy + (row * p.width.out + ox) * p.channels;
    const C part = C(1) / C(taps.for_each_tap(row, ox, [](int64_t) LEAT_INLINE {}));
    const auto share = [&](int64_t first, int64_t n, T* shares) LEAT_INLINE {
      for (int64_t c = 0; c < n; ++c) shares[c] = T(C(0) + C(from[first + c]) * part);
    };
    const int64_t done =
        for_channel_lanes<4>(p.channels, [&](auto count, int64_t first) LEAT_INLINE {
          T shares[count * lanes];
          share(first, count * lanes, shares);
          taps.for_each_tap(row, ox, [&](int64_t pixel) LEAT_INLINE {
            std::memcpy(dx + pixel * p.channels + first, shares, sizeof shares);
          });
        });
    for_channel_blocks(
        p.channels,
        [&](int64_t first, int64_t n) LEAT_INLINE {
          T shares[channel_block];
          share(first, n, shares);
          taps.for_each_tap(row, ox, [&](int64_t pixel) LEAT_INLINE {
            std::copy_n(shares, n, dx + pixel * p.channels + first);
          });
        },
        done);
  });
}

constexpr auto prepare_average_gradient = []<class T>(TypeTag<T>,
                                                      const KernelRequest& r) -> BoundKernel {
  using C = ComputeType<T>;
  const Pool p = pool_of(r.node, r.outputs[0].shape);
  if (p.x_elements() == 0) return {};
  if (p.has_each_pixel_once()) {
    return bind_rows(
        p, [p](const Arguments& a, const auto& taps, int64_t begin, int64_t end)
               LEAT_INLINE { share_rows(p, taps, begin, end, a.input<T>(1), a.output<T>()); });
  }
  return bound_kernel(cost_ns(p), [p](const Arguments& a) {
    const T* dy = a.input<T>(1);
    T* dx = a.output<T>();
    for_zeroed_images(a, p, dx, p.x_elements() / p.images, [=](int64_t begin, int64_t end) {
      vectorized([=]() LEAT_INLINE {
        for (int64_t row = begin * p.rows_per_image(); row < end * p.rows_per_image(); ++row) {
          for (int64_t ox = 0; ox < p.width.out; ++ox) {
            const T* from = dy + (row * p.width.out + ox) * p.channels;
            const C share = C(1) / C(p.count_taps(row, ox));
            p.for_each_tap(row, ox, [=](int64_t pixel) LEAT_INLINE {
              T* to = dx + pixel * p.channels;
              LEAT_INDEPENDENT_ITERATIONS
              for (int64_t c = 0; c < p.channels; ++c) to[c] = T(C(to[c]) + C(from[c]) * share);
            });
          }
        }
      });
    });
  });
};

}  // namespace

void infer_pool(ShapeContext& c) {
  c.set_output(0, output_shape(c.node(), c.with_rank(0, image_axes(c.node()).rank())));
}

void infer_max_pool_gradient(ShapeContext& c) {
  const Shape x = c.with_rank(0, image_axes(c.node()).rank());
  check_output_shape(c.node(), x, c.with_rank(1, image_axes(c.node()).rank()), "orig_output");
  check_output_shape(c.node(), x, c.with_rank(2, image_axes(c.node()).rank()), "grad");
  c.set_output(0, x);
}

void infer_max_pool_gradient_gradient(ShapeContext& c) {
  const Shape x = c.with_rank(0, image_axes(c.node()).rank()),
              y = c.with_rank(1, image_axes(c.node()).rank());
  check_output_shape(c.node(), x, y, "orig_output");
  check(x.is_compatible(c.with_rank(2, image_axes(c.node()).rank())), "Expected grad shape to be ",
        x, ", but got ", c.input(2));
  c.set_output(0, y.merged(output_shape(c.node(), x)));
}

void infer_average_pool_gradient(ShapeContext& c) {
  const Shape dy = c.with_rank(1, image_axes(c.node()).rank()), x = c.shape_from_value(0);
  if (!x.has_rank()) return c.set_output(0, Shape::of_rank(dy.rank()));
  check(x.rank() == dy.rank(), "orig_input_shape must be 1-dimensional and ", dy.rank(),
        " elements, got ", x.rank());
  check_output_shape(c.node(), x, dy, "grad");
  c.set_output(0, x);
}

void infer_max_pool_argmax(ShapeContext& c) {
  infer_pool(c);
  c.set_output(1, output_shape(c.node(), c.with_rank(0, 4)));
}

void infer_max_pool_argmax_gradient(ShapeContext& c) {
  const Shape x = c.with_rank(0, 4);
  check_output_shape(c.node(), x, c.with_rank(1, 4), "grad");
  check_output_shape(c.node(), x, c.with_rank(2, 4), "argmax");
  c.set_output(0, x);
}

Kernel average_pool_kernel() { return cpu_kernel("T", FloatTypes{}, prepare_average); }
Kernel average_pool_gradient_kernel() {
  return cpu_kernel("T", FloatTypes{}, prepare_average_gradient);
}

}  // namespace leat
