// ResizeBilinear, ResizeBicubic and ResizeNearestNeighbor with their gradients, and ResizeArea:
// every output pixel is a weighted sum of input pixels, its taps, along either axis.
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/images/resize_taps.h"

namespace leat {
namespace {

using Method = Resampling;

struct Resize {
  int64_t images, height, width, channels;  // of the image that is not resized
  Taps rows, columns;

  Resize(const NodeView& node, Method method, const Shape& x, const Shape& y)
      : images(x[0]), height(x[1]), width(x[2]), channels(x[3]) {
    check(height > 0 && width > 0, "input image must be of non-zero size, got shape ", x);
    if (x.elements() == 0 || y.elements() == 0) return;  // its extents may still be vast
    rows = taps_along(node, method, height, y[1]);
    columns = taps_along(node, method, width, y[2]);
  }
  int64_t x_elements() const { return images * height * width * channels; }
  int64_t y_elements() const { return images * rows.out * columns.out * channels; }

  // f(first channel of a pixel of y, of a pixel of x, weight) for the rows [begin, end) of all
  // images of y.
  template <class F>
  LEAT_INLINE void for_each_tap(int64_t begin, int64_t end, F f) const {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t image = row / rows.out, oy = row % rows.out;
      for (int64_t ox = 0; ox < columns.out; ++ox) {
        for (int64_t i = oy * rows.count; i < (oy + 1) * rows.count; ++i) {
          const int64_t from = (image * height + rows.index[i]) * width;
          for (int64_t j = ox * columns.count; j < (ox + 1) * columns.count; ++j) {
            f((row * columns.out + ox) * channels, (from + columns.index[j]) * channels,
              rows.weight[i] * columns.weight[j]);
          }
        }
      }
    }
  }
  double cost_ns() const {
    return 0.3 * static_cast<double>(y_elements() * rows.count * columns.count);
  }
};

// ---- Shapes

void check_image(const Shape& image) {
  check(image[1] != 0 && image[2] != 0, "input image must be of non-zero size, got shape ", image);
}

// input 0 resized to the height and width in input 1.
void infer(ShapeContext& c) {
  Shape out = c.with_rank(0, 4);
  c.with_rank(1, 1);
  const Shape size = c.partial_value(1);
  if (size.has_rank()) check(size.rank() == 2, "size must have two elements: ", size);
  if (const Tensor* value = c.value(1)) {
    for (int64_t extent : to_int64s(*value))
      check(extent > 0, "output dimensions must be positive, got ", extent);
  }
  for (int i : {0, 1}) out.set(i + 1, size.has_rank() ? size[i] : any);
  c.set_output(0, out);
}

void infer_gradient(ShapeContext& c) {
  const Shape dy = c.with_rank(0, 4), x = c.with_rank(1, 4);
  for (int axis : {0, 3}) {
    check(dy[axis] == any || x[axis] == any || dy[axis] == x[axis],
          "grads and original_image must have the same number of ",
          axis == 0 ? "images: " : "channels: ", dy, " and ", x);
  }
  c.set_output(0, x);
}

// ---- Kernels

// One line of the output from one of the input that has been resized along the other axis, and has
// room for one more number. `known` channels and `known_taps`, or any number of those that are 0.
template <int known, int known_taps>
LEAT_INLINE inline void resize_line(const Taps& taps, int64_t any_channels, const float* from,
                                    float* to) {
  const int64_t channels = known != 0 ? known : any_channels;
  const int64_t count = known_taps != 0 ? known_taps : taps.count;
  for (int64_t i = 0; i < taps.out; ++i, to += channels) {
    const int64_t* index = taps.index.data() + i * count;
    const float* weight = taps.weight.data() + i * count;
    if constexpr (known == 3) {
      using Four [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]] = float;
      Four sum{};
      for (int64_t j = 0; j < count; ++j)
        sum += weight[j] * *reinterpret_cast<const Four*>(from + index[j] * 3);
      if (i + 1 < taps.out) {  // the next pixel overwrites the fourth
        *reinterpret_cast<Four*>(to) = sum;
      } else {
        for (int c = 0; c < 3; ++c) to[c] = sum[c];
      }
    } else {
      for (int64_t j = 0; j < count; ++j) {
        for (int64_t c = 0; c < channels; ++c) {
          const float part = weight[j] * from[index[j] * channels + c];
          to[c] = j == 0 ? part : to[c] + part;
        }
      }
    }
  }
}

