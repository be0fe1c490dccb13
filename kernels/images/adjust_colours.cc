// Colour changes of images [height, width, channels] and batches of them: AdjustHue,
// AdjustSaturation and AdjustContrastv2.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/work/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// ---- AdjustHue, AdjustSaturation

// A pixel as the place of its colour on the circle red, yellow, green, cyan, blue, magenta, in [0,
// 6), and its smallest and largest value.
struct Pixel {
  float place = 0, least, largest;

  explicit Pixel(const float* rgb)
      : least(std::min({rgb[0], rgb[1], rgb[2]})), largest(std::max({rgb[0], rgb[1], rgb[2]})) {
    const float range = largest - least;
    if (range == 0) return;
    place = rgb[0] == largest   ? (rgb[1] - rgb[2]) / range
            : rgb[1] == largest ? (rgb[2] - rgb[0]) / range + 2
                                : (rgb[0] - rgb[1]) / range + 4;
    if (place < 0) place += 6;
  }

  void write(float* rgb) const {
    const float full[3] = {std::abs(place - 3) - 1, 2 - std::abs(place - 2),
                           2 - std::abs(place - 4)};
    for (int i = 0; i < 3; ++i)
      rgb[i] = least + (largest - least) * std::clamp(full[i], 0.0F, 1.0F);
  }
};

struct Hue {
  static void adjust(Pixel& pixel, float delta) {
    pixel.place = std::fmod(pixel.place + 6 * delta, 6.0F);
    if (pixel.place < 0) pixel.place += 6;
  }
};

struct Saturation {
  static void adjust(Pixel& pixel, float scale) {
    if (pixel.largest <= 0) return;
    const float saturation = (pixel.largest - pixel.least) / pixel.largest;
    pixel.least = pixel.largest * (1 - std::clamp(saturation * scale, 0.0F, 1.0F));
  }
};

template <class Change, class T>
BoundKernel prepare_pixels(TypeTag<T>, const KernelRequest& r) {
  const int64_t n = r.inputs[0].shape.elements();
  BoundKernel kernel = BoundKernel::of([n](const Arguments& a) {
    const float how_much = *a.input<float>(1);
    for (int64_t i = 0; i < n; i += 3) {
      StepEnd::pace(8);
      float rgb[3];
      std::copy_n(a.input<T>(0) + i, 3, rgb);
      Pixel pixel(rgb);
      Change::adjust(pixel, how_much);
      pixel.write(rgb);
      for (int c = 0; c < 3; ++c) a.output<T>()[i + c] = T(rgb[c]);
    }
  });
  kernel.cost_ns = 5.0 * static_cast<double>(n);
  return std::move(kernel).sharing(0, 0);
}

template <class Change>
OpDef pixel_op(std::string name, std::string doc, std::string how_much, float by, Tensor expected) {
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {"images: T", std::move(how_much)},
      .outputs = {"output: T"},
      .attrs = {"T: {half, float} = float"},
      .shape =
          [](ShapeContext& c) {
            const Shape images = c.with_rank_at_least(0, 3);
            c.with_rank(1, 0);
            if (images.has_rank()) {
              const int64_t channels = images[images.rank() - 1];
              check(channels == any || channels == 3, "input must have 3 channels but instead has ",
                    channels, " channels.");
            }
            c.set_output(0, images);
          },
      .kernels = {cpu_kernel("T", Types<float, half>{},
                             []<class T>(TypeTag<T> t, const KernelRequest& r) {
                               return prepare_pixels<Change>(t, r);
                             })},
      .examples = {{.inputs = {floats({1, 2, 3}, {0, 0.5, 0, 0.5, 0.25, 0.5}), Tensor::scalar(by)},
                    .outputs = {std::move(expected)}}},
  };
}

const Op hue_op{pixel_op<Hue>(
    "AdjustHue", "The hue of each pixel [red, green, blue] is moved by delta around the circle.",
    "delta: float", 1.0F / 3, floats({1, 2, 3}, {0, 0, 0.5, 0.5, 0.5, 0.25}))};
const Op saturation_op{pixel_op<Saturation>(
    "AdjustSaturation",
    "The saturation of each pixel [red, green, blue] times scale, at most 1 and at least 0.",
    "scale: float", 0.5F, floats({1, 2, 3}, {0.25, 0.5, 0.25, 0.5, 0.375, 0.5}))};

// ---- AdjustContrastv2

template <class T>
BoundKernel prepare_contrast(TypeTag<T>, const KernelRequest& r) {
  const Shape& images = r.inputs[0].shape;
  const int64_t channels = images[images.rank() - 1],
                pixels = images[images.rank() - 2] * images[images.rank() - 3],
                n = images.elements();
  if (n == 0) return {};
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    const float factor = *a.input<float>(1);
    // Some pixels at a time, so that vectors are full: number i is of channel i % channels.
    const int64_t piece = channels * std::max<int64_t>(1, 64 / channels);
    const int64_t block = piece * std::max<int64_t>(1, 8192 / piece);
    std::vector<double> sums(piece);
    std::vector<float> means(piece);
    for (int64_t first = 0; first < n; first += pixels * channels) {
      std::fill(sums.begin(), sums.end(), 0.0);
      const T* x = a.input<T>(0) + first;
      T* y = a.output<T>() + first;
      for (int64_t begin = 0; begin < pixels * channels; begin += block) {
        const int64_t end = std::min(begin + block, pixels * channels);
        StepEnd::pace(end - begin);
        vectorized([=, sum = sums.data()]() LEAT_INLINE {
          for (int64_t i = begin; i < end; i += piece) {
            const int64_t size = std::min(piece, end - i);
            for (int64_t k = 0; k < size; ++k)
              sum[k] += static_cast<double>(ComputeType<T>(x[i + k]));
          }
        });
      }
      for (int64_t k = channels; k < piece; ++k) sums[k % channels] += sums[k];
      for (int64_t k = 0; k < piece; ++k)
        means[k] = static_cast<float>(sums[k % channels] / static_cast<double>(pixels));
      for (int64_t begin = 0; begin < pixels * channels; begin += block) {
        const int64_t end = std::min(begin + block, pixels * channels);
        StepEnd::pace(end - begin);
        vectorized([=, mean = means.data()]() LEAT_INLINE {
          for (int64_t i = begin; i < end; i += piece) {
            const int64_t size = std::min(piece, end - i);
            LEAT_INDEPENDENT_ITERATIONS
            for (int64_t k = 0; k < size; ++k) {
              const auto value = static_cast<float>(ComputeType<T>(x[i + k]));
              y[i + k] = T((value - mean[k]) * factor + mean[k]);
            }
          }
        });
      }
    }
  });
  kernel.cost_ns = 2.0 * static_cast<double>(n);
  return std::move(kernel).sharing(0, 0);
}

const Op contrast_op{{
    .name = "AdjustContrastv2",
    .doc = "output = (x - mean) * contrast_factor + mean; the mean is that of the channel in the "
           "image [height, width, channels].",
    .inputs = {"images: T", "contrast_factor: float"},
    .outputs = {"output: T"},
    .attrs = {"T: {half, float} = float"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 0);
          c.set_output(0, c.with_rank_at_least(0, 3));
        },
    .kernels = {cpu_kernel(
        "T", Types<float, half>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_contrast(t, r); })},
    .examples = {{.inputs = {floats({1, 2, 2}, {1, 10, 3, 30}), Tensor::scalar(2.0F)},
                  .outputs = {floats({1, 2, 2}, {0, 0, 4, 40})}}},
}};

}  // namespace
}  // namespace leat
