// ImageProjectiveTransformV2 and V3: apply a projective transformation to images.
#include <cmath>
#include <limits>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// The pixels beyond an image of pixels abcd: aaaa|abcd|dddd, dcba|abcd|dcba, abcd|abcd|abcd, or one
// value.
enum class Fill { nearest, reflect, wrap, constant };

Fill fill_of(const NodeView& node) {
  const auto& mode = node.attr<std::string>("fill_mode");
  if (mode == "NEAREST") return Fill::nearest;
  if (mode == "REFLECT") return Fill::reflect;
  if (mode == "WRAP") return Fill::wrap;
  check(mode == "CONSTANT", "Invalid fill_mode ", mode,
        ". Supported types: REFLECT, WRAP, CONSTANT, NEAREST");
  return Fill::constant;
}

bool is_bilinear(const NodeView& node) {
  const auto& interpolation = node.attr<std::string>("interpolation");
  check(interpolation == "BILINEAR" || interpolation == "NEAREST", "Invalid interpolation ",
        interpolation, ". Supported types: NEAREST, BILINEAR");
  return interpolation == "BILINEAR";
}

// The number of times that `period` fits into x, towards 0, times `step`: in integers, as in
// SciPy's ndimage, which TensorFlow follows.
float periods(float x, int64_t period, int64_t step) {
  const float times = x / static_cast<float>(period);
  constexpr float far = 1e9F;  // farther away, any place will do
  return static_cast<float>(step * static_cast<int64_t>(std::clamp(times, -far, far)));
}

float clamped(float x, int64_t n) {
  const auto last = static_cast<float>(n - 1);
  x = x < 0 ? 0 : x;  // NaN stays NaN
  return last < x ? last : x;
}

float inside(Fill fill, float x, int64_t n) {
  if (fill == Fill::constant || std::isnan(x)) return x;
  if (fill == Fill::nearest) return clamped(x, n);
  const bool is_outside = x < 0 || x > static_cast<float>(n - 1);
  if (is_outside && n <= 1) {
    x = 0;
  } else if (is_outside && fill == Fill::reflect) {
    const int64_t twice = 2 * n;
    const auto extent = static_cast<float>(n), period = static_cast<float>(twice);
    if (x < 0) {
      x += periods(-x, twice, twice);
      x = x < -extent ? x + period : -x - 1;
    } else {
      x -= periods(x, twice, twice);
      if (x >= extent) x = period - x - 1;
    }
  } else if (is_outside) {
    if (x < 0) {
      x += periods(-x, n - 1, n) + static_cast<float>(n);
    } else {
      x -= periods(x, n - 1, n);
    }
  }
  return clamped(x, n);
}

// Converts to an integer as the processor does: a value that does not fit becomes the lowest
// integer, truncated for uint8.
template <class T>
T converted(float x) {
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    constexpr auto least = std::numeric_limits<Wide>::min();
    const bool fits = x >= static_cast<float>(least) && x < -static_cast<float>(least);
    return static_cast<T>(fits ? static_cast<Wide>(x) : least);
  } else {
    return T(x);
  }
}

template <class T>
struct Transform {
  int64_t images, height, width, channels;  // of the images
  int64_t rows, columns;                    // of the output
  int64_t transforms;                       // 1 for all images, or one each
  bool is_bilinear;
  Fill fill;

  // The first channel of a pixel; null outside of the image.
  const T* pixel(const T* image, float y, float x) const {
    const bool is_inside =
        y >= 0 && x >= 0 && y < static_cast<float>(height) && x < static_cast<float>(width);
    return is_inside
               ? image + (static_cast<int64_t>(y) * width + static_cast<int64_t>(x)) * channels
               : nullptr;
  }

  void interpolate(const T* image, float y, float x, T fill_value, T* out) const {
    const float top = std::floor(y), left = std::floor(x), bottom = top + 1, right = left + 1;
    const T* const corners[] = {pixel(image, top, left), pixel(image, top, right),
                                pixel(image, bottom, left), pixel(image, bottom, right)};
    for (int64_t c = 0; c < channels; ++c) {
      const auto at = [&](int corner) {
        return static_cast<float>(
            ComputeType<T>(corners[corner] == nullptr ? fill_value : corners[corner][c]));
      };
      const float above = (right - x) * at(0) + (x - left) * at(1),
                  below = (right - x) * at(2) + (x - left) * at(3);
      out[c] = converted<T>((bottom - y) * above + (y - top) * below);
    }
  }

  void write(const T* image, const float* t, float row, float column, T fill_value, T* out) const {
    const float scale = t[6] * column + t[7] * row + 1.0F;
    if (scale == 0) {  // infinitely far away
      std::fill_n(out, channels, fill_value);
      return;
    }
    const float x = inside(fill, (t[0] * column + t[1] * row + t[2]) / scale, width),
                y = inside(fill, (t[3] * column + t[4] * row + t[5]) / scale, height);
    if (is_bilinear) {
      interpolate(image, y, x, fill_value, out);
    } else if (const T* from = pixel(image, std::round(y), std::round(x))) {
      std::copy_n(from, channels, out);
    } else {
      std::fill_n(out, channels, fill_value);
    }
  }