// Rows [begin, end) of all images of y, each along the height first.
template <class T>
void resize_by_axes(const Resize& resize, const T* x, float* y, int64_t begin, int64_t end) {
  const int64_t row = resize.columns.out * resize.channels, width = resize.width * resize.channels;
  std::vector<float> line(width + 1);
  const Taps& taps = resize.rows;
  for (int64_t r = begin; r < end; ++r) {
    StepEnd::pace(taps.count * width + resize.columns.count * row);
    const int64_t image = r / taps.out, first = r % taps.out * taps.count;
    vectorized([&]() LEAT_INLINE {
      float* const sums = line.data();
      const auto weighted = [&](int64_t tap, int64_t k) LEAT_INLINE {
        const T* from = x + (image * resize.height + taps.index[tap]) * width;
        return taps.weight[tap] * static_cast<float>(from[k]);
      };
      if (taps.count == 1) {
        for (int64_t k = 0; k < width; ++k) sums[k] = weighted(first, k);
      } else {
        for (int64_t k = 0; k < width; ++k) sums[k] = weighted(first, k) + weighted(first + 1, k);
      }
      for (int64_t i = first + 2; i < first + taps.count; ++i)
        for (int64_t k = 0; k < width; ++k) sums[k] += weighted(i, k);
      float* const to = y + r * row;
      switch (resize.channels) {
        case 1:
          return resize_line<1, 0>(resize.columns, 1, sums, to);
        case 3:
          return resize.columns.count == 2 ? resize_line<3, 2>(resize.columns, 3, sums, to)
                                           : resize_line<3, 0>(resize.columns, 3, sums, to);
        default:
          return resize_line<0, 0>(resize.columns, resize.channels, sums, to);
      }
    });
  }
}

template <Method method, class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  check_image(r.inputs[0].shape);
  const Resize resize(r.node, method, r.inputs[0].shape, r.outputs[0].shape);
  // Where few columns of the input are read, not all of them are worth to be resized.
  const bool by_axes = resize.width <= 2 * resize.columns.out * resize.columns.count;
  BoundKernel kernel = BoundKernel::of([resize, by_axes](const Arguments& a) {
    const T* x = a.input<T>(0);
    float* y = a.output<float>();
    const int64_t row = resize.columns.out * resize.channels;
    a.stream->parallel_for(
        resize.images * resize.rows.out, 1 + 20'000 / std::max<int64_t>(1, row),
        [&](int64_t begin, int64_t end) {
          if (by_axes) return resize_by_axes(resize, x, y, begin, end);
          std::fill(y + begin * row, y + end * row, 0.0F);
          resize.for_each_tap(begin, end, [&](int64_t to, int64_t from, float weight) LEAT_INLINE {
            for (int64_t c = 0; c < resize.channels; ++c)
              y[to + c] += weight * static_cast<float>(x[from + c]);
          });
        });
  });
  kernel.cost_ns = resize.cost_ns();
  return kernel;
}

template <class T>
BoundKernel prepare_nearest(TypeTag<T>, const KernelRequest& r) {
  check_image(r.inputs[0].shape);
  const Resize resize(r.node, Method::nearest, r.inputs[0].shape, r.outputs[0].shape);
  BoundKernel kernel = BoundKernel::of([resize](const Arguments& a) {
    const T* x = a.input<T>(0);
    T* y = a.output<T>();
    resize.for_each_tap(0, resize.images * resize.rows.out,
                        [&](int64_t to, int64_t from, float)
                            LEAT_INLINE { copy_elements(x + from, resize.channels, y + to); });
  });
  kernel.cost_ns = resize.cost_ns();
  return kernel;
}

// dx for a gradient dy with elements of type D.
template <Method method, class D, class T>
BoundKernel prepare_gradient(TypeTag<T>, const KernelRequest& r) {
  using C = ComputeType<T>;
  check_image(r.inputs[0].shape);
  const Resize resize(r.node, method, r.outputs[0].shape, r.inputs[0].shape);
  BoundKernel kernel = BoundKernel::of([resize](const Arguments& a) {
    const D* dy = a.input<D>(0);
    T* dx = a.output<T>();
    std::fill_n(dx, resize.x_elements(), T(0));
    resize.for_each_tap(
        0, resize.images * resize.rows.out,
        [&](int64_t from, int64_t to, float weight) LEAT_INLINE {
          for (int64_t c = 0; c < resize.channels; ++c) {
            dx[to + c] = T(C(dx[to + c]) + static_cast<C>(weight) * static_cast<C>(dy[from + c]));
          }
        });
  });
  kernel.cost_ns = resize.cost_ns();
  return kernel;
}

// ---- The ops

using ImageTypes =
    Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>;

const std::string image_types =
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}";

std::vector<std::string> attrs(std::string types) {
  return {std::move(types), "align_corners: bool = false", "half_pixel_centers: bool = false"};
}

AttrMap attrs_of(Gradient& g) {
  return {{"align_corners", g.attr<bool>("align_corners")},
          {"half_pixel_centers", g.attr<bool>("half_pixel_centers")}};
}

// resized_images = images resized to floats.
template <Method method>
OpDef resize(OpDef op) {
  op.inputs = {"images: T", "size: int32"};
  op.outputs = {"resized_images: float"};
  if (op.attrs.empty()) op.attrs = attrs(image_types);
  op.shape = infer;
  op.kernels = {cpu_kernel("T", ImageTypes{}, []<class T>(TypeTag<T> t, const KernelRequest& r) {
    return prepare<method>(t, r);
  })};
  op.value_inputs = {1};
  return op;
}

// output = the gradient of resize<method> with respect to its images.
template <Method method, class Supported>
OpDef resize_gradient(OpDef op) {
  op.inputs = {"grads: float", "original_image: T"};
  op.outputs = {"output: T"};
  op.shape = infer_gradient;
  op.kernels = {cpu_kernel("T", Supported{}, []<class T>(TypeTag<T> t, const KernelRequest& r) {
    return prepare_gradient<method, float>(t, r);
  })};
  return op;
}

// [height, width] of the gradient's first input.
Output image_size(Gradient& g) {
  const auto one = [&](int32_t i) { return constant(g.graph(), ints({i})); };
  return op("Slice", {shape_of(g.x(0)), one(1), one(2)});
}

const Op bilinear_op{resize<Method::bilinear>({
    .name = "ResizeBilinear",
    .doc = "Images [batch, height, width, channels] resized to size = [height, width]: each pixel "
           "interpolated between the four around its place in the input.",
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("ResizeBilinearGrad", {g.dy(), g.x(0)}, attrs_of(g));
        },
    .examples = {{.inputs = {floats({1, 1, 2, 1}, {1, 3}), ints({1, 4})},
                  .outputs = {floats({1, 1, 4, 1}, {1, 2, 3, 3})}},
                 {.inputs = {floats({1, 1, 2, 1}, {1, 4}), ints({1, 4})},
                  .attrs = {{"align_corners", true}},
                  .outputs = {floats({1, 1, 4, 1}, {1, 2, 3, 4})}},
                 {.inputs = {floats({1, 1, 2, 1}, {1, 5}), ints({1, 4})},
                  .attrs = {{"half_pixel_centers", true}},
                  .outputs = {floats({1, 1, 4, 1}, {1, 2, 4, 5})}}},
})};