  void operator()(const T* image, const float* t, T fill_value, T* out) const {
    for (int64_t i = 0; i < images; ++i, image += height * width * channels) {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < columns; ++column, out += channels) {
          StepEnd::pace(16 * channels);
          write(image, t, static_cast<float>(row), static_cast<float>(column), fill_value, out);
        }
      }
      if (transforms > 1) t += 8;
    }
  }
};

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  const Shape &images = r.inputs[0].shape, &out = r.outputs[0].shape;
  check(out[1] > 0 && out[2] > 0, "output dimensions must be positive, got ", out);
  const Transform<T> transform{.images = images[0],
                               .height = images[1],
                               .width = images[2],
                               .channels = images[3],
                               .rows = out[1],
                               .columns = out[2],
                               .transforms = r.inputs[1].shape[0],
                               .is_bilinear = is_bilinear(r.node),
                               .fill = fill_of(r.node)};
  if (out.elements() == 0) return {};
  const bool has_fill_value = r.inputs.size() > 3;
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    transform(a.input<T>(0), a.input<float>(1),
              converted<T>(has_fill_value ? *a.input<float>(3) : 0.0F), a.output<T>());
  });
  kernel.cost_ns = 10.0 * static_cast<double>(out.elements());
  return kernel;
}

void infer(ShapeContext& c) {
  const Shape images = c.with_rank(0, 4), transforms = c.with_rank(1, 2),
              size = c.shape_from_value(2);
  check((transforms[0] == any || transforms[0] == 1 || images[0] == any ||
         transforms[0] == images[0]) &&
            (transforms[1] == any || transforms[1] == 8),
        "Input transform should be num_images x 8 or 1 x 8, got ", transforms, " for images ",
        images);
  check(!size.has_rank() || size.rank() == 2, "output shape must have two elements, got ", size);
  if (c.num_inputs() > 3) c.with_rank(3, 0);
  const auto extent = [&](int i) { return size.has_rank() ? size[i] : any; };
  c.set_output(0, {images[0], extent(0), extent(1), images[3]});
}

// As in TensorFlow, applies the inverse transformations to the gradient.
void gradient(Gradient& g) {
  Graph& graph = g.graph();
  const auto columns = [&](Output x, int32_t from, int32_t to) {
    return strided_slice(x, constant(graph, ints({0, from})), constant(graph, ints({0, to})),
                         constant(graph, ints({1, 1})),
                         {{"begin_mask", int64_t{1}}, {"end_mask", int64_t{1}}});
  };
  const Output ones = ones_like(columns(g.x(1), 0, 1));
  const Output matrices =
      reshape(concatenate({g.x(1), ones}, 1), constant(graph, ints({-1, 3, 3})));
  const Output inverse = reshape(op("MatrixInverse", {matrices}), constant(graph, ints({-1, 9})));
  const Output scaled = op("RealDiv", {inverse, columns(inverse, 8, 9)});
  std::vector<Output> inputs = {
      g.dy(), columns(scaled, 0, 8),
      strided_slice(shape_of(g.x(0)), constant(graph, ints({1})), constant(graph, ints({3})),
                    constant(graph, ints({1})))};
  if (g.num_inputs() > 3) inputs.push_back(constant(graph, Tensor::scalar(0.0F)));
  g.dx() = op(g.node().op->name, inputs,
              {{"interpolation", g.attr<std::string>("interpolation")},
               {"fill_mode", g.attr<std::string>("fill_mode")}});
}

OpDef transform_op(bool is_v3) {
  OpDef op{
      .name = is_v3 ? "ImageProjectiveTransformV3" : "ImageProjectiveTransformV2",
      .doc = std::string("With transforms[i] = [a0, a1, a2, b0, b1, b2, c0, c1] and k = c0 x + c1 "
                         "y + 1: transformed_images[i, y, x] = images[i] at ((b0 x + b1 y + b2) / "
                         "k, (a0 x + a1 y + a2) / k), interpolated from the pixels around it. "
                         "Beyond the image: its border (fill_mode NEAREST), its mirror image "
                         "(REFLECT), itself (WRAP), or ") +
             (is_v3 ? "fill_value" : "0") + " (CONSTANT).",
      .inputs = {"images: dtype", "transforms: float", "output_shape: int32"},
      .outputs = {"transformed_images: dtype"},
      .attrs = {"dtype: {uint8, int32, int64, half, bfloat16, float, double}",
                "interpolation: string", "fill_mode: string = 'CONSTANT'"},
      .shape = infer,
      .gradient = gradient,
      .kernels = {cpu_kernel(
          "dtype", Types<uint8_t, int32_t, int64_t, half, bfloat16, float, double>{},
          []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
      // To the left by half a pixel.
      .examples = {{.inputs = {floats({1, 1, 3, 1}, {2, 4, 8}),
                               floats({1, 8}, {1, 0, 0.5F, 0, 1, 0, 0, 0}), ints({1, 3})},
                    .attrs = {{"interpolation", "BILINEAR"}},
                    .outputs = {floats({1, 1, 3, 1}, {3, 6, is_v3 ? 4.5F : 4.0F})}}},
      .value_inputs = {2},
  };
  if (is_v3) {
    op.inputs.emplace_back("fill_value: float");
    op.examples[0].inputs.push_back(Tensor::scalar(1.0F));
  }
  return op;
}

const Op v2_op{transform_op(false)}, v3_op{transform_op(true)};

}  // namespace
}  // namespace leat