const Op bilinear_grad_op{resize_gradient<Method::bilinear, FloatTypes>({
    .name = "ResizeBilinearGrad",
    .doc = "output = d(sum(ResizeBilinear(original_image) * grads)) / d(original_image).",
    .attrs = attrs("T: {float, bfloat16, half, double}"),
    .examples = {{.inputs = {floats({1, 1, 4, 1}, {1, 2, 3, 4}), floats({1, 1, 2, 1}, {0, 0})},
                  .outputs = {floats({1, 1, 2, 1}, {2, 8})}}},
})};

const Op bicubic_op{resize<Method::bicubic>({
    .name = "ResizeBicubic",
    .doc = "Images [batch, height, width, channels] resized to size = [height, width]: each pixel "
           "a cubic convolution of the sixteen around its place in the input.",
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("ResizeBicubicGrad", {g.dy(), g.x(0)}, attrs_of(g));
        },
    .examples = {{.inputs = {floats({1, 1, 2, 1}, {1, 3}), ints({1, 4})},
                  .outputs = {floats({1, 1, 4, 1}, {1, 2, 3, 3.1875})}}},
})};

const Op bicubic_grad_op{resize_gradient<Method::bicubic, Types<float, double>>({
    .name = "ResizeBicubicGrad",
    .doc = "output = d(sum(ResizeBicubic(original_image) * grads)) / d(original_image).",
    .attrs = attrs("T: {float, double}"),
    .examples = {{.inputs = {floats({1, 1, 4, 1}, {1, 2, 3, 0}), floats({1, 1, 2, 1}, {0, 0})},
                  .outputs = {floats({1, 1, 2, 1}, {2, 4})}}},
})};

const Op area_op{resize<Method::area>({
    .name = "ResizeArea",
    .doc = "Images [batch, height, width, channels] resized to size = [height, width]: each pixel "
           "the mean of the input over the area that it covers.",
    .attrs = {image_types, "align_corners: bool = false"},
    .examples = {{.inputs = {floats({1, 1, 3, 1}, {1, 4, 6}), ints({1, 2})},
                  .outputs = {floats({1, 1, 2, 1}, {2, 5.3333333F})}},
                 {.inputs = {floats({1, 1, 4, 1}, {1, 3, 5, 8}), ints({1, 2})},
                  .outputs = {floats({1, 1, 2, 1}, {2, 6.5})}}},
})};

const Op nearest_op{{
    .name = "ResizeNearestNeighbor",
    .doc = "Images [batch, height, width, channels] resized to size = [height, width]: each pixel "
           "that of the input nearest to its place.",
    .inputs = {"images: T", "size: int32"},
    .outputs = {"resized_images: T"},
    .attrs = attrs(image_types),
    .shape = infer,
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("ResizeNearestNeighborGrad", {g.dy(), image_size(g)}, attrs_of(g));
        },
    .kernels = {cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_nearest(t, r); })},
    .examples = {{.inputs = {floats({1, 1, 2, 1}, {1, 3}), ints({1, 3})},
                  .outputs = {floats({1, 1, 3, 1}, {1, 1, 3})}}},
    .value_inputs = {1},
}};

const Op nearest_grad_op{{
    .name = "ResizeNearestNeighborGrad",
    .doc = "output = d(sum(ResizeNearestNeighbor(images) * grads)) / d(images), for images of size "
           "= [height, width].",
    .inputs = {"grads: T", "size: int32"},
    .outputs = {"output: T"},
    .attrs = attrs("T: {uint8, int8, int32, half, float, double, bfloat16}"),
    .shape = infer,
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("ResizeNearestNeighbor", {g.dy(), image_size(g)}, attrs_of(g));
        },
    .kernels = {cpu_kernel("T", Types<float, double, half, bfloat16, uint8_t, int8_t, int32_t>{},
                           []<class T>(TypeTag<T> t, const KernelRequest& r) {
                             return prepare_gradient<Method::nearest, T>(t, r);
                           })},
    .examples = {{.inputs = {floats({1, 1, 3, 1}, {1, 2, 4}), ints({1, 2})},
                  .outputs = {floats({1, 1, 2, 1}, {3, 4})}}},
    .value_inputs = {1},
}};

}  // namespace
}  // namespace leat
